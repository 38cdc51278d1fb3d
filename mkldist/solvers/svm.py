"""Support vector machine on one Gram matrix: the inner problem of most methods.

Dual (soft margin, hinge loss, with bias)::

    max_alpha  1'alpha - 1/2 (alpha*y)' K (alpha*y)   s.t.  0 <= alpha <= C,  y'alpha = 0

Primal of the same value::

    min_{f, b}  1/2 ||f||^2_K + C sum_i max(0, 1 - y_i (f_i + b))

Sequential minimal optimisation with second-order working sets (Fan, Chen & Lin 2005) brings the
point near the solution from wherever it starts; Newton steps on the free variables then solve the
remaining linear system, which gives the accuracy that a small duality gap of the outer problem
needs at the price of a few factorisations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt
import scipy.linalg

from mkldist.solvers.base import relative_gap

Floats = npt.NDArray[np.float64]

TOLERANCE_FLOOR = 1e-13
_CURVATURE_FLOOR = 1e-12


@dataclass(frozen=True, eq=False)
class SvmSolution:
    """A feasible dual point and the best bias for it.

    Parameters
    ----------
    alpha : (n,) float64
        Dual variables, ``0 <= alpha <= C`` and ``y'alpha = 0`` up to rounding.
    signed : (n,) float64
        ``alpha * y``, the expansion coefficients.
    bias : float
        The minimiser of the primal objective over b.
    objective, dual_objective : float
        Primal and dual value; the optimum lies between.
    iterations, newton_steps : int
        Pair updates and Newton steps.
    """

    alpha: Floats
    signed: Floats
    bias: float
    objective: float
    dual_objective: float
    iterations: int
    newton_steps: int

    @classmethod
    def none(cls) -> SvmSolution:
        """Return what is worse than any solution, to start a search for the best."""
        empty = np.empty(0)
        return cls(empty, empty, 0.0, np.inf, -np.inf, 0, 0)

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_gap(self.objective, self.dual_objective)


def solve_svm(
    K: Floats,
    y: Floats,
    C: float,
    *,
    tol: float = 1e-6,
    start: Floats | None = None,
    max_rounds: int = 50,
) -> SvmSolution:
    """Solve the support vector machine dual to a relative duality gap.

    Parameters
    ----------
    K : (n, n) float64
        Gram matrix, symmetric positive semi-definite, C-contiguous.
    y : (n,) float64
        Labels in {-1, +1}, both present.
    C : float
        Upper bound of the dual variables.
    tol : float
        Relative duality gap at which to stop.
    start : (n,) float64, optional
        Dual variables to start from, e.g. of a neighbouring problem; made feasible first.
    max_rounds : int
        Limit on rounds of pair updates followed by Newton steps.

    Returns
    -------
    SvmSolution
        The best point found; its gap exceeds `tol` only when rounding forbids less.
    """
    n = len(y)
    tol = max(tol, TOLERANCE_FLOOR)
    beta = np.zeros(n) if start is None else _feasible(start, y, C)
    lower, upper = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
    f = K @ beta
    diagonal = np.ascontiguousarray(np.diagonal(K))
    iterations = newton_steps = 0
    violation = 1e-2
    best = _evaluate(beta, f, y, C)
    for _ in range(max_rounds):
        if relative_gap(best[0], best[1]) <= tol:
            break
        slack = y - f
        iterations += int(_smo(K, diagonal, beta, slack, lower, upper, violation, 50 * n + 1000))
        if relative_gap(*_evaluate(beta, y - slack, y, C)[:2]) > 0.5 * tol:
            newton_steps += _newton(K, beta, slack, lower, upper)
        f = K @ beta
        best = _evaluate(beta, f, y, C)
        violation = max(violation * 0.1, 1e-15)
    primal, dual, bias = best
    return SvmSolution(beta * y, beta, bias, primal, dual, iterations, newton_steps)


def _feasible(alpha: Floats, y: Floats, C: float) -> Floats:
    """Return `alpha * y` moved into the box and onto the hyperplane y'alpha = 0."""
    alpha = np.clip(alpha, 0.0, C)
    positive, negative = alpha[y > 0].sum(), alpha[y < 0].sum()
    if positive > negative:
        alpha[y > 0] *= negative / positive
    elif negative > positive:
        alpha[y < 0] *= positive / negative
    return alpha * y


def _evaluate(beta: Floats, f: Floats, y: Floats, C: float) -> tuple[float, float, float]:
    """Return the primal value, the dual value and the bias that minimises the primal."""
    norm = float(beta @ f)
    bias = best_bias(f, y)
    hinge = float(np.maximum(0.0, 1.0 - y * (f + bias)).sum())
    return 0.5 * norm + C * hinge, float(np.abs(beta).sum()) - 0.5 * norm, bias


def best_bias(f: Floats, y: Floats) -> float:
    """Return the middle of the minimisers over b of ``sum_i max(0, 1 - y_i (f_i + b))``.

    The sum is convex and piecewise linear in b with kinks at ``y_i - f_i``; its slope is minus
    the number of positives, plus one at each kink.

    Parameters
    ----------
    f : (n,) float64
        Decision values without bias.
    y : (n,) float64
        Labels in {-1, +1}.
    """
    kinks = np.sort(y - f)
    positives = int((y > 0).sum())
    left = kinks[min(positives, len(kinks)) - 1] if positives else kinks[0]
    right = kinks[positives] if positives < len(kinks) else left
    return float(0.5 * (left + right))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _working_pair(
    K: Floats, diagonal: Floats, beta: Floats, slack: Floats, lower: Floats, upper: Floats
) -> tuple[int, int, float]:
    """Return the pair (i up, j down) of largest second-order promise and the largest violation.

    With ``slack = y - K beta``, moving beta from j to i climbs as long as slack_i > slack_j.
    """
    i, highest = -1, -np.inf
    for k in range(len(beta)):
        if beta[k] < upper[k] and slack[k] > highest:
            i, highest = k, slack[k]
    j, promise, lowest = -1, 0.0, np.inf
    for k in range(len(beta)):
        if beta[k] > lower[k]:
            lowest = min(lowest, slack[k])
            slope = highest - slack[k]
            if slope > 0.0:
                curvature = max(diagonal[i] + diagonal[k] - 2.0 * K[i, k], _CURVATURE_FLOOR)
                if slope * slope > promise * curvature:
                    j, promise = k, slope * slope / curvature
    return i, j, highest - lowest


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _smo(
    K: Floats,
    diagonal: Floats,
    beta: Floats,
    slack: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    max_iter: int,
) -> int:
    """Improve the signed variables `beta` and ``slack = y - K beta`` in place; return updates."""
    for step in range(max_iter):
        i, j, worst = _working_pair(K, diagonal, beta, slack, lower, upper)
        if i < 0 or j < 0 or worst <= violation:
            return step
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], _CURVATURE_FLOOR)
        room_up, room_down = upper[i] - beta[i], beta[j] - lower[j]
        move = min((slack[i] - slack[j]) / curvature, room_up, room_down)
        beta[i] = upper[i] if move == room_up else beta[i] + move
        beta[j] = lower[j] if move == room_down else beta[j] - move
        for k in range(len(beta)):
            slack[k] -= move * (K[i, k] - K[j, k])
    return max_iter


def _newton(
    K: Floats, beta: Floats, slack: Floats, lower: Floats, upper: Floats, limit: int = 25
) -> int:
    """Maximise over the free variables by Newton steps that stop at the box; return the steps.

    A step solves ``[[K_FF, 1], [1', 0]] [d, b] = [slack_F, 0]`` for the free set F.  The tiny
    ridge keeps the system solvable for dependent columns; the exact line search keeps every step
    an ascent, ridge or not.
    """
    for step in range(limit):
        free = np.flatnonzero((beta > lower) & (beta < upper))
        if len(free) < 2:
            return step
        direction = _newton_direction(K, free, slack[free])
        if direction is None:
            return step
        f_change = K[:, free] @ direction
        slope = float(slack[free] @ direction)
        curvature = float(direction @ f_change[free])
        if slope <= 0.0:
            return step
        length = slope / curvature if curvature > 0.0 else np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(
                direction > 0,
                (upper[free] - beta[free]) / direction,
                np.where(direction < 0, (lower[free] - beta[free]) / direction, np.inf),
            )
        nearest = int(np.argmin(room))
        blocked = bool(room[nearest] <= length)
        length = min(length, float(room[nearest]))
        beta[free] += length * direction
        np.clip(beta, lower, upper, out=beta)
        if blocked:
            stop = free[nearest]
            beta[stop] = upper[stop] if direction[nearest] > 0 else lower[stop]
        slack -= length * f_change
        if not blocked:
            return step + 1
    return limit


def _newton_direction(K: Floats, free: npt.NDArray[np.intp], residual: Floats) -> Floats | None:
    """Return the Newton direction on the free variables, summing to zero, or None."""
    block = K[np.ix_(free, free)]
    ridge = max(_CURVATURE_FLOOR * float(np.trace(block)) / len(free), np.finfo(np.float64).tiny)
    block[np.diag_indices_from(block)] += ridge
    try:
        factor = scipy.linalg.cho_factor(block, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    solved = scipy.linalg.cho_solve(
        factor, np.column_stack([residual, np.ones(len(free))]), check_finite=False
    )
    direction: Floats = solved[:, 0] - solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum())
    centred: Floats = direction - direction.mean()
    return centred
