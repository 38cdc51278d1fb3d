"""Quadratic programs over a box with one equality, the dual problem of support vector machines.

    max_beta  linear'beta - 1/2 beta' K beta   s.t.  lower <= beta <= upper,  1'beta = const

Sequential minimal optimisation with second-order working sets (Fan, Chen & Lin 2005) moves pairs
of variables, which keeps the sum.  Newton steps on the free variables then reach high accuracy.
Both work in place on a feasible point and its gradient.
"""

from __future__ import annotations

import numpy as np
import scipy

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled

FEW_ROWS = 32  # systems of up to so many rows are solved by loops
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

    A step solves ``[[K_FF, 1], [1', 0]] [d, b] = [slack_F, 0]`` for the free set F.  A tiny ridge
    keeps the system solvable for dependent columns; the exact line search makes every step an
    ascent in spite of it.

    Parameters
    ----------
    K, beta, slack, lower, upper
        As for :func:`pair_updates`; `beta` and `slack` are overwritten.
    limit : int
        Limit on steps.
    """
    for step in range(limit):
        free = np.flatnonzero((beta > lower) & (beta < upper))
        if len(free) < 2:
            return step
        direction = _newton_direction(K, free, slack[free])
        if direction is None:
            return step
        f_change = direction @ K[free]  # K is symmetric
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


def _newton_direction(K: Floats, free: Ints, residual: Floats) -> Floats | None:
    """Return the Newton direction on the free variables, summing to zero, or None.

    Parameters
    ----------
    K : (n, n) float64
        Symmetric positive semi-definite matrix.
    free : (s,) intp
        Indices of the free variables, at least two.
    residual : (s,) float64
        Gradient on them.

    Returns
    -------
    (s,) float64 or None
        None when the matrix is not positive definite on them up to rounding.
    """
    block = K[free[:, None], free]
    block.flat[:: len(free) + 1] += max(_CURVATURE_FLOOR * float(block.trace()) / len(free), _TINY)
    solved = _solved(block, np.stack([residual, np.ones(len(free))], axis=1))
    if solved is None:
        return None
    with np.errstate(all="ignore"):
        direction = solved[:, 0] - solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum())
        centred: Floats = direction - direction.mean()
    return centred if np.isfinite(centred).all() else None


def _solved(matrix: Floats, rights: Floats) -> Floats | None:
    """Return the solutions (s, k) of a symmetric system; None if it is not positive definite.

    Small systems are left to loops: they are as fast, and the import of LAPACK's wrappers takes a
    fifth of a second.

    Parameters
    ----------
    matrix : (s, s) float64
        The matrix, which is overwritten.
    rights : (s, k) float64
        The right sides.
    """
    if len(matrix) > FEW_ROWS:
        _, solutions, info = scipy.linalg.lapack.dposv(matrix.T, rights, overwrite_a=True)
        return None if info else solutions
    system = np.concatenate([matrix, rights], axis=1)
    return system[:, len(matrix) :] if solve_by_loops(system) else None


@compiled
def solve_by_loops(system: Floats) -> bool:
    """Solve a symmetric positive definite system by Cholesky's factorisation ``R'R``, in place.

    Parameters
    ----------
    system : (s, s + k) float64
        The matrix, whose upper triangle is overwritten by R, and right sides, which are
        overwritten by the solutions.

    Returns
    -------
    bool
        False if a pivot is not positive: the matrix is not positive definite up to rounding.
    """
    s, width = system.shape
    for k in range(s):
        if not system[k, k] > 0.0:
            return False
        pivot = np.sqrt(system[k, k])
        for j in range(k, width):
            system[k, j] /= pivot
        for i in range(k + 1, s):
            factor = system[k, i]
            for j in range(i, width):
                system[i, j] -= factor * system[k, j]
    for k in range(s - 1, -1, -1):
        for r in range(s, width):
            for j in range(k + 1, s):
                system[k, r] -= system[k, j] * system[j, r]
            system[k, r] /= system[k, k]
    return True
