"""Words and numbers that solvers and results share: reasons to stop, names, sizes of traces."""

from __future__ import annotations

import enum

STATIONARITY, SAMPLED = "stationarity", "sampled_points"  # keys of Solution.extra

ACTIVE_THRESHOLD = 1e-3
"""Kernel weight above which traces and results count a kernel as active."""

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
