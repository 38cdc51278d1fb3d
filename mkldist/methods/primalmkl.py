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
``1'I_sv (K alpha + b 1 - y)``.  Algorithm 3 computes theta with rho and x with z where its own
delta and q are meant; line 13 of Algorithm 4 evaluates the model at an infeasible point
(:func:`nesterov`).

F is convex in z = (alpha, b) and in d, but not in both.  Yet a stationary point is the global
minimum of the convex ``J(d) = min_z F(z, d)``: at the minimum over z, lam alpha is the residual r
of the loss, so that ``dF/dd_m = -lam/2 q_m(alpha) = dJ/dd_m`` with ``q_m(a) = a'K_m a``.

Certificate: every residual that sums to the slope of the loss gives a lower bound of J for all d.
It is the dual value of :mod:`mkldist.solvers.squared_losses` in which ``max_d sum_m d_m q_m(r)``
replaces ``r'K r``: the largest q_m on the simplex, the dual norm ``||q||_{p*}``, ``p* = p/(p-1)``,
on the ball.  The solution holds the residual of the greatest bound, times y for the squared hinge.

Three deviations from the paper.  First, the alternation as printed converges linearly, at the rate
``kappa / (kappa + lam)`` for the eigenvalues kappa of K: thousands of iterations where lam is
small.  By default (``coupled``) the weight step therefore minimises the second-order model of J, in
which alpha follows d (:class:`ValueModel`).  Its Hessian is smaller than that of F at fixed alpha,
by ``lam (K + lam I)^-1``, and steps are longer.  A search along the step makes J descend.
``coupled=False`` is the paper's step.  Second, Algorithm 1 takes one Newton step between two weight
steps.  Here each machine is minimised, because a pass over the bank costs more than Newton steps.
With ``machine="one-step"`` the algorithm is as printed (:func:`alternate_by_single_steps`).  Third,
the paper keeps its kernel cache, the products ``K_m a``, for all kernels.  A bank may hold more
kernels than fit in memory.  Here a weight step keeps a column ``K_m a`` for each kernel in use and
for each kernel whose weight would grow, up to a limit.  The other kernels in use share one column:
the step scales their weights by a common factor.

:func:`alternate` is the algorithm, with all kernels in each iteration.  Of many kernels in the
simplex, few have a weight at the optimum: :func:`solve_on_working_set` runs the same two steps on a
few kernels, unless ``acceleration="none"``.  Once the gap on the working set is small, a pass over
the bank bounds the optimum for all kernels from below: the run ends, or the kernels with the
largest forms q_m enter the working set with weight zero.  The dual is strongly concave in the
residual r, with modulus 1, or one by the largest weight of a point.  A pass therefore proves some
kernels inactive, and later passes leave them out (:mod:`mkldist.solvers.working_set`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.core.arrays import Floats, Ints, Target
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.optim.accuracy import form_rounding, relative_gap
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.descent import root_of_slope
from mkldist.optim.factored_matrix import Gram, diagonal_of, moved
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import (
    Counters,
    Method,
    Problem,
    Renewal,
    Requesting,
    Search,
    Solution,
    Steps,
    reason_to_stop,
)
from mkldist.solvers.primal_newton import (
    Inner,
    PrimalMachine,
    PrimalPoint,
    SupportSystem,
    ThinSupportSystem,
    support_system,
)
from mkldist.solvers.progress import DualBound, Own, StopReason
from mkldist.solvers.queries import largest_forms
from mkldist.solvers.solver_params import Effects, SolverParams
from mkldist.solvers.squared_losses import (
    SquaredLoss,
    epsilon_squared,
    one_class,
    squared,
    squared_hinge,
)
from mkldist.solvers.working_set import SMALL, Candidates, WorkingSet, distance_to_optimum, solved

LOWER_CHI_2 = "Lower chi_2, or raise tol; where a lower one is no help, scale the kernels"
INNER_SHARE = 1e-2  # of tol: the error of q_m is of the order of the root of the machine's gap
SOLVED = 0.03  # of the gap of a pass, left on the working set: quadratic convergence is cheap
SIMPLEX = WeightSet(1.0)
LARGEST_SHARE, LEAST_SHARE = 1e-3, 1e-7  # of the gap, left by the minimum of the model
SLOPE_SHARE = 0.5  # of the first slope's size, beyond which the end of a step is too far
COLUMNS = 1000  # kernels with a column of their own, or twice as many as points if that is more
ZERO_WEIGHT = 1e-15
PATIENCE = 8  # iterations without a better bound after which only rounding is left
UNSCREENED = {"screened": 0.0, "partial_passes": 0.0}
PROGRESS = 1e-13  # relative change of a bound that counts as better


class PrimalMKLParams(SolverParams):
    """Parameters of PrimalMKL."""

    steers: ClassVar[tuple[str, ...]] = (
        "inner", "coupled", "acceleration", "machine", "start", "chi_2",
    )  # fmt: skip
    effective_with: ClassVar[Effects] = {
        "epsilon": ("loss", ("epsilon-squared",)),
        "acceleration": ("norm", (1.0,)),
        "machine": ("coupled", (False,)),
        "chi_2": ("machine", ("one-step",)),
        "start": ("machine", ("one-step",)),
    }

    C: float = Field(
        1.0,
        ge=1e-30,
        le=1e30,
        description="weight of the losses: that of the regulariser, the paper's lambda, is 1 / C",
    )
    loss: Literal["squared-hinge", "squared", "epsilon-squared", "one-class"] = Field(
        "squared-hinge", description="loss; squared and epsilon-squared are for real targets"
    )
    epsilon: float = Field(0.1, ge=0, description="half-width of the tube of epsilon-squared")
    norm: float = Field(1.0, ge=1, le=100, description="1: simplex; p > 1: ||d||_p <= 1")
    inner: Inner = Field("truncated-newton", description="how the machine is solved")
    coupled: bool = Field(
        True,
        description="let the coefficients follow in the weight step; false: the paper's step, "
        "whose iterations grow as C",
    )
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )
    machine: Literal["minimum", "one-step"] = Field(
        "minimum",
        description="how far the machine is minimised between two weight steps; one-step: "
        "Algorithm 1 as printed, which visits all kernels",
    )
    chi_2: float = Field(
        0.0,
        ge=0,
        description="norm of the machine's gradient at which to stop, 0.1 in the paper; such a run "
        "has converged only if its gap is at most tol",
    )
    start: Literal["uniform", "random"] = Field(
        "uniform", description="first weights of one-step; random, as printed: the same each time"
    )

    @property
    def lam(self) -> float:
        """Strength of the regulariser."""
        return 1.0 / self.C

    @property
    def after_a_stall(self) -> str:
        """What to do about a run that stalled above its tolerance."""
        return LOWER_CHI_2 if self.chi_2 > 0.0 else super().after_a_stall

    @property
    def target(self) -> Target:
        """Kind of labels that the loss takes."""
        if self.loss == "squared-hinge":
            return Target.CLASSES
        return Target.ONE_CLASS if self.loss == "one-class" else Target.VALUES


def solve(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Run PrimalMKL; on the simplex with many kernels by default on a working set.

    ``objective`` is the least F met, ``dual_objective`` the greatest dual value; ``dual_variables``
    is ``y * r`` for the squared hinge, else r, of this dual value.
    """
    if params.machine == "one-step":
        return (yield from alternate_by_single_steps(problem, params))
    plain = params.acceleration == "none" or params.norm > 1.0 or problem.n_kernels <= SMALL
    return (yield from (alternate if plain else solve_on_working_set)(problem, params))


@dataclass(frozen=True, eq=False)
class PlainStart:
    """Point at which the next solver of a path starts."""

    d: Floats  # (M,) kernel weights
    alpha: Floats  # (n,) coefficients


def alternate(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Alternate between z and d, with all kernels in every iteration (Algorithm 1)."""
    weights, counters = WeightSet(params.norm), Counters()
    machine = machine_of(params, problem, counters)
    loss, lam = machine.loss, params.lam
    if isinstance(problem.start, PlainStart):
        d, alpha = problem.start.d, problem.start.alpha
    else:
        d, alpha = weights.uniform(problem.n_kernels), np.zeros(problem.n_points)  # lines 1, 2
    K = yield Combine(d, thin=True)  # line 4
    now = Iterate(d, K, machine(K, alpha))  # lines 5 to 10, until the machine's own gap is small
    best = Best(now.d, now.z)
    bounds = Search(problem, params, best, progress=PROGRESS, counters=counters)
    for iteration in range(1, params.max_iter + 1):
        # A pass: q_m at a = r / lam, which is alpha at the minimum over z, for the certificate.
        r = loss.feasible(now.z.r)
        forms = yield from quadratic_forms(now.d, r / lam)  # Quadratic or Matvec
        value = dual_value(machine, weights, r, now.z.b, forms.q, energy(now.K, r / lam))
        bounds.take(Best(now.d, now.z), primal_value(machine, now.K, now.z), value, r)
        bounds.record(now.d)
        stop = bounds.reason_to_stop(stalled=bounds.idle >= PATIENCE)
        if stop is not None or iteration == params.max_iter:
            break
        columns = yield from weight_columns(now.K, now.d, forms, weights)  # line 11
        d = d_step(machine, weights, now, columns, bounds.gap, params)  # line 12, Algorithm 4
        del columns, K  # each as large as Gram matrices, which the next request needs room for
        K = yield Combine(d, thin=True)  # line 4
        now = z_step(machine, now, d, K, params.coupled)  # lines 5 to 10
    state = PlainStart(bounds.best.d, bounds.best.z.alpha)
    return best_solution(problem, params, bounds, stop, state=state)


def alternate_by_single_steps(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Alternate between one step of z and a minimum over d, with all kernels in each iteration."""
    weights, counters = WeightSet(params.norm), Counters()
    machine = machine_of(params, problem, counters)
    loss, lam = machine.loss, params.lam
    d, alpha = weights.uniform(problem.n_kernels), np.zeros(problem.n_points)  # lines 1, 2
    if params.start == "random":
        d = np.random.default_rng(0).random(len(d))
        d /= np.linalg.norm(d, params.norm)
    K = yield Combine(d, thin=True)  # line 4
    z = machine.point(K, alpha, K @ alpha)
    bounds = Search(problem, params, Best(d, z), progress=PROGRESS, counters=counters)
    for iteration in range(1, params.max_iter + 1):
        flat = float(np.linalg.norm(z.Ks)) < params.chi_2  # line 6
        z = z if flat else machine.step(K, z)  # lines 5, 9 and 10
        r = loss.feasible(z.r)
        q = yield Quadratic(r / lam)
        value = dual_value(machine, weights, r, z.b, q, energy(K, r / lam))
        bounds.take(Best(d, z), primal_value(machine, K, z), value, r)
        bounds.record(d)
        stalled = flat or bounds.idle >= PATIENCE
        stop = bounds.reason_to_stop(stalled=stalled)
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
    return best_solution(problem, params, bounds, stop)


def squared_loss(params: PrimalMKLParams, y: Floats, weights: Floats | None = None) -> SquaredLoss:
    """Return the loss that the parameters name, for targets `y` and weights of the points, (n,)."""
    if params.loss == "epsilon-squared":
        return epsilon_squared(y, params.epsilon, weights)
    of_name = {"squared": squared, "squared-hinge": squared_hinge, "one-class": one_class}
    return of_name[params.loss](y, weights)


def machine_of(params: PrimalMKLParams, problem: Problem, counters: Counters) -> PrimalMachine:
    """Return the machine of a problem, whose gap is a small share of the tolerance.

    The machine stops by this gap, in place of the paper's ``||grad_z|| < chi_2`` (line 6).
    """
    share = (INNER_SHARE * params.tol) ** 2
    loss = squared_loss(params, problem.y, problem.weights)
    return PrimalMachine(loss, params.lam, params.inner, share, counters)


def signed_by_class(params: PrimalMKLParams, r: Floats, y: Floats) -> Floats:
    """Return the dual variables (n,) of a residual: ``y * r`` for the squared hinge, else r."""
    return r * y if params.loss == "squared-hinge" else r


@dataclass(frozen=True, eq=False)
class WorkingSetStart:
    """Point at which the next solver of a path starts."""

    d: Floats  # (M,) kernel weights
    kernels: Ints  # (S,) the working set
    alpha: Floats  # (n,) coefficients
    b: float  # bias
    candidates: Candidates  # bounds of the kernels' dual norms at the residual of the last pass


def renewed(problem: Problem, state: Any) -> Requesting[Any]:
    """Ask changed kernels for the dual norms that a state of a working set holds of them."""
    if not isinstance(state, WorkingSetStart):
        return state
    q = yield Quadratic(state.candidates.centre)
    candidates = Candidates(problem.n_kernels)
    candidates.visited(state.candidates.centre, np.sqrt(np.maximum(q, 0.0)))
    return replace(state, candidates=candidates)


class _Passes:
    """Passes over all kernels; the last one gave the best dual bound and the relative gap."""

    def __init__(self, machine: PrimalMachine, kernels: WorkingSet, tol: float) -> None:
        self._machine, self._kernels, self._tol = machine, kernels, tol
        self._centre_value = -math.inf
        self.best, self.gap = DualBound(-math.inf, np.empty(0)), 1.0

    @property
    def lower(self) -> float:
        """The greatest dual value of all kernels."""
        return self.best.value

    def go_on(self, start: WorkingSetStart) -> None:
        """Bound the optimum at the present lam by the last pass of the path's previous solver."""
        candidates = self._kernels.candidates
        candidates.go_on(start.candidates)
        q = (candidates.bounds / self._machine.lam) ** 2
        self._centre_value = dual_value(self._machine, SIMPLEX, candidates.centre, start.b, q)
        self.best, self.gap = DualBound(self._centre_value, candidates.centre), self._tol

    def visit(
        self, r: Floats, b: float, upper: float, energy_of_a: float = 0.0
    ) -> Requesting[Floats]:
        """Bound the optimum from below by a feasible residual, and screen kernels.

        Returns ``a'K_m a`` at ``a = r / lam``, (M,); 0 for screened kernels.
        """
        lam, candidates = self._machine.lam, self._kernels.candidates
        q = yield from self._kernels.visit_all(r[None] / lam)
        q = np.maximum(q[:, 0], 0.0)
        candidates.visited(r, lam * np.sqrt(q))
        self._centre_value = dual_value(self._machine, SIMPLEX, r, b, q, energy_of_a)
        if self._centre_value > self.lower:
            self.best = DualBound(self._centre_value, r)
        gap = relative_gap(upper, self.lower)
        if math.isfinite(upper) and gap > self._tol:
            self.gap = gap
            yield from self.screen(upper, left=gap / self._tol)
        return q

    def screen(self, upper: float, left: float) -> Requesting[None]:
        """Leave out the kernels that the last pass and an upper bound prove inactive."""
        weights = self._machine.loss.weights
        curvature = 1.0 if weights is None else 1.0 / float(weights.max())
        distance = distance_to_optimum(upper, self._centre_value, curvature=curvature)
        yield from self._kernels.candidates.screen(distance, left=left)


def solve_on_working_set(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Run PrimalMKL on the simplex, on a working set of kernels."""
    lam, counters = params.lam, Counters()
    machine = machine_of(params, problem, counters)
    loss = machine.loss
    kernels = WorkingSet(problem.n_kernels, everything=False)
    passes = _Passes(machine, kernels, params.tol)
    now = yield from _first(problem.start, machine, kernels, passes)
    best = Best(kernels.spread(now.d), now.z)
    on_set = Search(problem, params, best, progress=PROGRESS, counters=counters)
    for iteration in range(1, params.max_iter + 1):
        r, b = loss.feasible(now.z.r), now.z.b
        forms = Forms.of(r / lam, (yield Matvec(kernels.kernels, r / lam)))
        of_a = energy(now.K, r / lam)
        value = dual_value(machine, SIMPLEX, r, b, forms.q, of_a)
        best = Best(kernels.spread(now.d), now.z)
        on_set.take(best, primal_value(machine, now.K, now.z), value, r)
        if relative_gap(on_set.upper, value) <= solved(params.tol, passes.gap, SOLVED):
            q = yield from passes.visit(r, b, on_set.upper, of_a)
            if relative_gap(on_set.upper, passes.lower) > params.tol:
                newcomers = kernels.newcomers(q, float(forms.q.max()))
                kernels.take(newcomers)
                forms = forms.extended((yield Matvec(newcomers, forms.a)))
                now = replace(now, d=np.concatenate([now.d, np.zeros(len(newcomers))]))
                on_set.restart(passes.lower)
        gap = relative_gap(on_set.upper, passes.lower)
        on_set.own = Own(now.z.value)
        on_set.record(kernels.spread(now.d), lower=passes.lower)
        stop = reason_to_stop(problem, params, gap, stalled=on_set.idle >= PATIENCE)
        if stop is not None or iteration == params.max_iter:
            break
        columns = yield from weight_columns(now.K, now.d, forms, SIMPLEX)
        d = d_step(machine, SIMPLEX, now, columns, gap, params)
        del columns  # as large as Gram matrices, which the next request needs room for
        now = z_step(machine, now, d, (yield kernels.combination(d, thin=True)), params.coupled)
    d, z = on_set.best
    return best_solution(
        problem, params, on_set, stop,
        certificate=passes.best,
        extra=kernels.candidates.report,
        state=WorkingSetStart(d, kernels.kernels, z.alpha, z.b, kernels.candidates),
    )  # fmt: skip


def _first(
    start: Any, machine: PrimalMachine, kernels: WorkingSet, passes: _Passes
) -> Requesting[Iterate]:
    """Return the first iterate.

    A pass at the residual of the best constant picks the first kernels, with equal weights.  On a
    path the first iterate is the point at which the previous solver ended.
    """
    if isinstance(start, WorkingSetStart):
        kernels.take(start.kernels)
        passes.go_on(start)
        d = start.d[start.kernels]
        K = yield kernels.combination(d, thin=True)
        now = Iterate(d, K, machine(K, start.alpha))
        yield from passes.screen(primal_value(machine, K, now.z), left=0.0)
        return now
    zeros = np.zeros(len(machine.loss.lower))
    b = machine.loss.best_bias(zeros)
    r = machine.loss.feasible(machine.loss.residual(zeros + b))
    q = yield from passes.visit(r, b, math.inf)
    kernels.take(kernels.newcomers(q, -math.inf))
    d = SIMPLEX.uniform(len(kernels))
    K = yield kernels.combination(d, thin=True)
    return Iterate(d, K, machine(K, zeros))


@dataclass(frozen=True, eq=False)
class Iterate:
    """Weights, their kernel and the minimum over z for it."""

    d: Floats  # (S,) kernel weights
    K: Gram  # (n, n) ``sum_m d_m K_m``, or its operator
    z: PrimalPoint  # the machine: coefficients, bias, residual and value


def z_step(machine: PrimalMachine, now: Iterate, d: Floats, K: Gram, coupled: bool) -> Iterate:
    """Return the minimum over z at new weights (lines 5 to 10, repeated until z is optimal).

    A coupled step from the last weights is shortened where its end lies too far; the paper's step
    needs no search, because it descends by itself.
    """
    end = Iterate(d, K, machine(K, now.z.alpha))
    return _searched(machine, now, end) if coupled else end


def d_step(
    machine: PrimalMachine,
    weights: WeightSet,
    now: Iterate,
    columns: WeightColumns,
    gap: float,
    params: PrimalMKLParams,
) -> Floats:
    """Return new weights (S,) (line 12): the paper's, or the minimum of the model of J."""
    if params.coupled:
        x = _model_minimum(machine, weights, now, columns, gap)
    else:
        F = alternating_objective(columns.G, columns.q, machine.lam, machine.loss, now.z.b)
        x = nesterov(F, weights, columns.x, chi=min(CHI_1, params.tol))
    return feasible_weights(weights, columns.weights(x))


def feasible_weights(weights: WeightSet, d: Floats) -> Floats:
    """Return weights (S,) that rounding may have left outside the set, within it."""
    length = weights.length(d)
    return d / length if weights.is_simplex or length > 1.0 else d


def _model_minimum(
    machine: PrimalMachine, weights: WeightSet, now: Iterate, columns: WeightColumns, gap: float
) -> Floats:
    """Return the weights of the columns that minimise the second-order model of J."""
    sv = machine.loss.active(now.z.r)
    if not sv.any():
        return columns.x
    lam = machine.lam
    f = (now.K @ now.z.r / lam)[sv]
    system = support_system(now.K, sv, machine.loss.ridge(lam, sv))
    model = ValueModel.of(system, lam, columns.G[sv], columns.q, f)
    # Convergence is quadratic only if the error of a minimum shrinks faster than the gap.
    share = min(max(gap, LEAST_SHARE), LARGEST_SHARE)
    return model.minimum(weights, columns.x, share)


def _searched(machine: PrimalMachine, now: Iterate, end: Iterate) -> Iterate:
    """Return the end of a step, or the point on the way where the slope of J vanishes.

    The slope along the change of K is ``-lam/2 a'(change)a`` at ``a = r / lam``.
    """
    change = moved(end.K, -1.0, now.K)

    def slope(z: PrimalPoint) -> float:
        return -0.5 / machine.lam * float(np.dot(z.r, change @ z.r))

    first, last = slope(now.z), slope(end.z)
    if first >= 0.0 or last <= SLOPE_SHARE * -first:
        return end
    z, length = now.z, 0.0

    def slope_at(step: float) -> float:
        nonlocal z, length
        z, length = machine(moved(now.K, step, change), z.alpha), step
        return slope(z)

    root_of_slope(slope_at, first, 1.0, end_slope=last, share=SLOPE_SHARE)
    d = now.d + length * (end.d - now.d)
    return Iterate(d, moved(now.K, length, change), z)


def memory_of_columns(size: ProblemSize, params: PrimalMKLParams) -> SolverMemory:
    """Return the memory of a solver: its weight step holds columns twice, beside the products."""
    n, M = size.n_points, size.n_kernels
    plain = params.acceleration == "none" or params.norm > 1.0
    columns = min(M, max(COLUMNS, 2 * n) if plain else n)
    columns = M if params.machine == "one-step" else columns
    return size.memory(vectors=VECTORS_PER_SOLVER + 2 * n * columns / M)


@dataclass(frozen=True, eq=False)
class Forms:
    """Quadratic forms of S kernels at one vector."""

    a: Floats  # (n,) the vector
    q: Floats  # (S,) ``a'K_m a``
    products: Floats | None  # (S, n) ``K_m a``; None if only the forms were asked for

    @classmethod
    def of(cls, a: Floats, products: Floats) -> Forms:
        """Return the forms that follow from products ``K_m a`` (S, n)."""
        return cls(a, np.maximum(products @ a, 0.0), products)

    def extended(self, products: Floats) -> Forms:
        """Return the forms of these kernels and of others with the given products (S', n)."""
        before = np.empty((0, len(self.a))) if self.products is None else self.products
        more = Forms.of(self.a, products)
        return Forms(self.a, np.concatenate([self.q, more.q]), np.concatenate([before, products]))


@dataclass(frozen=True, eq=False)
class WeightColumns:
    """Variables of a weight step: one column per kernel, and perhaps one for several kernels."""

    kernels: Ints  # (k,) kernels with a column of their own
    # (M,) weights of norm 1 of the other kernels in use, which share the last column; zeros if
    # there are none
    rest: Floats
    G: Floats  # (n, c) columns ``K_m a``, c = k or k + 1
    q: Floats  # (c,) ``a'K_m a`` of the columns
    x: Floats  # (c,) current weights of the columns

    def weights(self, x: Floats) -> Floats:
        """Return kernel weights (M,) for weights `x` (c,) of the columns."""
        d = self.rest * x[-1]
        d[self.kernels] = x[: len(self.kernels)]
        return np.where(d > ZERO_WEIGHT, d, 0.0)


class _Chosen(NamedTuple):
    """Kernels with a column of their own, and those that share a column."""

    own: Ints
    shared: Ints


def quadratic_forms(d: Floats, a: Floats) -> Requesting[Forms]:
    """Ask for the forms of all kernels at a (n,) by one pass over the bank.

    The pass asks for the products too where the weight step will need most of them.
    """
    if len(d) <= COLUMNS and 2 * np.count_nonzero(d) >= len(d):
        products: Floats = yield Matvec(np.arange(len(d)), a)
        return Forms.of(a, products)
    q = yield Quadratic(a)
    return Forms(a, np.maximum(q, 0.0), None)


def weight_columns(
    K: Gram, d: Floats, forms: Forms, weights: WeightSet
) -> Requesting[WeightColumns]:
    """Ask for the columns of a weight step at weights d (M,) of combined kernel K (line 11)."""
    a, q = forms.a, forms.q
    own, shared = _chosen(d, q, weights, max(COLUMNS, 2 * len(a)))
    rows = (yield Matvec(own, a)) if forms.products is None else forms.products[own]
    G = rows.T
    x, q_x = d[own], q[own]
    rest = np.zeros_like(d)
    if len(shared):
        rest[shared] = d[shared]
        if not weights.is_simplex:
            # With equal factors all of these weights would grow, or all would shrink.  The update
            # of Kloft et al. 2011 gives them better proportions.
            rest[shared] = (d[shared] ** 2 * q[shared]) ** (1.0 / (1.0 + weights.norm))
        length = weights.length(rest)
        rest /= length if length > 0.0 else 1.0
        simplex = weights.is_simplex
        column = (K @ a - G @ x) / length if simplex else (yield Combine(rest, thin=True)) @ a
        G = np.column_stack([G, column])
        q_x = np.append(q_x, rest @ q)
        x = np.append(x, weights.length(d[shared]))
    return WeightColumns(own, rest, np.ascontiguousarray(G), q_x, x)


def _chosen(d: Floats, q: Floats, weights: WeightSet, limit: int) -> _Chosen:
    """Return the kernels with columns of their own, at most `limit`, and the others in use."""
    # On the simplex the weight of an unused kernel grows only if its form exceeds the mean d'q.
    threshold = float(d @ q) if weights.is_simplex else 0.0
    kernels = np.flatnonzero((d > 0.0) | (q > threshold))
    if len(kernels) <= limit:
        return _Chosen(kernels, kernels[:0])
    order = np.argsort(-q[kernels], kind="stable")
    others = np.sort(kernels[order[limit:]])
    return _Chosen(np.sort(kernels[order[:limit]]), others[d[others] > 0.0])


class Best(NamedTuple):
    """Kernel weights (M,) of the least F, and the machine for them."""

    d: Floats
    z: PrimalPoint


def primal_value(machine: PrimalMachine, K: Gram, z: PrimalPoint) -> float:
    """Return F at a point, and the most that rounding may have taken from it."""
    form = form_rounding(float(z.alpha @ z.f), energy(K, z.alpha), len(z.alpha))
    return z.value + 0.5 * machine.lam * form


def energy(K: Gram, v: Floats) -> float:
    """Return ``sum_i K_ii v_i^2``, with which the rounding of ``v'K v`` grows."""
    return float(diagonal_of(K) @ v**2)


def dual_value(
    machine: PrimalMachine,
    weights: WeightSet,
    r: Floats,
    b: float,
    q: Floats,
    energy_of_a: float = 0.0,
) -> float:
    """Return the dual value of a feasible residual r (n,): a lower bound of J for all weights.

    b is a bias near the optimal one, which only saves digits; q (M,) is ``a'K_m a`` at ``a = r /
    lam``, and `energy_of_a` the :func:`energy` of a, for the rounding of the forms.
    """
    largest = q + form_rounding(q, np.full_like(q, energy_of_a), len(r))
    return machine.loss.dual_value(r, b) - 0.5 * machine.lam * weights.largest(largest)


def best_solution(
    problem: Problem,
    params: PrimalMKLParams,
    bounds: Search[Best],
    stop: StopReason | None,
    *,
    certificate: DualBound | None = None,
    extra: Mapping[str, float] = UNSCREENED,
    state: object = None,
) -> Solution:
    """Return the solution at the best point met.

    Its certificate, the lower bound over all kernels with its residual, is by default that of
    `bounds`.
    """
    d, z = bounds.best
    lower, r = (bounds.lower, bounds.dual_point) if certificate is None else certificate
    return bounds.finish(
        stop,
        kernel_weights=d,
        coefficients=z.alpha,
        bias=z.b,
        dual_variables=signed_by_class(params, r, problem.y),
        dual_objective=lower,
        extra=dict(extra),
        state=state,
    )


def exact_bound(
    problem: Problem, params: PrimalMKLParams, solution: Solution
) -> Requesting[DualBound]:
    """Ask the kernels themselves for their forms at the residual of a solution on factors of them.

    The dual value is a parabola in multiples of the residual.  Any multiple is feasible where the
    loss has no slope, and then the best one counts.
    """
    loss, lam = squared_loss(params, problem.y, problem.weights), params.lam
    r = signed_by_class(params, solution.dual_variables, problem.y)
    q = (yield from largest_forms(r[:, None] / lam))[:, 0]
    squares = loss.squares(r) + lam * WeightSet(params.norm).largest(q)
    linear = loss.dual_value(r, float(solution.bias)) + 0.5 * loss.squares(r)
    multiple = linear / squares if loss.slope == 0.0 and squares > 0.0 else 1.0
    value = multiple * linear - 0.5 * multiple**2 * squares
    return DualBound(value, multiple * solution.dual_variables)


Smooth = Callable[[Floats], tuple[float, Floats]]
"""Function that returns its value and its gradient at a point."""
CHI_1 = 1e-5  # the paper's tolerance of the weight step
NESTEROV_LIMIT = 2000
ROUNDING = 1e-14


def nesterov(
    f: Smooth, weights: WeightSet, d: Floats, *, chi: float = 0.0, gap: float = 0.0
) -> Floats:
    """Minimise a convex function over a set of weights (Hao et al. 2012, Algorithm 4), from d (k,).

    It stops when no weight changes by more than `chi` in a step, or the suboptimality is at most
    `gap`.

    Erratum: line 13 evaluates the model at u, which is infeasible; the projected point is meant. In
    Algorithm 3, the projection, delta stands for the printed rho and q for z.

    Beyond the paper, gamma starts from the norm of the gradient: the first step is then as long as
    the set is wide, whatever the scale of f.  The momentum is dropped when it points uphill
    (O'Donoghue & Candes 2015).
    """
    delta, gamma = 1.0, max(float(np.linalg.norm(f(d)[1])), np.finfo(np.float64).tiny)
    d_before, momentum = d, 0.0
    for _ in range(NESTEROV_LIMIT):
        s = d + momentum * (d - d_before)  # line 5
        f_s, gradient = f(s)
        while True:
            new = weights.project(s - gradient / gamma)  # lines 7, 8; Algorithm 3
            step = new - s
            f_new, gradient_new = f(new)
            model = f_s + float(gradient @ step) + 0.5 * gamma * float(step @ step)  # line 12
            if f_new <= model + ROUNDING * abs(f_s) or not np.isfinite(2.0 * gamma):  # line 13
                break
            gamma *= 2.0
        if float(gradient @ (new - d)) > 0.0:
            delta = 1.0
        d_before, d = d, new
        if np.abs(step).max() <= chi or suboptimality(weights, d, gradient_new) <= gap:  # line 9
            break
        delta, delta_before = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * delta**2)), delta  # line 17
        momentum = (delta_before - 1.0) / delta
    return d


def suboptimality(weights: WeightSet, d: Floats, gradient: Floats) -> float:
    """Return the Frank-Wolfe gap ``max over x in the set of gradient'(d - x)``."""
    return float(gradient @ d) + weights.largest(-gradient)


def alternating_objective(G: Floats, q: Floats, lam: float, loss: SquaredLoss, b: float) -> Smooth:
    """Return ``d -> F(alpha, b, d)`` with its gradient ``lam/2 q - G'r``, at fixed alpha and b.

    G (n, k) holds ``K_m alpha`` as columns, the paper's kernel cache; q (k,) is ``alpha' K_m
    alpha``.
    """

    def F(d: Floats) -> tuple[float, Floats]:
        r = loss.residual(G @ d + b)
        gradient = 0.5 * lam * q - G.T @ r
        return 0.5 * lam * float(q @ d) + loss.value(r, b), gradient

    return F


ROUNDS = 12


@dataclass(frozen=True, eq=False)
class ValueModel:
    """J around the current weights: ``gradient'd + 1/2 ||B d - B_now||^2``, up to a constant.

    J has the gradient ``-lam/2 q_m``.  As long as the support vectors stay the same, its Hessian is
    ``lam G' (W - W 1 1'W / 1'W1) G`` with ``W = (K_sv + lam I)^-1`` and the rows sv of G; points
    with weights divide their lam by them.
    """

    gradient: Floats  # (k,) gradient of J in the weights of the columns
    B: Floats  # (p, k) ``B'B`` is the Hessian
    B_now: Floats  # (p,) B times the current weights

    @classmethod
    def of(
        cls, system: SupportSystem | ThinSupportSystem, lam: float, G: Floats, q: Floats, f: Floats
    ) -> ValueModel:
        """Return the model at the minimum over z.

        G (n_sv, k) and f (n_sv,) are the rows sv of the columns ``K_m a`` and of ``K a``, and q
        (k,) is ``a'K_m a``; `system` solves with ``K_sv + lam I``, or with the lam of each point.
        """
        root = np.sqrt(lam)
        B = root * system.projected(np.column_stack([G, f]))
        return cls(-0.5 * lam * q, np.ascontiguousarray(B[:, :-1]), B[:, -1])

    def __call__(self, d: Floats) -> tuple[float, Floats]:
        """Return value and gradient at weights `d` (k,)."""
        change = self.B @ d - self.B_now
        value = float(self.gradient @ d) + 0.5 * float(change @ change)
        return value, self.gradient + self.B.T @ change

    def minimum(self, weights: WeightSet, d: Floats, share: float) -> Floats:
        """Return a minimiser over the set, from d (k,), whose suboptimality is reduced to a share.

        Where lam is far below the precision of K, rounding may leave no finite minimum; `d` is
        returned then.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gap = share * suboptimality(weights, d, self(d)[1])
            if weights.is_simplex:
                minimum = self._minimum_on_simplex(weights, d, gap)
            else:
                minimum = nesterov(self, weights, d, gap=gap)
        return minimum if np.isfinite(minimum).all() else d

    def _minimum_on_simplex(self, weights: WeightSet, d: Floats, gap: float) -> Floats:
        """Return the minimum by pair updates, and by Newton steps on the face that they find."""
        start, d = d, d.copy()
        slack = -self(d)[1]
        scale = float(slack.max() - slack @ d)  # the scaled problem starts with a gap of 1
        if not scale > 0.0:
            return start
        slack /= scale
        hessian = self.B.T @ (self.B / scale)
        diagonal = hessian.diagonal().copy()
        lower, upper = np.zeros(len(d)), np.full(len(d), np.inf)
        violation = 1.0
        for _ in range(ROUNDS):
            violation *= 0.1
            limit = 20 * len(d) + 1000
            pair_updates(hessian, diagonal, d, slack, lower, upper, violation, limit)
            newton_steps(hessian, d, slack, lower, upper)
            if suboptimality(weights, d, -scale * slack) <= gap:
                break
        d = np.maximum(d, 0.0)
        return np.asarray(d / d.sum())


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
