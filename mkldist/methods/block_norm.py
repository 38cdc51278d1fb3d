"""Block-norm MKL on a working set, with its parameters, bounds and pace.

Primal, Eqs. (4), (42) and (43) of Suzuki & Tomioka 2011, over functions f_m and a bias b:

    min  sum_i l(y_i, sum_m f_m(x_i) + b) + sum_m psi(||f_m||)

Dual, with ``h(rho) = l*(-rho)``:

    max  -h(rho) - sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0

Bounds.  At the optimum every f_m is a multiple of ``K_m rho``.  So any rho and any norms
``||f_m||`` give a predictor ``f_m = w_m K_m rho`` of one coefficient vector and M weights.  Its
primal value and the dual value of rho, made feasible as in Section 5, enclose the optimum.  A small
strength lets rho be large only near the null spaces of the kernels, where rounding decides
``rho' K_m rho``.  Both values therefore take the largest norms that rounding permits
(:mod:`mkldist.optim.accuracy`), and the primal value adds what rounding may have taken off the
losses.

Working set.  Few kernels are active at the optimum.  The outer iterations of :mod:`.spicymkl` run
here on some kernels, which costs only these.  A pass over the bank follows when the working set is
solved to a share of the gap of the last pass.  The pass gives the lower bound of the whole problem,
finds kernels whose dual norm exceeds the threshold psi'(0+), which join the working set, and lets
kernels that are proven inactive drop out of all later passes.  The dual value of rho on the working
set alone costs nothing and tells how well it is solved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer

from mkldist.bank.requests import Diagonal, Matvec, Quadratic
from mkldist.core.arrays import Floats, Ints, Target
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.methods.block_norm_dual import (
    DualNewton,
    InnerObjective,
    Iterate,
    enlarged,
    reduced,
    roots,
)
from mkldist.methods.block_norm_losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    LossFunction,
    Smoothing,
    Squared,
)
from mkldist.methods.components import plain, read
from mkldist.methods.regularizers import BlockQ, ElasticNet, Regularizer, block1, uniform
from mkldist.optim.accuracy import EPS, form_rounding, relative_gap
from mkldist.solvers.base import Problem, Requesting, Search, Solution, Steps
from mkldist.solvers.progress import DualBound, Own, StopReason
from mkldist.solvers.queries import largest_forms
from mkldist.solvers.solver_params import Effects, SolverParams
from mkldist.solvers.working_set import Candidates, distance_to_optimum, most_newcomers

PRODUCTS = 4.5  # (S, n): those of rho, of the components and of a direction, and of the last
FEW_KERNELS = 80  # on a working set that has grown once
SMOOTH = 8  # kernels a point: smooth duals, such as the elastic net's, keep many small components
_LOSSES: dict[str, type[Loss]] = {
    "logistic": Logistic,
    "hinge": Hinge,
    "squared": Squared,
    "epsilon": EpsilonInsensitive,
}


class BlockNormParams(SolverParams):
    """Parameters of block-norm MKL."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    steers: ClassVar[tuple[str, ...]] = ("acceleration",)
    effective_with: ClassVar[Effects] = {
        "epsilon": ("loss", ("epsilon",)),
        "mix": ("regularizer", ("elastic-net",)),
        "q": ("regularizer", ("block-q",)),
        "C": ("regularizer", ("block1", "elastic-net", "block-q", "uniform")),
    }

    C: float = Field(
        1.0,
        gt=0,
        description="weight of the losses: that of the regulariser, the paper's C, is 1 / C",
    )
    loss: Annotated[
        Literal["logistic", "hinge", "squared", "epsilon"] | LossFunction,
        BeforeValidator(read),
        PlainSerializer(partial(plain, where="loss")),
    ] = Field(
        "logistic",
        description="logistic and hinge for classes, squared and epsilon for values, or a "
        "LossFunction",
    )
    epsilon: float = Field(0.1, ge=0, description="half width of the tube of loss epsilon")
    regularizer: Annotated[
        Literal["block1", "elastic-net", "block-q", "uniform"] | Regularizer,
        BeforeValidator(read),
        PlainSerializer(partial(plain, where="regularizer")),
    ] = Field("block1", description="block1, elastic-net, block-q, uniform, or a Regularizer")
    mix: float = Field(
        0.5, ge=0, le=1, description="share of the squared norm in elastic-net (lambda)"
    )
    q: float = Field(1.5, gt=1, le=2, description="exponent of block-q")
    acceleration: Literal["working-set", "none", "printed"] = Field(
        "working-set",
        description="none: every iteration visits all kernels; printed: the paper's algorithm",
    )

    @property
    def lam(self) -> float:
        """Strength of the regulariser, the paper's C."""
        return 1.0 / self.C

    @property
    def target(self) -> Target:
        """Kind of labels that the loss learns."""
        return (_LOSSES[self.loss] if isinstance(self.loss, str) else self.loss).target

    @property
    def gives_C(self) -> bool:
        """True for the hinge loss with the block-1 norm."""
        return self.loss == "hinge" and self.regularizer == "block1"

    def given_C(self, extra: Mapping[str, float]) -> float:
        """Return ``C sum_m ||f_m||``, by Eq. (6)."""
        return extra[NORM_SUM] * self.C

    @property
    def gives_log_odds(self) -> bool:
        """True for the logistic loss."""
        return self.loss == "logistic"

    def make_loss(self, y: Floats, weights: Floats | None = None) -> Loss:
        """Return the loss on labels `y` of points of some weights, (n,)."""
        if isinstance(self.loss, LossFunction):
            return self.loss.on(y, weights)
        if self.loss == "epsilon":
            return EpsilonInsensitive(y, self.epsilon, weights)
        return _LOSSES[self.loss](y, weights)

    def make_regularizer(self) -> Regularizer:
        """Return the regulariser of strength lam, or the user's own as it is."""
        match self.regularizer:
            case "block1":
                return block1(self.lam)
            case "elastic-net":
                return ElasticNet(self.lam, self.mix)
            case "block-q":
                return BlockQ(self.lam, self.q)
            case "uniform":
                return uniform(self.lam)
            case _:
                return self.regularizer


def memory_of_components(size: ProblemSize, params: BlockNormParams) -> SolverMemory:
    """Return the memory of a solver: products and images of the kernels at hand.

    These are all kernels without acceleration, or if every kernel is active in the end.  Otherwise
    as many are expected as there are points, and several times as many if the dual is smooth.
    """
    n, M, psi = size.n_points, size.n_kernels, params.make_regularizer()
    expected = (SMOOTH if psi.smooth_dual else 1) * max(n, FEW_KERNELS)
    every = params.acceleration != "working-set" or psi.threshold == 0.0
    at_hand = M if every else min(M, expected)
    return size.memory(vectors=VECTORS_PER_SOLVER + PRODUCTS * n * at_hand / M)


NORM_SUM = "norm_sum"
"""Name under which a solution reports ``sum_m ||f_m||``."""
NOTHING_SCREENED = {"screened": 0.0, "partial_passes": 0.0}


class DualValue(NamedTuple):
    """Dual value of ``scale * rho``, where `scale` makes a point rho feasible."""

    value: float
    scale: float


def dual_value(loss: Loss, regularizer: Regularizer, rho: Floats, norms: Floats) -> DualValue:
    """Return the dual value of a point, scaled down where psi* is infinite.

    `rho` (n,) is in the loss's domain and sums to zero; `norms` (S,) are its dual norms, or upper
    bounds of them, of the kernels that count.
    """
    largest, bound = float(norms.max(initial=0.0)), regularizer.largest_slope
    scale = bound / largest if largest > bound else 1.0
    value = -loss.conjugate(scale * rho)
    value -= float(regularizer.conjugate(scale * norms).sum())
    return DualValue(value, scale)


def kernel_scale(rho: Floats, norms: Floats) -> float:
    """Return the largest ``rho' K_m rho / ||rho||^2``, 1 if all are zero, from the norms (M,)."""
    square = float(rho @ rho)
    largest = float(norms.max()) ** 2 / square if square > 0.0 else 0.0
    return largest if largest > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictor ``sum_m weights[m] K_m coefficients + bias``."""

    weights: Floats  # (M,) weights w
    coefficients: Floats  # (n,) the dual point rho
    bias: float  # best bias for it
    norm_sum: float = 0.0  # sum of the norms ``||f_m||``

    @property
    def total_weight(self) -> float:
        """Sum of the weights, or 1 if all are zero."""
        total = float(self.weights.sum())
        return total if total > 0 else 1.0

    @property
    def kernel_weights(self) -> Floats:
        """Weights that sum to one, unless all are zero, (M,)."""
        return self.weights / self.total_weight


def largest_norms(traces: Floats, squared: Floats, rho: Floats) -> Floats:
    """Return upper bounds of dual norms from ``rho' K_m rho`` (S,) with their rounding."""
    energy = traces * float(np.abs(rho).max()) ** 2
    return roots(squared + form_rounding(squared, energy, len(rho)))


class BlockNormBounds(Search[Predictor]):
    """Least primal value met, greatest dual value met, and the points that attain them.

    `best` is at first a bias alone, and `lower` 0, for losses and regularisers are not negative.
    `traces` (M,) are those of the kernels, or upper bounds of them.
    """

    def __init__(
        self,
        problem: Problem,
        params: SolverParams,
        loss: Loss,
        regularizer: Regularizer,
        traces: Floats,
    ) -> None:
        self._loss, self._regularizer, self._traces = loss, regularizer, traces
        zero = np.zeros(len(loss.y))
        bias = loss.best_bias(zero)
        constant = Predictor(np.zeros(len(traces)), zero, bias)
        upper = loss.value(zero + bias)
        super().__init__(problem, params, constant, 0.0, upper=upper, dual_point=zero)
        self.at = constant  # predictor of the last iterate, whose values are `own`

    def largest_norms(self, squared: Floats, rho: Floats, kernels: Ints | slice) -> Floats:
        """Return :func:`largest_norms` of some kernels."""
        return largest_norms(self._traces[kernels], squared, rho)

    def restricted_lower(self, iterate: Iterate, rho: Floats) -> float:
        """Return the dual value of a feasible point near an iterate on the kernels at hand."""
        norms = self.largest_norms(iterate.products @ iterate.rho, iterate.rho, iterate.kernels)
        return dual_value(self._loss, self._regularizer, rho, norms).value

    def take_primal(self, iterate: Iterate) -> None:
        """Take the primal value of ``f_m = w_m K_m rho``, with the norms of the components."""
        squared, rho, kernels = iterate.products @ iterate.rho, iterate.rho, iterate.kernels
        lengths, norms = roots(squared), iterate.norms
        w = np.divide(norms, lengths, out=np.zeros_like(norms), where=lengths > 0.0)
        f = w @ iterate.products
        bias = self._loss.best_bias(f)
        largest = self.largest_norms(squared, rho, kernels)
        value = self._loss.value(f + bias) + float(self._regularizer.value(w * largest).sum())
        # sum_i sqrt(K_ii) ||sqrt(K_jj) rho_j||, as for support vector machines, of sum_m w_m K_m
        largest_rho = max(float(np.abs(rho).max()), iterate.largest)
        reach = math.sqrt(len(rho)) * float(w @ self._traces[kernels]) * largest_rho
        value += EPS * reach * self._loss.steepest(f + bias)
        weights = np.zeros_like(self.best.weights)
        weights[kernels] = w
        self.at, self.own = Predictor(weights, rho, bias, float(w @ lengths)), Own(value)
        self.improve_upper(self.at, value)

    def take_dual(self, rho: Floats, norms: Floats) -> DualValue:
        """Take the dual value of a point, by :func:`dual_value`, and return it."""
        found = dual_value(self._loss, self._regularizer, rho, norms)
        self.own = Own(self.own.objective, found.value)
        self.improve_lower(found.value, found.scale * rho)
        return found

    def solution(
        self,
        stop: StopReason | None,
        screening: dict[str, float] | None = None,
        state: object = None,
    ) -> Solution:
        """Return the best predictor with its certificate; by default no kernel is screened."""
        best = self.best
        return self.finish(
            stop,
            kernel_weights=best.kernel_weights,
            coefficients=best.total_weight * best.coefficients,
            bias=best.bias + self._loss.offset,
            extra={NORM_SUM: best.norm_sum} | (screening or NOTHING_SCREENED),
            state=state,
        )


INNER_SHARE = 0.1  # of the present gap, that a minimisation may leave at first
SLOW = 0.5  # ratio of gaps above which the minimisations are made more accurate
EASY, HARD = 20, 40  # Newton steps of a minimisation
HURRY = 2.0  # power of the penalty's growth after an easy minimisation that gained little
POLYHEDRAL_SHARE, POLYHEDRAL_HURRY = 0.03, 1.2  # the same two for a polyhedral loss
DISTANT = 0.9  # gap above which only a far larger penalty helps, whatever the loss
STANDSTILL = 0.99  # ratio to the least gap above which nothing was gained
PATIENCE = 20  # iterations without gain after which rounding forbids more
GAMMA_LIMIT = 1e7  # on gamma max_i |rho_i|: beyond, rounding of rho moves the multipliers
COOLING, SOONER = 0.5, 1.5  # share and power of the gap that the entropy may account for
FAR = 1e4  # factor by which a gap of one raises the limit on gamma


class Pace:
    """Rules for the next outer iteration, from the gaps and the Newton steps of the last ones.

    Each outer iteration minimises an inner objective.  The rules choose

    * how exactly it is minimised: to a share of the gap, a smaller share after each slow iteration;
    * how strongly an entropy rounds off the corners of a polyhedral loss: less and less;
    * the penalty gamma.  A larger one means fewer outer iterations and harder minimisations, so it
      does not grow after a hard minimisation, and grows twice as fast after an easy one that gained
      little.

    Newton's method on a polyhedral loss takes the more steps, the more the penalty and the entropy
    change at once, and the less exact the last minimisation was.  There each minimisation is more
    exact from the start, and the penalty grows by less, but where nothing was gained or the gap is
    near 1.
    """

    def __init__(self, tol: float, gap: float, *, polyhedral: bool = False) -> None:
        self._tol, self._gap = tol, gap
        self._share = POLYHEDRAL_SHARE if polyhedral else INNER_SHARE
        self._hurry = POLYHEDRAL_HURRY if polyhedral else HURRY
        self._temperature = math.inf
        self._power, self._idle = 1.0, 0
        self._last_gap, self._last_steps = math.inf, 0
        self._anew = False
        self._least_gap, self._highest_lower = math.inf, 0.0  # those that an iteration gains upon

    @property
    def stalled(self) -> bool:
        """True if many iterations in a row gained nothing."""
        return self._idle >= PATIENCE

    def accuracy(self, gap: float, upper: float) -> float:
        """Return how far from its minimum an inner objective may be left."""
        last = gap if math.isinf(self._last_gap) else self._last_gap
        return self._share * max(min(last, 1.0), self._tol) * abs(upper)

    def cooled(self, upper: float, entropy: float) -> float:
        """Return the factor of the entropy that rounds off a polyhedral loss; it never rises.

        `entropy` is the largest decrease of the inner objective that it causes at factor 1.
        """
        allowed = COOLING * min(self._gap, 1.0) ** SOONER * abs(upper)
        self._temperature = min(self._temperature, allowed / entropy if entropy > 0.0 else 0.0)
        return self._temperature

    def begin_anew(self) -> None:
        """Forget the last gap: it, and the bounds judged next, are those of another working set."""
        self._last_gap, self._anew = math.inf, True

    def judge(self, upper: float, lower: float, newton_steps: int) -> None:
        """Compare an outer iteration, by bounds over the kernels at hand, with the last one."""
        self._gap = gap = relative_gap(upper, lower)
        slow = gap > SLOW * self._last_gap
        steps = newton_steps - self._last_steps
        # Gains count from the best so far: rounding alone makes a gap rise and fall for ever.
        self._idle += 1
        if gap <= STANDSTILL * self._least_gap:
            self._least_gap, self._idle = gap, 0
        if lower - self._highest_lower > (1.0 - STANDSTILL) * abs(lower):
            self._highest_lower, self._idle = lower, 0
        hurry = HURRY if self._idle or gap > DISTANT else self._hurry
        self._power = 0.0 if steps > HARD else hurry if slow and steps <= EASY else 1.0
        if self._anew:
            self._least_gap, self._highest_lower = math.inf, 0.0
            self._idle, self._anew = 0, False
        if slow:
            self._share *= INNER_SHARE
        self._last_gap, self._last_steps = gap, newton_steps

    def grown(self, gamma: float, growth: float, size: float) -> float:
        """Return the next penalty, at most what rounding allows, which is less as the gap closes.

        `growth` is its usual factor, and `size` is ``max_i |rho_i|``.
        """
        limit = GAMMA_LIMIT * (1.0 + FAR * min(self._gap, 1.0))
        factor: float = growth**self._power
        return min(factor * gamma, limit / size)


FIRST_KERNELS = 40
LEAST_LEFT = 0.1  # of a pass's gap, on the working set when the next is due
MOST_LEFT, MOST_LEFT_POLYHEDRAL = 0.4, 0.6
POLYHEDRAL_EFFORT = 3.0  # of solving for a polyhedral loss, beside that of another
SOLVED_TOL = 0.5  # of the tolerance: the working set is never solved to a smaller gap
ACTIVE_SLACK = 1e-10  # excess of a dual norm over the threshold that may be rounding, relative


@dataclass(frozen=True, eq=False)
class BlockNormState:
    """Start of the next solver of a path."""

    strength: float  # lam of the regulariser
    kernel_scale: float  # see :func:`kernel_scale`
    iterate: Iterate
    candidates: Candidates | None = None  # of a working set: bounds of norms at the last pass


def solve_on_working_set(
    problem: Problem, params: BlockNormParams, gamma: float, growth: float, *, proximal: bool
) -> Steps:
    """Run the outer iterations of SpicyMKL or ElastMKL on a working set of kernels.

    Arguments and solution are those of :func:`.spicymkl.outer_iterations`; it asks for ``Inner``
    too.
    """
    loss = params.make_loss(problem.y, problem.weights)
    psi = params.make_regularizer()
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    bounds = BlockNormBounds(problem, params, loss, psi, traces[:, 0])
    counters, newton = bounds.counters, DualNewton(bounds.counters)
    bank = _Bank(problem.n_kernels, params.tol, loss, psi, bounds)
    start = problem.start if isinstance(problem.start, BlockNormState) else None
    first = bank.first_kernels() if start is None else bank.resume(start, params.lam)
    iterate, scale = yield from first
    pace = Pace(params.tol, bounds.gap, polyhedral=loss.polyhedral)
    for _ in range(params.max_iter):
        # The outer iteration of the paper, on the kernels at hand.
        temperature = pace.cooled(bounds.upper, loss.entropy(iterate.rho))
        damping = scale / gamma if proximal else 0.0
        phi = InnerObjective(loss, psi, iterate, Smoothing(gamma, temperature), damping)
        accuracy = pace.accuracy(bounds.gap, bounds.upper)
        iterate = phi.proximal_step(*(yield from newton.minimise(phi, iterate, accuracy)))
        bounds.take_primal(iterate)
        if start is not None and not counters.outer_iterations:
            yield from bank.screen()  # by inherited norms, now that an upper bound is known
        # A pass, once the kernels at hand are nearly solved; then more kernels.
        rho = loss.feasible(iterate.rho)
        restricted_lower = bounds.restricted_lower(iterate, rho)
        restricted_gap = relative_gap(bounds.upper, max(bounds.lower, restricted_lower))
        if restricted_gap <= bank.gap_for_pass(iterate):
            norms = yield from bank.visit(rho)
            if bounds.gap > params.tol and len(newcomers := bank.violators(iterate, norms)):
                pace.begin_anew()
                iterate = yield from enlarged(bank.without_idle(iterate, norms), newcomers)
        bounds.record(bounds.at.kernel_weights)
        pace.judge(bounds.upper, max(bounds.lower, restricted_lower), counters.newton_steps)
        stop = bounds.reason_to_stop(stalled=pace.stalled)
        if stop is not None:
            break
        gamma = pace.grown(gamma, growth, iterate.size)
    if bounds.gap > params.tol:  # certify the last rho, which may not have had a pass
        yield from bank.visit(loss.feasible(iterate.rho))
    if bounds.gap <= params.tol:
        stop = StopReason.CONVERGED
    state = BlockNormState(params.lam, scale, iterate, bank.candidates)
    screening = bank.candidates.report
    return bounds.solution(stop, screening, state)


class _Bank:
    """Passes over all kernels that may be active, and the choice of the working set."""

    def __init__(
        self,
        n_kernels: int,
        tol: float,
        loss: Loss,
        regularizer: Regularizer,
        bounds: BlockNormBounds,
    ) -> None:
        self._n_kernels, self._tol = n_kernels, tol
        self._loss, self._threshold, self._bounds = loss, regularizer.threshold, bounds
        self.candidates = Candidates(n_kernels)
        self._centre_value = 0.0  # dual value at the candidates' centre
        self._gap_of_pass = math.inf
        self._dropped = np.zeros(n_kernels, dtype=bool)

    def first_kernels(self) -> Requesting[tuple[Iterate, float]]:
        """Choose the first working set by a pass; return its iterate and the kernels' scale."""
        iterate = Iterate.without_kernels(self._loss.start())
        norms = yield from self.visit(self._loss.feasible(iterate.rho))
        chosen = self.violators(iterate, norms)
        return (yield from enlarged(iterate, chosen)), kernel_scale(iterate.rho, norms)

    def resume(self, start: BlockNormState, strength: float) -> Requesting[tuple[Iterate, float]]:
        """Take over a state at another strength; return its iterate and the kernels' scale.

        rho is scaled down with the strength of the regulariser.
        """
        scale = min(1.0, strength / start.strength)
        rho = scale * start.iterate.rho
        products = yield Matvec(start.iterate.kernels, rho)
        if start.candidates is not None:
            self.candidates.go_on(start.candidates)
        self.candidates.shrink(scale)
        self._bound_below()
        self._gap_of_pass = self._tol
        iterate = replace(start.iterate, rho=rho).given(products)
        return iterate, start.kernel_scale

    def gap_for_pass(self, iterate: Iterate) -> float:
        """Return the relative gap on the working set at which a pass is due.

        It is the smaller, the more kernels a pass visits beside those of a step on the working set.
        A polyhedral loss, which takes many steps, has passes sooner.  Where the working set holds
        all kernels that may be active, a pass has only the tolerance to confirm.
        """
        others = self.candidates.may_be_active.copy()
        others[iterate.kernels] = False
        if not others.any():
            return self._tol
        effort, most = 1.0, MOST_LEFT
        if self._loss.polyhedral:
            effort, most = POLYHEDRAL_EFFORT, MOST_LEFT_POLYHEDRAL
        share = math.sqrt(effort * len(iterate.kernels) / self.candidates.n_visited)
        share = min(max(share, LEAST_LEFT), most)
        return max(SOLVED_TOL * self._tol, share * self._gap_of_pass)

    def visit(self, rho: Floats) -> Requesting[Floats]:
        """Take the dual value of a feasible rho; return ``||rho||_{K_m}``, (M,)."""
        q = yield from self.candidates.quadratic(rho[:, None])
        norms = roots(q[:, 0])
        everyone = slice(self._n_kernels)
        self.candidates.visited(rho, self._bounds.largest_norms(q[:, 0], rho, everyone))
        self._bound_below()
        self._gap_of_pass = self._bounds.gap
        if self._bounds.gap > self._tol:
            yield from self.screen()
        return norms

    def _bound_below(self) -> None:
        """Make the candidates' centre feasible and take its dual value as a lower bound."""
        may_be_active = self.candidates.bounds[self.candidates.may_be_active]
        found = self._bounds.take_dual(self.candidates.centre, may_be_active)
        self.candidates.shrink(found.scale)
        self._centre_value = found.value

    def screen(self) -> Requesting[None]:
        """Leave out kernels proven inactive by the ball around the candidates' centre."""
        distance = distance_to_optimum(
            self._bounds.upper, self._centre_value, self._loss.dual_curvature
        )
        left = self._bounds.gap / self._tol
        yield from self.candidates.screen(distance, self._threshold, left=left)

    def violators(self, iterate: Iterate, norms: Floats) -> Ints:
        """Return kernels outside whose dual norm (M,) exceeds the threshold, largest first.

        They are not so many that the working set more than doubles.
        """
        outside = norms > self._threshold * (1.0 + ACTIVE_SLACK)
        outside[iterate.kernels] = False
        found = np.flatnonzero(outside)
        if self._threshold == 0.0:  # every kernel is active in the end
            return found
        order = np.argsort(-norms[found], kind="stable")
        return found[order[: most_newcomers(self._n_kernels, len(iterate.kernels), FIRST_KERNELS)]]

    def without_idle(self, iterate: Iterate, norms: Floats) -> Iterate:
        """Return the iterate without kernels below the threshold whose components are zero.

        A kernel leaves once at most, so that none comes and goes for ever.
        """
        kernels = iterate.kernels
        idle = (norms[kernels] < self._threshold) & ~self._dropped[kernels]
        idle &= iterate.norms == 0.0
        self._dropped[kernels[idle]] = True
        return reduced(iterate, ~idle) if idle.any() else iterate


def exact_bound(
    problem: Problem, params: BlockNormParams, solution: Solution
) -> Requesting[DualBound]:
    """Ask for the forms of all kernels at the dual point of the solution, by one pass.

    A dual point keeps to the domain of h and sums to zero whatever the kernels are.  With its exact
    norms ``||rho||_{K_m}``, each at least that of the factor, the dual value of any multiple bounds
    the optimum with the kernels from below.  Where psi* is finite the best multiple is searched
    for; else it is mostly the largest for which psi* is finite.
    """
    loss = params.make_loss(problem.y, problem.weights)
    psi = params.make_regularizer()
    rho = solution.dual_variables
    norms = roots((yield from largest_forms(rho[:, None]))[:, 0])

    def bound(multiple: float) -> DualBound:
        found = dual_value(loss, psi, multiple * rho, multiple * norms)
        return DualBound(found.value, found.scale * multiple * rho)

    best = scipy.optimize.minimize_scalar(
        lambda t: -bound(t).value, bounds=(0.0, 1.0), method="bounded"
    )
    tried = [bound(1.0), bound(float(best.x)), DualBound(0.0, np.zeros_like(rho))]
    return max(tried, key=lambda one: one.value)


def renewed(problem: Problem, state: Any) -> Requesting[Any]:
    """Ask changed kernels for what the state of a solution holds of them."""
    iterate = yield from _renewed_iterate(state.iterate)
    if state.candidates is None:
        return replace(state, iterate=iterate)
    centre = state.candidates.centre
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    squared = yield Quadratic(centre)
    candidates = Candidates(problem.n_kernels)
    candidates.visited(centre, largest_norms(traces[:, 0], squared, centre))
    return replace(state, iterate=iterate, candidates=candidates)


def _renewed_iterate(iterate: Iterate) -> Requesting[Iterate]:
    """Return an iterate with the components that it has at the optimum.

    There ``alpha_m = w_m rho``, so that the weights w_m and rho tell all about them.
    """
    lengths = roots(iterate.products @ iterate.rho)
    w = np.divide(iterate.norms, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    products = yield Matvec(iterate.kernels, iterate.rho)
    return replace(
        iterate.given(products),
        images=w[:, None] * products,
        norms=w * roots(products @ iterate.rho),
    )
