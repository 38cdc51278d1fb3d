"""PrimalMKL: truncated Newton in the machine, projected gradients in the weights, alternately.

Hao, Yuan, Yang & Chen 2012, Algorithm 1.  Minimises over coefficients alpha, bias b and kernel
weights d

    F(alpha, b, d) = 1/2 { lam alpha'K alpha + sum_i loss_i(K alpha + b) },   K = sum_m d_m K_m,

with d in the simplex (``norm=1``) or in ``{d >= 0, ||d||_p <= 1}`` (``norm=p``).  The loss is one
of :mod:`mkldist.machines.squared_losses`: the paper's squared hinge ``max(0, 1 - y_i u_i)^2``, and
those that it names as extensions: ``(y_i - u_i)^2`` (kernel ridge regression),
``max(0, |y_i - u_i| - epsilon)^2``, and the one-class machine ``max(0, -u_i)^2 + 2 b``, b = -rho.

Errata: (9) and (10) misplace the factor 1/2, which is meant to stand before both terms, and a
parenthesis around the decision value.  The gradient in b reads ``1'I_sv (K alpha + b 1 - y)``.

F is convex in (alpha, b) and in d, not in both, but a stationary point is the global minimum of
the convex ``J(d) = min F(alpha, b, d)``: at the minimum over z = (alpha, b), lam alpha is the
residual r of the loss, so that ``dF/dd_m = -lam/2 q_m(alpha) = dJ/dd_m``.  Any residual that sums
to the slope of the loss gives a lower bound, the dual with ``max_d sum_m d_m q_m(r)`` in place of
``r'K r``: the maximum of q_m for the simplex, its dual norm for the ball.

The alternation as printed converges linearly, at the rate of ``kappa / (kappa + lam)`` for the
eigenvalues kappa of K: thousands of iterations where lam is small.  By default (``coupled``) the
weight step therefore minimises the second-order model of J, in which alpha follows d, and a search
along the step keeps it a descent of J.  ``coupled=False`` is the paper's step.

Algorithm 1 takes one Newton step between two weight steps; here each machine is minimised, because
a pass over the bank costs more than Newton steps and a minimum has a certificate.  Only the kernels
in use and those that a pass shows to descend take part in a weight step.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.gram.requests import Combine, Request
from mkldist.machines.primal_newton import Inner, PrimalMachine, PrimalPoint, SupportSystem
from mkldist.machines.squared_losses import (
    SquaredLoss,
    epsilon_squared,
    one_class,
    squared,
    squared_hinge,
)
from mkldist.optim.line_search import root_of_slope
from mkldist.optim.lp_ball import WeightSet
from mkldist.solvers.base import (
    Counters,
    Effects,
    Floats,
    Method,
    Problem,
    Solution,
    SolverParams,
    Steps,
    StopReason,
    Target,
    relative_gap,
)
from mkldist.solvers.kernel_cache import KernelCache, kernel_cache, quadratic_forms
from mkldist.solvers.trace import Trace
from mkldist.solvers.weight_step import SecondOrderModel, alternating_objective, nesterov

CHI_1 = 1e-5  # the paper's tolerance of the weight step
INNER_SHARE = 1e-2  # of tol: the error of q_m is of the order of the root of the machine's gap
PATIENCE = 8  # iterations without a better bound after which only rounding is left
PROGRESS = 1e-13  # relative change of a bound that counts as better
LARGEST_SHARE, LEAST_SHARE = 1e-3, 1e-7  # of the gap, left by the minimum of the model
SLOPE_SHARE = 0.5  # of the first slope's size, beyond which the end of a step is too far


class PrimalMKLParams(SolverParams):
    """Parameters of PrimalMKL."""

    effective_with: ClassVar[Effects] = {"epsilon": ("loss", ("epsilon-squared",))}

    lam: float = Field(1.0, ge=1e-30, le=1e30, description="regularisation")
    loss: Literal["squared-hinge", "squared", "epsilon-squared", "one-class"] = Field(
        "squared-hinge", description="loss; squared and epsilon-squared are for real targets"
    )
    epsilon: float = Field(
        0.1, ge=0, allow_inf_nan=False, description="half-width of the tube of epsilon-squared"
    )
    norm: float = Field(1.0, ge=1, le=100, description="1: simplex; p > 1: ||d||_p <= 1")
    inner: Inner = Field("truncated-newton", description="how the machine is solved")
    coupled: bool = Field(
        True, description="let the coefficients follow in the weight step; false: the paper's step"
    )

    @property
    def target(self) -> Target:
        """What the labels may be, by the loss."""
        if self.loss == "squared-hinge":
            return Target.CLASSES
        return Target.ONE_CLASS if self.loss == "one-class" else Target.VALUES


def squared_loss(params: PrimalMKLParams, y: Floats) -> SquaredLoss:
    """Return the loss that the parameters name, for targets `y` (n,)."""
    if params.loss == "squared":
        return squared(y)
    if params.loss == "epsilon-squared":
        return epsilon_squared(y, params.epsilon)
    return squared_hinge(y) if params.loss == "squared-hinge" else one_class(y)


def solve(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Run PrimalMKL.

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
        ``dual_variables`` is ``y * r`` for the squared hinge, else r.
    """
    state = _PrimalMKL(problem, params)
    d = state.weights.uniform(problem.n_kernels)
    K = yield from state.combine(d)
    z = state.machine(K, np.zeros(problem.n_points))  # lines 4-10
    stop = StopReason.MAX_ITER
    for iteration in range(1, params.max_iter + 1):
        a, q, products = yield from state.certify(d, z)
        if state.gap <= params.tol:
            stop = StopReason.CONVERGED
            break
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        if state.patience == 0:
            stop = StopReason.STALLED
            break
        if iteration < params.max_iter:
            cache = yield from kernel_cache(  # line 11
                K, d, a, q, products, state.weights, state.counters
            )
            d, K, z = yield from state.weight_step(d, K, z, cache)  # line 12, then 4-10
    return state.solution(stop)


class _PrimalMKL:
    """The machine, the bounds and the best point met."""

    def __init__(self, problem: Problem, params: PrimalMKLParams) -> None:
        self.params = params
        self.counters = Counters()
        self.weights = WeightSet(params.norm)
        self.loss = squared_loss(params, problem.y)
        share = (INNER_SHARE * params.tol) ** 2
        self.machine = PrimalMachine(self.loss, params.lam, params.inner, share, self.counters)
        self.upper, self.lower = math.inf, -math.inf
        self.patience = PATIENCE
        self._y = problem.y
        self._trace = Trace(params.trace, problem.clock)

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def combine(self, d: Floats) -> Generator[Request, Any, Floats]:
        """Return ``sum_m d_m K_m`` (n, n)."""
        self.counters.combines += 1
        self.counters.passes += bool((d > 0.0).all())
        K: Floats = yield Combine(d)
        return K

    def certify(
        self, d: Floats, z: PrimalPoint
    ) -> Generator[Request, Any, tuple[Floats, Floats, Floats | None]]:
        """Take up the bounds at (z, d); return ``a = r / lam`` and what the pass gave for it."""
        lam, r = self.params.lam, self.loss.feasible(z.r)
        a = r / lam
        q, products = yield from quadratic_forms(d, a, self.counters)
        lower = self.loss.dual_value(r, z.b) - 0.5 * lam * self.weights.largest(q)
        last = self.upper, self.lower
        if z.value < self.upper:
            self.upper, self._best_d, self._best_z = z.value, d, z
        self.lower = max(self.lower, lower)
        least = PROGRESS * abs(self.upper)
        better = last[0] - self.upper > least or self.lower - last[1] > least
        self.patience = PATIENCE if better else self.patience - 1
        self.counters.outer_iterations += 1
        self._trace.record(self.upper, self.lower, d)
        return a, q, products

    def weight_step(
        self, d: Floats, K: Floats, z: PrimalPoint, cache: KernelCache
    ) -> Generator[Request, Any, tuple[Floats, Floats, PrimalPoint]]:
        """Return new weights, their kernel, and the machine's minimum for it."""
        if not self.params.coupled:
            F = alternating_objective(cache.G, cache.q, self.params.lam, self.loss, z.b)
            chi = min(CHI_1, self.params.tol)
            d = self._feasible(cache.weights(nesterov(F, self.weights, cache.x, chi=chi)))
            K = yield from self.combine(d)
            return d, K, self.machine(K, z.alpha)
        new_d = self._feasible(cache.weights(self._model_minimum(K, z, cache)))
        new_K = yield from self.combine(new_d)
        return self._descent(d, K, z, new_d, new_K)

    def _model_minimum(self, K: Floats, z: PrimalPoint, cache: KernelCache) -> Floats:
        """Return the weights of the columns that minimise the second-order model of J."""
        sv = self.loss.active(z.r)
        if not sv.any():
            return cache.x
        lam = self.params.lam
        f = (K @ z.r / lam)[sv]
        model = SecondOrderModel.of(SupportSystem(K, sv, lam), lam, cache.G[sv], cache.q, f)
        share = min(max(self.gap, LEAST_SHARE), LARGEST_SHARE)  # quadratic convergence needs it
        return model.minimum(self.weights, cache.x, share)

    def _feasible(self, d: Floats) -> Floats:
        """Return `d` without what rounding left of it outside the set."""
        length = self.weights.length(d)
        feasible: Floats = d / length if self.weights.is_simplex or length > 1.0 else d
        return feasible

    def _descent(
        self, d: Floats, K: Floats, z: PrimalPoint, new_d: Floats, new_K: Floats
    ) -> tuple[Floats, Floats, PrimalPoint]:
        """Return the end of the step, or where the slope of J on the way there vanishes."""
        change = new_K - K
        new_z = self.machine(new_K, z.alpha)
        slope, end_slope = self._slope(z, change), self._slope(new_z, change)
        if slope >= 0.0 or end_slope <= SLOPE_SHARE * -slope:
            return new_d, new_K, new_z
        at = z, 0.0

        def slope_at(step: float) -> float:
            nonlocal at
            at = self.machine(K + step * change, at[0].alpha), step
            return self._slope(at[0], change)

        root_of_slope(slope_at, slope, 1.0, end_slope=end_slope, share=SLOPE_SHARE)
        step = at[1]
        return d + step * (new_d - d), K + step * change, at[0]

    def _slope(self, z: PrimalPoint, change: Floats) -> float:
        """Return dJ along a change of the kernel, ``-lam/2 a'(change)a`` at ``a = r / lam``."""
        return -0.5 / self.params.lam * float(z.r @ change @ z.r)

    def solution(self, stop: StopReason) -> Solution:
        """Return the best point met and its certificate."""
        z = self._best_z
        r = self.loss.feasible(z.r)
        return Solution(
            kernel_weights=self._best_d,
            coefficients=z.alpha,
            bias=z.b,
            dual_variables=r * self._y if self.params.loss == "squared-hinge" else r,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=self.counters,
            trace=self._trace.arrays(),
        )


METHOD = Method(
    name="primalmkl",
    solve=solve,
    params=PrimalMKLParams,
    title="PrimalMKL, truncated Newton and projected gradients",
    problem="MKL in the primal, weights in the simplex or an lp ball",
    loss="squared hinge; squared, epsilon-squared, one-class",
    regularizer="lam/2 (sum_m ||f_m||)^2; its block-norm analogue for norm > 1",
    reference="Hao, Yuan, Yang & Chen 2012, Algorithm 1",
    hyperparameters=("lam",),
)
