"""Algorithm 1 of Hao, Yuan, Yang & Chen 2012 as printed: one step of z between two of d.

The alternation of :mod:`.primalmkl` minimises over z = (alpha, b) before each step of the kernel
weights d.  Here z takes a single step along the direction of its inner solver, by an exact line
search, and all kernels keep their products ``K_m alpha``.  The paper stops once the gradient in z
is shorter than chi_2, an absolute number that says nothing of d.

Away from the minimum over z, alpha certifies nothing.  The residual of the loss does: every pass
also has ``q_m`` at ``r / lam``, whose dual value bounds the optimum from below, so that the run may
stop by its gap, too.

Two details are not the paper's.  The weights start equal, not at random, so that runs repeat.  The
bias is the best one for alpha, in closed form, before each step and after it.
"""

from __future__ import annotations

import numpy as np

from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Matvec, Quadratic
from mkldist.methods.primal.certificate import (
    PATIENCE,
    PROGRESS,
    Best,
    best_solution,
    dual_value,
    energy,
    primal_value,
)
from mkldist.methods.primal.params import PrimalMKLParams, machine_of
from mkldist.methods.primal.steps import feasible_weights
from mkldist.methods.primal.weight_step import CHI_1, alternating_objective, nesterov
from mkldist.optim.lp_ball import WeightSet
from mkldist.solvers.base import Problem, Steps, reason_to_stop
from mkldist.solvers.bounds import Bounds
from mkldist.solvers.trace import Trace


def alternate_by_single_steps(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Alternate between one step of z and a minimum over d, with all kernels in each iteration.

    Parameters
    ----------
    problem : Problem
        Targets and number of kernels.
    params : PrimalMKLParams
        Loss, regularisation, constraint of the weights and stopping rules.

    Yields
    ------
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        As that of :func:`mkldist.methods.primal.primalmkl.solve`.
    """
    weights, counters = WeightSet(params.norm), Counters()
    machine = machine_of(params, problem.y, counters)
    loss, lam = machine.loss, params.lam
    trace = Trace(params.trace, problem.clock)
    d, alpha = weights.uniform(problem.n_kernels), np.zeros(problem.n_points)  # lines 1, 2
    K = yield Combine(d, thin=True)  # line 4
    z = machine.point(K, alpha, K @ alpha)
    bounds = Bounds(Best(d, z), progress=PROGRESS)
    for iteration in range(1, params.max_iter + 1):
        flat = float(np.linalg.norm(z.Ks)) < params.chi_2  # line 6
        z = z if flat else machine.step(K, z)  # lines 5, 9 and 10
        r = loss.feasible(z.r)
        q = yield Quadratic(r / lam)
        value = dual_value(machine, weights, r, z.b, q, energy(K, r / lam))
        bounds.take(Best(d, z), primal_value(machine, K, z), value, r)
        counters.outer_iterations += 1
        trace.record(bounds.upper, bounds.lower, d, bounds.own)
        stalled = flat or bounds.idle >= PATIENCE
        stop = reason_to_stop(problem, params, bounds.gap, stalled=stalled)
        if stop is not None or iteration == params.max_iter:
            break
        rows = yield Matvec(np.arange(len(d)), z.alpha)  # line 11: the kernel cache
        F = alternating_objective(rows.T, rows @ z.alpha, lam, loss, z.b)
        d = feasible_weights(
            weights, nesterov(F, weights, d, chi=min(CHI_1, params.tol))
        )  # line 12
        del rows, K  # each as large as Gram matrices, which the next request needs room for
        K = yield Combine(d, thin=True)  # line 4
        z = machine.point(K, z.alpha, K @ z.alpha)
    return best_solution(problem, params, machine, bounds, stop, trace)
