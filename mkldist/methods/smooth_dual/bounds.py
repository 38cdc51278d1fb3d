"""Bounds of the optimum of SKM and SMO-MKL, and the predictor of the upper one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Solution, StopReason
from mkldist.solvers.trace import Trace


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
    alpha : (n,) float64
        Dual variables.
    scale : float
        The multiple.
    loss : float
        C times the sum of its hinge losses and of the most that rounding may hide of them.
    """

    d: Floats
    coefficients: Floats
    bias: float
    alpha: Floats
    scale: float = 1.0
    loss: float = 0.0

    def on_simplex(self) -> Predictor:
        """Return the same predictor with weights that sum to one; uniform ones if all are zero."""
        total = float(self.d.sum())
        d = self.d / total if total > 0.0 else np.full(len(self.d), 1.0 / len(self.d))
        return replace(self, d=d, coefficients=total * self.coefficients)


class Bounds:
    """Least primal value met with its predictor, and greatest dual value met.

    Attributes
    ----------
    upper, lower : float
        The bounds.
    best : Predictor
        Predictor of the upper bound.
    idle : int
        Updates in a row that improved neither bound.
    """

    best: Predictor

    def __init__(self) -> None:
        self.upper, self.lower = np.inf, -np.inf
        self.idle = 0

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_gap(self.upper, self.lower)

    def update(self, value: float, predictor: Predictor, lower: float) -> None:
        """Take a predictor of primal `value` and a dual value."""
        self.idle += 1
        if lower > self.lower:
            self.lower, self.idle = lower, 0
        if value < self.upper:
            self.upper, self.best, self.idle = value, predictor, 0

    def solution(self, stop: StopReason, counters: Counters, trace: Trace) -> Solution:
        """Return the best predictor and its certificate."""
        return Solution(
            kernel_weights=self.best.d,
            coefficients=self.best.coefficients,
            bias=self.best.bias,
            dual_variables=self.best.alpha,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=counters,
            trace=trace.arrays(),
        )
