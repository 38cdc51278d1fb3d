"""Search for the least objective between two combined kernels.

Along ``d(step) = d + step (d_end - d)`` the combined kernel is linear in the step and the value J
of the support vector machine is convex.  Every trial costs a machine but no kernel of the bank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.optim.descent import root_of_slope
from mkldist.optim.factored_matrix import Gram, moved
from mkldist.solvers.svm import SvmSolution

SvmAt = Callable[[Gram], SvmSolution]

SLOPE_LEFT = 0.5  # of the first slope's size, at which a trial is good enough
GOLDEN = 0.5 * (1.0 + sqrt(5.0))
COARSE, FINEST = 1e-1, 1e-8  # shares of the segment to which golden section narrows it


@dataclass(frozen=True, eq=False)
class Iterate:
    """Kernel weights with all that a method knows there.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    K : (n, n) float64 or FactoredMatrix
        Their combined kernel, or its operator.
    svm : SvmSolution
        The machine on it.
    step : float
        Length of the step that led there along its segment, 1 for a full one.
    """

    d: Floats
    K: Gram
    svm: SvmSolution
    step: float = 1.0

    @classmethod
    def solved(cls, d: Floats, K: Gram, svm_at: SvmAt) -> Iterate:
        """Return the iterate at weights `d` of combined kernel `K`, by solving its machine."""
        return cls(d, K, svm_at(K))


class Segment:
    """The segment from an iterate to other kernel weights.

    The objective is ``J(d) + multiplier sum_m d_m``.

    Parameters
    ----------
    svm_at : callable
        Solves the machine on a combined kernel.
    start : Iterate
        Where the segment starts.
    d_end : (M,) float64
        Kernel weights at its end.
    K_end : (n, n) float64 or FactoredMatrix
        Their combined kernel, or its operator.
    multiplier : float
        Multiplier of the sum of the kernel weights.
    end_svm : SvmSolution, optional
        The machine at its end, if it is known; by default it is solved when it is needed.

    Attributes
    ----------
    slope : float
        Slope of the objective at the start; negative for a direction of descent.
    """

    def __init__(
        self,
        svm_at: SvmAt,
        start: Iterate,
        d_end: Floats,
        K_end: Gram,
        multiplier: float = 0.0,
        end_svm: SvmSolution | None = None,
    ) -> None:
        self._svm_at, self._start, self._multiplier = svm_at, start, multiplier
        self._d_end, self._K_end, self._end_svm = d_end, K_end, end_svm
        self._K_change = moved(K_end, -1.0, start.K)
        self._tilt = multiplier * float((d_end - start.d).sum())
        self.slope = self.slope_at(start)

    def at(self, step: float) -> Iterate:
        """Return the weights at a step in [0, 1], with their combined kernel and its machine."""
        if step == 1.0:
            if self._end_svm is None:
                self._end_svm = self._svm_at(self._K_end)
            return Iterate(self._d_end, self._K_end, self._end_svm)
        d = (1.0 - step) * self._start.d + step * self._d_end
        K = moved(self._start.K, step, self._K_change)
        return Iterate(d, K, self._svm_at(K), step)

    def slope_at(self, trial: Iterate) -> float:
        """Return the slope, ``multiplier 1'(d_end - d) - 1/2 beta' (K_end - K) beta``."""
        beta = trial.svm.signed
        return self._tilt - 0.5 * float(np.vdot(beta, self._K_change @ beta))

    def objective(self, trial: Iterate) -> float:
        """Return the objective at a trial."""
        return trial.svm.objective + self._multiplier * float(trial.d.sum())

    def search(self) -> Iterate:
        """Return a trial at which the slope has shrunk; the full step is tried first."""
        trial = self._start

        def slope_at(step: float) -> float:
            nonlocal trial
            trial = self.at(step)
            return self.slope_at(trial)

        step = root_of_slope(slope_at, self.slope, 1.0, first=1.0, share=SLOPE_LEFT)
        return trial if trial.step == step else self.at(step)

    def golden_section(self) -> Iterate:
        """Return the trial of least objective that golden section finds; the start if none is less.

        This is the search in the toolbox of SimpleMKL's authors.  It takes values alone and no
        slopes: two machines narrow the segment by a step, until a tenth of it is left.  Where no
        trial is better than the start, the search goes on; the toolbox's next iteration does so.
        """
        low, high = replace(self._start, step=0.0), self.at(1.0)
        best = min(low, high, key=self.objective)
        while high.step - low.step > (COARSE if best.step > 0.0 else FINEST):
            right = self.at(low.step + (high.step - low.step) / GOLDEN)
            left = self.at(low.step + (right.step - low.step) / GOLDEN)
            trials = [low, left, right, high]
            best = min(trials, key=self.objective)
            place = trials.index(best)
            low, high = trials[max(place - 1, 0)], trials[min(place + 1, 3)]
        return best
