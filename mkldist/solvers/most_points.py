"""The number of points up to which memory holds the matrices of a solver."""

from __future__ import annotations

from bisect import bisect_right

from mkldist.core.memory import ProblemSize
from mkldist.solvers.base import Method
from mkldist.solvers.solver_params import SolverParams

MOST_POINTS = 10**8


def most_points(method: Method, params: SolverParams, n_kernels: int, n_bytes: int) -> int:
    """Return the most points on which memory holds what a solver of a method needs."""

    def needed(n: int) -> int:
        return method.memory(ProblemSize(n, n_kernels, n), params).needed

    return bisect_right(range(1, MOST_POINTS), n_bytes, key=needed)
