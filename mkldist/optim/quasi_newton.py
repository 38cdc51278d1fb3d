"""Limited-memory BFGS directions on a face of the feasible set (Nocedal & Wright, Alg. 7.4)."""

from __future__ import annotations

from collections import deque

import numpy as np

from mkldist.core.arrays import Bools, Floats

_CURVATURE_SHARE = 1e-10  # of |s||c|: a pair of less curvature s'c is not used


class LimitedMemory:
    """Curvature of a smooth function, from the last steps and the changes of its gradient.

    Parameters
    ----------
    size : int
        Number of steps remembered.
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
        """Return ``-H gradient`` on the free coordinates, zero elsewhere.

        Parameters
        ----------
        gradient : (M,) float64
            Gradient at the current point.
        free : (M,) bool
            Coordinates that may move.

        Returns
        -------
        (M,) float64 or None
            A direction of descent; None when no remembered step has curvature there.
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
