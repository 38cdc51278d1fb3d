"""Pair updates on ``max_beta y'beta - Psi(q(beta))``, the dual of multiple kernel learning.

The variables are ``beta = alpha*y`` within a box and of constant sum.  Each update chooses a pair
by its second-order gain (Fan, Chen & Lin 2005) and moves it to the exact maximum on its line.
On the line every ``q_m`` is a parabola, ``q_m + 2 u_m t + c_m t^2`` with
``u_m = (K_m beta)_i - (K_m beta)_j`` and ``c_m = K_m[i,i] + K_m[j,j] - 2 K_m[i,j]``.

The functions are compiled: an update of B points and M kernels costs about M B operations, too
few for numpy's calls.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled
from mkldist.methods.smooth_dual.dual_penalties import respond

_CURVATURE_FLOOR = 1e-14  # of the curvature, so that a flat line goes to its end
_SEARCH_STEPS = 100
_SLOPE_SHARE = 1e-8  # of the slope at the start that the search on a line may leave


@compiled
def _curvature(u: Floats, c: Floats, e: Floats, h: Floats, r: Floats, kappa: float) -> float:
    """Return minus the second derivative of the objective along a pair's line."""
    diagonal, along = 0.0, 0.0
    for m in range(len(u)):
        diagonal += e[m] * c[m] + 2.0 * h[m] * u[m] * u[m]
        along += r[m] * u[m]
    return max(diagonal + 2.0 * kappa * along * along, 0.0)


@compiled
def line_maximum(
    kind: int,
    shape: float,
    lam: float,
    linear: float,
    q: Floats,
    u: Floats,
    c: Floats,
    room: float,
) -> float:
    """Return the t in [0, room] that maximises ``linear t - Psi(q + 2 u t + c t^2)``.

    Newton's method on the slope, within a bracket that each evaluation narrows.
    """
    size = len(q)
    e, h, r = np.empty(size), np.empty(size), np.empty(size)
    at, v = np.empty(size), np.empty(size)
    low, high, t, first = 0.0, room, 0.0, 0.0
    for step in range(_SEARCH_STEPS):
        for m in range(size):
            at[m] = max(q[m] + t * (2.0 * u[m] + t * c[m]), 0.0)
            v[m] = u[m] + t * c[m]
        kappa = respond(kind, shape, lam, at, e, h, r)
        slope = linear
        for m in range(size):
            slope -= e[m] * v[m]
        if step == 0:
            first = slope
        if slope > 0.0:
            low = t
            if t >= room:
                return room
        else:
            high = t
        if abs(slope) <= _SLOPE_SHARE * first or high - low <= 1e-16 * high:
            return t
        curvature = _curvature(v, c, e, h, r, kappa)
        moved = t + slope / curvature if curvature > 0.0 else high
        if moved >= high:
            moved = room if high == room else 0.5 * (low + high)
        elif moved <= low:
            moved = 0.5 * (low + high)
        t = moved
    return t


@compiled
def _slacks(y: Floats, e: Floats, G: Floats, slack: Floats) -> None:
    """Write ``y - sum_m e_m G_m``."""
    slack[:] = y
    for m in range(len(e)):
        if e[m] != 0.0:
            for k in range(len(y)):
                slack[k] -= e[m] * G[m, k]


@compiled
def _most_violating(
    beta: Floats, slack: Floats, lower: Floats, upper: Floats
) -> tuple[int, float, float]:
    """Return the variable of highest slack that may rise, its slack, and the lowest slack.

    The lowest slack is that of the variables that may fall; it is infinite where none may.
    """
    i, highest, lowest = -1, -np.inf, np.inf
    for k in range(len(beta)):
        if beta[k] < upper[k] and slack[k] > highest:
            i, highest = k, slack[k]
        if beta[k] > lower[k]:
            lowest = min(lowest, slack[k])
    return i, highest, lowest


@compiled
def _curvatures(
    row: Floats,
    points: Ints,
    diagonal: Floats,
    G: Floats,
    i: int,
    e: Floats,
    h: Floats,
    r: Floats,
    kappa: float,
    total: Floats,
    along: Floats,
) -> None:
    """Write the curvatures of the pairs of i with every point to `total`.

    `row` (M, n) holds the rows of i, `diagonal` (M, B) the diagonals of the kernels.
    """
    total[:], along[:] = 0.0, 0.0
    for m in range(len(e)):
        if e[m] != 0.0 or h[m] != 0.0:
            for k in range(len(points)):
                u = G[m, i] - G[m, k]
                c = diagonal[m, i] + diagonal[m, k] - 2.0 * row[m, points[k]]
                total[k] += e[m] * c + 2.0 * h[m] * u * u
                along[k] += r[m] * u
    for k in range(len(points)):
        total[k] += 2.0 * kappa * along[k] * along[k]


@compiled
def _partner(highest: float, slack: Floats, curvatures: Floats, beta: Floats, lower: Floats) -> int:
    """Return the variable of the largest second-order gain among those that may fall, or -1."""
    j, most = -1, -1.0
    for k in range(len(beta)):
        slope = highest - slack[k]
        if beta[k] > lower[k] and slope > 0.0:
            gain = slope * slope / max(curvatures[k], _CURVATURE_FLOOR * slope)
            if gain > most:
                j, most = k, gain
    return j


@compiled
def _parabolas(
    row: Floats,
    points: Ints,
    diagonal: Floats,
    G: Floats,
    i: int,
    j: int,
    u: Floats,
    c: Floats,
) -> None:
    """Write u and c of every kernel for the line of i and j; `row` (M, n) holds the rows of i."""
    for m in range(len(u)):
        u[m] = G[m, i] - G[m, j]
        c[m] = diagonal[m, i] + diagonal[m, j] - 2.0 * row[m, points[j]]


@compiled
def _diagonals(rows: Floats, slots: Ints, points: Ints) -> Floats:
    """Return the diagonals of the kernels at the points, (M, B)."""
    diagonals = np.empty((rows.shape[1], len(points)))
    for k in range(len(points)):
        diagonals[:, k] = rows[slots[k], :, points[k]]
    return diagonals


@compiled
def _move(
    i: int, j: int, t: float, beta: Floats, lower: Floats, upper: Floats, room: float
) -> None:
    """Move beta from j to i, exactly to a bound where the line ends there."""
    up, down = upper[i] - beta[i], beta[j] - lower[j]
    beta[i] = upper[i] if t >= room and up <= down else beta[i] + t
    beta[j] = lower[j] if t >= room and down <= up else beta[j] - t


@compiled
def _update_products(
    rows: Floats,
    slots: Ints,
    points: Ints,
    G: Floats,
    q: Floats,
    i: int,
    j: int,
    t: float,
    u: Floats,
    c: Floats,
) -> None:
    """Update q and G for beta's move by t along a pair's line."""
    for m in range(len(q)):
        q[m] = max(q[m] + t * (2.0 * u[m] + t * c[m]), 0.0)
        for k in range(len(points)):
            G[m, k] += t * (rows[slots[i], m, points[k]] - rows[slots[j], m, points[k]])


@compiled
def mkl_pair_updates(
    kind: int,
    shape: float,
    lam: float,
    rows: Floats,
    slots: Ints,
    points: Ints,
    G: Floats,
    q: Floats,
    beta: Floats,
    y: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    max_iter: int,
) -> int:
    """Improve `beta`, ``G = (K_m beta)`` and `q` in place over B cached points; return the updates.

    Parameters
    ----------
    kind, shape, lam
        The penalty's fields, see :class:`mkldist.methods.smooth_dual.dual_penalties.Penalty`.
    rows : (S, M, n) float64
        Rows of all kernels.
    slots, points : (B,) intp
        Position of the point's rows in `rows`, and its index among the n.
    G : (M, B) float64
        ``K_m beta`` at the points.
    q : (M,) float64
        ``beta' K_m beta``.
    beta, y, lower, upper : (B,) float64
        Variables, labels and bounds at the points.
    violation : float
        Largest difference of slacks ``y - sum_m e_m K_m beta`` at which to stop.
    max_iter : int
        Limit on updates.
    """
    size, count = len(q), len(beta)
    e, h, r = np.empty(size), np.empty(size), np.empty(size)
    u, c = np.empty(size), np.empty(size)
    slack, curvatures, along = np.empty(count), np.empty(count), np.empty(count)
    diagonal = _diagonals(rows, slots, points)
    for step in range(max_iter):
        kappa = respond(kind, shape, lam, q, e, h, r)
        _slacks(y, e, G, slack)
        i, highest, lowest = _most_violating(beta, slack, lower, upper)
        if i < 0 or highest - lowest <= violation:
            return step
        row = rows[slots[i]]
        _curvatures(row, points, diagonal, G, i, e, h, r, kappa, curvatures, along)
        j = _partner(highest, slack, curvatures, beta, lower)
        _parabolas(row, points, diagonal, G, i, j, u, c)
        room = min(upper[i] - beta[i], beta[j] - lower[j])
        t = line_maximum(kind, shape, lam, y[i] - y[j], q, u, c, room)
        if t <= 0.0:
            return step
        _move(i, j, t, beta, lower, upper, room)
        _update_products(rows, slots, points, G, q, i, j, t, u, c)
    return max_iter
