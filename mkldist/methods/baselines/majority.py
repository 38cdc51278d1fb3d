"""Majority class: the support vector machine without a kernel.

With all weights zero, ``min_b C sum_i max(0, 1 - y_i b)`` is ``2 C min(n_+, n_-)``, attained where
b has the sign of the larger class; the dual, ``max 1'alpha`` s.t. ``0 <= alpha <= C`` and
``y'alpha = 0``, has the same value at the solution's ``dual_variables`` alpha.  The baseline MC of
Do, Kalousis, Woznica & Hilario 2009.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from pydantic import Field

from mkldist.counters import Counters
from mkldist.gram.requests import Request
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.outcome import StopReason
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.trace import Trace


class MajorityParams(SolverParams):
    """Parameters of the majority class."""

    C: float = Field(1.0, gt=0, allow_inf_nan=False, description="scale of the objective")


def solve(problem: Problem, params: MajorityParams) -> Generator[Request, None, Solution]:
    """Predict the larger class of the training part; ties go to +1.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : MajorityParams
        Scale of the objective.

    Returns
    -------
    Solution
        Its gap is 0.  The solver makes no request of the bank.
    """
    y = problem.y
    positives, negatives = int((y > 0).sum()), int((y < 0).sum())
    smaller = min(positives, negatives)
    alpha = params.C * np.where(y > 0, smaller / positives, smaller / negatives)
    weights, value = np.zeros(problem.n_kernels), 2.0 * params.C * smaller
    yield from ()
    return Solution(
        kernel_weights=weights,
        coefficients=np.zeros(len(y)),
        bias=1.0 if positives >= negatives else -1.0,
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
    typical_passes=lambda n_kernels: 0,
)
