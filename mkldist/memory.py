"""How the memory of a worker is divided: what plans foresee and what tasks keep to."""

from __future__ import annotations

DEFAULT_TASK_BYTES = 2 * 2**30
BANK_SHARE = 2
LIVE_BYTES = 2**30
SOLVERS_SHARE = 4
MATRICES_PER_SOLVER = 4
MATRICES_OF_DEFORMATION = 5  # factor, product with the Laplacian, system, root, and its inverse
ROW_CACHE_BYTES = 256 * 2**20
ROW_CACHE_SHARE = 4
VIEW_CACHE_BYTES = 512 * 2**20
VIEW_CACHE_SHARE = 8


def bank_bytes(memory_limit: int | None) -> int:
    """Return the bytes of the largest bank that a task loads.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take; None if nobody said.
    """
    return (DEFAULT_TASK_BYTES if memory_limit is None else memory_limit) // BANK_SHARE


def row_cache_bytes(memory_limit: int | None) -> int:
    """Return the bytes of single kernels that a streamed bank keeps.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take.
    """
    return (
        ROW_CACHE_BYTES
        if memory_limit is None
        else min(ROW_CACHE_BYTES, memory_limit // ROW_CACHE_SHARE)
    )


def view_cache_bytes(memory_limit: int | None) -> int:
    """Return the bytes of single kernels on few of a bank's points that a batch keeps.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take.
    """
    if memory_limit is None:
        return VIEW_CACHE_BYTES
    return min(VIEW_CACHE_BYTES, memory_limit // VIEW_CACHE_SHARE)


def solver_bytes(n_points: int, *, on_graph: bool = False) -> int:
    """Return the bytes of a solver at work: a few (n, n) matrices.

    Parameters
    ----------
    n_points : int
        Points n that it is trained on.
    on_graph : bool
        Whether it deforms kernels by a graph Laplacian.
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
        Bytes that the task may take.
    on_graph : bool
        Whether some of them deform kernels by a graph Laplacian.
    """
    budget = LIVE_BYTES if memory_limit is None else memory_limit // SOLVERS_SHARE
    return max(1, budget // solver_bytes(n_points, on_graph=on_graph))
