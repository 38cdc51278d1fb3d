"""Semi-infinite linear programme (Sonnenburg, Raetsch, Schaefer & Schoelkopf 2006, Algorithm 1).

Minimises over kernel weights beta in the simplex the optimal value of the support vector machine,

    J(beta) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m beta_m K_m) (alpha*y) :
                          0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  Every feasible
alpha is one constraint of the paper's programme

    max theta  s.t.  sum_m beta_m S_m(alpha) >= theta for all alpha,  beta in the simplex,

with ``S_m(alpha) = 1/2 q_m(alpha*y) - 1'alpha`` and ``q_m(v) = v'K_m v``.  The machine at beta
finds the constraint that is violated most, and the programme over the constraints found so far
gives the next beta.  Of several classes the shared weights minimise ``sum_c J_c(beta)``, and a
constraint is the sum of those of the classes' machines.  Some constraints are active at
the optimum.  The dual value ``1'alpha - 1/2 max_m q_m(alpha*y)`` of the mixture of their alpha, the
solution's ``dual_variables``, is a lower bound, no less than ``-theta``.

This is the cutting-plane method that the Level method stabilises: its weights are vertices of the
model, so that they jump from iteration to iteration and it needs more iterations.

The paper stops when the newest constraint is violated by little relative to theta, after the
programme is solved.  Here the best machine met takes the place of the newest: the bounds are
``-theta`` and the least J, and their relative gap is a certificate.

``acceleration="none"`` is the paper's algorithm but for that stop.  The default solves the
programme on a working set; problem and optimum stay the paper's.  It takes a fraction of the
passes, and more machines, since the vertices settle anew whenever kernels join.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.core.arrays import Floats
from mkldist.methods.cut_bundle import (
    BundleParams,
    DualPoint,
    add_cut,
    begin,
    bundle_solution,
    certify,
    exact_bound,
    memory_of_cuts,
    renewed,
    solve_machine,
)
from mkldist.optim.factored_matrix import Gram
from mkldist.solvers.base import Method, Problem, Renewal, Steps, reason_to_stop

RISING = 0.1  # of the bounds' distance: a lower bound that rises by more is still on its way


class SilpParams(BundleParams):
    """Parameters of the semi-infinite linear programme."""

    max_iter: int = Field(5000, ge=1, description="limit on outer iterations")


def solve(problem: Problem, params: SilpParams) -> Steps:
    """Solve the semi-infinite linear programme by column generation.

    ``objective`` is the least primal value met, ``dual_objective`` the value of the linear
    programme, evaluated so that rounding leaves it a lower bound.  With ``stop="point"`` it is as
    in the Level method.
    """
    # beta^1_m = 1/M, or the weights of the path's last point.
    bundle, beta = yield from begin(problem, params, multiples=False)
    kernels, bounds = bundle.kernels, bundle.bounds
    K: Gram | None = None
    for _ in range(params.max_iter):
        # alpha^t = argmin_alpha sum_m beta^t_m S_m(alpha), by the machine on sum_m beta^t_m K_m.
        before, weights = bundle.restricted_lower, kernels.spread(beta)
        K = yield kernels.combination(beta, thin=True, former=K)
        svm = solve_machine(bundle, K, weights)
        q = yield from kernels.quadratic(svm.signed)
        # (beta^{t+1}, theta^{t+1}) = argmax theta s.t. sum_m beta_m S_m(alpha^r) >= theta, r <= t.
        # The programme minimises -theta, with the constraints' signs changed too.  The bounds are
        # -theta^{t+1} and min_r J(beta^r); on a working set, then those on all kernels.
        add_cut(bundle, DualPoint(svm.alpha, q, svm.rounding))
        gap = yield from certify(bundle, svm, q)
        bounds.record(weights)
        # Stop by the gap of the bounds, or by that of the iterate.
        following = bundle.model.weights  # longer than beta if kernels joined the working set
        stalled = stands_still(beta, following, before, bundle.restricted_lower, bounds.upper)
        stop = reason_to_stop(problem, params, gap.value, stalled=stalled)
        if stop is not None:
            break
        beta = following
    return bundle_solution(bundle, weights, svm, gap, stop)


def stands_still(
    beta: Floats, following: Floats, before: float, lower: float, upper: float
) -> bool:
    """Return True if the next weights (S,) are the last ones and the lower bound hardly rises.

    Rounding may hide what the newest constraint says.  From a bound far below, `before` the last
    machine, the programme's optimum may take more than one machine at the same weights.
    """
    rising = lower - before > RISING * (upper - before)
    return np.array_equal(beta, following) and not rising


METHOD = Method(
    name="silp",
    solve=solve,
    params=SilpParams,
    title="Semi-infinite linear programme",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Sonnenburg, Raetsch, Schaefer & Schoelkopf 2006, Algorithm 1",
    has_path=True,
    joint_classes=True,
    weighs_points=True,
    memory=memory_of_cuts,
    exact_bound=exact_bound,
    hinge_machines=True,
    renewal=Renewal(renewed),
)
