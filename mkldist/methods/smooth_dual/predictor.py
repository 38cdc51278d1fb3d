"""Predictors of SKM and SMO-MKL, of which the best has the upper bound of the optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import Bounds, StopReason, Trace
from mkldist.solvers.svm import best_bias


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictor ``sum_m d_m K_m coefficients + bias``.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    coefficients : (n,) float64
        A multiple of ``alpha*y``.
    bias : float
        Best bias.
    scale : float
        The multiple.
    loss : float
        C times the sum of its hinge losses and of the most that rounding may hide of them.
    """

    d: Floats
    coefficients: Floats
    bias: float
    scale: float = 1.0
    loss: float = 0.0

    def on_simplex(self) -> Predictor:
        """Return the same predictor with weights that sum to one; uniform ones if all are zero."""
        total = float(self.d.sum())
        d = self.d / total if total > 0.0 else np.full(len(self.d), 1.0 / len(self.d))
        return replace(self, d=d, coefficients=total * self.coefficients)


def first_bounds(y: Floats, d: Floats, C: float) -> Bounds[Predictor]:
    """Return the bounds from which a search begins: a bias alone, and the dual value of zero.

    They stand where numbers overflow in all others.

    Parameters
    ----------
    y : (n,) float64
        Labels.
    d : (M,) float64
        Kernel weights that cost nothing, of functions that are all zero.
    C : float
        Factor of the losses.
    """
    zero = np.zeros(len(y))
    bias = best_bias(zero, y)
    loss = C * float(np.maximum(0.0, 1.0 - y * bias).sum())
    return Bounds(Predictor(d, zero, bias), lower=0.0, upper=loss, dual_point=zero)


def solution_of(
    bounds: Bounds[Predictor], stop: StopReason, counters: Counters, trace: Trace
) -> Solution:
    """Return the predictor of the upper bound with its certificate."""
    best = bounds.best
    return Solution(
        kernel_weights=best.d,
        coefficients=best.coefficients,
        bias=best.bias,
        dual_variables=bounds.dual_point,
        objective=bounds.upper,
        dual_objective=bounds.lower,
        stop_reason=stop,
        counters=counters,
        trace=trace.arrays(),
    )
