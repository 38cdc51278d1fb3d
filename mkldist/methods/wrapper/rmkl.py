"""R-MKL, margin and radius (Do, Kalousis, Woznica & Hilario 2009, Algorithm 1, (13)-(17)).

Minimises over kernel weights mu in the simplex the value (17) of an l2-SVM whose slack penalty is
divided by a bound of the squared radius of the ball around the points,

    J(mu) = min_{w, b, xi}  1/2 sum_k ||w_k||^2 / mu_k + C / (2 sum_k mu_k R_k^2) sum_i xi_i^2
            s.t.  y_i (sum_k <w_k, Phi_k(x_i)> + b) >= 1 - xi_i
          = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_k mu_k K_k) (alpha*y)
                        - (sum_k mu_k R_k^2) / (2C) alpha'alpha : alpha >= 0, y'alpha = 0 },

where R_k is the radius of the smallest ball that encloses the points in the feature space of
kernel k (18).  That is simplex-weighted MKL with squared slacks over ``K_k + (R_k^2/C) I``, so that
``dJ/dmu_k = -1/2 [q_k(alpha*y) + (R_k^2/C) alpha'alpha]``.  The descent along the reduced gradient
is :mod:`.reduced_gradient`.

On the paper:

* Algorithm 1 prints ``mu + gamma dJ/dmu``; J is minimised, so the step is one of descent.
* (12) bounds the cost (11), in which the true radius R_mu of the combined kernel multiplies the
  margin term, by ``(sum_k mu_k R_k^2) J``.  Its last inequality, which drops that factor, needs
  ``sum_k mu_k R_k^2 <= 1``, as the paper's cosine normalisation (3) guarantees.  Kernels are taken
  here as the bank gives them; without that normalisation J is still what is minimised.
* A kernel of radius zero is constant on the points.  It adds neither to the quadratic form, since
  ``y'alpha = 0``, nor to the ridge, and so has no weight at the optimum.  If every radius is zero
  no function tells two points apart and J is infinite; the slack penalty is then taken to be C/2,
  whose predictor, the constant that minimises the squared slacks, is that of any other factor.
"""

from __future__ import annotations

import itertools

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.radii import squared_radius
from mkldist.gram.requests import Radii
from mkldist.machines.l2_svm import solve_l2_svm
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.reduced_gradient import Descent, ReducedGradientParams, descend
from mkldist.methods.wrapper.simplex_line import Combination
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.trace import Trace

# A gap of eps leaves an error of about sqrt(eps) in the quadratic forms, which are the gradient.
SLOPE_SHARE = 0.1  # of the outer tolerance
# Weight on kernels of radius zero alone leaves no ridge: J is infinite there, and with this share
# of the largest ridge so large that a search along a line turns back.
RIDGE_FLOOR = 1e-14
RELATIVE_ROUNDING = 1e-9  # of squared radii, each of which is known to a relative 1e-10


class RMKLParams(ReducedGradientParams):
    """Parameters of R-MKL."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="penalty of squared slacks")


def solve(problem: Problem, params: RMKLParams) -> Steps:
    """Run R-MKL.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : RMKLParams
        Regularisation and stopping rule.

    Yields
    ------
    Radii, Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least primal value (17) met, ``dual_objective`` the greatest value
        met of ``1'alpha - 1/2 max_k [q_k(alpha*y) + (R_k^2/C) alpha'alpha]``.  ``extra`` holds
        what :func:`radius_report` returns.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    squared_radii = yield Radii()
    counters.passes += 1
    penalised = squared_radii if squared_radii.any() else np.ones(problem.n_kernels)
    ridges = penalised / params.C
    machine = _Machine(problem.y, RIDGE_FLOOR * float(ridges.max()), params.tol, counters)
    descent = yield from descend(problem, params, machine, ridges, counters, trace)
    report = radius_report(descent, squared_radii, params.C)
    return descent.solution(counters, trace, report)


class _Machine:
    """The l2-SVM on one combined kernel after another, each started from the last solution."""

    def __init__(self, y: Floats, floor: float, tol: float, counters: Counters) -> None:
        self._y, self._floor, self._counters = y, floor, counters
        self._tol = (SLOPE_SHARE * tol) ** 2
        self._start: Floats | None = None

    def __call__(self, kernel: Combination) -> SvmSolution:
        ridge = max(kernel.ridge, self._floor)
        svm = solve_l2_svm(kernel.matrix, self._y, ridge, tol=self._tol, start=self._start)
        self._start = svm.alpha
        self._counters.count_svm(svm.iterations, svm.newton_steps)
        return svm


def radius_report(descent: Descent, squared_radii: Floats, C: float) -> dict[str, float]:
    """Return how the radius of the combined kernel compares with what stands for it in J.

    Parameters
    ----------
    descent : Descent
        Where the weights mu, the machine and the combined kernel are.
    squared_radii : (M,) float64
        Squared radii of the kernels.
    C : float
        Penalty of squared slacks.

    Returns
    -------
    dict of str to float
        ``squared_radius``: R_mu^2, the squared radius of the combined kernel.
        ``largest_part``, ``mean_squared_radius``, ``largest_squared_radius``: the other three
        members of the bound (7),
        ``max_k mu_k R_k^2 <= R_mu^2 <= sum_k mu_k R_k^2 <= max_k R_k^2``.
        ``bound_holds``: 1 if (7) holds up to rounding, else 0.
        ``radius_error``: the paper's approximation error
        ``(sum_k mu_k R_k^2 - R_mu^2) / R_mu^2``; 0 if all these radii are zero.
        ``radius_margin``: the cost (11), ``1/2 ||w||^2 R_mu^2 + C/2 sum_i xi_i^2``, which by (12)
        is at most ``mean_squared_radius`` times the objective.
    """
    mu, svm = descent.weights, descent.svm
    combined = squared_radius(descent.kernel.matrix)
    parts = mu * squared_radii
    chain = [float(parts.max()), combined, float(parts.sum()), float(squared_radii.max())]
    rounding = RELATIVE_ROUNDING * chain[-1]
    holds = all(low <= high + rounding for low, high in itertools.pairwise(chain))
    norm = float(svm.signed @ descent.kernel.matrix @ svm.signed)
    slacks = 2.0 * descent.kernel.ridge * max(svm.objective - 0.5 * norm, 0.0)
    return {
        "squared_radius": combined,
        "largest_part": chain[0],
        "mean_squared_radius": chain[2],
        "largest_squared_radius": chain[3],
        "bound_holds": float(holds),
        "radius_error": (chain[2] - combined) / combined if combined > 0.0 else 0.0,
        "radius_margin": 0.5 * norm * combined + 0.5 * C * slacks,
    }


METHOD = Method(
    name="rmkl",
    solve=solve,
    params=RMKLParams,
    title="R-MKL, margin and radius",
    problem="simplex-weighted MKL with radii",
    loss="squared hinge",
    regularizer="1/2 (sum_k ||f_k||)^2, slacks over sum_k mu_k R_k^2",
    reference="Do, Kalousis, Woznica & Hilario 2009, Algorithm 1, (13)-(17)",
)
