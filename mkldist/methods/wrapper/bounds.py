"""Bounds of a method's optimum: the best that its iterations have found."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.machines.svm import SvmSolution
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Problem, Solution, SolverParams, StopReason
from mkldist.solvers.svm_solution import svm_solution
from mkldist.solvers.trace import Trace


class Bounds:
    """Best upper and lower bound so far, with the kernel weights and the machine of the upper one.

    Parameters
    ----------
    problem : Problem
        Its clock times the rows of the trace.
    params : SolverParams
        Its ``trace`` says whether to record one.
    counters : Counters
        Counters in which every iteration recorded counts as an outer iteration.

    Attributes
    ----------
    upper, lower : float
        Least objective and greatest lower bound; infinite before the first update.
    weights : (M,) float64
        Kernel weights of the least objective.
    svm : SvmSolution
        Machine on their combined kernel.
    idle : int
        Updates since the last that improved a bound.
    """

    def __init__(self, problem: Problem, params: SolverParams, counters: Counters) -> None:
        self.upper, self.lower, self.idle = np.inf, -np.inf, 0
        self.weights: Floats = np.empty(0)
        self.svm = SvmSolution.none()
        self._counters = counters
        self._trace = Trace(params.trace, problem.clock)

    def update(self, weights: Floats, svm: SvmSolution, objective: float, lower: float) -> None:
        """Keep the bounds of an iteration where they are the best so far, and record it.

        Parameters
        ----------
        weights : (M,) float64
            Kernel weights of the iteration.
        svm : SvmSolution
            Machine on their combined kernel.
        objective : float
            Value of the method's objective there, an upper bound.
        lower : float
            Lower bound that the iteration found.
        """
        risen, fallen = self.improve_lower(lower), self.improve_upper(weights, svm, objective)
        self.idle = 0 if risen or fallen else self.idle + 1
        self.record(weights)

    def improve_upper(self, weights: Floats, svm: SvmSolution, objective: float) -> bool:
        """Keep weights (M,) whose objective is the least so far; return True if it is."""
        better = objective < self.upper
        if better:
            self.upper, self.weights, self.svm = objective, weights, svm
        return better

    def improve_lower(self, lower: float) -> bool:
        """Keep a lower bound that is the greatest so far; return True if it is."""
        better = lower > self.lower
        if better:
            self.lower = lower
        return better

    def record(self, weights: Floats) -> None:
        """Count an outer iteration at weights (M,), and add it to the trace."""
        self._counters.outer_iterations += 1
        self._trace.record(self.upper, self.lower, weights)

    @property
    def width(self) -> float:
        """Distance of the bounds."""
        return self.upper - self.lower

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def solution(
        self, stop: StopReason, extra: dict[str, float] | None = None, state: object = None
    ) -> Solution:
        """Return the solution at the least objective, certified by the bounds."""
        return svm_solution(
            self.weights,
            self.svm,
            (self.upper, self.lower),
            stop,
            self._counters,
            self._trace,
            extra,
            state,
        )
