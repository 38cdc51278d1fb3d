"""SimpleMKL, reduced gradient descent (Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

with gradient ``dJ/dd_m = -1/2 q_m``, ``q_m = (alpha*y)' K_m (alpha*y)``.  Of several classes that
share d, J and q are sums over the classes.  Any alpha met is feasible in the dual, whose value
``1'alpha - 1/2 max_m q_m`` bounds the optimum from below.

Xu et al. 2008 call the method subgradient descent (SD).  With ``curvature=False`` the directions
are the paper's; :mod:`.reduced_gradient` says where the descent differs from the paper's toolbox.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from pydantic import Field

from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Quadratic
from mkldist.machines.inner_svm import InnerSvm, sum_over_classes
from mkldist.methods.wrapper.bounds import WrapperBounds
from mkldist.methods.wrapper.reduced_gradient import (
    KinkSteps,
    QuasiNewton,
    ReducedGradientParams,
    reference_kernel,
    steepest_path,
)
from mkldist.methods.wrapper.simplex_line import CombinedKernel, LineSearch
from mkldist.solvers.base import Method, Problem, Steps, StopReason, reason_to_stop


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
        ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound:
        of the dual at the alpha met and, after a kink, of their cutting planes.
    """
    M, counters = problem.n_kernels, Counters()
    svm_at = InnerSvm(problem.y, params.C, params.tol, counters)
    line = LineSearch(
        machine=lambda kernel: svm_at(kernel.matrix),
        ridges=np.zeros(M),
        counters=counters,
        expired=partial(problem.clock.past, params.time_limit),
    )
    bounds, kinks, quasi_newton = (
        WrapperBounds(problem, params, counters),
        KinkSteps(M),
        QuasiNewton(),
    )
    descent_path = quasi_newton.path if params.curvature else steepest_path
    d, mu = np.full(M, 1.0 / M), None
    for _ in range(params.max_iter):
        # Compute J(d) and its gradient by a machine on sum_m d_m K_m.
        K = yield Combine(d)
        svm = svm_at(K)
        q = sum_over_classes((yield Quadratic(svm.signed)))
        counters.combines += 1
        counters.passes += 1
        height, gradient = float(svm.alpha.sum()), -0.5 * q

        dual = height - 0.5 * float(q.max())
        bounds.update(d, svm, svm.objective, max(dual, kinks.lower_bound(height, gradient)))
        stop = reason_to_stop(problem, params, bounds.gap, stalled=kinks.exhausted)
        if stop is not None:
            break

        # Compute the descent direction D: (12), where kernel mu keeps the sum of the weights, or
        # the same scaled by limited-memory BFGS.
        mu = reference_kernel(d, mu)
        path = descent_path(d, gradient, mu)

        # Drop kernels along D while J falls, then search the line: d <- d + gamma D.
        moved = yield from line.search(path, CombinedKernel(K), svm)
        if np.array_equal(moved, d):  # J has a kink here
            quasi_newton.forget()
            moved = kinks.step(d, height, gradient, bounds)
        d = moved
    return bounds.solution(stop or StopReason.MAX_ITER)


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
    memory=lambda size, _: size.memory(matrices=7, vectors=72),  # with quasi-Newton pairs
)
