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

With its working set (``acceleration``) the method differs from the paper's in two more ways.  The
cuts are those of all multiples of the dual points, see :mod:`.dual_cuts`; and what
is projected is not p but the weights that are best for the functions found at p.

The paper raises the level's share of the upper bound from 0.9 to 0.99 once the gap is below 1 %.
That is ``near=0.99``; at tolerances far below the paper's it takes about twice as many iterations
as the default.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.cut_bundle import BundleParams, CutBundle
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Method, Path, Problem, Steps, StopReason, reason_to_stop

NEAR_RATIO = 0.01
BOUNDS_FACTOR = 10.0  # by which the bounds must be tighter where the iterate's gap decides
LEVEL_SLACK = 1e-3  # violation of the level that the projection may leave


class LevelParams(BundleParams):
    """Parameters of the Level method."""

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
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound
        that the cuts gave.
    """
    state = _Level(problem, params)
    yield from state.begin()
    for _ in range(params.max_iter):
        yield from state.visit()
        stop = reason_to_stop(problem, params, state.gap)
        if stop is not None:
            break
        state.project_onto_level_set()
    return state.solution(stop or StopReason.MAX_ITER)


class _Level(CutBundle):
    """The bundle, and how the Level method moves on from it."""

    def __init__(self, problem: Problem, params: LevelParams) -> None:
        super().__init__(problem, params)
        self.params: LevelParams = params
        self.by_iterate = params.stop == "point"

    def decisive(self, svm: SvmSolution, q: Floats, lower: float) -> float:
        """Return the gap that decides, of the bounds or of this iterate, on the kernels of q.

        The gap of an iterate, ``1/2 (max_m q_m - sum_m p_m q_m)``, can stay large where the inner
        solution is not unique, so bounds ten times tighter than asked for end the search too.
        """
        of_bounds = relative_gap(self.upper, lower)
        if not self.by_iterate:
            return of_bounds
        of_point = relative_gap(svm.objective, float(svm.alpha.sum()) - 0.5 * float(q.max()))
        if of_point <= self.params.tol:
            self.upper, self.best_weights, self.best_svm = svm.objective, self.weights, svm
        return min(of_point, BOUNDS_FACTOR * of_bounds)

    def project_onto_level_set(self) -> None:
        """Move to the next weights (step 6); the model's minimiser if rounding hides the set."""
        upper, lower, params = self.upper, self.restricted_lower, self.params
        closeness = params.near if relative_gap(upper, lower) < NEAR_RATIO else params.far
        level = closeness * upper + (1 - closeness) * lower
        point = self.cuts.project(self._centre(), level, slack=LEVEL_SLACK * (upper - lower))
        self.p = self.minimum.columns if point is None else point

    def _centre(self) -> Floats:
        """Return what is projected: p, or the best weights for the functions found at p.

        The machine's functions have norms ``||f_m|| = p_m sqrt(q_m)``, and weights in proportion
        to these minimise ``C sum_i hinge + 1/2 sum_m ||f_m||^2 / p_m`` for them.
        """
        total = float(self.lengths.sum())
        if self.params.acceleration == "none" or total == 0.0:
            return self.p
        centre = np.zeros(len(self.p))
        centre[: len(self.lengths)] = self.lengths / total
        return centre


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
