"""Majority class: the support vector machine without a kernel.

With all weights zero, ``min_b C sum_i w_i max(0, 1 - y_i b)`` is ``2 C min(w_+, w_-)``, attained
where b has the sign of the class whose points weigh more, w_+ or w_- together; the dual,
``max 1'alpha`` s.t. ``0 <= alpha_i <= C w_i`` and ``y'alpha = 0``, has the same value at the
solution's ``dual_variables`` alpha.  The baseline MC of Do, Kalousis, Woznica & Hilario 2009.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Request
from mkldist.core.counters import Counters
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.progress import StopReason, Trace
from mkldist.solvers.solver_params import SolverParams

EQUAL = 1e-9  # relative difference of sums of weights that is rounding


class MajorityParams(SolverParams):
    """Parameters of the majority class."""

    C: float = Field(1.0, gt=0, allow_inf_nan=False, description="scale of the objective")


def solve(problem: Problem, params: MajorityParams) -> Generator[Request, None, Solution]:
    """Predict the class of the training part that weighs more.

    Where both weigh the same, as balanced classes do, it is that of more points, at last +1.

    Its gap is 0.  The solver makes no request of the bank.
    """
    y = problem.y
    weight = np.ones(len(y)) if problem.weights is None else problem.weights
    positives, negatives = float(weight[y > 0].sum()), float(weight[y < 0].sum())
    smaller = min(positives, negatives)
    alpha = params.C * weight * np.where(y > 0, smaller / positives, smaller / negatives)
    sign = positives - negatives
    if abs(sign) <= EQUAL * smaller:
        sign = (y > 0).sum() - (y < 0).sum()
    weights, value = np.zeros(problem.n_kernels), 2.0 * params.C * smaller
    yield from ()
    return Solution(
        kernel_weights=weights,
        coefficients=np.zeros(len(y)),
        bias=1.0 if sign >= 0 else -1.0,
        dual_variables=alpha,
        objective=value,
        dual_objective=value,
        stop_reason=StopReason.CONVERGED,
        counters=Counters(outer_iterations=1),
        trace=Trace.of_one(params.trace, problem.clock, value, value, weights),
    )


METHOD = Method(
    name="majority",
    solve=solve,
    params=MajorityParams,
    title="Majority class",
    problem="SVM without a kernel",
    loss="hinge",
    regularizer="none",
    reference="Do, Kalousis, Woznica & Hilario 2009, Table 2 (MC)",
    hyperparameters=(),
    weighs_points=True,
    typical_passes=lambda n_kernels: 0,
)
