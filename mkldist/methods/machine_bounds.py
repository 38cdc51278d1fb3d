"""Bounds, cutting planes and solutions of methods around a support vector machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.solvers.base import Problem, Requesting, Solution
from mkldist.solvers.progress import Bounds, DualBound, Own, StopReason, Trace
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution, svm_solution


class WeightedMachine(NamedTuple):
    """Kernel weights (M,), and the machine on their combined kernel."""

    weights: Floats
    svm: SvmSolution


class MachinePoint(NamedTuple):
    """A dual point."""

    alpha: Floats  # (n,) or (n, k) dual variables of one machine, or of one for each class
    height: float  # their ``1'alpha``, or less
    of_form: float = 0.0  # what rounding may have taken from their quadratic forms


class Binding(NamedTuple):
    """Dual points that give the lower bound of a solution, from which another may start."""

    binding: Sequence[MachinePoint]  # the points
    weights: Floats = np.empty(0)  # (M,) kernel weights of the solution
    alpha: Floats = np.empty(0)  # (n,) or (n, k) dual variables of the machine at these weights


def mixed(alphas: Sequence[Floats], shares: Floats) -> Floats:
    """Return the mixture of dual points by shares (J,), most of which may be zero."""
    parts = np.flatnonzero(shares)
    of_parts = np.array([alphas[j] for j in parts.tolist()])
    return np.tensordot(shares[parts], of_parts, axes=1)


def renewed(problem: Problem, state: Binding) -> Requesting[Binding]:
    """Return a state as it is, for it holds nothing of the kernels."""
    yield from ()
    return state


class WrapperBounds(Bounds[WeightedMachine]):
    """Best upper and lower bound so far, with the kernel weights and the machine of the upper one.

    Every iteration recorded counts as an outer iteration.
    """

    def __init__(self, problem: Problem, params: SolverParams, counters: Counters) -> None:
        super().__init__(WeightedMachine(np.empty(0), SvmSolution.none()))
        self._counters = counters
        # dual points that give the lower bound, where iterations named theirs
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

        `objective` is the method's at weights (M,) with their machine, and `lower` the bound by the
        iteration's own dual variables.  `cuts` is the bound by the cuts of this iteration and those
        before, with the mixture of their dual points that certifies it; `points` are those whose
        cuts give it.
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


class CutsBound(NamedTuple):
    """A lower bound of the optimum, and the dual points whose cuts give it."""

    value: float = -math.inf  # the bound
    points: Sequence[MachinePoint] = ()  # the points
    shares: Floats = np.empty(0)  # (J,) their shares in the minimum of the cuts

    @property
    def mixture(self) -> MachinePoint:
        """The dual point that mixes the points by their shares: its cut is nowhere below theirs."""
        heights, of_forms = np.array([point[1:] for point in self.points]).T
        height, of_form = float(self.shares @ heights), float(self.shares @ of_forms)
        return MachinePoint(
            mixed([point.alpha for point in self.points], self.shares), height, of_form
        )


NO_CUTS = CutsBound()


class MachineCuts:
    """The cuts ``1'alpha - 1/2 sum_m d_m q_m`` of machines over the simplex of M weights."""

    def __init__(self, n_kernels: int) -> None:
        self.planes = CuttingPlanes(n_kernels)  # the cuts
        self.points: list[MachinePoint] = []  # their dual points

    def add(self, svm: SvmSolution, q: Floats) -> CutsBound:
        """Add the cut of a machine; return the minimum over the simplex of the largest cut.

        q (M,) are upper bounds of its ``q_m(alpha*y)``.
        """
        self.planes.add(svm.height, -0.5 * q)
        self.points.append(MachinePoint(svm.alpha, svm.height, svm.rounding.of_form))
        minimum = self.planes.minimum()
        binding = np.flatnonzero(minimum.rows)
        points = [self.points[j] for j in binding]
        return CutsBound(minimum.bound, points, minimum.rows[binding])

    def widen(self, q: Floats) -> None:
        """Add kernels to the simplex, with upper bounds q (J, K) of their ``q_m(alpha_j*y)``."""
        heights = np.array([point.height for point in self.points])
        self.planes.widen(heights[:, None] - 0.5 * q)
