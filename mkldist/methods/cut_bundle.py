"""Bounds and cuts of methods around a support vector machine, and the bundle of Level and SILP.

A machine at weights p gives the upper bound ``J(p)``.  Its dual point alpha gives the cut
``f(p, alpha) = 1'alpha - 1/2 sum_m p_m q_m(alpha*y) <= J(p)``, and the minimum over the simplex of
the largest cut is a lower bound.  Level and SILP keep their cuts in a :class:`Bundle`.  With
``acceleration="none"`` it holds the paper's cuts, and every iteration visits all kernels.  By
default they differ in the first of two ways, and the Level method in both:

* They work on a working set of kernels (:mod:`mkldist.solvers.working_set`).  Once the problem is
  solved on these, :func:`certify` visits all kernels, bounds the optimum and takes more kernels.
* The cuts are those of all multiples t alpha (:class:`DualCuts`), which are dual points too:
  ``t 1'alpha - t^2/2 sum_m p_m q_m(alpha*y)``.

On factors.  A dual point of the machine is feasible whatever the kernels are.  With exact quadratic
forms its cuts therefore bound the optimum over the kernels (:func:`exact_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Quadratic
from mkldist.core.arrays import LEAST, Floats, Ints
from mkldist.core.memory import ProblemSize, SolverMemory
from mkldist.optim.accuracy import relative_gap
from mkldist.optim.cutting_planes import CuttingPlanes, nearest_below, solve_game
from mkldist.optim.factored_matrix import Gram
from mkldist.solvers.base import Counters, Problem, Requesting, Search, Solution, reason_at_end
from mkldist.solvers.progress import DualBound, Own, StopReason
from mkldist.solvers.queries import largest_forms
from mkldist.solvers.solver_params import HingeParams, SolverParams
from mkldist.solvers.svm import Bound, DualRounding, InnerSvm, SvmSolution
from mkldist.solvers.working_set import WorkingSet, solved


class WeightedMachine(NamedTuple):
    """Kernel weights (M,), and the machine on their combined kernel."""

    weights: Floats
    svm: SvmSolution


class MachinePoint(NamedTuple):
    """A dual point."""

    alpha: Floats  # (n,) or (n, k) dual variables of one machine, or of one for each class
    height: float  # their ``1'alpha``, or less
    of_form: float = 0.0  # what rounding may have taken from their quadratic forms


class Binding(NamedTuple):
    """Dual points that give the lower bound of a solution, from which another may start."""

    binding: Sequence[MachinePoint]  # the points
    weights: Floats = np.empty(0)  # (M,) kernel weights of the solution
    alpha: Floats = np.empty(0)  # (n,) or (n, k) dual variables of the machine at these weights


def mixed(alphas: Sequence[Floats], shares: Floats) -> Floats:
    """Return the mixture of dual points by shares (J,), most of which may be zero."""
    parts = np.flatnonzero(shares)
    of_parts = np.array([alphas[j] for j in parts.tolist()])
    return np.tensordot(shares[parts], of_parts, axes=1)


def best_for_functions(p: Floats, q: Floats) -> Floats:
    """Return the best weights for the functions that the machine found at weights p with forms q.

    These have norms ``||f_m|| = p_m sqrt(q_m)``, and weights in proportion to the norms minimise
    ``C sum_i hinge + 1/2 sum_m ||f_m||^2 / p_m`` at fixed f_m.
    """
    norms = p * np.sqrt(np.maximum(q, 0.0))
    total = float(norms.sum())
    return norms / total if total > 0.0 else p


class WrapperBounds(Search[WeightedMachine]):
    """Best bounds of a method on machines, the upper one with its kernel weights and machine."""

    def __init__(self, problem: Problem, params: SolverParams, counters: Counters) -> None:
        nothing = WeightedMachine(np.empty(0), SvmSolution.none())
        super().__init__(problem, params, nothing, counters=counters)
        # dual points that give the lower bound, where iterations named theirs
        self.binding = Binding(())

    def update(
        self,
        weights: Floats,
        svm: SvmSolution,
        objective: float,
        lower: float,
        cuts: DualBound | None = None,
        points: Sequence[MachinePoint] = (),
    ) -> None:
        """Keep the bounds of an iteration where they are the best so far, and record it.

        `objective` is the method's at weights (M,) with their machine, and `lower` the bound by the
        iteration's own dual variables.  `cuts` is the bound by the cuts of this iteration and those
        before, with the mixture of their dual points that certifies it; `points` are those whose
        cuts give it.
        """
        own = cuts is None or lower > cuts.value
        best = DualBound(lower, svm.alpha) if cuts is None or own else cuts
        if best.value > self.lower:
            self.binding = Binding([MachinePoint(svm.alpha, svm.height)] if own else points)
        self.take(WeightedMachine(weights, svm), objective, *best)
        self.own = Own(objective, lower)
        self.record(weights)

    def solution(
        self,
        stop: StopReason | None,
        extra: dict[str, float] | None = None,
        state: object = None,
        at: WeightedMachine | None = None,
    ) -> Solution:
        """Return the solution at the least objective, or at a point, certified by the bounds."""
        point = self.best if at is None else at
        return self.finish(
            stop,
            kernel_weights=point.weights,
            coefficients=point.svm.coefficients,
            bias=point.svm.bias,
            objective=self.upper if at is None else at.svm.objective,
            extra=extra or {},
            state=self.binding._replace(weights=point.weights, alpha=point.svm.alpha)
            if state is None
            else state,
            training_values=point.svm.values,
        )


class CutsBound(NamedTuple):
    """A lower bound of the optimum, and the dual points whose cuts give it."""

    value: float = -math.inf  # the bound
    points: Sequence[MachinePoint] = ()  # the points
    shares: Floats = np.empty(0)  # (J,) their shares in the minimum of the cuts

    @property
    def mixture(self) -> MachinePoint:
        """The dual point that mixes the points by their shares: its cut is nowhere below theirs."""
        heights, of_forms = np.array([point[1:] for point in self.points]).T
        height, of_form = float(self.shares @ heights), float(self.shares @ of_forms)
        return MachinePoint(
            mixed([point.alpha for point in self.points], self.shares), height, of_form
        )


NO_CUTS = CutsBound()


class MachineCuts:
    """The cuts ``1'alpha - 1/2 sum_m d_m q_m`` of machines over the simplex of M weights."""

    def __init__(self, n_kernels: int) -> None:
        self.planes = CuttingPlanes(n_kernels)  # the cuts
        self.points: list[MachinePoint] = []  # their dual points

    def add(self, svm: SvmSolution, q: Floats) -> CutsBound:
        """Add the cut of a machine; return the minimum over the simplex of the largest cut.

        q (M,) are upper bounds of its ``q_m(alpha*y)``.
        """
        self.planes.add(svm.height, -0.5 * q)
        self.points.append(MachinePoint(svm.alpha, svm.height, svm.rounding.of_form))
        minimum = self.planes.minimum()
        binding = np.flatnonzero(minimum.rows)
        points = [self.points[j] for j in binding]
        return CutsBound(minimum.bound, points, minimum.rows[binding])

    def widen(self, q: Floats) -> None:
        """Add kernels to the simplex, with upper bounds q (J, K) of their ``q_m(alpha_j*y)``."""
        heights = np.array([point.height for point in self.points])
        self.planes.widen(heights[:, None] - 0.5 * q)


RISES = 8  # games a minimum, each with the multiples that belong to the last one's value
# Another game is played if the last one raised the value by more than this share of the value, or
# of its distance to the upper bound if that is less.
STALE = 0.1
NO_BASIS: tuple[Ints, Ints] = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class CutsMinimum:
    """Minimum of the largest cut over the simplex."""

    bound: float  # lower bound of the minimum, and so of J; rounding leaves it one
    weights: Floats  # (S,) minimiser, a point of the simplex
    # (J,) shares of the cuts, of sum 1: the mixture of the cuts by these shares attains `bound`
    shares: Floats
    multiples: Floats  # (J,) the multiple t of each dual point whose cut takes part


class DualCuts:
    """Cuts of dual points, or of all their `multiples`, on a simplex that may grow."""

    def __init__(self, n_kernels: int, *, multiples: bool = True) -> None:
        self.of_multiples = multiples
        self._heights: Floats = np.empty(0)
        self._q: Floats = np.empty((16, n_kernels))
        self._value = 0.0  # the value v whose multiples the last game had; 0 before the first game
        self._basis = NO_BASIS
        self._multipliers: Floats = np.empty(0)

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def q(self) -> Floats:
        """The ``q_m(alpha_j*y)`` of all cuts, (J, S)."""
        return self._q[: len(self)]

    def add(self, height: float, q: Floats) -> None:
        """Add the cuts of a dual point of ``1'alpha``, or less, and ``q_m(alpha*y)`` (S,)."""
        if len(self) == len(self._q):
            self._q = np.concatenate([self._q, np.empty_like(self._q)])
        self._q[len(self)] = q
        self._heights = np.append(self._heights, height)
        self._multipliers = np.append(self._multipliers, 0.0)

    def widen(self, q: Floats) -> None:
        """Add kernels of ``q_m(alpha_j*y)`` (J, K) to the simplex."""
        wider = np.empty((len(self._q), self._q.shape[1] + q.shape[1]))
        wider[: len(self)] = np.concatenate([self.q, q], axis=1)
        self._q = wider
        if self.of_multiples:  # new kernels may lower the minimum, and so change the multiples
            self._value, self._basis = 0.0, NO_BASIS

    def minimum(self, upper: float) -> CutsMinimum:
        """Minimise the largest cut over the simplex, given an upper bound of J's minimum.

        The multiples depend on the minimum and the minimum on the multiples.  Each game takes the
        multiples of the last game's value, which raises the value until it hardly rises.
        """
        if self._value == 0.0:
            self._value = float(highest_bounds(self._heights, self.q.max(1)).max())
        for _ in range(RISES):
            t = self._multiples_at(self._value)
            game = solve_game(self._payoff(t), *self._basis)
            self._basis = game.active, game.support
            left = min(upper - game.bound, self._value)
            if not self.of_multiples or game.bound - self._value <= STALE * left:
                break
            self._value = game.bound
        return CutsMinimum(game.bound, game.columns, game.rows, t)

    def project(self, centre: Floats, level: float, slack: float) -> Floats | None:
        """Return the point of the simplex nearest to `centre` (S,) where no cut exceeds a level.

        The level is at least the minimum; a violation of `slack` may remain.  None means that the
        level set was not reached.
        """
        payoff = self._payoff(self._multiples_at(level))
        point, self._multipliers = nearest_below(payoff, centre, level, slack, self._multipliers)
        return point

    def _multiples_at(self, value: float) -> Floats:
        """Return each dual point's multiple of the highest cut where its phi is `value`, (J,)."""
        h, ones = self._heights, np.ones(len(self))
        if not self.of_multiples:
            return ones
        return np.divide(2.0 * value, h, out=ones, where=h > 2.0 * value)

    def _payoff(self, t: Floats) -> Floats:
        """Return the values of the multiples' cuts at the vertices of the simplex, (J, S)."""
        payoff = (-0.5 * t**2)[:, None] * self.q
        payoff += (t * self._heights)[:, None]
        return payoff


def best_multiples(heights: Floats, largest: Floats) -> Floats:
    """Return the multiples of dual points that give the lower bounds of :func:`highest_bounds`."""
    return np.divide(heights, largest, out=np.ones_like(heights), where=largest > heights)


def highest_bounds(heights: Floats, largest: Floats) -> Floats:
    """Return the lower bounds of J's minimum that dual points give by their best multiples, (J,).

    `heights` (J,) are ``1'alpha_j``, or less, and `largest` (J,) ``max_m q_m(alpha_j*y)``.
    """
    t = best_multiples(heights, largest)
    return t * heights - 0.5 * t**2 * largest


BOUNDS_FACTOR = 10.0  # by which the bounds must be tighter where the iterate's gap decides
CUTS = 24  # vectors (M,) of 64 cuts of a quarter of the kernels, and of 8 more for all else
PLAIN_CUTS = 200  # vectors (M,) of the cuts of all kernels that a plain run keeps, and of a game


class BundleParams(HingeParams):
    """Parameters that the cutting-plane methods share."""

    steers: ClassVar[tuple[str, ...]] = ("acceleration", "stop")

    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )
    stop: Literal["bounds", "point"] = Field(
        "bounds",
        description="gap that must reach tol: the bounds', or the iterate's as in Xu et al. 2008; "
        "then, but for acceleration none, bounds of a tenth of tol end it too",
    )


def memory_of_cuts(size: ProblemSize, params: BundleParams) -> SolverMemory:
    """Return the memory of a solver, whose cuts have an entry a kernel at hand."""
    return size.memory(vectors=CUTS if params.acceleration == "working-set" else PLAIN_CUTS)


class DualPoint(NamedTuple):
    """A feasible dual point of the machine, and so a cut."""

    alpha: Floats  # (n,) or (n, k) dual variables of one machine, or of one for each class
    q: Floats  # (S,) ``q_m(alpha*y)`` of the kernels, added up over classes
    rounding: DualRounding  # what rounding may have added to values of the cut

    @property
    def height(self) -> float:
        """``1'alpha``, the value of the cut where the kernels vanish, less its rounding."""
        return float(self.alpha.sum()) - self.rounding.of_sums

    @property
    def largest_q(self) -> Floats:
        """Upper bounds of q in spite of rounding."""
        return self.q + self.rounding.of_form

    def times(self, factor: float) -> DualPoint:
        """Return a multiple of the point."""
        of_form, of_sums = self.rounding
        rounding = DualRounding(factor**2 * of_form, factor * of_sums)
        return DualPoint(factor * self.alpha, factor**2 * self.q, rounding)

    def largest_multiple(self, C: Bound) -> float:
        """Return the largest factor at which the point keeps to the bound C; 1 for a point of 0."""
        used = float((self.alpha.T / C).max())
        return 1.0 / used if used > LEAST else 1.0


class Gap(NamedTuple):
    """Relative gap that is held against the tolerance."""

    value: float  # the gap
    # the gap of the iterate alone; infinity where only the bounds decide
    of_iterate: float = math.inf


@dataclass(frozen=True, eq=False)
class BundleState:
    """State from which the next point of a path starts."""

    weights: Floats  # (M,) kernel weights
    kernels: Ints  # (S,) the working set
    # dual points whose cuts bind at the model's minimum, with q on the working set
    binding: list[DualPoint]
    alpha: Floats  # (n,) or (n, k) dual variables of the solution

    def feasible(self, C: Bound) -> Iterator[DualPoint]:
        """Yield the dual points, shrunk where they exceed the bound C of this problem."""
        for point in self.binding:
            yield point.times(min(1.0, point.largest_multiple(C)))


def renewed(problem: Problem, state: BundleState) -> Requesting[BundleState]:
    """Ask kernels that have changed for the q of the binding dual points of a state."""
    if not state.binding:
        return state
    signed = np.array([point.alpha for point in state.binding]) * problem.y
    columns = np.moveaxis(signed, 1, 0).reshape(problem.n_points, -1)
    forms = yield Quadratic(columns, state.kernels)
    of_points = forms.reshape(len(state.kernels), len(state.binding), -1).sum(axis=2).T
    binding = [p._replace(q=q) for p, q in zip(state.binding, of_points, strict=True)]
    return replace(state, binding=binding)


@dataclass(eq=False)
class Bundle:
    """Cuts and bounds of a problem that is solved on a working set."""

    y: Floats  # (n,) or (n, k) labels
    C: Bound  # bound of the dual variables, of all or of each point
    params: BundleParams  # stopping rule
    kernels: WorkingSet  # the kernels at work
    cuts: DualCuts  # cuts on the working set
    machine: InnerSvm  # solves the inner problem
    bounds: WrapperBounds  # bounds of the optimum over all kernels
    alphas: list[Floats] = field(default_factory=list)  # dual points of the cuts
    roundings: list[DualRounding] = field(default_factory=list)  # their roundings
    # minimum of the cuts; there is none before the first cut
    model: CutsMinimum = field(init=False)
    restricted_lower: float = -math.inf  # lower bound of the optimum over the working set
    gap_of_pass: float = math.inf  # gap on all kernels that the last pass found


def begin(
    problem: Problem, params: BundleParams, *, multiples: bool = True
) -> Requesting[tuple[Bundle, Floats]]:
    """Choose the first kernels; return a bundle on them and their first weights (S,).

    The first kernels are those of the largest q where the dual variables are equal within each
    class, or all without acceleration.  Their weights are equal, and there is no cut.  Along a
    path, kernels and weights are those of the last solution, and the bundle holds the cuts that
    bind there.  With `multiples`, but for the paper's algorithm, cuts are those of all multiples.
    """
    plain = params.acceleration == "none"
    kernels = WorkingSet(problem.n_kernels, everything=plain)
    start = problem.start if isinstance(problem.start, BundleState) else None
    if start is not None and not kernels.everything:
        kernels.take(start.kernels)
    elif not kernels.everything:
        yield from kernels.take_first(problem.y)
    counters, C = Counters(), problem.bound(params.C)
    machine = InnerSvm(problem.y, C, params.tol, counters)
    cuts = DualCuts(len(kernels), multiples=multiples and not plain)
    bounds = WrapperBounds(problem, params, counters)
    if not kernels.everything:
        # Before the first pass: no machine's value is negative.
        bounds.improve_lower(0.0, np.zeros_like(problem.y))
    bundle = Bundle(problem.y, C, params, kernels, cuts, machine, bounds)
    if start is None:
        return bundle, np.full(len(kernels), 1.0 / len(kernels))
    for point in start.feasible(C):
        _append(bundle, point)
    _minimise(bundle)
    if kernels.everything:
        bounds.improve_lower(bundle.restricted_lower, _mixture(bundle))
    bundle.gap_of_pass = params.tol
    machine.begin_at(start.alpha)
    return bundle, start.weights[kernels.kernels]


def solve_machine(bundle: Bundle, K: Gram, weights: Floats) -> SvmSolution:
    """Solve the machine on the combined kernel K of weights (M,): an upper bound."""
    svm = bundle.machine(K)
    bundle.bounds.improve_upper(WeightedMachine(weights, svm), svm.objective)
    bundle.bounds.own = Own(svm.objective)
    return svm


def add_cut(bundle: Bundle, point: DualPoint) -> None:
    """Add the cuts of a dual point, with q on the working set, and minimise the model anew."""
    _append(bundle, point)
    lower = bundle.restricted_lower
    _minimise(bundle)
    bundle.restricted_lower = max(bundle.restricted_lower, lower)


def certify(bundle: Bundle, svm: SvmSolution, q: Floats) -> Requesting[Gap]:
    """Return the gap on all kernels, or infinity while the working set is not yet solved.

    Once it is solved, a pass over all kernels evaluates the mixture of dual points at the model's
    minimum: the cut of the mixture lies nowhere below the mixture of the cuts.  The pass bounds the
    optimum from below, and kernels that may lower the model's minimum join the working set.  `svm`
    is the machine of the last cut and q (S,) its ``q_m(alpha*y)``.  If the iterate's own gap
    decides, the pass evaluates the dual point of `svm` too.
    """
    kernels, bounds, tol = bundle.kernels, bundle.bounds, bundle.params.tol
    by_iterate = bundle.params.stop == "point"
    gap = deciding_gap(bundle, bundle.restricted_lower, svm, q)
    if kernels.everything:
        bounds.improve_lower(bundle.restricted_lower, _mixture(bundle))
        bounds.own = Own(svm.objective, svm.dual_value(float(q.max())))
        return gap
    if gap.value > solved(tol, bundle.gap_of_pass):
        return Gap(math.inf)
    mixture = _mixture(bundle)
    points = np.stack([mixture, svm.alpha] if by_iterate else [mixture])
    q_all = yield from kernels.visit_all(points * bundle.y)
    own = DualPoint(mixture, q_all[:, 0], _rounding_of_mixture(bundle))
    largest = [(own.height, float(own.largest_q.max()))]
    if by_iterate:
        largest.append((svm.height, float(q_all[:, 1].max()) + svm.rounding.of_form))
        bounds.own = Own(svm.objective, svm.dual_value(float(q_all[:, 1].max())))
    heights, forms = np.array(largest).T
    t, values = best_multiples(heights, forms), highest_bounds(heights, forms)
    best = int(values.argmax())
    bounds.improve_lower(float(values[best]), t[best] * points[best])
    gap = deciding_gap(bundle, bounds.lower, svm, q_all[:, -1])
    bundle.gap_of_pass = gap.value
    if gap.value > tol:
        add_cut(bundle, own._replace(q=own.q[kernels.kernels]))
        # At the vertex of a kernel m the mixture's cut is 1'alpha - q_m/2.  Only a kernel where
        # that lies below the minimum can lower the minimum.
        threshold = 2.0 * (own.height - bundle.restricted_lower)
        yield from _enlarge(bundle, kernels.newcomers(q_all[:, 0], threshold))
    return gap


def deciding_gap(bundle: Bundle, lower: float, svm: SvmSolution, q: Floats) -> Gap:
    """Return the relative gap held against the tolerance: of the bounds, or of the iterate.

    q (S,) are the ``q_m(alpha*y)`` of the machine at the iterate, on the lower bound's kernels.
    The gap of an iterate, ``1/2 (max_m q_m - sum_m p_m q_m)``, can stay large where the inner
    solution is not unique, so bounds ten times tighter than the tolerance end the search too, but
    not that of the paper's algorithm.
    """
    of_bounds = relative_gap(bundle.bounds.upper, lower)
    if bundle.params.stop == "bounds":
        return Gap(of_bounds)
    of_iterate = relative_gap(svm.objective, svm.dual_value(float(q.max())))
    if bundle.params.acceleration == "none":
        return Gap(of_iterate, of_iterate)
    return Gap(min(of_iterate, BOUNDS_FACTOR * of_bounds), of_iterate)


def bundle_solution(
    bundle: Bundle, weights: Floats, svm: SvmSolution, gap: Gap, stop: StopReason | None
) -> Solution:
    """Return the iterate, if it is good enough, or the best point, with the state for a path."""
    params, bounds = bundle.params, bundle.bounds
    best = WeightedMachine(weights, svm) if gap.of_iterate <= params.tol else bounds.best
    # The iterate's gap may exceed tol where that of the best point does not.
    stop = reason_at_end(params, relative_gap(best.svm.objective, bounds.lower), stop)
    binding = [_point(bundle, j) for j in np.flatnonzero(bundle.model.shares).tolist()]
    state = BundleState(best.weights, bundle.kernels.kernels, binding, best.svm.alpha)
    return bounds.solution(stop, state=state, at=best)


def _point(bundle: Bundle, j: int) -> DualPoint:
    """Return the dual point of a cut."""
    rounding = bundle.roundings[j]
    return DualPoint(bundle.alphas[j], bundle.cuts.q[j] - rounding.of_form, rounding)


def _mixture(bundle: Bundle) -> Floats:
    """Return the mixture of dual points at the model's minimum, a dual point itself."""
    shares = bundle.model.multiples * bundle.model.shares
    return np.tensordot(shares, np.array(bundle.alphas), axes=1)


def _rounding_of_mixture(bundle: Bundle) -> DualRounding:
    """Return the rounding of the mixture at the model's minimum, by convexity at most the mean."""
    shares, t = bundle.model.shares, bundle.model.multiples
    of_form, of_sums = np.array(bundle.roundings).T
    return DualRounding(float(shares @ (t**2 * of_form)), float(shares @ (t * of_sums)))


def _append(bundle: Bundle, point: DualPoint) -> None:
    """Append the cut of a dual point, or the cuts of all its feasible multiples.

    The largest multiple stands for all.  By itself its cut may lie below that of the point.
    """
    if bundle.cuts.of_multiples:
        point = point.times(point.largest_multiple(bundle.C))
    bundle.cuts.add(point.height, point.largest_q)
    bundle.alphas.append(point.alpha)
    bundle.roundings.append(point.rounding)


def _minimise(bundle: Bundle) -> None:
    """Minimise the cuts over the simplex of the working set."""
    bundle.model = bundle.cuts.minimum(bundle.bounds.upper)
    bundle.restricted_lower = bundle.model.bound


def _enlarge(bundle: Bundle, newcomers: Ints) -> Requesting[None]:
    """Take kernels into the working set, and their q at all dual points into the cuts."""
    if not len(newcomers):
        return
    q = yield from bundle.kernels.enlarge(newcomers, np.array(bundle.alphas) * bundle.y)
    of_forms = np.array([rounding.of_form for rounding in bundle.roundings])
    bundle.cuts.widen(q + of_forms[:, None])
    _minimise(bundle)


def exact_bound(problem: Problem, params: HingeParams, solution: Solution) -> Requesting[DualBound]:
    """Ask for the forms of all kernels at the dual points whose cuts bind, by one pass.

    The bound is ``min_p max_j { t_j h_j - t_j^2/2 sum_m p_m q_m(alpha_j*y) }`` over the simplex.
    """
    points = yield from binding_forms(problem, solution)
    if not points:
        return DualBound(0.0, np.zeros_like(problem.y))  # no machine's value is negative
    cuts = DualCuts(problem.n_kernels)
    for point, q in points:
        cuts.add(point.height, q)
    found = cuts.minimum(solution.objective)
    shares = found.shares * found.multiples
    return DualBound(found.bound, mixed([point.alpha for point, _ in points], shares))


def binding_forms(
    problem: Problem, solution: Solution
) -> Requesting[list[tuple[DualPoint | MachinePoint, Floats]]]:
    """Ask for the forms of all kernels at the dual points that give a solution its lower bound.

    With each point come upper bounds (M,) of its ``q_m(alpha*y)``, added up over classes.  There is
    none where the method stopped before a dual point gave a bound above 0.
    """
    state, n = solution.state, problem.n_points
    points: Sequence[DualPoint | MachinePoint] = (
        state.binding if isinstance(state, BundleState | Binding) else ()
    )
    if not points:
        return []
    signed = np.array([point.alpha * problem.y for point in points])  # (J, n) or (J, n, k)
    q = yield from largest_forms(np.moveaxis(signed, 1, 0).reshape(n, -1))  # (M, J k)
    by_point = q.reshape(len(q), len(points), -1).sum(axis=2).T
    return list(zip(points, by_point, strict=True))
