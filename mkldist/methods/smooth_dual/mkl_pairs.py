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
from mkldist.methods.smooth_dual.dual_penalties import Penalty, respond

_CURVATURE_FLOOR = 1e-14  # of the curvature, so that a flat line goes to its end
_SEARCH_STEPS = 100
_SLOPE_SHARE = 1e-8  # of the slope at the start that the search on a line may leave

# Rows of the scratch of kernels: the response of the penalty and the parabolas of a pair; below
# them a point of its line, and the response there.
E, H, R, U, C, AT, E_LINE, H_LINE, R_LINE, WORK = range(10)
SLACK, BEND, ALONG = range(3)  # rows of the scratch of points


def line_maximum(
    penalty: Penalty, linear: float, q: Floats, u: Floats, c: Floats, room: float
) -> float:
    """Return the t in [0, room] that maximises ``linear t - Psi(q + 2 u t + c t^2)``.

    Parameters
    ----------
    penalty : Penalty
        Psi.
    linear : float
        Slope of the linear part.
    q, u, c : (M,) float64
        Coefficients of the parabolas.
    room : float
        Length of the line.
    """
    work = np.empty((WORK, len(q)))
    work[U], work[C] = u, c
    return _line_maximum(penalty.kind, penalty.shape, penalty.lam, linear, q, room, work)


def mkl_pair_updates(
    penalty: Penalty,
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
    penalty : Penalty
        Psi.
    rows : (S, M, n) float64
        Rows of all kernels.
    slots, points : (B,) intp
        Position of the point's rows in `rows`, and its index among the n.
    G : (M, B) float64
        ``K_m beta`` at the points, C-contiguous.
    q : (M,) float64
        ``beta' K_m beta``.
    beta, y, lower, upper : (B,) float64
        Variables, labels and bounds at the points.
    violation : float
        Largest difference of slacks ``y - sum_m e_m K_m beta`` at which to stop.
    max_iter : int
        Limit on updates.
    """
    diagonal = np.ascontiguousarray(rows[slots, :, points].T)
    of_kernels, of_points = np.empty((WORK, len(q))), np.empty((3, len(beta)))
    return _update_pairs(
        penalty.kind, penalty.shape, penalty.lam, rows, slots, points, diagonal, G, q, beta, y,
        lower, upper, violation, max_iter, of_kernels, of_points,
    )  # fmt: skip


@compiled
def _line_maximum(
    kind: int, shape: float, lam: float, linear: float, q: Floats, room: float, work: Floats
) -> float:
    """Return the maximum on the line of the parabolas u and c in `work`.

    Newton's method on the slope, within a bracket that each evaluation narrows.
    """
    u, c, at, e, h, r = work[U], work[C], work[AT], work[E_LINE], work[H_LINE], work[R_LINE]
    low, high, t, first = 0.0, room, 0.0, 0.0
    for step in range(_SEARCH_STEPS):
        for m in range(len(q)):
            at[m] = max(q[m] + t * (2.0 * u[m] + t * c[m]), 0.0)
        kappa = respond(kind, shape, lam, at, e, h, r)
        slope, bend, along = linear, 0.0, 0.0
        for m in range(len(q)):
            v = u[m] + t * c[m]
            slope -= e[m] * v
            bend += e[m] * c[m] + 2.0 * h[m] * v * v
            along += r[m] * v
        if step == 0:
            first = slope
        if slope > 0.0 and t >= room:
            return room
        low, high = (t, high) if slope > 0.0 else (low, t)
        if abs(slope) <= _SLOPE_SHARE * first or high - low <= 1e-16 * high:
            return t
        bend += 2.0 * kappa * along * along
        moved = t + slope / bend if bend > 0.0 else high
        if moved >= high:
            moved = room if high == room else 0.5 * (low + high)
        elif moved <= low:
            moved = 0.5 * (low + high)
        t = moved
    return t


@compiled
def _most_violating(
    y: Floats, e: Floats, G: Floats, beta: Floats, lower: Floats, upper: Floats, slack: Floats
) -> tuple[int, float]:
    """Write the slacks ``y - sum_m e_m G_m``; return the variable of highest slack that may rise.

    The second result is how much its slack exceeds the lowest of the variables that may fall; it is
    infinite where none may.
    """
    for k in range(len(y)):
        slack[k] = y[k]
    for m in range(len(e)):
        if e[m] != 0.0:
            for k in range(len(y)):
                slack[k] -= e[m] * G[m, k]
    i, highest, lowest = -1, -np.inf, np.inf
    for k in range(len(y)):
        if beta[k] < upper[k] and slack[k] > highest:
            i, highest = k, slack[k]
        if beta[k] > lower[k]:
            lowest = min(lowest, slack[k])
    return i, highest - lowest


@compiled
def _partner(
    i: int,
    rows: Floats,
    slots: Ints,
    points: Ints,
    diagonal: Floats,
    G: Floats,
    beta: Floats,
    lower: Floats,
    kappa: float,
    of_kernels: Floats,
    of_points: Floats,
) -> int:
    """Return the variable of the largest second-order gain among those that may fall, or -1.

    Parameters
    ----------
    diagonal : (M, B) float64
        Diagonals of the kernels at the points.
    of_kernels : (WORK, M) float64
        With the response of the penalty.
    of_points : (3, B) float64
        With the slacks.
    """
    e, h, r = of_kernels[E], of_kernels[H], of_kernels[R]
    slack, bend, along = of_points[SLACK], of_points[BEND], of_points[ALONG]
    for k in range(len(beta)):
        bend[k], along[k] = 0.0, 0.0
    for m in range(len(e)):
        if e[m] != 0.0 or h[m] != 0.0:
            row, own = rows[slots[i], m], diagonal[m, i]
            for k in range(len(beta)):
                u = G[m, i] - G[m, k]
                c = own + diagonal[m, k] - 2.0 * row[points[k]]
                bend[k] += e[m] * c + 2.0 * h[m] * u * u
                along[k] += r[m] * u
    j, most = -1, -1.0
    for k in range(len(beta)):
        slope = slack[i] - slack[k]
        if beta[k] > lower[k] and slope > 0.0:
            curvature = bend[k] + 2.0 * kappa * along[k] * along[k]
            gain = slope * slope / max(curvature, _CURVATURE_FLOOR * slope)
            if gain > most:
                j, most = k, gain
    return j


@compiled
def _update_pairs(
    kind: int,
    shape: float,
    lam: float,
    rows: Floats,
    slots: Ints,
    points: Ints,
    diagonal: Floats,
    G: Floats,
    q: Floats,
    beta: Floats,
    y: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    max_iter: int,
    of_kernels: Floats,
    of_points: Floats,
) -> int:
    """See :func:`mkl_pair_updates`."""
    e, h, r, u, c = of_kernels[E], of_kernels[H], of_kernels[R], of_kernels[U], of_kernels[C]
    for step in range(max_iter):
        kappa = respond(kind, shape, lam, q, e, h, r)
        i, excess = _most_violating(y, e, G, beta, lower, upper, of_points[SLACK])
        if i < 0 or excess <= violation:
            return step
        j = _partner(i, rows, slots, points, diagonal, G, beta, lower, kappa, of_kernels, of_points)
        for m in range(len(q)):
            u[m] = G[m, i] - G[m, j]
            c[m] = diagonal[m, i] + diagonal[m, j] - 2.0 * rows[slots[i], m, points[j]]
        up, down = upper[i] - beta[i], beta[j] - lower[j]
        room = min(up, down)
        t = _line_maximum(kind, shape, lam, y[i] - y[j], q, room, of_kernels)
        if t <= 0.0:
            return step
        # Exactly to a bound where the line ends there.
        beta[i] = upper[i] if t >= room and up <= down else beta[i] + t
        beta[j] = lower[j] if t >= room and down <= up else beta[j] - t
        for m in range(len(q)):
            q[m] = max(q[m] + t * (2.0 * u[m] + t * c[m]), 0.0)
            rising, falling = rows[slots[i], m], rows[slots[j], m]
            for k in range(len(points)):
                G[m, k] += t * (rising[points[k]] - falling[points[k]])
    return max_iter
