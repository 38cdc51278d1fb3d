"""Division of a worker's memory among bank, solvers and caches.

Plans predict memory by these rules, and tasks keep to them.
"""

from __future__ import annotations

# Without a limit a task takes so many bytes; with one, the limit divided by the divisor.
DEFAULT_TASK_BYTES = 2 * 2**30
BANK_DIVISOR = 2
SOLVER_BYTES = 2**30
SOLVER_DIVISOR = 4
ROW_CACHE_BYTES = 256 * 2**20
ROW_CACHE_DIVISOR = 4
VIEW_CACHE_BYTES = 512 * 2**20
VIEW_CACHE_DIVISOR = 8

MATRICES_PER_SOLVER = 4
MATRICES_OF_DEFORMATION = 5  # factor, product with the Laplacian, system, root, and its inverse


def bank_bytes(memory_limit: int | None) -> int:
    """Return the bytes of the largest bank that a task loads.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take; None without a limit.
    """
    return (DEFAULT_TASK_BYTES if memory_limit is None else memory_limit) // BANK_DIVISOR


def row_cache_bytes(memory_limit: int | None) -> int:
    """Return the bytes of single kernels that a streamed bank keeps.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take; None without a limit.
    """
    if memory_limit is None:
        return ROW_CACHE_BYTES
    return min(ROW_CACHE_BYTES, memory_limit // ROW_CACHE_DIVISOR)


def view_cache_bytes(memory_limit: int | None) -> int:
    """Return the bytes of single kernels that a batch keeps for views of part of the points.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take; None without a limit.
    """
    if memory_limit is None:
        return VIEW_CACHE_BYTES
    return min(VIEW_CACHE_BYTES, memory_limit // VIEW_CACHE_DIVISOR)


def solver_bytes(n_points: int, *, on_graph: bool = False) -> int:
    """Return the bytes of a solver at work: a few (n, n) matrices.

    Parameters
    ----------
    n_points : int
        Points n that it is trained on.
    on_graph : bool
        True if it deforms kernels by a graph Laplacian.
    """
    matrices = MATRICES_PER_SOLVER + MATRICES_OF_DEFORMATION * on_graph
    return matrices * 8 * n_points**2


def live_solvers(n_points: int, memory_limit: int | None, *, on_graph: bool = False) -> int:
    """Return how many solvers may be at work at once in a task, at least one.

    Parameters
    ----------
    n_points : int
        Points that they are trained on.
    memory_limit : int or None
        Bytes that the task may take; None without a limit.
    on_graph : bool
        True if some of them deform kernels by a graph Laplacian.
    """
    budget = SOLVER_BYTES if memory_limit is None else memory_limit // SOLVER_DIVISOR
    return max(1, budget // solver_bytes(n_points, on_graph=on_graph))
