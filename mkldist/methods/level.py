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
from typing import Literal

import numpy as np
from pydantic import Field

from mkldist.gram.requests import Combine
from mkldist.machines.inner_svm import InnerSvm, norms
from mkldist.machines.svm import SvmSolution
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.solvers.base import (
    Counters,
    Floats,
    Method,
    Problem,
    Solution,
    SolverParams,
    Steps,
    StopReason,
    relative_gap,
)
from mkldist.solvers.trace import Trace

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
    Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound
        that the cuts gave.
    """
    state = _Level(problem, params)
    stop = StopReason.MAX_ITER
    for _ in range(params.max_iter):
        K = yield Combine(state.p)
        svm = state.solve_svm(K)
        q = yield from norms(svm)
        state.add_cut(svm, q)
        if state.gap(svm, q) <= params.tol:
            stop = StopReason.CONVERGED
            break
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        state.project_onto_level_set()
    return state.solution(stop)


class _Level:
    """The iterate, the bundle of cuts and the bounds."""

    def __init__(self, problem: Problem, params: LevelParams) -> None:
        self.params = params
        self.p: Floats = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
        self.upper, self.lower = math.inf, -math.inf
        self._cuts = CuttingPlanes(problem.n_kernels)
        self._minimiser = self.p
        self._counters = Counters()
        self._svm = InnerSvm(problem.y, params.C, params.tol, self._counters)
        self._trace = Trace(params.trace, problem.clock)

    def solve_svm(self, K: Floats) -> SvmSolution:
        """Solve the inner machine at p (step 3), started from the last one; a new upper bound."""
        svm = self._svm(K)
        self._counters.combines += 1
        if svm.objective < self.upper:
            self.upper, self._best_p, self._best_svm = svm.objective, self.p, svm
        return svm

    def add_cut(self, svm: SvmSolution, q: Floats) -> None:
        """Extend the cutting-plane model and minimise it (steps 4 and 5): a new lower bound."""
        height = float(svm.alpha.sum())
        self._cuts.add(height, -0.5 * q)
        minimum = self._cuts.minimum()
        self._minimiser = minimum.columns
        self.lower = max(self.lower, minimum.bound)
        self._counters.outer_iterations += 1
        self._counters.passes += 1
        self._trace.record(self.upper, self.lower, self.p)

    def gap(self, svm: SvmSolution, q: Floats) -> float:
        """Return the gap that decides, of the bounds or of this iterate.

        The gap of an iterate, ``1/2 (max_m q_m - sum_m p_m q_m)``, can stay large where the inner
        solution is not unique, so bounds ten times tighter than asked for end the search too.
        """
        of_bounds = relative_gap(self.upper, self.lower)
        if self.params.stop == "bounds":
            return of_bounds
        of_point = relative_gap(svm.objective, float(svm.alpha.sum()) - 0.5 * float(q.max()))
        if of_point <= self.params.tol:
            self.upper, self._best_p, self._best_svm = svm.objective, self.p, svm
        return min(of_point, BOUNDS_FACTOR * of_bounds)

    def project_onto_level_set(self) -> None:
        """Move to the next weights (step 6); the model's minimiser if rounding hides the set."""
        upper, lower, params = self.upper, self.lower, self.params
        closeness = params.near if relative_gap(upper, lower) < NEAR_RATIO else params.far
        level = closeness * upper + (1 - closeness) * lower
        point = self._cuts.project(self.p, level, slack=LEVEL_SLACK * (upper - lower))
        self.p = self._minimiser if point is None else point

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        svm = self._best_svm
        return Solution(
            kernel_weights=self._best_p,
            coefficients=svm.signed,
            bias=svm.bias,
            dual_variables=svm.alpha,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=self._counters,
            trace=self._trace.arrays(),
        )


METHOD = Method(
    name="level",
    solve=solve,
    params=LevelParams,
    title="Extended Level method",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Xu, Jin, King & Lyu 2008, Algorithm 2",
    joint_classes=True,
)
