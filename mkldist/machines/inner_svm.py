"""The inner support vector machine of a solver: warm starts, tolerance and counting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mkldist.machines.svm import SvmSolution, solve_svm
from mkldist.solvers.base import Counters, Solution, StopReason

Floats = npt.NDArray[np.float64]

INNER_SHARE = 0.05  # of the outer tolerance, left to the inner solver


class InnerSvm:
    """Solve one support vector machine after another on slowly changing Gram matrices.

    Parameters
    ----------
    y : (n,) float64
        Labels in {-1, +1}.
    C : float
        Bound of the dual variables.
    tol : float
        Relative duality gap of the outer problem; the inner gap is a small share of it.
    counters : Counters
        Where solves are counted.
    """

    def __init__(self, y: Floats, C: float, tol: float, counters: Counters) -> None:
        self._y, self._C, self._tol = y, C, INNER_SHARE * tol
        self._counters = counters
        self._start: Floats | None = None

    def sharpen(self) -> None:
        """Solve as exactly as rounding permits from now on."""
        self._tol = 0.0

    def __call__(self, K: Floats) -> SvmSolution:
        """Solve with Gram matrix `K` (n, n), starting from the last solution."""
        svm = solve_svm(K, self._y, self._C, tol=self._tol, start=self._start)
        self._start = svm.alpha
        self._counters.count_svm(svm.iterations, svm.newton_steps)
        return svm


def svm_solution(
    kernel_weights: Floats, svm: SvmSolution, tol: float, counters: Counters
) -> Solution:
    """Return the solution of a method that ends in one machine at fixed kernel weights.

    Parameters
    ----------
    kernel_weights : (M,) float64
        The weights whose combined kernel the machine was trained on.
    svm : SvmSolution
        The machine; its gap is the certificate.
    tol : float
        Tolerance asked for.
    counters : Counters
        Work done.
    """
    return Solution(
        kernel_weights=kernel_weights,
        coefficients=svm.signed,
        bias=svm.bias,
        dual_variables=svm.alpha,
        objective=svm.objective,
        dual_objective=svm.dual_objective,
        stop_reason=StopReason.CONVERGED if svm.gap <= tol else StopReason.STALLED,
        counters=counters,
    )
