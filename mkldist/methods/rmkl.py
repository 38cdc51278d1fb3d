"""R-MKL, margin and radius (Do, Kalousis, Woznica & Hilario 2009, Algorithm 1, (13)-(17)).

Minimises over kernel weights mu in the simplex the value (17) of an l2-SVM whose slack penalty is
divided by a bound of the squared radius of the ball around the points,

    J(mu) = min_{w, b, xi}  1/2 sum_k ||w_k||^2 / mu_k + C / (2 sum_k mu_k R_k^2) sum_i xi_i^2
            s.t.  y_i (sum_k <w_k, Phi_k(x_i)> + b) >= 1 - xi_i
          = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_k mu_k K_k) (alpha*y)
                        - (sum_k mu_k R_k^2) / (2C) alpha'alpha : alpha >= 0, y'alpha = 0 },

where R_k is the radius of the smallest ball that encloses the points in the feature space of
kernel k (18).  That is simplex-weighted MKL with squared slacks over ``K_k + (R_k^2/C) I``, so that
``dJ/dmu_k = -1/2 [q_k(alpha*y) + (R_k^2/C) alpha'alpha]``.  Any alpha met is feasible in the dual,
whose value is ``1'alpha - 1/2 max_k`` of the brackets; so is a mixture of them.  The solution's
``dual_variables`` are the alpha of the greatest lower bound.

``curvature=False`` is the paper's Algorithm 1, :func:`_plain`, which stalls at kinks of J.  The
default is the descent that SimpleMKL takes too, :mod:`.reduced_gradient`.

On the paper:

* Erratum: Algorithm 1 prints ``mu + gamma dJ/dmu``.  J is minimised, so the step must descend.
* In the cost (11) the true radius R_mu of the combined kernel multiplies the margin term.  (12)
  bounds that cost by ``(sum_k mu_k R_k^2) J``.  Its last inequality drops the factor, which needs
  ``sum_k mu_k R_k^2 <= 1``, as the paper's cosine normalisation (3) guarantees.  This code
  minimises J for any kernels of the bank, normalised or not; without (3), J is no bound of (11).
* A kernel of radius zero is constant on the points.  It adds nothing to the quadratic form, since
  ``y'alpha = 0``, and nothing to the ridge, and so has no weight at the optimum.  If every radius
  is zero, no function tells two points apart and J is infinite.  The slack penalty is then taken
  to be C/2; any other gives the same predictor, the constant that minimises the squared slacks.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
from pydantic import Field

from mkldist.bank.passes import squared_radius
from mkldist.bank.requests import Combine, Quadratic, Radii
from mkldist.core.arrays import Floats
from mkldist.methods.cut_bundle import WrapperBounds
from mkldist.methods.reduced_gradient import (
    CombinedKernel,
    ReducedGradientParams,
    descend,
    memory_of_descent,
    normalised,
    slope_along,
    steepest_direction,
    step_along,
)
from mkldist.solvers.base import Counters, Method, Problem, Requesting, Steps
from mkldist.solvers.l2_svm import solve_l2_svm
from mkldist.solvers.progress import StopReason
from mkldist.solvers.svm import SvmSolution

# A relative gap of eps leaves an error of about sqrt(eps) in the quadratic forms, which are the
# gradient.  Machines are solved until that error is this share of the outer tolerance.
SLOPE_SHARE = 0.1
# If only kernels of radius zero have weight there is no ridge, and J is infinite.  With this share
# of the largest ridge instead, J is so large that a search along a line turns back.
RIDGE_FLOOR = 1e-14
RELATIVE_ROUNDING = 1e-9  # of squared radii, each of which is known to a relative 1e-10


class RMKLParams(ReducedGradientParams):
    """Parameters of R-MKL."""

    steers: ClassVar[tuple[str, ...]] = ("random_weights",)

    C: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="weight of the losses: penalty of squared slacks",
    )
    random_weights: int | None = Field(
        None, ge=1, description="also report the radius error at so many random weights"
    )


def solve(problem: Problem, params: RMKLParams) -> Steps:
    """Run R-MKL.

    ``objective`` is the least primal value (17) met, ``dual_objective`` the greatest lower bound:
    of the dual at the alpha met and, after a kink, of their cutting planes.  ``extra`` is the
    result of :func:`radius_report`, and with ``random_weights`` that of
    :func:`random_radius_error`.
    """
    counters = Counters()
    squared_radii = yield Radii()  # R_k^2 (18)
    ridges = slack_ridges(squared_radii, params.C)
    l2_svm_at = InnerL2Svm(problem.y, ridges, params.tol, counters)
    bounds = WrapperBounds(problem, params, counters)
    run = descend if params.curvature else _plain
    stop = yield from run(problem, params, l2_svm_at, ridges, bounds)
    mu, svm = bounds.best
    K = yield Combine(mu)
    report = radius_report(mu, svm, K, squared_radii, params.C)
    if params.random_weights is not None:
        found = yield from random_radius_error(squared_radii, params.random_weights)
        report["random_radius_error"] = found
    return bounds.solution(stop, report)


def _plain(
    problem: Problem,
    params: RMKLParams,
    l2_svm_at: InnerL2Svm,
    ridges: Floats,
    bounds: WrapperBounds,
) -> Requesting[StopReason]:
    """Run Algorithm 1; return the reason to stop."""
    mu = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    moved = True
    for _ in range(params.max_iter):
        # Set R_mu^2 = sum_k mu_k R_k^2, and compute J(mu) (17) with K = sum_k mu_k K_k.
        kernel = CombinedKernel((yield Combine(mu)), float(ridges @ mu))
        svm = l2_svm_at(kernel)
        # Compute dJ/dmu_k = -1/2 q_k, with q_k the quadratic form of K_k + (R_k^2/C) I.
        q = (yield Quadratic(svm.signed)) + ridges * float(svm.signed @ svm.signed)
        bounds.update(mu, svm, svm.objective, svm.dual_value(float(q.max())))
        # Until stopCriteria is true: here, by the duality gap.
        stop = bounds.reason_to_stop(stalled=not moved)
        if stop is not None:
            return stop
        # Compute the optimal step gamma along the reduced gradient, which keeps mu in the simplex
        # (16) up to the step at which a first weight vanishes: mu <- mu - gamma dJ/dmu.
        D = steepest_direction(mu, -0.5 * q, int(mu.argmax()))
        along = CombinedKernel((yield Combine(D)), float(ridges @ D))
        slope = slope_along(svm, along)
        moved = slope < 0.0
        if moved:
            shrinking = np.flatnonzero(D < 0.0)
            largest = float((-mu[shrinking] / D[shrinking]).min())
            gamma = step_along(l2_svm_at, kernel, along, slope, largest)
            mu = normalised(mu + gamma * D, mu)
    return StopReason.MAX_ITER


def slack_ridges(squared_radii: Floats, C: float) -> Floats:
    """Return ``R_k^2 / C`` (M,), which the squared slacks add to the diagonal of each kernel.

    If every radius is zero, it is ``1 / C`` for each, as if every radius were one.
    """
    penalised = squared_radii if squared_radii.any() else np.ones(len(squared_radii))
    return penalised / C


class InnerL2Svm:
    """Solve one l2-SVM after another, each started from the last solution.

    `ridges` (M,), not all zero, are added to the diagonals of the kernels; `tol` is the relative
    gap of the outer problem.
    """

    def __init__(self, y: Floats, ridges: Floats, tol: float, counters: Counters) -> None:
        self._y, self._floor = y, RIDGE_FLOOR * float(ridges.max())
        self._tol = (SLOPE_SHARE * tol) ** 2
        self._counters = counters
        self._start: Floats | None = None

    def __call__(self, kernel: CombinedKernel) -> SvmSolution:
        """Solve on a combined kernel, whose ridge is kept above zero."""
        ridge = max(kernel.ridge, self._floor)
        svm = solve_l2_svm(kernel.matrix, self._y, ridge, tol=self._tol, start=self._start)
        self._start = svm.alpha
        self._counters.count_svm(svm.iterations, svm.newton_steps)
        return svm


def radius_report(
    mu: Floats, svm: SvmSolution, K: Floats, squared_radii: Floats, C: float
) -> dict[str, float]:
    """Return how the radius of the combined kernel K (n, n) compares with its bound in J.

    ``squared_radius`` is R_mu^2, the squared radius of the combined kernel.  ``largest_part``,
    ``mean_squared_radius`` and ``largest_squared_radius`` are the other three members of the bound
    (7), ``max_k mu_k R_k^2 <= R_mu^2 <= sum_k mu_k R_k^2 <= max_k R_k^2``, and ``bound_holds`` is 1
    if it holds up to rounding, else 0.  ``radius_error`` is :func:`radius_error`.
    ``radius_margin`` is the cost (11), ``1/2 ||w||^2 R_mu^2 + C/2 sum_i xi_i^2``, which by (12) is
    at most ``mean_squared_radius`` times the objective.
    """
    combined = squared_radius(K)
    parts = mu * squared_radii
    largest_part, mean = float(parts.max()), float(parts.sum())
    largest = float(squared_radii.max())
    rounding = RELATIVE_ROUNDING * largest
    pairs = itertools.pairwise((largest_part, combined, mean, largest))
    bound_holds = all(low <= high + rounding for low, high in pairs)
    norm = float(svm.signed @ K @ svm.signed)
    ridge = float(slack_ridges(squared_radii, C) @ mu)
    squared_slacks = 2.0 * ridge * max(svm.objective - 0.5 * norm, 0.0)
    return {
        "squared_radius": combined,
        "largest_part": largest_part,
        "mean_squared_radius": mean,
        "largest_squared_radius": largest,
        "bound_holds": float(bound_holds),
        "radius_error": radius_error(mean, combined),
        "radius_margin": 0.5 * norm * combined + 0.5 * C * squared_slacks,
    }


def radius_error(mean: float, combined: float) -> float:
    """Return the paper's error ``(sum_k mu_k R_k^2 - R_mu^2) / R_mu^2``; 0 if all are zero."""
    return (mean - combined) / combined if combined > 0.0 else 0.0


def random_radius_error(squared_radii: Floats, draws: int) -> Requesting[float]:
    """Return the mean approximation error at weights that are uniform on the simplex.

    The draws depend on the number of kernels alone, so that runs on one bank share their passes.
    """
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(draws):
        mu = rng.dirichlet(np.ones(len(squared_radii)))
        combined = squared_radius((yield Combine(mu)))
        total += radius_error(float(mu @ squared_radii), combined)
    return total / draws


METHOD = Method(
    name="rmkl",
    solve=solve,
    params=RMKLParams,
    title="R-MKL, margin and radius",
    problem="simplex-weighted MKL with radii",
    loss="squared hinge",
    regularizer="1/2 (sum_k ||f_k||)^2, slacks over sum_k mu_k R_k^2",
    reference="Do, Kalousis, Woznica & Hilario 2009, Algorithm 1, (13)-(17)",
    memory=memory_of_descent,
)
