"""Reduced gradient descent over kernel weights in the simplex (Rakotomamonjy et al. 2008, Alg. 1).

Minimises ``J(d) = max_alpha { 1'alpha - 1/2 sum_m d_m q_m(alpha) }`` where ``q_m`` is the quadratic
form of the modified kernel ``K_m + ridges_m I`` at ``alpha*y`` and the machine of the method says
which alpha are feasible; its gradient is ``dJ/dd_m = -1/2 q_m(alpha)``.

The certificate is the dual at a feasible point, ``1'alpha - 1/2 max_m q_m(alpha)``.

Two things differ from the paper's toolbox, neither the problem nor its optimum:

* The matrix of a direction D, ``sum_m D_m K_m``, is asked for once.  Every trial on the line then
  costs a machine and no kernel, and its slope ``-1/2 (alpha*y)' K_D (alpha*y)`` comes free, so
  that the line search finds the root of the slope where golden section samples values.
* The reduced gradient is scaled by limited-memory BFGS on the current face.  The plain direction
  (``curvature=False``) zigzags and stalls at relative gaps near 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from mkldist.gram.requests import Combine, Request
from mkldist.machines.inner_svm import norms
from mkldist.machines.svm import SvmSolution
from mkldist.optim.line_search import root_of_slope
from mkldist.optim.quasi_newton import LimitedMemory
from mkldist.solvers.base import (
    Counters,
    Floats,
    Problem,
    Solution,
    SolverParams,
    StopReason,
    relative_gap,
)
from mkldist.solvers.trace import Trace

REFERENCE_SHARE = 0.5  # of the largest weight, below which another kernel becomes the reference
SUM_ERROR = 0.1
ZERO_WEIGHT = 1e-15


class ReducedGradientParams(SolverParams):
    """Parameters of every method that descends along the reduced gradient."""

    curvature: bool = Field(
        True, description="scale the reduced gradient by limited-memory BFGS; false: the paper's"
    )


@dataclass(frozen=True, eq=False)
class Combination:
    """``matrix + ridge I``, a combination of modified kernels.

    Parameters
    ----------
    matrix : (n, n) float64
        Combination of the kernels.
    ridge : float
        The same combination of what is added to their diagonals.
    """

    matrix: Floats
    ridge: float

    def plus(self, step: float, other: Combination) -> Combination:
        """Return this plus `step` times another."""
        return Combination(self.matrix + step * other.matrix, self.ridge + step * other.ridge)

    def quadratic(self, v: Floats) -> float:
        """Return ``v' (matrix + ridge I) v``, added up over the columns of `v`."""
        return float(np.vdot(v.T @ self.matrix, v.T)) + self.ridge * float(np.vdot(v, v))


Machine = Callable[[Combination], SvmSolution]


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended.

    Parameters
    ----------
    weights : (M,) float64
        The best weights met.
    svm : SvmSolution
        The machine there.
    kernel : Combination
        The combined kernel there.
    lower : float
        The greatest dual value met.
    stop : StopReason
        Why it ended.
    """

    weights: Floats
    svm: SvmSolution
    kernel: Combination
    lower: float = -np.inf
    stop: StopReason = StopReason.MAX_ITER

    def solution(
        self, counters: Counters, trace: Trace, extra: dict[str, float] | None = None
    ) -> Solution:
        """Return the method's solution."""
        return Solution(
            kernel_weights=self.weights,
            coefficients=self.svm.signed,
            bias=self.svm.bias,
            dual_variables=self.svm.alpha,
            objective=self.svm.objective,
            dual_objective=self.lower,
            stop_reason=self.stop,
            counters=counters,
            trace=trace.arrays(),
            extra=extra or {},
        )


def descend(
    problem: Problem,
    params: ReducedGradientParams,
    machine: Machine,
    ridges: Floats,
    counters: Counters,
    trace: Trace,
) -> Generator[Request, Any, Descent]:
    """Minimise J over the simplex, from equal weights.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : ReducedGradientParams
        Stopping rule and direction.
    machine : callable
        Solves the inner problem on a combined kernel to a small share of ``params.tol`` and
        counts it.
    ridges : (M,) float64
        What is added to the diagonal of each kernel, at least 0.
    counters : Counters
        Where iterations, passes and combinations are counted.
    trace : Trace
        Where iterations are recorded.

    Yields
    ------
    Combine, Quadratic
    """
    lines = _LineSearch(machine, ridges, _Direction(params.curvature), counters, problem, params)
    d = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    best = Descent(d, SvmSolution.none(), Combination(np.empty((0, 0)), 0.0))
    lower, stop = -np.inf, StopReason.MAX_ITER
    for _ in range(params.max_iter):
        kernel = Combination((yield Combine(d)), float(ridges @ d))
        svm = machine(kernel)
        q = (yield from norms(svm)) + ridges * float(np.vdot(svm.signed, svm.signed))
        counters.outer_iterations += 1
        counters.combines += 1
        counters.passes += 1
        lower = max(lower, float(svm.alpha.sum()) - 0.5 * float(q.max()))
        if svm.objective < best.svm.objective:
            best = Descent(d, svm, kernel)
        trace.record(best.svm.objective, lower, d)
        if relative_gap(best.svm.objective, lower) <= params.tol:
            stop = StopReason.CONVERGED
            break
        if lines.expired:
            stop = StopReason.TIME_LIMIT
            break
        moved = yield from lines.search(d, -0.5 * q, kernel, svm)
        if np.array_equal(moved, d):
            stop = StopReason.STALLED
            break
        d = moved
    return replace(best, lower=lower, stop=stop)


class _Direction:
    """Directions that keep the sum of the weights: the reference kernel takes up the rest (12)."""

    def __init__(self, curvature: bool) -> None:
        self._memory = LimitedMemory() if curvature else None
        self.reference = -1
        self.newton_like = False

    def at(self, d: Floats, gradient: Floats) -> Floats:
        """Return a direction of descent at `d`, non-negative where d is zero."""
        if self.reference < 0 or d[self.reference] < REFERENCE_SHARE * d.max():
            self.reference = int(d.argmax())
            if self._memory is not None:
                self._memory.forget()
        reduced = gradient - gradient[self.reference]
        free = (d > 0) | (reduced < 0)
        free[self.reference] = False
        D = np.where(free, -reduced, 0.0)
        self.newton_like = False
        if self._memory is not None:
            self._memory.observe(d, reduced)
            scaled = self._memory.direction(reduced, free)
            if scaled is not None:
                scaled[(d <= 0) & (scaled < 0)] = 0.0
                if scaled @ reduced < 0.0:
                    D, self.newton_like = scaled, True
                else:
                    self._memory.forget()
        D[self.reference] = -D.sum()
        return D


@dataclass(frozen=True, eq=False)
class _LineSearch:
    """Go along directions of descent, dropping kernels, and search the last line."""

    machine: Machine
    ridges: Floats
    direction: _Direction
    counters: Counters
    problem: Problem
    params: ReducedGradientParams

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.problem.clock.elapsed >= self.params.time_limit

    def search(
        self, d: Floats, gradient: Floats, kernel: Combination, svm: SvmSolution
    ) -> Generator[Request, Any, Floats]:
        """Go along a direction, dropping kernels that reach zero as long as J descends.

        Returns the new weights: `d` itself when nothing descends, and wherever the search is
        when the time is up, because one direction may drop all kernels but one.
        """
        start, D = d, self.direction.at(d, gradient)
        along = yield from self._combined(D, D)
        slope, travelled = _slope(svm, along), 0.0
        while slope < 0.0 and not (travelled and self.expired):
            shrinking = np.flatnonzero(D < 0.0)
            if not len(shrinking):
                break
            nu = int(shrinking[np.argmin(d[shrinking] / -D[shrinking])])
            reach = float(d[nu] / -D[nu])
            line = _Line(d, D, slope, reach, kernel, along)
            if self.direction.newton_like and 0.0 < 1.0 - travelled < reach:
                return line.minimum(self.machine, first=1.0 - travelled)
            svm = self.machine(kernel.plus(reach, along))
            end_slope = _slope(svm, along)
            if end_slope > 0.0:
                return line.minimum(self.machine, end_slope=end_slope)
            travelled += reach
            d = np.maximum(d + reach * D, 0.0)
            d[nu] = 0.0
            kernel = Combination(kernel.plus(reach, along).matrix, float(self.ridges @ d))
            if nu == self.direction.reference:
                break
            swap = np.zeros(len(d))
            swap[self.direction.reference], swap[nu] = D[nu], -D[nu]
            D = D + swap
            D[nu] = 0.0
            reference = self.direction.reference
            D[reference] -= D.sum()  # exactly zero once no other kernel moves
            change = yield from self._combined(swap, D)
            along = Combination(along.matrix + change.matrix, change.ridge)
            slope = _slope(svm, along)
        return _normalised(d, start)

    def _combined(self, asked: Floats, D: Floats) -> Generator[Request, Any, Combination]:
        """Ask for the matrix of a combination, and return it with the ridge of direction D."""
        matrix = yield Combine(asked)
        self.counters.combines += 1
        return Combination(matrix, float(self.ridges @ D))


@dataclass(frozen=True, eq=False)
class _Line:
    """A line from weights d along D, up to the step at which a kernel reaches zero."""

    d: Floats
    D: Floats
    slope: float
    reach: float
    kernel: Combination
    along: Combination

    def minimum(
        self, machine: Machine, *, first: float | None = None, end_slope: float | None = None
    ) -> Floats:
        """Return the weights where the slope along D has all but vanished."""
        step = root_of_slope(
            lambda gamma: _slope(machine(self.kernel.plus(gamma, self.along)), self.along),
            self.slope,
            self.reach,
            first=first,
            end_slope=end_slope,
        )
        return _normalised(self.d + step * self.D, self.d)


def _slope(svm: SvmSolution, along: Combination) -> float:
    """Return dJ/dgamma along D, ``-1/2 (alpha*y)' K_D (alpha*y)``."""
    return -0.5 * along.quadratic(svm.signed)


def _normalised(d: Floats, start: Floats) -> Floats:
    """Return `d` on the simplex, weights at rounding level set to zero.

    A direction whose entries differ by more than rounding resolves loses the sum of one: then the
    search has found nothing, and `start` is returned.
    """
    d = np.where(d > ZERO_WEIGHT, d, 0.0)
    total = float(d.sum())
    if abs(total - 1.0) > SUM_ERROR:
        unmoved: Floats = start / start.sum()
        return unmoved
    normalised: Floats = d / total
    return normalised
