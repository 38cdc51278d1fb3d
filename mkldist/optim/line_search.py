"""Search along a line for the root of a convex function's slope."""

from __future__ import annotations

import math
from collections.abc import Callable

_LIMIT = 30
_KEEP_OFF = 0.05  # least distance of a trial from the ends of a bracket, as a share of it


def root_of_slope(
    slope_at: Callable[[float], float],
    slope: float,
    reach: float,
    *,
    first: float | None = None,
    end_slope: float | None = None,
    share: float = 0.1,
) -> float:
    """Return a step at which the slope of a convex function has shrunk to a share of the first.

    Parameters
    ----------
    slope_at : callable
        Slope at a step; non-decreasing.
    slope : float
        Slope at step 0, negative.
    reach : float
        Largest admissible step.
    first : float, optional
        First trial, e.g. 1 for a Newton-like direction; by default the secant's root.
    end_slope : float, optional
        Slope at `reach` when known and positive.
    share : float
        Share of the first slope's size at which to stop.

    Returns
    -------
    float
        A step in (0, reach].
    """
    low, low_slope = 0.0, slope
    high, high_slope = reach, math.inf if end_slope is None else end_slope
    step = first if first is not None else _secant(low, low_slope, high, high_slope)
    for _ in range(_LIMIT):
        now = slope_at(step)
        if abs(now) <= share * abs(slope) or (now < 0 and step >= reach):
            break
        if now < 0:
            low, low_slope = step, now
        else:
            high, high_slope = step, now
        step = _secant(low, low_slope, high, high_slope)
        if high - low <= 1e-15 * reach:
            break
    return step


def _secant(low: float, low_slope: float, high: float, high_slope: float) -> float:
    """Return the secant's root, kept off the ends; or a longer step while no upper end is known."""
    if math.isinf(high_slope):
        return min(4.0 * low if low > 0 else high, high)
    width = high - low
    root = low - low_slope * width / (high_slope - low_slope)
    return min(max(root, low + _KEEP_OFF * width), high - _KEEP_OFF * width)
