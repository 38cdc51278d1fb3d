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

from mkldist.gram.requests import Combine, Quadratic, Request
from mkldist.solvers.base import (
    Counters,
    Floats,
    Problem,
    Solution,
    SolverParams,
    StopReason,
    relative_gap,
)
from mkldist.solvers.line_search import root_of_slope
from mkldist.solvers.quasi_newton import LimitedMemory
from mkldist.solvers.svm import SvmSolution
from mkldist.solvers.trace import Trace

REFERENCE_SHARE = 0.5  # of the largest weight, below which another kernel becomes the reference
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
        """Return ``v' (matrix + ridge I) v``."""
        return float(v @ self.matrix @ v) + self.ridge * float(v @ v)


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
    direction = _Direction(params.curvature)
    d = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    best = Descent(d, SvmSolution.none(), Combination(np.empty((0, 0)), 0.0))
    lower, stop = -np.inf, StopReason.MAX_ITER
    for _ in range(params.max_iter):
        kernel = Combination((yield Combine(d)), float(ridges @ d))
        svm = machine(kernel)
        q = (yield Quadratic(svm.signed)) + ridges * float(svm.signed @ svm.signed)
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
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        D = direction.at(d, -0.5 * q)
        moved = yield from _search(d, D, direction, kernel, svm, machine, ridges, counters)
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


def _search(
    d: Floats,
    D: Floats,
    direction: _Direction,
    kernel: Combination,
    svm: SvmSolution,
    machine: Machine,
    ridges: Floats,
    counters: Counters,
) -> Generator[Request, Any, Floats]:
    """Go along D, dropping kernels that reach zero as long as J descends, then search the line."""
    along = Combination((yield Combine(D)), float(ridges @ D))
    counters.combines += 1
    slope, travelled = _slope(svm, along), 0.0
    while slope < 0.0:
        shrinking = np.flatnonzero(D < 0.0)
        if not len(shrinking):
            break
        nu = int(shrinking[np.argmin(d[shrinking] / -D[shrinking])])
        reach = float(d[nu] / -D[nu])
        if direction.newton_like and 0.0 < 1.0 - travelled < reach:
            first = 1.0 - travelled
            return _line_minimum(d, D, slope, reach, kernel, along, machine, first=first)
        svm = machine(kernel.plus(reach, along))
        end_slope = _slope(svm, along)
        if end_slope > 0.0:
            return _line_minimum(d, D, slope, reach, kernel, along, machine, end_slope=end_slope)
        travelled += reach
        d = np.maximum(d + reach * D, 0.0)
        d[nu] = 0.0
        kernel = Combination(kernel.plus(reach, along).matrix, float(ridges @ d))
        if nu == direction.reference:
            break
        swap = np.zeros(len(d))
        swap[direction.reference], swap[nu] = D[nu], -D[nu]
        D = D + swap
        D[nu] = 0.0
        along = Combination(along.matrix + (yield Combine(swap)), float(ridges @ D))
        counters.combines += 1
        slope = _slope(svm, along)
    return _normalised(d)


def _line_minimum(
    d: Floats,
    D: Floats,
    slope: float,
    reach: float,
    kernel: Combination,
    along: Combination,
    machine: Machine,
    *,
    first: float | None = None,
    end_slope: float | None = None,
) -> Floats:
    """Return the weights where the slope along D has all but vanished."""
    step = root_of_slope(
        lambda gamma: _slope(machine(kernel.plus(gamma, along)), along),
        slope,
        reach,
        first=first,
        end_slope=end_slope,
    )
    return _normalised(d + step * D)


def _slope(svm: SvmSolution, along: Combination) -> float:
    """Return dJ/dgamma along D, ``-1/2 (alpha*y)' K_D (alpha*y)``."""
    return -0.5 * along.quadratic(svm.signed)


def _normalised(d: Floats) -> Floats:
    """Return `d` on the simplex, weights at rounding level set to zero."""
    d = np.where(d > ZERO_WEIGHT, d, 0.0)
    normalised: Floats = d / d.sum()
    return normalised
