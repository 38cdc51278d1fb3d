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
a pass over the bank costs more than Newton steps and a minimum has a certificate.  On the simplex
the alternation works on a few kernels, and a pass, once it is solved there, certifies the solution
or brings more (:mod:`mkldist.solvers.working_set`).  The dual is strongly concave in r, with
modulus 1, so that kernels can be proven inactive (:mod:`mkldist.solvers.screening`).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Matvec, Request
from mkldist.machines.primal_newton import Inner, PrimalMachine
from mkldist.machines.squared_losses import (
    SquaredLoss,
    epsilon_squared,
    one_class,
    squared,
    squared_hinge,
)
from mkldist.methods.primal.kernel_products import Forms, quadratic_forms
from mkldist.methods.primal.steps import Iterate, PrimalState, WeightDescent
from mkldist.optim.duality_gap import relative_gap
from mkldist.optim.lp_ball import WeightSet
from mkldist.solvers.base import (
    Effects,
    Method,
    Path,
    Problem,
    Solution,
    SolverParams,
    Steps,
    StopReason,
    reason_to_stop,
)
from mkldist.solvers.screening import distance_to_optimum
from mkldist.solvers.trace import Trace
from mkldist.solvers.working_set import WorkingSet, solved
from mkldist.target import Target

INNER_SHARE = 1e-2  # of tol: the error of q_m is of the order of the root of the machine's gap
SOLVED = 0.03  # of the gap of a pass, left on the working set: quadratic convergence is cheap
PATIENCE = 8  # iterations without a better bound after which only rounding is left
PROGRESS = 1e-13  # relative change of a bound that counts as better


class PrimalMKLParams(SolverParams):
    """Parameters of PrimalMKL."""

    effective_with: ClassVar[Effects] = {
        "epsilon": ("loss", ("epsilon-squared",)),
        "acceleration": ("norm", (1.0,)),
    }

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
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
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
    now = yield from state.begin()
    for iteration in range(1, params.max_iter + 1):
        now, forms = yield from state.certify(now)
        stop = reason_to_stop(problem, params, state.gap, stalled=state.patience == 0)
        if stop is not None:
            break
        if iteration < params.max_iter:
            now = yield from state.descent.step(now, forms, state.gap)
    return state.solution(stop or StopReason.MAX_ITER)


class _PrimalMKL:
    """The kernels at work, the bounds and the best point met."""

    def __init__(self, problem: Problem, params: PrimalMKLParams) -> None:
        self.params, self._y, self._start = params, problem.y, problem.start
        self._centre_value = -math.inf
        self._weights = WeightSet(params.norm)
        self._loss = squared_loss(params, problem.y)
        plain = params.acceleration == "none" or not self._weights.is_simplex
        self._kernels = WorkingSet(problem.n_kernels, everything=plain)
        self._counters = Counters()
        share = (INNER_SHARE * params.tol) ** 2
        machine = PrimalMachine(self._loss, params.lam, params.inner, share, self._counters)
        self.descent = WeightDescent(
            machine, self._weights, self._kernels, params.coupled, params.tol, self._counters
        )
        self.patience = PATIENCE
        self._upper, self._lower = math.inf, -math.inf
        self._restricted_lower, self._gap_of_pass = -math.inf, 1.0
        self._trace = Trace(params.trace, problem.clock)

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self._upper, self._lower)

    @property
    def _solved(self) -> float:
        """Relative gap on the working set at which a pass is due."""
        return solved(self.params.tol, self._gap_of_pass, SOLVED)

    def begin(self) -> Generator[Request, Any, Iterate]:
        """Return equal weights of the first kernels, with the machine there (lines 4-10)."""
        start = self._start
        if isinstance(start, PrimalState):
            return (yield from self._go_on(start))
        zeros = np.zeros_like(self._y)
        if not self._kernels.everything:
            b = self._loss.best_bias(zeros)
            q = yield from self._pass(self._loss.feasible(self._loss.residual(zeros + b)), b)
            self._kernels.take(self._kernels.newcomers(q, -math.inf))
        d = self._weights.uniform(len(self._kernels))
        return (yield from self.descent.at(d, zeros))

    def _go_on(self, start: PrimalState) -> Generator[Request, Any, Iterate]:
        """Take over weights, kernels and coefficients, and bound J by the last r asked about."""
        candidates = self._kernels.candidates
        if not self._kernels.everything:
            self._kernels.take(start.kernels)
            candidates.go_on(start.candidates)
            q = (candidates.bounds / self.params.lam) ** 2
            self._centre_value = self._lower = self._dual_value(candidates.centre, start.b, q)
            self._gap_of_pass = self.params.tol
        d = start.d[self._kernels.kernels]
        now = yield from self.descent.at(d, start.alpha)
        yield from candidates.screen(self._distance(now.z.value), left=0.0)
        return now

    def certify(self, now: Iterate) -> Generator[Request, Any, tuple[Iterate, Forms]]:
        """Take up the bounds at an iterate, by a pass once the working set is solved.

        Returns
        -------
        now : Iterate
            The iterate, with zero weights for kernels that the pass brought.
        forms : Forms
            Of the working set's kernels at ``a = r / lam``.
        """
        last = self._upper, self._restricted_lower
        if now.z.value < self._upper:
            self._upper, self._best_z = now.z.value, now.z
            self._best_d = self._kernels.spread(now.d)
        r, b = self._loss.feasible(now.z.r), now.z.b
        forms = yield from self._forms(now.d, r / self.params.lam)
        value = self._dual_value(r, b, forms.q)
        self._restricted_lower = max(self._restricted_lower, value)
        least = PROGRESS * abs(self._upper)
        better = last[0] - self._upper > least or self._restricted_lower - last[1] > least
        self.patience = PATIENCE if better else self.patience - 1
        if self._kernels.everything:
            self._lower = self._restricted_lower
        elif relative_gap(self._upper, value) <= self._solved:
            q = yield from self._pass(r, b)
            if self.gap > self.params.tol:
                newcomers = self._kernels.newcomers(q, float(forms.q.max()))
                now, forms = yield from self._enlarged(now, forms, newcomers)
        self._counters.outer_iterations += 1
        self._trace.record(self._upper, self._lower, self._kernels.spread(now.d))
        return now, forms

    def _forms(self, d: Floats, a: Floats) -> Generator[Request, Any, Forms]:
        if self._kernels.everything:
            return (yield from quadratic_forms(d, a, self._counters))
        products: Floats = yield Matvec(self._kernels.kernels, a)
        return Forms.of(a, products)

    def _pass(self, r: Floats, b: float) -> Generator[Request, Any, Floats]:
        """Bound J from below by the dual value of r on all kernels; return their ``a'K_m a``."""
        lam, candidates = self.params.lam, self._kernels.candidates
        q = yield from self._kernels.visit_all(r[None] / lam)
        q = np.maximum(q[:, 0], 0.0)
        candidates.visited(r, lam * np.sqrt(q))
        self._centre_value = self._dual_value(r, b, q)
        self._lower = max(self._lower, self._centre_value)
        if math.isfinite(self._upper) and self.gap > self.params.tol:
            self._gap_of_pass = self.gap
            left = self.gap / self.params.tol
            yield from candidates.screen(self._distance(self._upper), left=left)
        self._counters.passes = candidates.passes
        return q

    def _distance(self, upper: float) -> float:
        """Return a bound of the distance of the optimum from the candidates' centre."""
        return distance_to_optimum(upper, self._centre_value, curvature=1.0)

    def _dual_value(self, r: Floats, b: float, q: Floats) -> float:
        """Return the dual value of a feasible r, of q at ``r / lam``."""
        return self._loss.dual_value(r, b) - 0.5 * self.params.lam * self._weights.largest(q)

    def _enlarged(
        self, now: Iterate, forms: Forms, newcomers: Ints
    ) -> Generator[Request, Any, tuple[Iterate, Forms]]:
        """Take kernels into the working set, with weight zero."""
        self._kernels.take(newcomers)
        self.patience, self._restricted_lower = PATIENCE, self._lower
        products: Floats = yield Matvec(newcomers, forms.a)
        d = np.concatenate([now.d, np.zeros(len(newcomers))])
        return replace(now, d=d), forms.extended(products)

    def solution(self, stop: StopReason) -> Solution:
        """Return the best point met and its certificate."""
        z = self._best_z
        r = self._loss.feasible(z.r)
        return Solution(
            kernel_weights=self._best_d,
            coefficients=z.alpha,
            bias=z.b,
            dual_variables=r * self._y if self.params.loss == "squared-hinge" else r,
            objective=self._upper,
            dual_objective=self._lower,
            stop_reason=stop,
            counters=self._counters,
            trace=self._trace.arrays(),
            extra=self._kernels.candidates.report,
            state=PrimalState(
                self._best_d, self._kernels.kernels, z.alpha, z.b, self._kernels.candidates
            ),
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
    path=Path("lam", rising=False),
)
