"""Line searches on convex functions, and limited-memory BFGS directions."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from mkldist.core.arrays import Bools, Floats

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
    """Return a step in (0, reach] at which the slope of a convex function has shrunk to a share.

    `slope_at` returns the slope at a step; `slope` < 0 is that at step 0, `end_slope` > 0 that at
    `reach` where it is known; `first` is the first trial, by default the secant's root.
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


_CURVATURE_SHARE = 1e-10  # of |s||c|: a pair of less curvature s'c is not used


class LimitedMemory:
    """Curvature of a smooth function, from its last `size` steps and the changes of its gradient.

    Directions: Nocedal & Wright, Alg. 7.4, on a face of the feasible set.
    """

    def __init__(self, size: int = 20) -> None:
        self._pairs: deque[tuple[Floats, Floats]] = deque(maxlen=size)
        self._last: tuple[Floats, Floats] | None = None

    def forget(self) -> None:
        """Forget all steps."""
        self._pairs.clear()
        self._last = None

    def observe(self, point: Floats, gradient: Floats) -> None:
        """Remember the step from the last point observed to this one."""
        if self._last is not None:
            self._pairs.append((point - self._last[0], gradient - self._last[1]))
        self._last = point.copy(), gradient.copy()

    def direction(self, gradient: Floats, free: Bools) -> Floats | None:
        """Return ``-H gradient`` on the `free` coordinates, zero elsewhere, all (M,).

        None where no step of the memory has curvature there.
        """
        usable = []
        for step, change in self._pairs:
            s, c = np.where(free, step, 0.0), np.where(free, change, 0.0)
            curvature = float(s @ c)
            if curvature > _CURVATURE_SHARE * float(np.linalg.norm(s) * np.linalg.norm(c)):
                usable.append((s, c, curvature))
        if not usable:
            return None
        r = np.where(free, gradient, 0.0)
        coefficients = []
        for s, c, curvature in reversed(usable):
            a = float(s @ r) / curvature
            coefficients.append(a)
            r = r - a * c
        _, c, curvature = usable[-1]
        r = r * (curvature / float(c @ c))
        for (s, c, curvature), a in zip(usable, reversed(coefficients), strict=True):
            r = r + (a - float(c @ r) / curvature) * s
        return -r
