"""MKL with at most k kernels: greedy forward selection with exchanges.

Minimises over kernel weights d in the simplex, of which at most k are not zero, the optimal value
of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is the problem of :mod:`.level` with ``||d||_0 <= k``.  Its optimum on one support S, J(S), is
a convex problem, which the Level method solves.  The choice of S is not convex.  Of several classes
the shared weights minimise ``sum_c J_c(d)``.

1. Solve the relaxation, in which every kernel may have a weight.  If its solution R has at most k
   kernels, it is the solution.  Else solve on T, the k kernels of the largest weights in R, and
   begin with S, the first of them.
2. With alpha of the machine on S, ``dJ/dd_m = -1/2 q_m``, ``q_m = (alpha*y)'K_m(alpha*y)``.  A
   kernel can lower J(S) only if its q_m exceeds ``sum_m d_m q_m``.  Of these, try the few of the
   largest q_m, and as many from R: solve on S with the kernel, and if these are more than k
   kernels, drop the one of the least weight and solve again.
3. Move to the trial of the least J and go on from 2.  If no trial lowers J, move to T where that
   lowers J, else end.  The end is therefore no worse than the relaxation's k largest weights.

The exchanges are those of orthogonal matching pursuit with replacement (Jain, Tewari & Dhillon
2011), with kernels in place of columns and weights in place of coefficients.

Stopping rule.  ``objective`` is J at the weights returned, ``dual_objective`` the lower bound of
the relaxation, ``1'alpha - 1/2 max_m q_m`` over all kernels, as in the Level method, at the alpha
of the solution's ``dual_variables``.  Both bound the optimum over all supports, but they meet only
where k kernels are as good as all.  The run has converged if their gap is at most tol, which proves
that no support is better by more, or if the search has ended: ``stationarity``, the relative gap of
J on S alone, is at most tol, and no trial lowers J by more than a tenth of tol.  Then S is the best
support tried; another may be better.  The bounds need not meet then, and the solution has a
stationarity, no gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Quadratic
from mkldist.core.arrays import Floats, Ints
from mkldist.methods import level
from mkldist.methods.cut_bundle import BundleState, DualPoint
from mkldist.solvers.base import (
    Counters,
    Method,
    Problem,
    Requesting,
    Solution,
    Steps,
    reason_to_stop,
)
from mkldist.solvers.progress import STATIONARITY, Bounds, StopReason, Trace
from mkldist.solvers.solver_params import HingeParams

SHARE = 0.1  # of tol: gap to which a support is solved, and decrease of J that is worth a move


class L0MklParams(HingeParams):
    """Parameters of MKL with at most k kernels."""

    steers: ClassVar[tuple[str, ...]] = ("trials",)

    tol: float = Field(
        0.01, gt=0, description="relative gap on the kernels selected; decrease of J worth a move"
    )
    k: int = Field(10, ge=1, description="largest number of kernels with a weight")
    trials: int = Field(
        5, ge=1, description="kernels tried before each move, and as many of the relaxation's"
    )
    max_iter: int = Field(
        500, ge=1, description="limit on moves, and on iterations of the Level method on a support"
    )


@dataclass(frozen=True, eq=False)
class Support:
    """Some kernels and the solution of the convex problem on them."""

    kernels: Ints  # (S,) indices of the kernels, all of which have a weight
    d: Floats  # (S,) their weights
    found: Solution  # the Level method's solution

    @classmethod
    def of(cls, kernels: Ints, found: Solution) -> Support:
        """Return the kernels to which a solution on `kernels` gives a weight."""
        used = np.flatnonzero(found.kernel_weights)
        return cls(kernels[used], found.kernel_weights[used], found)

    @property
    def value(self) -> float:
        """J at the weights."""
        return self.found.objective

    def lower_bound(self, largest: float) -> float:
        """Return the lower bound of the relaxation by the machine, whose largest q_m is given."""
        rounding: float = max(point.rounding.total for point in self.found.state.binding)
        return float(self.alpha.sum()) - 0.5 * largest - rounding

    @property
    def alpha(self) -> Floats:
        """Dual variables (n,) or (n, k) of the machine at the weights."""
        alpha: Floats = self.found.state.alpha
        return alpha

    def __len__(self) -> int:
        return len(self.kernels)


def solve(problem: Problem, params: L0MklParams) -> Steps:
    """Select at most k kernels, and solve on them.

    ``objective`` is J at the weights, ``dual_objective`` the lower bound of the relaxation.
    ``extra`` holds ``stationarity``, the relative gap of J on the kernels that have a weight,
    unless the bounds meet.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    # Step 1: the relaxation, and the first supports.
    R, T, S = yield from _first_supports(problem, params, counters)
    bounds = Bounds(S, R.found.dual_objective, dual_point=R.found.dual_variables)
    for iteration in range(1, params.max_iter + 1):
        # Step 2: q at the machine on S, which bounds the relaxation from below too.
        signed = S.alpha * problem.y
        q = (yield Quadratic(signed.reshape(len(signed), -1))).sum(axis=1)
        bounds.take(S, S.value, S.lower_bound(float(q.max())), S.alpha)
        counters.outer_iterations += 1
        d = _spread(S, problem.n_kernels)
        trace.record(S.value, bounds.lower, d, bounds.own)
        stop = reason_to_stop(problem, params, bounds.gap)
        if stop is not None or iteration == params.max_iter:
            break
        best = S
        for m in promising(q, S, R, params.trials):
            if problem.clock.past(params.time_limit):
                break
            trial = yield from exchanged(S, m, problem, params, counters)
            best = min(best, trial, key=lambda support: support.value)
        # Step 3: move to the best trial, or to T, or end.
        enough = S.value - SHARE * params.tol * S.value
        if best.value >= enough:
            best = T
        if best.value >= enough:
            settled = StopReason.CONVERGED if S.found.gap <= params.tol else S.found.stop_reason
            stop = StopReason.TIME_LIMIT if problem.clock.past(params.time_limit) else settled
            break
        S = best
    proven = bounds.gap <= params.tol
    return replace(
        S.found,
        kernel_weights=d,
        dual_variables=bounds.dual_point,
        dual_objective=bounds.lower,
        stop_reason=stop or StopReason.MAX_ITER,
        counters=counters,
        trace=trace.arrays(certified=proven),
        extra={} if proven else {STATIONARITY: S.found.gap},
        state=None,
    )


def _first_supports(
    problem: Problem, params: L0MklParams, counters: Counters
) -> Requesting[tuple[Support, Support, Support]]:
    """Return R of the relaxation, T of its k largest weights, and S of the largest one.

    All three are R if it has at most k kernels.
    """
    relaxed = yield from level.solve(problem, _level_params(params, params.tol))
    counters.count_work(relaxed.counters)
    R = Support.of(np.arange(problem.n_kernels), relaxed)
    if len(R) <= params.k:
        return R, R, R
    largest = R.kernels[np.argsort(-R.d, kind="stable")[: params.k]]
    T = yield from solve_on(largest, problem, params, counters, near=R)
    S = yield from solve_on(largest[:1], problem, params, counters)
    return R, T, S


def promising(q: Floats, S: Support, R: Support, count: int) -> Ints:
    """Return kernels outside S that may lower J(S): `count` of the largest q of all, and of R."""
    may_lower = q > S.d @ q[S.kernels]
    may_lower[S.kernels] = False
    by_q = np.argsort(-q, kind="stable")
    by_q = by_q[may_lower[by_q]]
    of_R = by_q[np.isin(by_q, R.kernels)]
    return np.unique(np.concatenate([by_q[:count], of_R[:count]]))


def exchanged(
    S: Support, m: int, problem: Problem, params: L0MklParams, counters: Counters
) -> Requesting[Support]:
    """Return the solution on S and kernel m, less that of the least weight if k are exceeded."""
    larger = yield from solve_on(np.append(S.kernels, m), problem, params, counters, near=S)
    if len(larger) <= params.k:
        return larger
    kept = np.delete(larger.kernels, larger.d.argmin())
    return (yield from solve_on(kept, problem, params, counters, near=larger))


def solve_on(
    kernels: Ints,
    problem: Problem,
    params: L0MklParams,
    counters: Counters,
    near: Support | None = None,
) -> Requesting[Support]:
    """Solve the convex problem on some kernels (S,) by the Level method.

    With `near`, the solution on a support that has most of these kernels, it starts from that
    one's weights and from the cuts that bind there.
    """
    start = None if near is None else (yield from _state_on(kernels, near, problem.y))
    part = replace(problem, n_kernels=len(kernels), start=start)
    steps, answer = level.solve(part, _level_params(params, SHARE * params.tol)), None
    while True:
        try:
            request: Any = steps.send(answer)  # Combine, Quadratic or Matvec
        except StopIteration as end:
            counters.count_work(end.value.counters)
            return Support.of(kernels, end.value)
        of_part = kernels if request.kernels is None else kernels[request.kernels]
        answer = yield replace(request, kernels=of_part)


def _state_on(kernels: Ints, near: Support, y: Floats) -> Requesting[BundleState]:
    """Return a near support's weights and binding cuts as the Level method's state on kernels."""
    weights = np.array([near.d[near.kernels == m].sum() for m in kernels])
    alphas = np.array([point.alpha for point in near.found.state.binding])  # (J, n[, classes])
    columns = np.moveaxis(alphas * y, 1, 0).reshape(len(y), -1)
    forms = (yield Quadratic(columns, kernels)).reshape(len(kernels), len(alphas), -1)
    q = forms.sum(axis=2).T
    roundings = [point.rounding for point in near.found.state.binding]
    binding = [DualPoint(*point) for point in zip(alphas, q, roundings, strict=True)]
    everyone = np.arange(len(kernels))
    return BundleState(weights / weights.sum(), everyone, binding, near.alpha)


def _level_params(params: L0MklParams, tol: float) -> level.LevelParams:
    """Return the Level method's parameters, with the limits of this method."""
    return level.LevelParams(
        C=params.C, tol=tol, max_iter=params.max_iter, time_limit=params.time_limit
    )


def _spread(S: Support, n_kernels: int) -> Floats:
    """Return the support's weights as weights (M,) of all kernels."""
    d = np.zeros(n_kernels)
    d[S.kernels] = S.d
    return d


METHOD = Method(
    name="l0_mkl",
    solve=solve,
    params=L0MklParams,
    title="MKL with at most k kernels, greedy with exchanges",
    problem="simplex-weighted MKL with at most k kernels, not convex",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2, at most k of the f_m not zero",
    reference="exchanges of Jain, Tewari & Dhillon 2011 (OMPR), on kernels",
    hyperparameters=("C", "k"),
    joint_classes=True,
)
