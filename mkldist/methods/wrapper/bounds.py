"""Bounds of a wrapper method's optimum, with its trace and its solution."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.progress import Bounds, DualBound, Own, StopReason, Trace
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution
from mkldist.solvers.svm_solution import svm_solution


class WeightedMachine(NamedTuple):
    """Kernel weights (M,), and the machine on their combined kernel."""

    weights: Floats
    svm: SvmSolution


class MachinePoint(NamedTuple):
    """A dual point.

    Parameters
    ----------
    alpha : (n,) or (n, k) float64
        Dual variables of one machine, or of one for each class.
    height : float
        Their ``1'alpha``, or less.
    of_form : float
        What rounding may have taken from their quadratic forms.
    """

    alpha: Floats
    height: float
    of_form: float = 0.0


class Binding(NamedTuple):
    """Dual points that give the lower bound of a solution, from which another may start.

    Parameters
    ----------
    binding : sequence of MachinePoint
        The points.
    weights : (M,) float64
        Kernel weights of the solution.
    alpha : (n,) or (n, k) float64
        Dual variables of the machine at these weights.
    """

    binding: Sequence[MachinePoint]
    weights: Floats = np.empty(0)
    alpha: Floats = np.empty(0)


def mixed(alphas: Sequence[Floats], shares: Floats) -> Floats:
    """Return the mixture of dual points by shares (J,), most of which may be zero."""
    parts = np.flatnonzero(shares)
    of_parts = np.array([alphas[j] for j in parts.tolist()])
    mixture: Floats = np.tensordot(shares[parts], of_parts, axes=1)
    return mixture


def renewed(problem: Problem, state: Binding) -> Generator[Request, Any, Binding]:
    """Return a state as it is, for it holds nothing of the kernels."""
    yield from ()
    return state


class WrapperBounds(Bounds[WeightedMachine]):
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
    binding : Binding
        Dual points that give the lower bound, where iterations named theirs.
    """

    def __init__(self, problem: Problem, params: SolverParams, counters: Counters) -> None:
        super().__init__(WeightedMachine(np.empty(0), SvmSolution.none()))
        self._counters = counters
        self.binding = Binding(())
        self._trace = Trace(params.trace, problem.clock, problem.spread)

    def update(
        self,
        weights: Floats,
        svm: SvmSolution,
        objective: float,
        lower: float,
        cuts: DualBound | None = None,
        points: Sequence[MachinePoint] = (),
    ) -> None:
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
            Lower bound by the iteration's own dual variables.
        cuts : DualBound, optional
            Lower bound by the cuts of this iteration and those before, and the mixture of their
            dual points that certifies it.
        points : sequence of MachinePoint
            Dual points whose cuts give it.
        """
        own = cuts is None or lower > cuts.value
        best = DualBound(lower, svm.alpha) if cuts is None or own else cuts
        if best.value > self.lower:
            self.binding = Binding([MachinePoint(svm.alpha, svm.height)] if own else points)
        self.take(WeightedMachine(weights, svm), objective, *best)
        self.own = Own(objective, lower)
        self.record(weights)

    def record(self, weights: Floats) -> None:
        """Count an outer iteration at weights (M,), and add it to the trace."""
        self._counters.outer_iterations += 1
        self._trace.record(self.upper, self.lower, weights, self.own)

    def solution(
        self, stop: StopReason, extra: dict[str, float] | None = None, state: object = None
    ) -> Solution:
        """Return the solution at the least objective, certified by the bounds."""
        return self.solution_at(self.best, self.upper, stop, extra, state)

    def solution_at(
        self,
        point: WeightedMachine,
        objective: float,
        stop: StopReason,
        extra: dict[str, float] | None = None,
        state: object = None,
    ) -> Solution:
        """Return the solution at a point with its objective, certified by the lower bound."""
        return svm_solution(
            point.weights,
            point.svm,
            objective,
            self.lower,
            stop,
            self._counters,
            self._trace,
            extra,
            self.binding._replace(weights=point.weights, alpha=point.svm.alpha)
            if state is None
            else state,
            self.dual_point,
        )
