"""What the cutting-plane methods on the simplex share: machines, cuts, bounds and a working set.

A machine at weights p gives an upper bound ``J(p)`` and, by its dual point alpha, the cut
``1'alpha - 1/2 sum_m p_m q_m(alpha*y) <= J(p)``; the minimum of the cuts is a lower bound.  How p
moves on from there is the method's affair.  With a working set the cuts are those of all
multiples of alpha, see :mod:`.dual_cuts`.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Request
from mkldist.machines.inner_svm import InnerSvm
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.dual_cuts import DualCuts, highest_bounds
from mkldist.optim.duality_gap import relative_gap
from mkldist.optim.matrix_game import GameSolution
from mkldist.solvers.base import Problem, Solution, SolverParams, StopReason
from mkldist.solvers.svm_solution import svm_solution
from mkldist.solvers.trace import Trace
from mkldist.solvers.working_set import WorkingSet, solved


class BundleParams(SolverParams):
    """Parameters that the cutting-plane methods share."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )


@dataclass(frozen=True, eq=False)
class BundleState:
    """Where the next point of a path may start.

    Parameters
    ----------
    weights : (M,) float64
        Kernel weights.
    kernels : (S,) intp
        The working set.
    points : (J, n) or (J, n, k) float64
        Dual points of the cuts that bind.
    q : (J, S) float64
        Their ``q_m(alpha_j*y)`` on the working set.
    alpha : (n,) or (n, k) float64
        Dual point of the solution.
    """

    weights: Floats
    kernels: Ints
    points: Floats
    q: Floats
    alpha: Floats


class CutBundle:
    """The iterate, the bundle of cuts, the bounds, and the kernels that they are about."""

    def __init__(self, problem: Problem, params: BundleParams) -> None:
        self.params, self._y, self._start = params, problem.y, problem.start
        self.kernels = WorkingSet(problem.n_kernels, everything=params.acceleration == "none")
        self.p: Floats = np.full(len(self.kernels), 1.0 / max(len(self.kernels), 1))
        self.upper, self.lower, self.gap = math.inf, 0.0, math.inf  # no machine's value is negative
        self.restricted_lower, self._gap_of_pass = -math.inf, math.inf
        self.cuts = self._no_cuts()
        self._points: list[Floats] = []  # alpha_j of the cuts
        self.minimum: GameSolution
        self._counters = Counters()
        self._svm = InnerSvm(problem.y, params.C, params.tol, self._counters)
        self._trace = Trace(params.trace, problem.clock)
        self.by_iterate = False  # whether the gap of the iterate decides, not that of the bounds

    @property
    def weights(self) -> Floats:
        """The iterate as weights of all kernels."""
        return self.kernels.spread(self.p)

    def begin(self) -> Generator[Request, Any, None]:
        """Go on from a start, or with the kernels that the labels, as dual variables, ask for."""
        if isinstance(self._start, BundleState):
            self._go_on(self._start)
            return
        if self.kernels.everything:
            return
        positive = self._y > 0
        alpha = np.where(positive, 1.0 / positive.sum(axis=0), 1.0 / (~positive).sum(axis=0))
        q = yield from self.kernels.visit_all(alpha[None] * self._y)
        self.kernels.take(self.kernels.newcomers(q[:, 0], -math.inf))
        self.p = np.full(len(self.kernels), 1.0 / len(self.kernels))
        self.cuts = self._no_cuts()

    def _no_cuts(self) -> DualCuts:
        return DualCuts(len(self.kernels), multiples=self.params.acceleration != "none")

    def _go_on(self, start: BundleState) -> None:
        """Take over weights and kernels, and the cuts of the dual points, scaled to this C."""
        if not self.kernels.everything:
            self.kernels.take(start.kernels)
            self.cuts = self._no_cuts()
        for alpha, q in zip(start.points, start.q, strict=True):
            factor = min(1.0, self.params.C / float(alpha.max()))
            self._take_cut(factor * alpha, factor**2 * q)
        self._minimise()
        self.p = start.weights[self.kernels.kernels]
        self._gap_of_pass = self.params.tol
        self._svm.begin_at(start.alpha)

    def _take_cut(self, alpha: Floats, q: Floats) -> None:
        """Add a cut to the model; of a point whose multiples are cut, that of the largest."""
        if self.params.acceleration != "none":
            factor = self.params.C / float(alpha.max())
            alpha, q = factor * alpha, factor**2 * q
        self.cuts.add(float(alpha.sum()), q)
        self._points.append(alpha)

    def visit(self) -> Generator[Request, Any, None]:
        """Solve the machine at p, add its cut, and certify what it can."""
        K = yield self.kernels.combination(self.p)
        svm = self.solve_svm(K)
        q = yield from self.kernels.quadratic(svm.signed)
        self.lengths = self.p * np.sqrt(np.maximum(q, 0.0))
        self.add_cut(svm.alpha, q)
        yield from self.look_outside(svm, q)

    def solve_svm(self, K: Floats) -> SvmSolution:
        """Solve the inner machine at p (step 3), started from the last one; a new upper bound."""
        svm = self._svm(K)
        self._counters.combines += 1
        if svm.objective < self.upper:
            self.upper, self.best_weights, self.best_svm = svm.objective, self.weights, svm
        return svm

    def add_cut(self, alpha: Floats, q: Floats) -> None:
        """Extend the cutting-plane model and minimise it (steps 4 and 5)."""
        self._take_cut(alpha, q)
        lower = self.restricted_lower
        self._minimise()
        self.restricted_lower = max(self.restricted_lower, lower)

    def _minimise(self) -> None:
        """Minimise the model over the simplex of the working set."""
        self.minimum, self._multiples = self.cuts.minimum(self.upper)
        self.restricted_lower = self.minimum.bound

    def look_outside(self, svm: SvmSolution, q: Floats) -> Generator[Request, Any, None]:
        """Certify the gap, by a pass once the problem is solved on the working set.

        The pass asks about the mixture of the cuts' points that attains the model's minimum: its
        cut is at least as high as the mixture of theirs.  It asks about the iterate's dual point
        only where that decides.
        """
        self._counters.outer_iterations += 1
        gap = self.decisive(svm, q, self.restricted_lower)
        if self.kernels.everything:
            self.lower, self.gap = self.restricted_lower, gap
        elif gap <= solved(self.params.tol, self._gap_of_pass):
            shares = self._multiples * self.minimum.rows
            mixture = np.tensordot(shares, np.array(self._points), axes=1)
            points = np.stack([mixture, svm.alpha] if self.by_iterate else [mixture])
            q_all = yield from self.kernels.visit_all(points * self._y)
            bounds = highest_bounds(_heights(points), q_all.max(axis=0))
            self.lower = max(self.lower, float(bounds.max()))
            self.gap = self._gap_of_pass = self.decisive(svm, q_all[:, -1], self.lower)
            if self.gap > self.params.tol:
                self.add_cut(mixture, q_all[self.kernels.kernels, 0])
                height = 2.0 * (float(mixture.sum()) - self.restricted_lower)
                yield from self._enlarge(self.kernels.newcomers(q_all[:, 0], height))
        self._counters.passes = self.kernels.passes
        self._trace.record(self.upper, self.lower, self.weights)

    def decisive(self, svm: SvmSolution, q: Floats, lower: float) -> float:
        """Return the gap that decides, on the kernels of q: that of the bounds."""
        return relative_gap(self.upper, lower)

    def _enlarge(self, newcomers: Ints) -> Generator[Request, Any, None]:
        """Take kernels into the working set, and what the cuts say of them into the model."""
        if not len(newcomers):
            return
        points = np.array(self._points)
        q = yield from self.kernels.enlarge(newcomers, points * self._y)
        self.cuts.widen(q)
        self.p = np.concatenate([self.p, np.zeros(len(newcomers))])
        self._minimise()

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        svm, binding = self.best_svm, np.flatnonzero(self.minimum.rows)
        points, q = np.array(self._points)[binding], self.cuts.q[binding]
        state = BundleState(self.best_weights, self.kernels.kernels, points, q, svm.alpha)
        return svm_solution(
            self.best_weights,
            svm,
            (self.upper, self.lower),
            stop,
            self._counters,
            self._trace,
            state=state,
        )


def _heights(points: Floats) -> Floats:
    """Return ``1'alpha_j`` of points (J, n) or (J, n, k)."""
    heights: Floats = points.sum(axis=tuple(range(1, points.ndim)))
    return heights
