"""Reduced gradient descent over kernel weights in the simplex (Rakotomamonjy et al. 2008, Alg. 1).

Minimises ``J(d) = max_alpha { 1'alpha - 1/2 sum_m d_m q_m(alpha) }`` where ``q_m`` is the quadratic
form of the modified kernel ``K_m + ridges_m I`` at ``alpha*y`` and the machine of the method says
which alpha are feasible; its gradient is ``dJ/dd_m = -1/2 q_m(alpha)``.

The certificate is the dual at a feasible point, ``1'alpha - 1/2 max_m q_m(alpha)``.

What differs from the paper's toolbox, neither the problem nor its optimum:

* The matrix of a direction D, ``sum_m D_m K_m``, is asked for once.  Every trial on the line then
  costs a machine and no kernel, and its slope ``-1/2 (alpha*y)' K_D (alpha*y)`` comes free, so
  that the line search finds the root of the slope where golden section samples values.
* The reduced gradient is scaled by limited-memory BFGS on the current face.  The plain direction
  (``curvature=False``) zigzags and stalls at relative gaps near 1e-4.
* Kernels that reach zero on the way do not cost a machine each
  (:mod:`.simplex_line`).
* J has kinks, where the machine is not unique and its reduced gradient need not descend.  From
  there the next weights are those of the Level method, whose cutting planes also bound from below.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Request
from mkldist.machines.inner_svm import norms
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.simplex_line import Combination, LineSearch, Machine, Path
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.optim.duality_gap import relative_gap
from mkldist.optim.quasi_newton import LimitedMemory
from mkldist.solvers.base import Problem, Solution, SolverParams, StopReason, reason_to_stop
from mkldist.solvers.svm_solution import svm_solution
from mkldist.solvers.trace import Trace

REFERENCE_SHARE = 0.5  # of the largest weight, below which another kernel becomes the reference
PATIENCE = 20  # steps at kinks in which the distance of the bounds should shrink
SHRINKAGE = 0.9


class ReducedGradientParams(SolverParams):
    """Parameters of every method that descends along the reduced gradient."""

    curvature: bool = Field(
        True, description="scale the reduced gradient by limited-memory BFGS; false: the paper's"
    )


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
        bounds = self.svm.objective, self.lower
        return svm_solution(self.weights, self.svm, bounds, self.stop, counters, trace, extra)


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
        Solves and counts the inner problem on a combined kernel, to a small share of ``tol``.
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
    lines = LineSearch(machine, ridges, counters, lambda: problem.clock.past(params.time_limit))
    direction, kinks = _Direction(params.curvature), _Kinks(problem.n_kernels)
    d = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    best = Descent(d, SvmSolution.none(), Combination(np.empty((0, 0)), 0.0))
    lower = -np.inf
    for _ in range(params.max_iter):
        kernel = Combination((yield Combine(d)), float(ridges @ d))
        svm = machine(kernel)
        q = (yield from norms(svm)) + ridges * float(np.vdot(svm.signed, svm.signed))
        counters.outer_iterations += 1
        counters.combines += 1
        counters.passes += 1
        height = float(svm.alpha.sum())
        lower = max(lower, height - 0.5 * float(q.max()), kinks.bound(height, q))
        if svm.objective < best.svm.objective:
            best = Descent(d, svm, kernel)
        trace.record(best.svm.objective, lower, d)
        gap = relative_gap(best.svm.objective, lower)
        stop = reason_to_stop(problem, params, gap, stalled=kinks.hopeless)
        if stop is not None:
            break
        path = Path(d, direction.at(d, -0.5 * q), direction.reference)
        moved = yield from lines.search(path, kernel, svm, newton_like=direction.newton_like)
        if np.array_equal(moved, d):
            direction.forget()
            kinks.meet(height, q)
            moved = kinks.leave(d, best.svm.objective, lower)
        d = moved
    return replace(best, lower=lower, stop=stop or StopReason.MAX_ITER)


class _Direction:
    """Directions that keep the sum of the weights: the reference kernel takes up the rest (12)."""

    def __init__(self, curvature: bool) -> None:
        self._memory = LimitedMemory() if curvature else None
        self.reference = -1
        self.newton_like = False

    def forget(self) -> None:
        """Forget the curvature met."""
        if self._memory is not None:
            self._memory.forget()

    def at(self, d: Floats, gradient: Floats) -> Floats:
        """Return a direction of descent at `d`, non-negative where d is zero."""
        if self.reference < 0 or d[self.reference] < REFERENCE_SHARE * d.max():
            self.reference = int(d.argmax())
            self.forget()
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


class _Kinks:
    """Steps of the Level method, from where no reduced gradient descends.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    """

    def __init__(self, n_kernels: int) -> None:
        self._cuts = CuttingPlanes(n_kernels)
        self._widths: deque[float] = deque(maxlen=PATIENCE + 1)
        self._met = False

    @property
    def hopeless(self) -> bool:
        """Whether steps have stopped to narrow the bounds, as rounding makes them."""
        return len(self._widths) > PATIENCE and self._widths[-1] > SHRINKAGE * self._widths[0]

    def meet(self, height: float, q: Floats) -> None:
        """Remember cuts from now on, the first of them that of this machine."""
        if not self._met:
            self._met = True
            self.bound(height, q)

    def bound(self, height: float, q: Floats) -> float:
        """Remember a machine's cut once a kink was met; return the lower bound of all cuts."""
        if not self._met:
            return -np.inf
        self._cuts.add(height, -0.5 * q)
        return self._cuts.minimum().bound

    def leave(self, d: Floats, upper: float, lower: float) -> Floats:
        """Return the next weights."""
        self._widths.append(upper - lower)
        return self._cuts.level_step(d, upper, lower)
