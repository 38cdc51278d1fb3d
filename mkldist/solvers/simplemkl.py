"""SimpleMKL, reduced gradient descent (Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

with gradient ``dJ/dd_m = -1/2 q_m(alpha*y)``.  It is the method that Xu et al. 2008 call
subgradient descent (SD).

Two things differ from the paper's toolbox, neither the problem nor its optimum:

* The matrix of a direction D, ``sum_m D_m K_m``, is asked for once.  Every trial on the line then
  costs a support vector machine and no kernel, and its slope ``-1/2 (alpha*y)' K_D (alpha*y)``
  comes free, so that the line search finds the root of the slope where golden section samples
  values.
* The reduced gradient is scaled by limited-memory BFGS on the current face.  The plain direction
  (``curvature=False``) zigzags and stalls at relative gaps near 1e-4.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from pydantic import Field

from mkldist.gram.requests import Combine, Quadratic, Request
from mkldist.solvers.base import (
    Counters,
    Floats,
    Method,
    Problem,
    Solution,
    SolverParams,
    Steps,
    StopReason,
    relative_gap,
)
from mkldist.solvers.inner_svm import InnerSvm
from mkldist.solvers.line_search import root_of_slope
from mkldist.solvers.quasi_newton import LimitedMemory
from mkldist.solvers.svm import SvmSolution
from mkldist.solvers.trace import Trace

REFERENCE_SHARE = 0.5  # of the largest weight, below which another kernel becomes the reference
ZERO_WEIGHT = 1e-15


class SimpleMKLParams(SolverParams):
    """Parameters of SimpleMKL."""

    C: float = Field(1.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    curvature: bool = Field(
        True, description="scale the reduced gradient by limited-memory BFGS; false: the paper's"
    )


def solve(problem: Problem, params: SimpleMKLParams) -> Steps:
    """Run SimpleMKL.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SimpleMKLParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the greatest value met of
        ``1'alpha - 1/2 max_m q_m(alpha*y)``, the dual at a feasible point.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    svm_at = InnerSvm(problem.y, params.C, params.tol, counters)
    reduced = _ReducedGradient(params.curvature)
    d = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    best_d, best = d, SvmSolution.none()
    lower, stop = -np.inf, StopReason.MAX_ITER
    for _ in range(params.max_iter):
        K = yield Combine(d)
        svm = svm_at(K)
        q = yield Quadratic(svm.signed)
        counters.outer_iterations += 1
        counters.combines += 1
        counters.passes += 1
        lower = max(lower, float(svm.alpha.sum()) - 0.5 * float(q.max()))
        if svm.objective < best.objective:
            best_d, best = d, svm
        trace.record(best.objective, lower, d)
        if relative_gap(best.objective, lower) <= params.tol:
            stop = StopReason.CONVERGED
            break
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        D = reduced.direction(d, -0.5 * q)
        moved = yield from _descend(d, D, reduced, K, svm, svm_at, counters)
        if np.array_equal(moved, d):
            stop = StopReason.STALLED
            break
        d = moved
    return Solution(
        kernel_weights=best_d,
        coefficients=best.signed,
        bias=best.bias,
        dual_variables=best.alpha,
        objective=best.objective,
        dual_objective=lower,
        stop_reason=stop,
        counters=counters,
        trace=trace.arrays(),
    )


class _ReducedGradient:
    """Directions that keep the sum of the weights: the reference kernel takes up the rest (12)."""

    def __init__(self, curvature: bool) -> None:
        self._memory = LimitedMemory() if curvature else None
        self.reference = -1
        self.newton_like = False

    def direction(self, d: Floats, gradient: Floats) -> Floats:
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


def _descend(
    d: Floats,
    D: Floats,
    reduced: _ReducedGradient,
    K: Floats,
    svm: SvmSolution,
    svm_at: InnerSvm,
    counters: Counters,
) -> Generator[Request, Any, Floats]:
    """Go along D, dropping kernels that reach zero as long as J descends, then search the line."""
    K_D = yield Combine(D)
    counters.combines += 1
    slope, travelled = _slope(svm, K_D), 0.0
    while slope < 0.0:
        shrinking = np.flatnonzero(D < 0.0)
        if not len(shrinking):
            break
        nu = int(shrinking[np.argmin(d[shrinking] / -D[shrinking])])
        reach = float(d[nu] / -D[nu])
        if reduced.newton_like and 0.0 < 1.0 - travelled < reach:
            return _line_minimum(d, D, slope, reach, K, K_D, svm_at, first=1.0 - travelled)
        svm = svm_at(K + reach * K_D)
        end_slope = _slope(svm, K_D)
        if end_slope > 0.0:
            return _line_minimum(d, D, slope, reach, K, K_D, svm_at, end_slope=end_slope)
        travelled += reach
        K = K + reach * K_D
        d = np.maximum(d + reach * D, 0.0)
        d[nu] = 0.0
        if nu == reduced.reference:
            break
        swap = np.zeros(len(d))
        swap[reduced.reference], swap[nu] = D[nu], -D[nu]
        K_D = K_D + (yield Combine(swap))
        counters.combines += 1
        D = D + swap
        D[nu] = 0.0
        slope = _slope(svm, K_D)
    return _normalised(d)


def _line_minimum(
    d: Floats,
    D: Floats,
    slope: float,
    reach: float,
    K: Floats,
    K_D: Floats,
    svm_at: InnerSvm,
    *,
    first: float | None = None,
    end_slope: float | None = None,
) -> Floats:
    """Return the weights where the slope along D has all but vanished."""
    step = root_of_slope(
        lambda gamma: _slope(svm_at(K + gamma * K_D), K_D),
        slope,
        reach,
        first=first,
        end_slope=end_slope,
    )
    return _normalised(d + step * D)


def _slope(svm: SvmSolution, K_D: Floats) -> float:
    """Return dJ/dgamma along D, ``-1/2 (alpha*y)' K_D (alpha*y)``."""
    return -0.5 * float(svm.signed @ K_D @ svm.signed)


def _normalised(d: Floats) -> Floats:
    """Return `d` on the simplex, weights at rounding level set to zero."""
    d = np.where(d > ZERO_WEIGHT, d, 0.0)
    normalised: Floats = d / d.sum()
    return normalised


METHOD = Method(
    name="simplemkl",
    solve=solve,
    params=SimpleMKLParams,
    title="SimpleMKL, reduced gradient (SD)",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1",
)
