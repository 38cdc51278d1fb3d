"""SpicyMKL and ElastMKL (Suzuki & Tomioka 2011): block-norm MKL by its dual.

Minimises over functions f_m and a bias b, Eqs. (4), (42) and (43),

    sum_i l(y_i, sum_m f_m(x_i) + b) + sum_m psi(||f_m||),   psi = lam ||f_m|| for block1,

with the parameter C = 1 / lam, so that C weighs the losses; the paper's C is lam.  Losses and
regularisers are the small objects of :mod:`.block_norm_losses` and :mod:`.regularizers`, which
state h and psi*.  The lower bound is the dual value ``-h(rho) - sum_m psi*(||rho||_{K_m})`` at the
rho, ``1'rho = 0``, that the solution holds as ``dual_variables``.

SpicyMKL (Tables 1 and 2) is the proximal point method, Eq. (8),

    alpha^{t+1} = argmin { objective(alpha) + 1/(2 gamma_t) sum_m ||alpha_m - alpha_m^t||_{K_m}^2 },

with gamma_t growing.  The dual of such a step is smooth in one vector rho
(:mod:`.block_norm_dual`), and its minimiser gives the step, Eqs. (10) and (11):

    rho     <- argmin phi(rho),               kernels with ||rho + alpha_m / gamma|| > psi'(0+)
    alpha_m <- prox(alpha_m + gamma rho),     block1: v (1 - gamma lam / ||v||_{K_m})_+

With the hinge loss and block1 it is the problem of Level and SimpleMKL: the solution at C is theirs
at ``C_svm = C sum_m ||f_m||`` with weights ``d_m = ||f_m|| / sum_m ||f_m||``, Eq. (6).

ElastMKL (Section 4.3): for elastic-net, block q-norm and uniform regularisation psi* is finite and
once differentiable.  The dual needs no proximal term then, and Newton's method minimises it as it
is, Eq. (48):

    h(rho) + sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0

For the elastic net ``psi*(r) = (r - lam (1 - mix))_+^2 / (2 lam mix)``, and the components follow
from rho: ``||f_m|| = (||rho||_{K_m} - lam (1 - mix))_+ / (lam mix)``.  One minimisation settles the
kernels.  Further outer iterations follow where the pass that certifies it asks for more accuracy
or, on a working set, finds kernels that belong to it; and, for all losses but the squared one,
until the multipliers of the loss have settled, by Newton steps on Eqs. (49) and (50) and Eq. (40).

:func:`as_printed`, ``acceleration = "printed"``, is the paper's algorithm.  The others differ from
it.  The bias has an infinite proximal parameter, so that ``1'rho = 0`` holds at every iterate and
the bias is the best one for the predictor, where the paper's (12) moves the bias by a step.  Gamma
is in units of the kernels' size, and grows faster after an iteration that gained little.  The
corners of polyhedral losses are rounded off by an entropy that vanishes with the gap, which saves
up to half of the Newton steps; h of the logistic loss has multipliers, too.  By default the
iterations run on a working set of kernels (:func:`.block_norm.solve_on_working_set`); with
``acceleration = "none"`` they visit all kernels, as :func:`outer_iterations` shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from mkldist.bank.requests import Diagonal, Matvec, Quadratic
from mkldist.core.arrays import Floats
from mkldist.methods.block_norm import (
    BlockNormBounds,
    BlockNormParams,
    BlockNormState,
    Pace,
    exact_bound,
    kernel_scale,
    memory_of_components,
    renewed,
    solve_on_working_set,
)
from mkldist.methods.block_norm_dual import (
    STEP_LIMIT,
    DenseModel,
    DualNewton,
    InnerObjective,
    InnerPoint,
    Iterate,
    enlarged,
    roots,
)
from mkldist.methods.block_norm_losses import Curve, Smoothing
from mkldist.methods.regularizers import Regularizer
from mkldist.solvers.base import Counters, Method, Problem, Renewal, Requesting, Steps

FIRST_GAMMA, GAMMA_GROWTH = 10.0, 4.0  # ElastMKL's penalty of the loss's multipliers
ARMIJO, LEAST_STEP = 1e-4, 1e-12  # share of the slope that a step must gain, as printed
PRINTED_SHARE = 1e-4  # of the tolerance, that a minimisation as printed may leave of phi


class SpicyMKLParams(BlockNormParams):
    """Parameters of SpicyMKL."""

    steers: ClassVar[tuple[str, ...]] = ("gamma", "growth")

    gamma: float = Field(
        10.0, gt=0, description="first proximal parameter, of kernels of trace 1 unless printed"
    )
    growth: float = Field(2.0, gt=1, description="its factor from one outer iteration to the next")


class ElastMKLParams(BlockNormParams):
    """Parameters of the one-step method."""

    regularizer: Literal["block1", "elastic-net", "block-q", "uniform"] | Regularizer = Field(
        "elastic-net", description="elastic-net, block-q, uniform, or a Regularizer, not block1"
    )

    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )

    @model_validator(mode="after")
    def _smooth_dual(self) -> ElastMKLParams:
        if not self.make_regularizer().smooth_dual:
            named = self.regularizer if isinstance(self.regularizer, str) else "regularizer"
            found = "elastic-net with mix = 0" if named == "elastic-net" else named
            raise ValueError(
                f"found {found}, whose dual is not smooth; expected elastic-net with mix above 0, "
                "block-q or uniform (or the method spicymkl)"
            )
        return self


def spicymkl(problem: Problem, params: SpicyMKLParams) -> Steps:
    """Run SpicyMKL.

    ``kernel_weights`` are ``||f_m|| / ||rho||_{K_m}``, normalised to sum one; ``dual_variables`` is
    rho.
    """
    if params.acceleration == "printed":
        return (yield from as_printed(problem, params))
    run = solve_on_working_set if params.acceleration == "working-set" else outer_iterations
    return (yield from run(problem, params, params.gamma, params.growth, proximal=True))


def elastmkl(problem: Problem, params: ElastMKLParams) -> Steps:
    """Minimise the dual; the solution is as that of :func:`spicymkl`."""
    run = solve_on_working_set if params.acceleration == "working-set" else outer_iterations
    return (yield from run(problem, params, FIRST_GAMMA, GAMMA_GROWTH, proximal=False))


def outer_iterations(
    problem: Problem, params: BlockNormParams, gamma: float, growth: float, *, proximal: bool
) -> Steps:
    """Run the paper's algorithm: every outer iteration visits all kernels.

    Gamma is the first penalty, and `growth` its usual factor from one outer iteration to the next.
    `proximal` is False for ElastMKL, which minimises the dual itself, Eq. (48): then phi is that
    dual, and psi*' takes the place of the soft threshold.
    """
    loss = params.make_loss(problem.y, problem.weights)
    psi = params.make_regularizer()
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    bounds = BlockNormBounds(problem, params, loss, psi, traces[:, 0])
    counters, newton = bounds.counters, DualNewton(bounds.counters)
    everyone = slice(problem.n_kernels)
    # Begin where the path's last solver ended, or inside the domain of h with every alpha_m zero.
    if isinstance(last := problem.start, BlockNormState):
        iterate = last.iterate.scaled(min(1.0, params.lam / last.strength))
    else:
        nothing = Iterate.without_kernels(loss.start())
        iterate = yield from enlarged(nothing, np.arange(problem.n_kernels))  # a Matvec
    rho = loss.feasible(iterate.rho)
    squared = yield Quadratic(rho)
    norms = roots(squared)
    bounds.take_dual(rho, bounds.largest_norms(squared, rho, everyone))
    scale = last.kernel_scale if isinstance(last, BlockNormState) else kernel_scale(rho, norms)
    pace = Pace(params.tol, bounds.gap)
    for _ in range(params.max_iter):
        # Eq. (10): rho <- argmin phi, Eqs. (25), (41) and (47), by Newton steps, (26) and (27),
        # each with a Combine for the Hessian and a Matvec for the line search.
        temperature = pace.cooled(bounds.upper, loss.entropy(iterate.rho))
        damping = scale / gamma if proximal else 0.0
        phi = InnerObjective(loss, psi, iterate, Smoothing(gamma, temperature), damping)
        accuracy = pace.accuracy(bounds.gap, bounds.upper)
        iterate, least = yield from newton.minimise(phi, iterate, accuracy)
        # Eq. (11): alpha_m <- ST(alpha_m + gamma rho); multipliers of h by Eqs. (39) and (40).
        iterate = phi.proximal_step(iterate, least)
        # Section 5: primal value with the best bias, dual value of rho made feasible.
        bounds.take_primal(iterate)
        rho = loss.feasible(iterate.rho)
        squared = yield Quadratic(rho)
        bounds.take_dual(rho, bounds.largest_norms(squared, rho, everyone))
        bounds.record(bounds.at.kernel_weights)
        # Stop, or let gamma grow, by the dual value of this rho rather than the best.
        here = bounds.restricted_lower(iterate, rho)
        pace.judge(bounds.upper, max(bounds.lower, here), counters.newton_steps)
        stop = bounds.reason_to_stop(stalled=pace.stalled)
        if stop is not None:
            break
        gamma = pace.grown(gamma, growth, iterate.size)
    state = BlockNormState(params.lam, scale, iterate)
    return bounds.solution(stop, state=state)


def as_printed(problem: Problem, params: SpicyMKLParams) -> Steps:
    """Run Table 1 as it is printed, on all kernels: Eqs. (10) to (12), and (28) to (32) for walls.

    Gamma, which the bias has too, grows by the same factor in every iteration.
    """
    loss, psi = params.make_loss(problem.y, problem.weights), params.make_regularizer()
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    bounds = BlockNormBounds(problem, params, loss, psi, traces[:, 0])
    everyone = np.arange(problem.n_kernels)
    iterate = yield from enlarged(Iterate.without_kernels(loss.start()), everyone)
    gamma, bias, pace = params.gamma, 0.0, Pace(params.tol, bounds.gap)
    for _ in range(params.max_iter):
        smoothing = Smoothing(gamma if loss.has_walls else np.inf)
        phi = PrintedObjective(loss, psi, iterate, smoothing, 1.0 / gamma, bias)
        iterate, least = yield from phi.minimise(iterate, params.tol, bounds.counters)  # (10)
        iterate = phi.proximal_step(iterate, least)  # (11)
        bias += gamma * float(iterate.rho.sum())  # (12)
        bounds.take_primal(iterate)
        rho = loss.feasible(iterate.rho)
        squared = yield Quadratic(rho)
        bounds.take_dual(rho, bounds.largest_norms(squared, rho, everyone))
        bounds.record(bounds.at.kernel_weights)
        pace.judge(bounds.upper, bounds.lower, bounds.counters.newton_steps)
        stop = bounds.reason_to_stop(stalled=pace.stalled)
        if stop is not None:
            break
        gamma *= params.growth
    return bounds.solution(stop, state=BlockNormState(params.lam, 1.0, iterate))


@dataclass(frozen=True, eq=False)
class PrintedObjective(InnerObjective):
    """Phi of Eq. (25), with ``(b + gamma 1'rho)^2 / (2 gamma)``, the proximal term of the bias."""

    bias: float

    def at(self, rho: Floats, products: Floats, curve: Curve | None = None) -> InnerPoint:
        """Evaluate phi and its gradient, Eq. (26)."""
        point = super().at(rho, products, curve)
        moved = self.bias + float(rho.sum()) / self.damping
        value = point.value + 0.5 * self.damping * moved**2
        return replace(point, value=value, gradient=point.gradient + moved)

    def minimise(
        self, start: Iterate, tol: float, counters: Counters
    ) -> Requesting[tuple[Iterate, InnerPoint]]:
        """Take Newton steps, Eq. (27), with Armijo's rule, which keeps rho in the domain of h."""
        point = self.at(start.rho, start.products)
        for _ in range(STEP_LIMIT):
            H = yield from self.hessian(point, thin=False)
            H = np.asarray(H) + 1.0 / self.damping  # gamma 1 1', of the bias
            direction = DenseModel.of(H, point.gradient, True, centred=False).direction
            slope = float(point.gradient @ direction)
            counters.newton_steps += 1
            if -0.5 * slope <= PRINTED_SHARE * tol * abs(point.value):
                break
            changes = yield Matvec(start.kernels, direction)
            step = 1.0
            while step > LEAST_STEP:
                moved = self.at(point.rho + step * direction, point.products + step * changes)
                if moved.value <= point.value + ARMIJO * step * slope:
                    break
                step *= 0.5
            else:
                break
            point = moved
        # Products that follow many steps drift, and bounds would with them.
        end = replace(start, rho=point.rho).given((yield Matvec(start.kernels, point.rho)))
        return end, self.at(end.rho, end.products, point.curve)


SPICYMKL = Method(
    name="spicymkl",
    solve=spicymkl,
    params=SpicyMKLParams,
    title="SpicyMKL, dual augmented Lagrangian",
    problem="block-norm MKL",
    loss="logistic, hinge, squared or epsilon-insensitive",
    regularizer="1/C sum_m ||f_m||, elastic-net, block q-norm, uniform, or one's own",
    has_path=True,
    reference="Suzuki & Tomioka 2011, Tables 1 and 2, Eqs. (25)-(27), (38)-(41), (47)",
    weighs_points=True,
    memory=memory_of_components,
    exact_bound=exact_bound,
    renewal=Renewal(renewed),
)

ELASTMKL = Method(
    name="elastmkl",
    solve=elastmkl,
    params=ElastMKLParams,
    title="ElastMKL, one-step dual Newton",
    problem="block-norm MKL with a smooth dual",
    loss="logistic, hinge, squared or epsilon-insensitive",
    regularizer="1/C sum_m [(1 - mix) ||f_m|| + mix/2 ||f_m||^2], block q-norm, uniform, one's own",
    has_path=True,
    reference="Suzuki & Tomioka 2011, Section 4.3, Eqs. (43), (48)-(50)",
    weighs_points=True,
    memory=memory_of_components,
    exact_bound=exact_bound,
    renewal=Renewal(renewed),
)
