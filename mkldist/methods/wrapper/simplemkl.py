"""SimpleMKL, reduced gradient descent (Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

with gradient ``dJ/dd_m = -1/2 q_m(alpha*y)``; of several classes that share d both are sums over
the classes.  It is the method that Xu et al. 2008 call
subgradient descent (SD); the descent is :mod:`.reduced_gradient`, which says where
it differs from the paper's toolbox.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.counters import Counters
from mkldist.machines.inner_svm import InnerSvm
from mkldist.methods.wrapper.reduced_gradient import ReducedGradientParams, descend
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.trace import Trace


class SimpleMKLParams(ReducedGradientParams):
    """Parameters of SimpleMKL."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")


def solve(problem: Problem, params: SimpleMKLParams) -> Steps:
    """Run SimpleMKL.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SimpleMKLParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the greatest value met of
        ``1'alpha - 1/2 max_m q_m(alpha*y)``, the dual at a feasible point.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    svm_at = InnerSvm(problem.y, params.C, params.tol, counters)
    no_ridges = np.zeros(problem.n_kernels)
    descent = yield from descend(
        problem, params, lambda kernel: svm_at(kernel.matrix), no_ridges, counters, trace
    )
    return descent.solution(counters, trace)


METHOD = Method(
    name="simplemkl",
    solve=solve,
    params=SimpleMKLParams,
    title="SimpleMKL, reduced gradient (SD)",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1",
    joint_classes=True,
)
