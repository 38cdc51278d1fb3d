"""Search for the least value of a support vector machine between two combined kernels.

Along ``K(step) = K + step (K_end - K)`` the value J is convex, and every trial costs a machine
but no kernel of the bank.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mkldist.arrays import Floats
from mkldist.machines.svm import SvmSolution
from mkldist.optim.line_search import root_of_slope

_SHARE = 0.5  # of the first slope's size, at which a trial is good enough


class Segment:
    """The segment from one combined kernel to another.

    Parameters
    ----------
    svm_at : callable
        Solves the machine on a combined kernel.
    svm : SvmSolution
        The machine at the start.
    start, end : (n, n) float64
        Combined kernels.
    tilt : float
        Slope of whatever else the objective adds, linear along the segment.
    """

    def __init__(
        self,
        svm_at: Callable[[Floats], SvmSolution],
        svm: SvmSolution,
        start: Floats,
        end: Floats,
        tilt: float = 0.0,
    ) -> None:
        self._svm_at, self._tilt = svm_at, tilt
        self._start, self._end, self._along = start, end, end - start
        self.svm = svm
        self.slope = self._slope(svm)
        """Slope at the start; negative for a direction of descent."""
        self.kernel = start
        """Combined kernel of the last trial; `svm` is the machine there."""

    def go(self, step: float) -> float:
        """Move to a step in [0, 1], and return the slope there."""
        self._step = step
        self.kernel = self._end if step == 1.0 else self._start + step * self._along
        self.svm = self._svm_at(self.kernel)
        return self._slope(self.svm)

    def search(self) -> float:
        """Move to a step at which the slope has shrunk, the full step first; return it."""
        step = root_of_slope(self.go, self.slope, 1.0, first=1.0, share=_SHARE)
        if step != self._step:
            self.go(step)
        return step

    def _slope(self, svm: SvmSolution) -> float:
        """Return dJ/dstep, ``-1/2 beta' (K_end - K) beta``, and the tilt."""
        return self._tilt - 0.5 * float(np.vdot(svm.signed.T @ self._along, svm.signed.T))
