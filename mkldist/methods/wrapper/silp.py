"""Semi-infinite linear programme (Sonnenburg, Raetsch, Schaefer & Schoelkopf 2006, Algorithm 1).

Minimises over kernel weights beta in the simplex the optimal value of the support vector machine,

    J(beta) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m beta_m K_m) (alpha*y) :
                          0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  Every feasible
alpha is one constraint of the paper's programme

    max theta  s.t.  sum_m beta_m S_m(alpha) >= theta for all alpha,  beta in the simplex,

with ``S_m(alpha) = 1/2 q_m(alpha*y) - 1'alpha``.  The machine at beta finds the constraint that is
violated most, and the programme over the constraints found so far gives the next beta.  Of
several classes the shared weights minimise ``sum_c J_c(beta)``, and a constraint is the sum of
those of the classes' machines.

This is the cutting-plane method that the Level method stabilises: its weights are vertices of the
model, so that they jump from iteration to iteration and need more of them.

The paper stops when the newest constraint is violated by little relative to theta, after the
programme is solved.  Here the best machine met takes the place of the newest: the bounds are
``-theta`` and the least J, and their relative gap is a certificate.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.methods.wrapper.cut_bundle import BundleParams, CutBundle
from mkldist.solvers.base import Method, Path, Problem, Steps, StopReason, reason_to_stop

RISING = 0.1  # of the distance to the upper bound, by which a lower bound rises that is on its way


class SilpParams(BundleParams):
    """Parameters of the semi-infinite linear programme."""

    max_iter: int = Field(5000, ge=1, description="limit on outer iterations")


def solve(problem: Problem, params: SilpParams) -> Steps:
    """Solve the semi-infinite linear programme by column generation.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SilpParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the value of the linear
        programme, evaluated so that rounding leaves it a lower bound.
    """
    bundle = CutBundle(problem, params)
    yield from bundle.begin()
    for _ in range(params.max_iter):
        n_kernels, lower = len(bundle.kernels), bundle.restricted_lower
        yield from bundle.visit()
        # Rounding may hide what the newest constraint says.
        same = len(bundle.kernels) == n_kernels
        same = same and np.array_equal(bundle.p, bundle.minimum.columns)
        # From a bound far below, the model's minimum may take more than one visit.
        rising = bundle.restricted_lower - lower > RISING * (bundle.upper - lower)
        stop = reason_to_stop(problem, params, bundle.gap, stalled=same and not rising)
        if stop is not None:
            break
        bundle.p = bundle.minimum.columns
    return bundle.solution(stop or StopReason.MAX_ITER)


METHOD = Method(
    name="silp",
    solve=solve,
    params=SilpParams,
    title="Semi-infinite linear programme",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Sonnenburg, Raetsch, Schaefer & Schoelkopf 2006, Algorithm 1",
    path=Path("C", rising=True),
    joint_classes=True,
)
