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

import math

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


class SilpParams(SolverParams):
    """Parameters of the semi-infinite linear programme."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
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
    Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the value of the linear
        programme, evaluated so that rounding leaves it a lower bound.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    svm_at = InnerSvm(problem.y, params.C, params.tol, counters)
    cuts = CuttingPlanes(problem.n_kernels)
    beta: Floats = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    best_beta, best, lower, stop = beta, SvmSolution.none(), -math.inf, StopReason.MAX_ITER
    for _ in range(params.max_iter):
        svm = svm_at((yield Combine(beta)))
        q = yield from norms(svm)
        counters.outer_iterations += 1
        counters.combines += 1
        counters.passes += 1
        if svm.objective < best.objective:
            best_beta, best = beta, svm
        cuts.add(float(svm.alpha.sum()), -0.5 * q)
        minimum = cuts.minimum()
        lower = max(lower, minimum.bound)
        trace.record(best.objective, lower, beta)
        if relative_gap(best.objective, lower) <= params.tol:
            stop = StopReason.CONVERGED
            break
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        if np.array_equal(beta, minimum.columns):
            stop = StopReason.STALLED  # rounding hides what the newest constraint says
            break
        beta = minimum.columns
    return Solution(
        kernel_weights=best_beta,
        coefficients=best.signed,
        bias=best.bias,
        dual_variables=best.alpha,
        objective=best.objective,
        dual_objective=lower,
        stop_reason=stop,
        counters=counters,
        trace=trace.arrays(),
    )


METHOD = Method(
    name="silp",
    solve=solve,
    params=SilpParams,
    title="Semi-infinite linear programme",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Sonnenburg, Raetsch, Schaefer & Schoelkopf 2006, Algorithm 1",
    joint_classes=True,
)
