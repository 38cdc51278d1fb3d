"""PrimalMKL: truncated Newton in the machine, projected gradients in the weights, alternately.

Hao, Yuan, Yang & Chen 2012, Algorithm 1.  Minimises over coefficients alpha, bias b and kernel
weights d, the paper's (10),

    F(alpha, b, d) = 1/2 { lam alpha'K alpha + sum_i w_i loss_i(K alpha + b) },  K = sum_m d_m K_m,

with d in the simplex (``norm=1``) or in ``{d >= 0, ||d||_p <= 1}`` (``norm=p``), weights w_i of the
points, 1 in the paper, and ``lam = 1 / C``: C weighs the losses.  The loss is one of
:mod:`mkldist.solvers.squared_losses`: the paper's squared hinge ``max(0, 1 - y_i u_i)^2``, and the
extensions that the paper names: ``(y_i - u_i)^2`` (kernel ridge regression),
``max(0, |y_i - u_i| - epsilon)^2``, and the one-class machine ``max(0, -u_i)^2``, which has a term
2 b, b = -rho, beside the sum.

Errata: (9) misplaces the parenthesis, which belongs around the decision value with its bias; (10)
leaves the loss outside the factor 1/2, which (9) has before both terms.  The gradient in b is
``1'I_sv (K alpha + b 1 - y)``.  Algorithm 3 computes theta
with rho and x with z where its own delta and q are meant; line 13 of Algorithm 4 evaluates the
model at an infeasible point (:mod:`.weight_step`).

F is convex in z = (alpha, b) and in d, but not in both.  Yet a stationary point is the global
minimum of the convex ``J(d) = min_z F(z, d)``: at the minimum over z, lam alpha is the residual r
of the loss, so that ``dF/dd_m = -lam/2 q_m(alpha) = dJ/dd_m`` with ``q_m(a) = a'K_m a``.

Certificate: every residual that sums to the slope of the loss gives a lower bound of J for all d.
It is the dual value of :mod:`mkldist.solvers.squared_losses` in which ``max_d sum_m d_m q_m(r)``
replaces ``r'K r``: the largest q_m on the simplex, the dual norm ``||q||_{p*}``, ``p* = p/(p-1)``,
on the ball.  The solution holds the residual of the greatest bound, times y for the squared hinge.

Two deviations from the paper.  First, the alternation as printed converges linearly, at the rate
``kappa / (kappa + lam)`` for the eigenvalues kappa of K: thousands of iterations where lam is
small.  By default (``coupled``) the weight step therefore minimises the second-order model of J, in
which alpha follows d, and a search along the step makes J descend (:mod:`.value_model`).
``coupled=False`` is the paper's step.  Second, Algorithm 1 takes one Newton step between two weight
steps.  Here each machine is minimised, because a pass over the bank costs more than Newton steps.
With ``machine="one-step"`` the algorithm is as printed (:mod:`.one_step`).

:func:`alternate` below is the algorithm, with all kernels in each iteration.  On the simplex and
with many kernels, :mod:`.working_set_descent` runs the same two steps on a few kernels, unless
``acceleration="none"``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.methods.primal.certificate import (
    PATIENCE,
    PROGRESS,
    Best,
    best_solution,
    dual_value,
    energy,
    exact_bound,
    primal_value,
)
from mkldist.methods.primal.kernel_products import (
    memory_of_columns,
    quadratic_forms,
    weight_columns,
)
from mkldist.methods.primal.params import PrimalMKLParams, machine_of
from mkldist.methods.primal.steps import Iterate, d_step, feasible_weights, z_step
from mkldist.methods.primal.weight_step import CHI_1, alternating_objective, nesterov
from mkldist.methods.primal.working_set_descent import renewed, solve_on_working_set
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import Method, Problem, Renewal, Steps, reason_to_stop
from mkldist.solvers.progress import Bounds, Trace
from mkldist.solvers.working_set import SMALL


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
    machine = machine_of(params, problem, counters)
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


def solve(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Run PrimalMKL; on the simplex with many kernels by default on a working set.

    Parameters
    ----------
    problem : Problem
        Targets and number of kernels.
    params : PrimalMKLParams
        Loss, regularisation, constraint of the weights and stopping rule.

    Yields
    ------
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        ``objective`` is the least F met, ``dual_objective`` the greatest dual value;
        ``dual_variables`` is ``y * r`` for the squared hinge, else r, of this dual value.
    """
    if params.machine == "one-step":
        return (yield from alternate_by_single_steps(problem, params))
    plain = params.acceleration == "none" or params.norm > 1.0 or problem.n_kernels <= SMALL
    return (yield from (alternate if plain else solve_on_working_set)(problem, params))


@dataclass(frozen=True, eq=False)
class PlainStart:
    """Point at which the next solver of a path starts.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    alpha : (n,) float64
        Coefficients.
    """

    d: Floats
    alpha: Floats


def alternate(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Alternate between z and d, with all kernels in every iteration (Algorithm 1).

    Parameters, requests and solution are those of :func:`solve`.
    """
    weights, counters = WeightSet(params.norm), Counters()
    machine = machine_of(params, problem, counters)
    loss, lam = machine.loss, params.lam
    trace = Trace(params.trace, problem.clock)
    if isinstance(problem.start, PlainStart):
        d, alpha = problem.start.d, problem.start.alpha
    else:
        d, alpha = weights.uniform(problem.n_kernels), np.zeros(problem.n_points)  # lines 1, 2
    K = yield Combine(d, thin=True)  # line 4
    now = Iterate(d, K, machine(K, alpha))  # lines 5 to 10, until the machine's own gap is small
    bounds = Bounds(Best(now.d, now.z), progress=PROGRESS)
    for iteration in range(1, params.max_iter + 1):
        # A pass: q_m at a = r / lam, which is alpha at the minimum over z, for the certificate.
        r = loss.feasible(now.z.r)
        forms = yield from quadratic_forms(now.d, r / lam)  # Quadratic or Matvec
        value = dual_value(machine, weights, r, now.z.b, forms.q, energy(now.K, r / lam))
        bounds.take(Best(now.d, now.z), primal_value(machine, now.K, now.z), value, r)
        counters.outer_iterations += 1
        trace.record(bounds.upper, bounds.lower, now.d, bounds.own)
        stop = reason_to_stop(problem, params, bounds.gap, stalled=bounds.idle >= PATIENCE)
        if stop is not None or iteration == params.max_iter:
            break
        columns = yield from weight_columns(now.K, now.d, forms, weights)  # line 11
        d = d_step(machine, weights, now, columns, bounds.gap, params)  # line 12, Algorithm 4
        del columns, K  # each as large as Gram matrices, which the next request needs room for
        K = yield Combine(d, thin=True)  # line 4
        now = z_step(machine, now, d, K, params.coupled)  # lines 5 to 10
    state = PlainStart(bounds.best.d, bounds.best.z.alpha)
    return best_solution(problem, params, machine, bounds, stop, trace, state=state)


METHOD = Method(
    name="primalmkl",
    solve=solve,
    params=PrimalMKLParams,
    title="PrimalMKL, truncated Newton and projected gradients",
    problem="MKL in the primal, weights in the simplex or an lp ball",
    loss="squared hinge; squared, epsilon-squared, one-class",
    regularizer="1/(2 C) (sum_m ||f_m||)^2; its block-norm analogue for norm > 1",
    reference="Hao, Yuan, Yang & Chen 2012, Algorithm 1",
    weighs_points=True,
    has_path=True,
    memory=memory_of_columns,
    exact_bound=exact_bound,
    renewal=Renewal(renewed),
)
