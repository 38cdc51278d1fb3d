"""SMO-MKL for the squared p-norm (Vishwanathan, Sun, Theera-Ampornpunt & Varma 2010).

Minimises over components f_m, bias b and kernel weights ``d >= 0``, with p > 1,

    1/2 sum_m ||f_m||^2 / d_m + C sum_i hinge(y_i (sum_m f_m(x_i) + b)) + lam/2 ||d||_p^2.

With ``q_m = (alpha*y)' K_m (alpha*y)`` and ``p* = p/(p-1)`` its dual is smooth,

    max_alpha 1'alpha - (1/(8 lam)) ||q||_{p*}^2   s.t.  0 <= alpha <= C,  y'alpha = 0,

because the weights are eliminated in closed form: ``||d||_p = ||q||_{p*} / (2 lam)`` and d_m is
proportional to ``q_m^(p*-1)``.  Sequential minimal optimisation can therefore climb it.  It
chooses a pair of variables by the second-order gain and moves it to the maximum on its line,
which Newton's method finds, because the objective on the line is not quadratic.  The lower bound is
the dual value at the alpha that the solution holds as ``dual_variables``.

Pair updates bring the gap below one per cent; Newton steps on the free variables reach tighter
tolerances (:mod:`.smooth_dual`).

The weight is penalised here where :mod:`.lp_mkl` bounds it.  If d is optimal here
and ``theta = ||d||_p``, then ``d / theta`` is optimal there for ``theta C`` in place of C.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Diagonal
from mkldist.core.counters import Counters
from mkldist.methods.smooth_dual import (
    P_NORM,
    MklDual,
    Penalty,
    first_bounds,
    memory_of_rows,
    solution_of,
)
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Method, Problem, Steps, reason_to_stop
from mkldist.solvers.progress import StopReason, Trace
from mkldist.solvers.solver_params import HingeParams

PATIENCE = 25  # rounds without a better bound after which only rounding is left


class SmoMklParams(HingeParams):
    """Parameters of SMO-MKL."""

    steers: ClassVar[tuple[str, ...]] = ("cache_mib",)

    p: float = Field(2.0, gt=1, description="norm of the kernel weights")
    lam: float = Field(1.0, gt=0, description="penalty of the squared norm of the weights")
    cache_mib: float = Field(256.0, gt=0, description="memory for rows of the kernels, MiB")


def solve(problem: Problem, params: SmoMklParams) -> Steps:
    """Climb the dual by pair updates, then by Newton steps.

    ``objective`` is the least primal value met at the weights that q implies, ``dual_objective``
    the greatest dual value.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    bounds = first_bounds(problem.y, np.zeros(problem.n_kernels), params.C)
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    dual = MklDual(problem, params.C, params.cache_mib, counters, traces[:, 0])
    penalty = Penalty(P_NORM, params.p / (params.p - 1.0), params.lam)
    gap = 1.0  # of the point reached
    for _ in range(params.max_iter):
        # Climb 1'alpha - Psi(q), Psi = ||q||_{p*}^2 / (8 lam).
        # SMO: the rows of the points that violate optimality most; then pair after pair, by the
        # second-order gain, to the maximum on its line.  Beyond the paper, near the optimum: the
        # second-order model over the box.
        yield from dual.climb(penalty, gap)
        q = dual.q
        d, psi = penalty.weights(q), penalty.value(q)
        # At the weights d that q implies, 1/2 sum_m d_m q_m is 2 Psi and lam/2 ||d||_p^2 is Psi.
        predictor = dual.predictor(d, energy=2.0 * psi)
        upper = predictor.loss + 2.0 * psi * predictor.scale**2 + psi
        lower = dual.height(predictor.bias) - penalty.value(dual.largest_q)
        bounds.take(predictor, upper, lower, dual.alpha)
        gap = relative_gap(upper, lower)
        counters.outer_iterations += 1
        trace.record(bounds.upper, bounds.lower, d, bounds.own)
        stop = reason_to_stop(problem, params, bounds.gap, stalled=bounds.idle >= PATIENCE)
        if stop is not None:
            break
    return solution_of(bounds, stop or StopReason.MAX_ITER, counters, trace)


METHOD = Method(
    name="smo_mkl",
    solve=solve,
    params=SmoMklParams,
    title="SMO-MKL, squared p-norm",
    problem="MKL with the squared p-norm of the weights penalised",
    loss="hinge",
    regularizer="1/2 sum_m ||f_m||^2 / d_m + lam/2 ||d||_p^2",
    reference="Vishwanathan, Sun, Theera-Ampornpunt & Varma 2010, SMO on the p-norm dual",
    hyperparameters=("C", "p", "lam"),
    memory=lambda size, params: memory_of_rows(size, params.cache_mib),
)
