"""Quadratic programs over a box with one equality, the dual problem of support vector machines.

    max_beta  linear'beta - 1/2 beta' K beta   s.t.  lower <= beta <= upper,  1'beta = const

Sequential minimal optimisation with second-order working sets (Fan, Chen & Lin 2005) moves pairs
of variables, which keeps the sum.  Newton steps on the free variables then reach high accuracy.
Both work in place on a feasible point and its gradient.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled
from mkldist.optim.free_system import FreeSystem

SPARSE = 3  # times as many variables as free ones, from which on rows of K are multiplied alone
_CURVATURE_FLOOR = 1e-12  # of the diagonal
_TINY = float(np.finfo(np.float64).tiny)


@compiled
def pair_updates(
    K: Floats,
    diagonal: Floats,
    beta: Floats,
    slack: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    max_iter: int,
) -> int:
    """Improve `beta` and ``slack = linear - K beta`` in place by pair updates; return their number.

    An update moves beta from j to i, of which i has the largest slack and j promises the largest
    gain to second order.  The curvature along e_i - e_j has a floor against rounding.

    Parameters
    ----------
    K : (n, n) float64
        Symmetric positive semi-definite matrix, C-contiguous.
    diagonal : (n,) float64
        Its diagonal.
    beta, slack : (n,) float64
        A feasible point and the gradient there; both are overwritten.
    lower, upper : (n,) float64
        Bounds; may be infinite.
    violation : float
        Largest difference of slacks at which to stop.
    max_iter : int
        Limit on updates.
    """
    n = len(beta)
    for step in range(max_iter):
        i, highest = -1, -np.inf
        for k in range(n):
            if beta[k] < upper[k] and slack[k] > highest:
                i, highest = k, slack[k]
        j, gain, lowest, curvature = -1, 0.0, np.inf, 1.0
        for k in range(n):
            if beta[k] > lower[k]:
                lowest = min(lowest, slack[k])
                slope = highest - slack[k]
                if slope > 0.0:
                    total = diagonal[i] + diagonal[k]
                    bend = max(total - 2.0 * K[i, k], _CURVATURE_FLOOR * total, _TINY)
                    if slope * slope > gain * bend:
                        j, gain, curvature = k, slope * slope / bend, bend
        if i < 0 or j < 0 or highest - lowest <= violation:
            return step
        room_up, room_down = upper[i] - beta[i], beta[j] - lower[j]
        move = min((slack[i] - slack[j]) / curvature, room_up, room_down)
        beta[i] = upper[i] if move == room_up else beta[i] + move
        beta[j] = lower[j] if move == room_down else beta[j] - move
        for k in range(n):
            slack[k] -= move * (K[i, k] - K[j, k])
    return max_iter


def newton_steps(
    K: Floats,
    beta: Floats,
    slack: Floats,
    lower: Floats,
    upper: Floats,
    limit: int = 25,
) -> int:
    """Maximise over the free variables by Newton steps that stop at the box; return the steps.

    A step solves a Newton system on the free set (:mod:`.free_system`); the exact line search makes
    it an ascent whatever the ridge of the system.

    Parameters
    ----------
    K, beta, slack, lower, upper
        As for :func:`pair_updates`; `beta` and `slack` are overwritten.
    limit : int
        Limit on steps.
    """
    system = FreeSystem(K)
    for step in range(limit):
        free = np.flatnonzero((beta > lower) & (beta < upper))
        if len(free) < 2:
            return step
        found = _ascent(system, free, slack[free])
        if found is None:
            return step
        direction, f_change = found
        slope = float(slack[free] @ direction)
        curvature = float(direction @ f_change[free])
        if slope <= 0.0:
            return step
        length = slope / curvature if curvature > 0.0 else np.inf
        length, blocked = _move(beta, free, direction, lower, upper, length)
        slack -= length * f_change
        if not blocked:
            return step + 1
    return limit


def _ascent(system: FreeSystem, free: Ints, residual: Floats) -> tuple[Floats, Floats] | None:
    """Return a Newton direction d on the free variables, and the product K d; None without one."""
    while (direction := system.direction(free, residual)) is not None:
        change = _product(system.K, free, direction)
        if not system.renew(direction, change[free], residual):
            return direction, change
    return None


def _product(K: Floats, free: Ints, direction: Floats) -> Floats:
    """Return the product (n,) of a symmetric matrix with a direction on some variables."""
    if SPARSE * len(free) <= len(K):
        return np.asarray(direction @ K[free])
    whole = np.zeros(len(K))
    whole[free] = direction
    return np.asarray(K @ whole)


def _move(
    beta: Floats,
    free: Ints,
    direction: Floats,
    lower: Floats,
    upper: Floats,
    length: float,
) -> tuple[float, bool]:
    """Move the free variables at most until the box stops them; return the length and if it did."""
    start, low, high = beta[free], lower[free], upper[free]
    ends = np.where(direction > 0.0, high, low)
    room = np.full(len(free), np.inf)
    np.divide(ends - start, direction, out=room, where=direction != 0.0)
    first = int(room.argmin())
    blocked = bool(room[first] <= length)
    if blocked:
        length = float(room[first])
    beta[free] = np.minimum(np.maximum(start + length * direction, low), high)
    if blocked:
        beta[free[first]] = ends[first]
    return length, blocked
