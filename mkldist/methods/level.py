"""Extended Level method (Xu, Jin, King & Lyu 2008, Algorithm 2).

Minimises over kernel weights p in the simplex the optimal value of the support vector machine,

    J(p) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m p_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  J is convex, and
every feasible alpha gives a cut ``f(p, alpha) = 1'alpha - 1/2 sum_m p_m q_m(alpha*y) <= J(p)``.
Of several classes the shared weights minimise ``sum_c J_c(p)``, and cuts are sums over the classes.

Erratum: the paper prints its stopping rule with an absolute 0.01.  J is in the thousands at its
C = 100, and only a gap relative to |J| gives its numbers of active kernels and iterations.

Erratum: its Algorithm 2 stops by the bounds, its experiments by the duality gap of the iterate,
``stop="point"``, which takes more iterations and leaves fewer kernels with small weights.

The paper raises the level's share of the upper bound from 0.9 to 0.99 once the gap is below 1 %.
That is ``near=0.99``; at tolerances far below the paper's it takes about twice as many iterations
as the default.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from mkldist.gram.requests import Combine, Request
from mkldist.machines.inner_svm import InnerSvm
from mkldist.machines.svm import SvmSolution
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.optim.matrix_game import GameSolution
from mkldist.solvers.base import (
    Counters,
    Floats,
    Method,
    Path,
    Problem,
    Solution,
    SolverParams,
    Steps,
    StopReason,
    relative_gap,
)
from mkldist.solvers.trace import Trace
from mkldist.solvers.working_set import Ints, WorkingSet, solved

NEAR_RATIO = 0.01
BOUNDS_FACTOR = 10.0  # by which the bounds must be tighter where the iterate's gap decides
LEVEL_SLACK = 1e-3  # violation of the level that the projection may leave


class LevelParams(SolverParams):
    """Parameters of the Level method."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    far: float = Field(0.9, gt=0, lt=1, description="level's share of the upper bound at first")
    near: float = Field(0.8, gt=0, lt=1, description="the same once the gap is below 1 %")
    stop: Literal["bounds", "point"] = Field(
        "bounds", description="gap held against tol: of the bounds, or the paper's of the iterate"
    )
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )


def solve(problem: Problem, params: LevelParams) -> Steps:
    """Run the Level method.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : LevelParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound
        that the cuts gave.
    """
    state = _Level(problem, params)
    stop = StopReason.MAX_ITER
    yield from state.begin()
    for _ in range(params.max_iter):
        K = yield Combine(state.weights)
        svm = state.solve_svm(K)
        q = yield from state.kernels.quadratic(svm.signed)
        state.add_cut(svm.alpha, q)
        yield from state.look_outside(svm, q)
        if state.gap <= params.tol:
            stop = StopReason.CONVERGED
            break
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        state.project_onto_level_set()
    return state.solution(stop)


@dataclass(frozen=True, eq=False)
class LevelState:
    """Where the next point of a path may start.

    Parameters
    ----------
    weights : (M,) float64
        Kernel weights.
    kernels : (S,) intp
        The working set.
    points : (J, n) or (J, n, k) float64
        Dual points of the cuts that bind; last that of the solution.
    """

    weights: Floats
    kernels: Ints
    points: Floats


class _Level:
    """The iterate, the bundle of cuts, the bounds, and the kernels that they are about."""

    def __init__(self, problem: Problem, params: LevelParams) -> None:
        self.params, self._y, self._start = params, problem.y, problem.start
        self.kernels = WorkingSet(problem.n_kernels, everything=params.acceleration == "none")
        self.p: Floats = np.full(len(self.kernels), 1.0 / max(len(self.kernels), 1))
        self.upper, self.lower, self.gap = math.inf, -math.inf, math.inf
        self._restricted_lower, self._gap_of_pass = -math.inf, math.inf
        self._cuts = CuttingPlanes(len(self.kernels))
        self._points: list[Floats] = []  # alpha_j of the cuts
        self._minimum: GameSolution
        self._counters = Counters()
        self._svm = InnerSvm(problem.y, params.C, params.tol, self._counters)
        self._trace = Trace(params.trace, problem.clock)

    @property
    def weights(self) -> Floats:
        """The iterate as weights of all kernels."""
        return self.kernels.spread(self.p)

    def begin(self) -> Generator[Request, Any, None]:
        """Go on from a start, or with the kernels that the labels, as dual variables, ask for."""
        if isinstance(self._start, LevelState):
            yield from self._go_on(self._start)
            return
        if self.kernels.everything:
            return
        positive = self._y > 0
        alpha = np.where(positive, 1.0 / positive.sum(axis=0), 1.0 / (~positive).sum(axis=0))
        q = yield from self.kernels.visit_all(alpha[None] * self._y)
        yield from self._enlarge(self.kernels.newcomers(q[:, 0], -math.inf))

    def _go_on(self, start: LevelState) -> Generator[Request, Any, None]:
        """Take over weights and kernels, and the cuts of what dual points are feasible for this C.

        A dual point that exceeds C is scaled down to it.
        """
        largest = start.points.max(axis=tuple(range(1, start.points.ndim)), keepdims=True)
        points = start.points * np.minimum(1.0, self.params.C / largest)
        if self.kernels.everything:
            q = (yield from self.kernels.visit_all(points * self._y)).T
        else:
            q = yield from self.kernels.enlarge(start.kernels, points * self._y)
            self._cuts = CuttingPlanes(len(self.kernels))
        for alpha, row in zip(points, q, strict=True):
            self._cuts.add(float(alpha.sum()), -0.5 * row)
        self._points = list(points)
        self._minimum = self._cuts.minimum()
        self._restricted_lower = self._minimum.bound
        self.p = start.weights[self.kernels.kernels]
        self._gap_of_pass = self.params.tol
        self._svm.begin_at(points[-1])

    def solve_svm(self, K: Floats) -> SvmSolution:
        """Solve the inner machine at p (step 3), started from the last one; a new upper bound."""
        svm = self._svm(K)
        self._counters.combines += 1
        if svm.objective < self.upper:
            self.upper, self._best_weights, self._best_svm = svm.objective, self.weights, svm
        return svm

    def add_cut(self, alpha: Floats, q: Floats) -> None:
        """Extend the cutting-plane model and minimise it (steps 4 and 5)."""
        self._cuts.add(float(alpha.sum()), -0.5 * q)
        self._points.append(alpha)
        self._minimum = self._cuts.minimum()
        self._restricted_lower = max(self._restricted_lower, self._minimum.bound)

    def look_outside(self, svm: SvmSolution, q: Floats) -> Generator[Request, Any, None]:
        """Certify the gap, by a pass once the problem is solved on the working set.

        The pass asks about the iterate's dual point and about the mixture of the cuts' points
        that attains the model's minimum: its cut is at least as high as the mixture of theirs.
        """
        self._counters.outer_iterations += 1
        gap = self._decisive(svm, q, self._restricted_lower)
        if self.kernels.everything:
            self.lower, self.gap = self._restricted_lower, gap
        elif gap <= solved(self.params.tol, self._gap_of_pass):
            mixture = np.tensordot(self._minimum.rows, np.array(self._points), axes=1)
            points = np.stack([svm.alpha, mixture])
            q_all = yield from self.kernels.visit_all(points * self._y)
            bounds = _heights(points) - 0.5 * q_all.max(axis=0)
            self.lower = max(self.lower, float(bounds.max()))
            self.gap = self._gap_of_pass = self._decisive(svm, q_all[:, 0], self.lower)
            if self.gap > self.params.tol:
                self.add_cut(mixture, q_all[self.kernels.kernels, 1])
                height = 2.0 * (float(mixture.sum()) - self._restricted_lower)
                yield from self._enlarge(self.kernels.newcomers(q_all[:, 1], height))
        self._counters.passes = self.kernels.passes
        self._trace.record(self.upper, self.lower, self.weights)

    def _decisive(self, svm: SvmSolution, q: Floats, lower: float) -> float:
        """Return the gap that decides, of the bounds or of this iterate, on the kernels of q.

        The gap of an iterate, ``1/2 (max_m q_m - sum_m p_m q_m)``, can stay large where the inner
        solution is not unique, so bounds ten times tighter than asked for end the search too.
        """
        of_bounds = relative_gap(self.upper, lower)
        if self.params.stop == "bounds":
            return of_bounds
        of_point = relative_gap(svm.objective, float(svm.alpha.sum()) - 0.5 * float(q.max()))
        if of_point <= self.params.tol:
            self.upper, self._best_weights, self._best_svm = svm.objective, self.weights, svm
        return min(of_point, BOUNDS_FACTOR * of_bounds)

    def project_onto_level_set(self) -> None:
        """Move to the next weights (step 6); the model's minimiser if rounding hides the set."""
        upper, lower, params = self.upper, self._restricted_lower, self.params
        closeness = params.near if relative_gap(upper, lower) < NEAR_RATIO else params.far
        level = closeness * upper + (1 - closeness) * lower
        point = self._cuts.project(self.p, level, slack=LEVEL_SLACK * (upper - lower))
        self.p = self._minimum.columns if point is None else point

    def _enlarge(self, newcomers: Ints) -> Generator[Request, Any, None]:
        """Take kernels into the working set, and what the cuts say of them into the model."""
        if not len(newcomers):
            return
        points = np.array(self._points).reshape(-1, *self._y.shape)
        q = yield from self.kernels.enlarge(newcomers, points * self._y)
        self._cuts.widen(_heights(points)[:, None] - 0.5 * q)
        self.p = np.concatenate([self.p, np.zeros(len(newcomers))])
        if len(points):
            self._minimum = self._cuts.minimum()
            self._restricted_lower = self._minimum.bound
        else:
            self.p = np.full(len(newcomers), 1.0 / len(newcomers))

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        svm = self._best_svm
        binding = np.flatnonzero(self._minimum.rows)
        points = np.array([*(self._points[j] for j in binding), svm.alpha])
        return Solution(
            kernel_weights=self._best_weights,
            coefficients=svm.signed,
            bias=svm.bias,
            dual_variables=svm.alpha,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=self._counters,
            trace=self._trace.arrays(),
            state=LevelState(self._best_weights, self.kernels.kernels, points),
        )


def _heights(points: Floats) -> Floats:
    """Return ``1'alpha_j`` of points (J, n) or (J, n, k)."""
    heights: Floats = points.sum(axis=tuple(range(1, points.ndim)))
    return heights


METHOD = Method(
    name="level",
    solve=solve,
    params=LevelParams,
    title="Extended Level method",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Xu, Jin, King & Lyu 2008, Algorithm 2",
    path=Path("C", rising=True),
    joint_classes=True,
)
