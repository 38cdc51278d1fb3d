"""Counts of a solver's requests, by which the cost of every method is told in the same units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkldist.arrays import Bools, Ints
from mkldist.gram.requests import Combine, Diagonal, Matvec, Quadratic, Request
from mkldist.solvers.base import Solution


class RequestCount:
    """Passes and combined matrices that a solver asked for, as :mod:`mkldist.counters` defines.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels in the bank.

    Attributes
    ----------
    passes : int
        How often the requests have read the whole bank.
    combines : int
        Combined Gram matrices.
    """

    def __init__(self, n_kernels: int) -> None:
        self.passes = self.combines = 0
        self._unread: Bools = np.ones(n_kernels, dtype=bool)

    def count(self, request: Request) -> None:
        """Count a request."""
        if isinstance(request, Combine):
            self.combines += 1 if request.weights.ndim == 1 else len(request.weights)
        kernels = _kernels_read(request)
        if kernels is not None:
            self._unread[kernels] = False
        if kernels is None or not np.count_nonzero(self._unread):
            self.passes += 1
            self._unread[:] = True

    def of(self, solution: Solution) -> Solution:
        """Return a solution with these counts among its own."""
        counters = replace(solution.counters, passes=self.passes, combines=self.combines)
        return replace(solution, counters=counters)


def _kernels_read(request: Request) -> Ints | None:
    """Return the kernels that a request reads, or None for all."""
    match request:
        case Combine(weights, kernels):
            used = np.flatnonzero(weights if weights.ndim == 1 else weights.any(axis=0))
            return used if kernels is None else kernels[used]
        case Matvec(kernels) | Quadratic(_, kernels):
            return kernels
        case Diagonal():  # entries, and no kernel as a whole
            return np.empty(0, dtype=np.intp)
        case _:
            return None
