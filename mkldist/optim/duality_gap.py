"""The relative duality gap, by which all solvers stop."""

from __future__ import annotations

import math

import numpy as np


def relative_gap(primal: float, dual: float) -> float:
    """Return ``|primal - dual| / max(|primal|, tiny)``, positive also for bounds that cross.

    It is infinite where the primal value is not finite, which bounds nothing.
    """
    primal, dual = float(primal), float(dual)
    if not math.isfinite(primal):
        return math.inf
    return abs(primal - dual) / max(abs(primal), float(np.finfo(np.float64).tiny))
