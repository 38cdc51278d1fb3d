"""Words and numbers that solvers and results share: reasons to stop, names, sizes of traces."""

from __future__ import annotations

import enum

import numpy as np

from mkldist.core.arrays import Bools, Floats

STATIONARITY, SAMPLED = "stationarity", "sampled_points"  # keys of Solution.extra

ACTIVE_SHARE = 1e-3
"""Share of the largest kernel weight above which a kernel is active, wherever kernels count."""

N_LARGEST = 5
"""Number of the largest kernel weights in a row of a trace."""


class StopReason(enum.StrEnum):
    """Reason for which a solver returned."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"
    RANK_LIMIT = "rank_limit"  # factors may have no more columns
    MEMORY_LIMIT = "memory_limit"


def is_active(weights: Floats) -> Bools:
    """Return which kernels are active, those of more than 0.001 of the largest weight, (..., M).

    Parameters
    ----------
    weights : (..., M) float64
        Kernel weights, in the last axis those that are compared; negative ones by their size.

    Examples
    --------
    >>> is_active(np.full(2000, 1 / 2000)).sum(), is_active(np.array([1.0, 0.002, 0.0005, 0.0]))
    (np.int64(2000), array([ True,  True, False, False]))
    """
    sizes = np.abs(weights)
    found: Bools = sizes > ACTIVE_SHARE * sizes.max(axis=-1, keepdims=True, initial=0.0)
    return found
