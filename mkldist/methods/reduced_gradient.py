"""Descent over the simplex by reduced gradients: the fast path of SimpleMKL and R-MKL.

Both minimise the convex value J(d) of a machine on ``sum_m d_m (K_m + r_m I)`` over the simplex of
kernel weights; SimpleMKL has no ridges r.  The plain algorithms stand in the methods' files.  At
weights d, a direction keeps the sum of the weights: the kernel of a large weight, the *reference*,
balances the changes of the others (Rakotomamonjy et al. 2008, (12)).

The problem and its optimum are the paper's.  Five things differ from its toolbox:

* A line search asks for the matrix of its direction D, ``K_D = sum_m D_m K_m``, once.  Every trial
  then costs a machine and no kernel, and its slope ``-1/2 (alpha*y)' K_D (alpha*y)`` comes free.
  The search finds the root of the slope, where golden section would sample values.
* Limited-memory BFGS on the current face scales the reduced gradient (:class:`QuasiNewton`).  The
  plain direction (``curvature=False``) zigzags.
* A kernel that reaches zero stays there, and the reference kernel takes up its share from then on
  (Algorithm 1).  The weights so follow a path of straight pieces, with a *knot* wherever a kernel
  leaves.  The paper solves a machine at every knot, nearly M of them where one direction empties
  the simplex.  Here doubling and halving find the knot up to which the value falls.  That costs
  about ``2 log2 L`` machines where L kernels leave, each on a combined kernel that the bank is
  asked for.  The piece after that knot is then searched as a line (:class:`LineSearch`).
* J has kinks, where the machine is not unique and its reduced gradient need not descend.  From
  there the Level method finds the next weights (:class:`KinkSteps`); its cutting planes also
  bound J from below.
* Iterations visit a working set of kernels (:class:`RestrictedBound`), so that of many kernels only
  the passes that certify ask for all.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mkldist.core.arrays import Floats, Ints
from mkldist.core.memory import ProblemSize, SolverMemory
from mkldist.methods.cut_bundle import (
    NO_CUTS,
    Binding,
    CutsBound,
    MachineCuts,
    MachinePoint,
    WeightedMachine,
    WrapperBounds,
)
from mkldist.optim.accuracy import relative_gap
from mkldist.optim.descent import LimitedMemory, root_of_slope
from mkldist.optim.factored_matrix import Gram, moved
from mkldist.solvers.base import Problem, Requesting
from mkldist.solvers.progress import Own, StopReason
from mkldist.solvers.solver_params import Effects, SolverParams
from mkldist.solvers.svm import SvmSolution
from mkldist.solvers.working_set import WorkingSet, solved

SUM_ERROR = 0.1  # of the sum of weights, beyond which a direction is lost in rounding
ZERO_WEIGHT = 1e-15  # weights up to it are rounding


@dataclass(frozen=True, eq=False)
class CombinedKernel:
    """``matrix + ridge I``, a combination of kernels with numbers added to their diagonals."""

    matrix: Gram  # (n, n) combination of the kernels, or its operator
    ridge: float = 0.0  # the same combination of the numbers that are added to their diagonals

    def plus(self, step: float, other: CombinedKernel) -> CombinedKernel:
        """Return this kernel plus `step` times another."""
        matrix = moved(self.matrix, step, other.matrix)
        return CombinedKernel(matrix, self.ridge + step * other.ridge)

    def quadratic(self, v: Floats) -> float:
        """Return ``v' (matrix + ridge I) v``, added up over the columns of `v`."""
        return float(np.vdot(v, self.matrix @ v)) + self.ridge * float(np.vdot(v, v))


Machine = Callable[[CombinedKernel], SvmSolution]


class SimplexPath:
    """Weights from `d` along D, past kernels that reach zero; a reference kernel keeps their sum.

    d (M,) is in the simplex, and D (M,) not negative where d is zero.  `newton_like` says that D is
    scaled so that a step of 1 is a good guess; kernels that leave beyond it are not tried.
    """

    def __init__(self, d: Floats, D: Floats, reference: int, *, newton_like: bool = False) -> None:
        self._d, self._D, self._reference = d, D, reference
        self.newton_like = newton_like
        self._leaving = np.full(len(d), np.inf)
        shrinking = D < 0.0
        shrinking[reference] = False
        self._leaving[shrinking] = d[shrinking] / -D[shrinking]
        # (k,) steps at which a kernel reaches zero, in order; the first is 0, the last the path's
        # end
        self.knots: Floats = self._knots()

    @property
    def end(self) -> int:
        """Index of the last knot."""
        return len(self.knots) - 1

    def _knots(self) -> Floats:
        """Return the knots up to the one at which nothing moves or the reference is used up."""
        order = np.argsort(self._leaving)
        leaves = np.isfinite(self._leaving)
        order = order[leaves[order]]
        knots = np.concatenate([[0.0], self._leaving[order]])
        others = np.where(np.arange(len(self._d)) == self._reference, 0.0, self._D)
        # On the piece after each knot the reference loses what the kernels left there gain.  Large
        # entries leave first: sums over those that are left keep the digits of the small ones.
        left = np.concatenate([np.cumsum(others[order][::-1])[::-1], [0.0]])
        rates = -(float(others[~leaves].sum()) + left)
        shares = self._d[self._reference] + np.concatenate(
            [[0.0], np.cumsum(rates[:-1] * np.diff(knots))]
        )
        growing = bool((others > 0.0).any())
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(rates < 0.0, knots + np.maximum(shares, 0.0) / -rates, np.inf)
        pieces = np.append(knots[1:], np.inf)
        used_up = np.flatnonzero(np.isfinite(ends) & (ends <= pieces))
        self._uses_up = growing and len(used_up) > 0
        if self._uses_up:
            first = int(used_up[0])
            knots = np.append(knots[: first + 1], ends[first])
        return np.unique(knots)

    def weights(self, knot: int) -> Floats:
        """Return the weights at a knot, a point of the simplex."""
        if knot == 0:
            return self._d.copy()
        step = float(self.knots[knot])
        d = np.where(self._leaving > step, np.maximum(self._d + step * self._D, 0.0), 0.0)
        d[self._reference] = 0.0
        if not (self._uses_up and knot == self.end):
            d[self._reference] = max(1.0 - float(d.sum()), 0.0)
        return normalised(d, self._d)

    def direction(self, knot: int) -> Floats:
        """Return the direction on the piece after a knot; zero after the last."""
        if knot == self.end:
            return np.zeros_like(self._D)
        D = np.where(self._leaving > self.knots[knot], self._D, 0.0)
        D[self._reference] = 0.0
        D[self._reference] = -D.sum()
        return D


class _Descent(NamedTuple):
    """The last knot of a path that was found to descend; kernel and machine there."""

    knot: int
    kernel: CombinedKernel
    svm: SvmSolution
    next_slope: float | None  # at the end of the piece after it, if known and positive


@dataclass(frozen=True, eq=False)
class LineSearch:
    """Search along paths of descent: drop kernels while J falls, then search the last piece."""

    machine: Machine  # solves the inner problem on a combined kernel
    kernels: WorkingSet  # the kernels whose weights the paths have
    ridges: Floats  # (M,) number that is added to the diagonal of each kernel of the bank
    # returns True once the time is up; the search then ends at the best knot so far
    expired: Callable[[], bool]

    def search(
        self, path: SimplexPath, kernel: CombinedKernel, svm: SvmSolution
    ) -> Requesting[Floats]:
        """Return the weights where the value along a path has almost stopped falling.

        They are those of the path's start, of combined `kernel` and machine, when nothing descends.
        """
        along = yield from self.combined(path.direction(0))
        if not slope_along(svm, along) < 0.0:
            return path.weights(0)
        low = yield from self._last_descent(path, kernel, svm, along)
        if low.knot:
            along = yield from self.combined(path.direction(low.knot))
        slope = slope_along(low.svm, along)
        if low.knot == path.end or not slope < 0.0 or (low.knot and self.expired()):
            return path.weights(low.knot)
        start = float(path.knots[low.knot])
        reach, full_step = float(path.knots[low.knot + 1]) - start, 1.0 - start
        try_full = path.newton_like and 0.0 < full_step < reach and low.next_slope is None
        step = step_along(
            self.machine,
            low.kernel,
            along,
            slope,
            reach,
            first=full_step if try_full else None,
            end_slope=low.next_slope,
        )
        moved = path.weights(low.knot) + step * path.direction(low.knot)
        return normalised(moved, path.weights(0))

    def _last_descent(
        self, path: SimplexPath, kernel: CombinedKernel, svm: SvmSolution, along: CombinedKernel
    ) -> Requesting[_Descent]:
        """Return the last knot found to descend, by doubling strides and then halving them."""
        last = int(np.searchsorted(path.knots, 1.0)) - 1 if path.newton_like else path.end
        low, high, stride, end_slope = 0, last + 1, 1, None
        failed = False
        while (low < last and not failed) or high - low > 1:
            if low and self.expired():
                break
            trial = (low + high) // 2 if failed else min(low + stride, last)
            if trial == 1:
                before, there = along, kernel.plus(float(path.knots[1]), along)
            else:
                before = yield from self.combined(path.direction(trial - 1))
                there = yield from self.combined(path.weights(trial))
            found = self.machine(there)
            slope = slope_along(found, before)
            # On one piece the value is convex: a slope below zero at its end says enough.  Past
            # several, it may have risen in between, as far as machines of a tolerance can tell.
            near = trial == low + 1
            falls = slope <= 0.0 and (near or found.dual_objective <= svm.objective)
            if falls:
                low, kernel, svm, stride = trial, there, found, 2 * stride
            else:
                high, failed, end_slope = trial, True, slope
        known = failed and high == low + 1 and end_slope is not None and end_slope > 0.0
        return _Descent(low, kernel, svm, end_slope if known else None)

    def combined(self, weights: Floats) -> Requesting[CombinedKernel]:
        """Ask for the combined kernel of some weights (S,), or of a direction."""
        matrix = yield self.kernels.combination(weights, thin=True)
        return CombinedKernel(matrix, float(self.ridges[self.kernels.kernels] @ weights))


def slope_along(svm: SvmSolution, along: CombinedKernel) -> float:
    """Return dJ/dgamma along D, ``-1/2 (alpha*y)' K_D (alpha*y)``."""
    return -0.5 * along.quadratic(svm.signed)


def step_along(
    machine: Machine,
    kernel: CombinedKernel,
    along: CombinedKernel,
    slope: float,
    reach: float,
    first: float | None = None,
    end_slope: float | None = None,
) -> float:
    """Return a step gamma at which the slope of J along D, of combined kernel `along`, has shrunk.

    The other arguments are those of :func:`mkldist.optim.descent.root_of_slope`.
    """

    def slope_at(step: float) -> float:
        return slope_along(machine(kernel.plus(step, along)), along)

    return root_of_slope(slope_at, slope, reach, first=first, end_slope=end_slope)


def normalised(d: Floats, start: Floats) -> Floats:
    """Return `d` on the simplex, weights at rounding level set to zero.

    A direction whose entries differ by more than rounding resolves loses the sum of one: then the
    search has found nothing, and `start` is returned.
    """
    d = np.where(d > ZERO_WEIGHT, d, 0.0)
    total = float(d.sum())
    if abs(total - 1.0) > SUM_ERROR:
        return np.asarray(start / start.sum())
    return d / total


MATRICES = 7  # combined kernels of a line search
VECTORS = 72  # vectors (M,) of the quasi-Newton pairs of all kernels, and what goes with them
FEW_VECTORS = 30  # the same of a quarter of the kernels, and of 12 more for all else
REFERENCE_SHARE = 0.5  # of the largest weight, below which another kernel becomes the reference
PATIENCE = 20  # steps from kinks in which the distance of the bounds should shrink
SHRINKAGE = 0.9  # factor by which it should


class ReducedGradientParams(SolverParams):
    """Parameters of every method that descends along the reduced gradient."""

    steers: ClassVar[tuple[str, ...]] = ("curvature", "acceleration")
    effective_with: ClassVar[Effects] = {"acceleration": ("curvature", (True,))}

    curvature: bool = Field(
        True,
        description="scale the reduced gradient by limited-memory BFGS, and leave kinks; "
        "false: the paper's algorithm",
    )
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )


def memory_of_descent(size: ProblemSize, params: ReducedGradientParams) -> SolverMemory:
    """Return the memory of a solver, whose quasi-Newton pairs have an entry a kernel at hand."""
    few = params.curvature and params.acceleration == "working-set"
    return size.memory(matrices=MATRICES, vectors=FEW_VECTORS if few else VECTORS)


def reference_kernel(d: Floats, last: int | None) -> int:
    """Return the kernel that balances the changes of the others, from the last one, None at first.

    The paper takes the kernel of the largest weight.  Here the last reference stays while its
    weight is at least half the largest, because reduced gradients, and the curvature learnt from
    their changes, mean nothing for another reference.
    """
    if last is None or d[last] < REFERENCE_SHARE * d.max():
        return int(d.argmax())
    return last


def steepest_direction(d: Floats, gradient: Floats, reference: int) -> Floats:
    """Return the negative reduced gradient, the direction D (M,) of (12).

    A kernel of weight zero stays there unless its weight would grow.
    """
    reduced = gradient - gradient[reference]
    D: Floats = np.where((d > 0) | (reduced < 0), -reduced, 0.0)
    D[reference] = 0.0
    D[reference] = -D.sum()
    return D


class QuasiNewton:
    """Reduced gradients scaled by limited-memory BFGS on the current face of the simplex."""

    def __init__(self) -> None:
        self._memory, self._reference = LimitedMemory(), -1

    def forget(self) -> None:
        """Forget the curvature met."""
        self._memory.forget()

    def path(self, d: Floats, gradient: Floats, reference: int) -> SimplexPath:
        """Return the path along the scaled direction, or the steepest without curvature."""
        if reference != self._reference:
            self._reference = reference
            self.forget()
        reduced = gradient - gradient[reference]
        free = (d > 0) | (reduced < 0)
        free[reference] = False
        self._memory.observe(d, reduced)
        D = self._memory.direction(reduced, free)
        if D is not None:
            D[(d <= 0) & (D < 0)] = 0.0
            if D @ reduced < 0.0:
                D[reference] = 0.0
                D[reference] = -D.sum()
                return SimplexPath(d, D, reference, newton_like=True)
            self.forget()
        return SimplexPath(d, steepest_direction(d, gradient, reference), reference)


class KinkSteps:
    """Steps of the Level method, from weights where no reduced gradient descends.

    Before the first such step no cutting plane is kept, so that a descent that meets no kink pays
    nothing.
    """

    def __init__(self, n_kernels: int) -> None:
        self.cuts = MachineCuts(n_kernels)  # the cutting planes
        self._widths: deque[float] = deque(maxlen=PATIENCE + 1)

    @property
    def exhausted(self) -> bool:
        """True once PATIENCE steps have not narrowed the bounds, because of rounding."""
        return len(self._widths) > PATIENCE and self._widths[-1] > SHRINKAGE * self._widths[0]

    def go_on(self) -> None:
        """Count steps anew, on a problem that has more kernels."""
        self._widths.clear()

    def lower_bound(self, svm: SvmSolution, q: Floats) -> CutsBound:
        """Return the minimum of all cuts, this machine's included; none before the first step."""
        return self.cuts.add(svm, q) if self.cuts.points else NO_CUTS

    def step(self, d: Floats, svm: SvmSolution, q: Floats, upper: float, lower: float) -> Floats:
        """Return the next weights: the nearest to `d` (M,) at which all cuts are below a level."""
        if not self.cuts.points:
            self.cuts.add(svm, q)
        self._widths.append(upper - lower)
        return self.cuts.planes.level_step(d, upper, lower)


class RestrictedBound:
    """The greatest lower bound of the optimum over a growing working set, and its dual point."""

    def __init__(
        self, y: Floats, tol: float, kernels: WorkingSet, ridges: Floats, bounds: WrapperBounds
    ) -> None:
        self._y, self._tol, self._kernels = y, tol, kernels
        self._ridges, self._bounds = ridges, bounds
        self._gap_of_pass = math.inf
        self._point = MachinePoint(np.zeros_like(y), 0.0)
        self.lower = -math.inf  # the bound

    @property
    def is_due(self) -> bool:
        """True if the gap on the working set is small enough for a pass over all kernels."""
        if self._kernels.everything:
            return False
        gap = relative_gap(self._bounds.upper, self.lower)
        return gap <= solved(self._tol, self._gap_of_pass)

    def first_kernels(self, weights: Floats | None = None) -> Requesting[None]:
        """Take the kernels of weights (M,) that are not zero.

        Without weights, those of the largest q_m where the dual variables are equal within each
        class.
        """
        if self._kernels.everything:
            return
        if weights is None:
            yield from self._kernels.take_first(self._y, self._ridges)
        else:
            self._kernels.take(np.flatnonzero(weights))
        # Before the first pass: no machine's value is negative.
        self._bounds.improve_lower(0.0, np.zeros_like(self._y))

    def largest_forms(self, svm: SvmSolution, q: Floats) -> Floats:
        """Return upper bounds of q (S,) with ridges, in spite of rounding, on the working set.

        Their rounding, the same for all kernels, makes bounds hold and changes no step.
        """
        return self._largest(_own_point(svm), q, self._kernels.kernels)

    def improve(self, svm: SvmSolution, q: Floats, cuts: CutsBound) -> None:
        """Keep the bound of a machine of largest forms q, or of all cuts, if it is the greatest."""
        own, dual = _own_point(svm), svm.height - 0.5 * float(q.max())
        if max(dual, cuts.value) > self.lower:
            by_own = dual >= cuts.value
            self.lower, self._point = (dual, own) if by_own else (cuts.value, cuts.mixture)
            if self._kernels.everything:
                point = self._point.alpha
                if self._bounds.improve_lower(self.lower, point):
                    self._bounds.binding = Binding([own] if by_own else cuts.points)
        self._bounds.own = Own(svm.objective, dual if self._kernels.everything else math.nan)

    def visit_all(self, svm: SvmSolution, cuts: MachineCuts) -> Requesting[Floats]:
        """Bound the optimum over all kernels by a pass, and enlarge the working set.

        Return the machine's largest forms (K,) at the kernels that joined; the cuts take these
        kernels too.
        """
        kernels, bounds, point, own = self._kernels, self._bounds, self._point, _own_point(svm)
        alphas = np.stack([point.alpha, own.alpha])
        q = yield from kernels.visit_all(alphas * self._y)
        everywhere = np.arange(len(q))
        q_point = self._largest(point, q[:, 0], everywhere)
        if bounds.improve_lower(point.height - 0.5 * float(q_point.max()), point.alpha):
            bounds.binding = Binding([point])
        self._gap_of_pass = bounds.gap
        if not bounds.gap > self._tol:
            return np.empty(0)
        joined = kernels.newcomers(q_point, float(q_point[kernels.kernels].max()))
        if len(joined):
            self.lower = bounds.lower
            yield from self._join(joined, cuts)
        return self._largest(own, q[joined, 1], joined)

    def _join(self, joined: Ints, cuts: MachineCuts) -> Requesting[None]:
        """Take kernels into the working set, and into the cuts."""
        alphas = np.array([point.alpha for point in cuts.points])
        q = yield from self._kernels.enlarge(joined, alphas * self._y if len(alphas) else alphas)
        largest = np.empty_like(q)  # (J, K)
        for j, point in enumerate(cuts.points):
            largest[j] = self._largest(point, q[j], joined)
        cuts.widen(largest)

    def _largest(self, point: MachinePoint, q: Floats, kernels: Ints) -> Floats:
        """Return upper bounds of a point's q_m with ridges, in spite of rounding."""
        square = float(np.vdot(point.alpha, point.alpha))
        return q + self._ridges[kernels] * square + point.of_form


def _own_point(svm: SvmSolution) -> MachinePoint:
    """Return the dual point of a machine."""
    return MachinePoint(svm.alpha, svm.height, svm.rounding.of_form)


def descend(
    problem: Problem,
    params: ReducedGradientParams,
    machine: Machine,
    ridges: Floats,
    bounds: WrapperBounds,
) -> Requesting[StopReason]:
    """Descend from equal weights of the first kernels, or from a solution; say why it stops.

    `ridges` (M,) are the numbers r_m that are added to the diagonals; `machine` solves the inner
    problem on a combined kernel, and `bounds` takes the bounds of the optimum over all kernels.
    """
    kernels = WorkingSet(problem.n_kernels, everything=params.acceleration == "none")
    restricted = RestrictedBound(problem.y, params.tol, kernels, ridges, bounds)
    start = problem.start.weights if isinstance(problem.start, Binding) else None
    yield from restricted.first_kernels(start)
    line = LineSearch(machine, kernels, ridges, partial(problem.clock.past, params.time_limit))
    kinks, quasi_newton = KinkSteps(len(kernels)), QuasiNewton()
    d = np.full(len(kernels), 1.0 / len(kernels)) if start is None else start[kernels.kernels]
    mu = None
    for _ in range(params.max_iter):
        # J(d) and its gradient, by a machine on the combined kernel.
        kernel = yield from line.combined(d)
        svm = machine(kernel)
        q = restricted.largest_forms(svm, (yield from kernels.quadratic(svm.signed)))
        bounds.improve_upper(WeightedMachine(kernels.spread(d), svm), svm.objective)
        restricted.improve(svm, q, kinks.lower_bound(svm, q))
        if restricted.is_due or kinks.exhausted:
            # A pass over all kernels; some join the working set with weight zero.
            of_newcomers = yield from restricted.visit_all(svm, kinks.cuts)
            if len(of_newcomers):
                d = np.concatenate([d, np.zeros(len(of_newcomers))])
                q = np.concatenate([q, of_newcomers])
                kinks.go_on()
                quasi_newton.forget()
        bounds.record(kernels.spread(d))
        stop = bounds.reason_to_stop(stalled=kinks.exhausted)
        if stop is not None:
            return stop
        # The reduced gradient, scaled by limited-memory BFGS.
        mu = reference_kernel(d, mu)
        path = quasi_newton.path(d, -0.5 * q, mu)
        # Drop kernels along it while J falls, then search the line.
        moved = yield from line.search(path, kernel, svm)
        if np.array_equal(moved, d):  # J has a kink here
            quasi_newton.forget()
            moved = kinks.step(d, svm, q, bounds.upper, restricted.lower)
        d = moved
    return StopReason.MAX_ITER
