"""EasyMKL: the kernels' shares of the squared distance between two classes (Aiolli & Donini 2015).

With Gamma the pairs of probability vectors, one on each class,
``Gamma = {gamma >= 0, sum_{y_i=+1} gamma_i = 1, sum_{y_i=-1} gamma_i = 1}``, and

    Q(gamma; K) = (1 - lam) gamma' Y K Y gamma + lam ||gamma||^2,

whose first term is the squared distance between a point of each class's convex hull:

1. ``gamma* = argmin over Gamma of Q(gamma; sum_m K_m)``,
2. ``eta_m = gamma*' Y K_m Y gamma*``, divided by their sum,
3. ``min over gamma in Gamma of Q(gamma; sum_m eta_m K_m)``,

The decision is ``f(x) = sum_m eta_m k_m(x, .)' Y gamma + b``, with b such that f = 0 midway between
the two hulls' points.  The bounds reported are those of the third problem.  The first problem sums
the kernels rather than averaging them: for 0 < lam < 1 it depends on their scale and number.

The paper maximises over weights of unit Euclidean norm, which turns the sum over kernels into a
norm, and then keeps the sum as an approximation.  Its weights have unit norm; the authors' programs
make them sum to one, as here.  Their later library multiplies lam by ``n_+ n_- / n`` in the third
problem; the paper does not.

Problems 1 and 3 are the l2-SVM in another scale: for ``alpha = s gamma`` the dual of
:mod:`mkldist.solvers.l2_svm` on ``(1 - lam) K`` with ridge lam is ``2 s - s^2 Q / 2``, at best
``2 / Q``.  A primal value P of that machine, at a multiple of gamma and a bias, therefore bounds Q
from below by ``2 / P``; the largest over both numbers is no less than the bound reported.  Another
lower bound, the only one where lam is 0 or 1, is the linear function that touches the convex Q at
gamma; its least value over Gamma is ``2 (min_{y_i=+1} g_i + min_{y_i=-1} g_i) - Q`` with
``g = Y ((1 - lam) K + lam I) Y gamma``.  Nor is Q less than 0.  Q, g and P make up for the rounding
errors of sums over K, which may exceed ``lam ||gamma||^2``.

Q grows with the kernels.  On thin factors, the least Q is therefore a lower bound of that with the
kernels, and so is its own lower bound, which only the factors can check.  Q at gamma with the
kernels, by one pass, is the upper bound: it replaces the objective, so that `gap` and `exact_gap`
are one.  The weights eta are those of the factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Quadratic
from mkldist.core.arrays import Floats
from mkldist.core.memory import MATRICES_PER_SOLVER
from mkldist.optim.accuracy import EPS, form_rounding
from mkldist.optim.factored_matrix import Gram, diagonal_of, scaled
from mkldist.solvers.base import (
    Counters,
    Method,
    Problem,
    Requesting,
    Solution,
    Steps,
    direct_solution,
)
from mkldist.solvers.l2_svm import solve_l2_svm
from mkldist.solvers.progress import DualBound
from mkldist.solvers.queries import largest_forms
from mkldist.solvers.solver_params import SolverParams

HARD_RIDGE = 1e-10  # of the mean diagonal, where lam = 0 leaves none


class EasyMklParams(SolverParams):
    """Parameters of EasyMKL."""

    lam: float = Field(
        0.5, ge=0, le=1, description="0: nearest points of the classes' hulls, 1: their means"
    )


@dataclass(frozen=True, eq=False)
class _Hulls:
    """A point of each class's hull, and bounds of the least Q."""

    signed: Floats  # Y gamma, (n,)
    bias: float
    upper: float  # Q at gamma
    lower: float  # a lower bound of the least Q


def solve(problem: Problem, params: EasyMklParams) -> Steps:
    """Weight the kernels by their shares of the distance, and solve on the weighted sum.

    ``dual_variables`` are gamma.
    """
    y, M = problem.y, problem.n_kernels
    counters = Counters()
    K = yield Combine(np.ones(M), thin=True)  # problem 1
    gamma = _nearest(K, y, params.lam, 0.0, counters).signed
    shares = np.maximum((yield Quadratic(gamma)), 0.0)  # problem 2
    total = float(shares.sum())
    eta = shares / total if total > 0.0 else np.full(M, 1.0 / M)
    K = yield Combine(eta, thin=True)  # problem 3
    hulls = _nearest(K, y, params.lam, params.tol, counters)
    return direct_solution(
        problem, params, hulls.upper, hulls.lower, kernel_weights=eta, coefficients=hulls.signed,
        bias=hulls.bias, dual_variables=hulls.signed * y, counters=counters,
    )  # fmt: skip


def _nearest(K: Gram, y: Floats, lam: float, tol: float, counters: Counters) -> _Hulls:
    """Minimise Q over Gamma, up to the duality gap `tol` of the l2-SVM; K is overwritten."""
    reach = np.sqrt(np.maximum(diagonal_of(K), 0.0))
    means = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
    if lam == 1.0:
        return _bounded(means, K @ means, y, lam, reach)
    K = scaled(K, 1.0 - lam)
    ridge = lam if lam > 0.0 else HARD_RIDGE * float(diagonal_of(K).sum()) / len(y)
    if ridge == 0.0:
        return _bounded(means, K @ means / (1.0 - lam), y, lam, reach)
    svm = solve_l2_svm(K, y, ridge, tol=tol)
    counters.count_svm(svm.iterations, svm.newton_steps)
    alpha = svm.alpha
    totals = np.where(y > 0, alpha[y > 0].sum(), alpha[y < 0].sum())
    signed = y * alpha / totals
    lower = 2.0 / svm.objective if lam > 0.0 else 0.0
    return _bounded(signed, K @ signed / (1.0 - lam), y, lam, reach, lower)


def _bounded(
    signed: Floats, f: Floats, y: Floats, lam: float, reach: Floats, lower: float = 0.0
) -> _Hulls:
    """Return the hulls' points with bias and bounds.

    `signed` is Y gamma and `f` is ``K Y gamma``; `reach` are the roots of the diagonal of K, (n,),
    and `lower` is a lower bound of the least Q that is known already.
    """
    square, scaled = max(float(signed @ f), 0.0), reach * signed
    square += form_rounding(square, float(scaled @ scaled), len(y))
    unsure = EPS * (1.0 - lam) * reach * float(np.linalg.norm(scaled))
    half_gradient = (1.0 - lam) * y * f + lam * y * signed - unsure
    Q = (1.0 - lam) * square + lam * float(signed @ signed)
    tangent = 2.0 * float(half_gradient[y > 0].min() + half_gradient[y < 0].min()) - Q
    bias = -0.5 * float(np.abs(signed) @ f)
    return _Hulls(signed, bias, Q, max(lower, tangent, 0.0))


def lower_bound(
    problem: Problem, params: EasyMklParams, solution: Solution
) -> Requesting[DualBound]:
    """Return the lower bound of the factors, which is one for the kernels."""
    yield from ()
    return DualBound(solution.dual_objective, solution.dual_variables)


def value_with_kernels(
    problem: Problem, params: EasyMklParams, solution: Solution
) -> Requesting[float]:
    """Ask for Q at gamma with the kernels, an upper bound of its least value."""
    gamma = solution.coefficients
    forms = yield from largest_forms(gamma[:, None])
    square = float(solution.kernel_weights @ forms[:, 0])
    return (1.0 - params.lam) * square + params.lam * float(gamma @ gamma)


METHOD = Method(
    name="easymkl",
    solve=solve,
    params=EasyMklParams,
    title="EasyMKL",
    problem="margin distribution: weights by distance between hulls",
    loss="squared hinge",
    regularizer="lam ||gamma||^2",
    reference="Aiolli & Donini 2015, Section 3 (EasyMKL)",
    hyperparameters=("lam",),
    typical_passes=lambda n_kernels: 3,
    # beside the matrices, the packed combination of a pass
    memory=lambda size, _: size.memory(matrices=MATRICES_PER_SOLVER + 0.5),
    exact_bound=lower_bound,
    exact_objective=value_with_kernels,
)
