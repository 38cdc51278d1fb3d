"""Quadratic programs over a box with one equality, the dual problem of support vector machines.

    max_beta  linear'beta - 1/2 beta' K beta   s.t.  lower <= beta <= upper,  1'beta = const

Sequential minimal optimisation with second-order working sets (Fan, Chen & Lin 2005) moves pairs
of variables, which keeps the sum.  Newton steps on the free variables then reach high accuracy.
Both work in place on a feasible point and its gradient.

Of an operator K only a block at a time is multiplied out.  Each step optimises the block of
variables that violate the optimality conditions most, with the others fixed (Joachims 1999, "Making
large-scale SVM learning practical", Section 11.2).  The pair of the largest violation is in the
block, so that the steps converge (Lin 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.compiled import compiled
from mkldist.core.threads import single_threaded
from mkldist.optim.factored_matrix import SymmetricOperator

FEW_ROWS = 32  # systems of up to so many rows are solved by loops
MANY_ROWS = 200  # from so many rows on a factorisation costs more than its update
MOST_LEFT = 0.2  # share of the variables that leave before the others are factorised again
ACCURATE = 1e-4  # error of a direction, relative to the residual, that an update may have
WORSE = 10.0  # times the error without updates, that it may have where rounding permits no less
MOST_REFUSED = 2  # updates in a row, after which each set is factorised
FLOOR = 1e-12  # ridge, relative to the mean of the diagonal
TINY = float(np.finfo(np.float64).tiny)


class _Factor(NamedTuple):
    """Factor of a free set, and solutions with it.

    They are the set, the ridge, the Cholesky factor as LAPACK returns it, the solution of ones, the
    places of variables that have left, and the solutions (s, j) of their unit vectors.
    """

    free: Ints
    ridge: float
    factor: Floats
    of_ones: Floats
    left: Ints
    of_left: Floats


@dataclass(eq=False)
class FreeSystem:
    """Newton directions on free sets that shrink, of a positive semi-definite matrix `K` (n, n)."""

    K: Floats
    _factor: _Factor | None = None
    _error: float = 0.0
    _refused: int = 0  # updates in a row that were not accurate

    def direction(self, free: Ints, residual: Floats) -> Floats | None:
        """Return the direction (s,) on some variables, which sums to zero.

        `free` (s,) are at least two, ascending, some of those of the call before; `residual` (s,)
        is the gradient there.  None where K is not positive definite on them up to rounding.
        """
        if len(free) < MANY_ROWS:
            self._factor = None
            return self._by_one_system(free, residual)
        known = self._factor
        many_left = known is not None and len(free) < (1.0 - MOST_LEFT) * len(known.free)
        if known is None or many_left or self._refused == MOST_REFUSED:
            known = self._factor = self._factorised(free)
        return None if known is None else self._updated(known, free, residual)

    def renew(self, direction: Floats, change: Floats, residual: Floats) -> bool:
        """Return True if the last direction is not accurate, and forget the factor it came from.

        Its error is compared with that of the first direction by the factor, which is as accurate
        as rounding permits.  `change` is its product with K on the free variables, all (s,).
        """
        if self._factor is None:
            return False
        rest = residual - change - self._factor.ridge * direction
        error = float(np.ptp(rest)) / max(float(np.ptp(residual)), TINY)
        if not len(self._factor.left):
            self._error = error
            return False
        accurate = error <= max(ACCURATE, WORSE * self._error)
        self._refused = 0 if accurate else self._refused + 1
        if not accurate:
            self._factor = None
        return not accurate

    def _with_ridge(self, free: Ints) -> tuple[Floats, float]:
        """Return K on the free variables with a ridge, (s, s), and the ridge."""
        block = self.K[free[:, None], free]
        ridge = max(FLOOR * float(block.trace()) / len(free), TINY)
        block.flat[:: len(free) + 1] += ridge
        return block, ridge

    def _by_one_system(self, free: Ints, residual: Floats) -> Floats | None:
        rights = np.stack([residual, np.ones(len(free))], axis=1)
        solved = _solved(self._with_ridge(free)[0], rights)
        return None if solved is None else _sum_zero(solved[:, 0], solved[:, 1])

    def _factorised(self, free: Ints) -> _Factor | None:
        """Return the factor of a free set; None if K is not positive definite on it."""
        block, ridge = self._with_ridge(free)
        factor, info = scipy.linalg.lapack.dpotrf(block.T, overwrite_a=True)
        if info:
            return None
        of_ones, _ = scipy.linalg.lapack.dpotrs(factor, np.ones(len(free)))
        none = np.zeros(0, dtype=np.intp)
        return _Factor(free, ridge, factor, of_ones, none, np.zeros((len(free), 0)))

    def _updated(self, known: _Factor, free: Ints, residual: Floats) -> Floats | None:
        """Return the direction by a factor of a set that has all of the free variables."""
        stay: Bools = np.isin(known.free, free, assume_unique=True)
        right = np.zeros(len(known.free))
        right[stay] = residual
        gone = np.flatnonzero(~stay)
        new = np.setdiff1d(gone, known.left, assume_unique=True)
        rights = np.zeros((len(right), 1 + len(new)), order="F")
        rights[:, 0] = right
        rights[new, 1 + np.arange(len(new))] = 1.0
        solved, _ = scipy.linalg.lapack.dpotrs(known.factor, rights, overwrite_b=True)
        left, of_left = np.append(known.left, new), np.hstack([known.of_left, solved[:, 1:]])
        self._factor = known._replace(left=left, of_left=of_left)
        pair = np.stack([solved[:, 0], known.of_ones], axis=1)
        if len(left):
            multipliers = _solved(of_left[left], pair[left])
            if multipliers is None:  # the update is not accurate at all
                self._factor = self._factorised(free)
                return None if self._factor is None else self._updated(self._factor, free, residual)
            pair -= of_left @ multipliers
        return _sum_zero(pair[stay, 0], pair[stay, 1])


def _sum_zero(solution: Floats, of_ones: Floats) -> Floats | None:
    """Return the direction that sums to zero; None if it is not finite."""
    with np.errstate(all="ignore"):
        direction = solution - of_ones * (solution.sum() / of_ones.sum())
        centred: Floats = direction - direction.mean()
    return centred if np.isfinite(centred).all() else None


def _solved(matrix: Floats, rights: Floats) -> Floats | None:
    """Return the solutions (s, k) of a symmetric system; None if it is not positive definite.

    The matrix is overwritten.  Small systems are left to loops: they are as fast, and the import of
    LAPACK's wrappers takes a fifth of a second.
    """
    if len(matrix) > FEW_ROWS:
        _, solutions, info = scipy.linalg.lapack.dposv(matrix.T, rights, overwrite_a=True)
        return None if info else solutions
    system = np.concatenate([matrix, rights], axis=1)
    return system[:, len(matrix) :] if solve_by_loops(system) else None


@compiled
def solve_by_loops(system: Floats) -> bool:
    """Solve a symmetric positive definite system by Cholesky's factorisation ``R'R``, in place.

    `system` (s, s + k) is the matrix, whose upper triangle is overwritten by R, and right sides,
    which are overwritten by the solutions.  Returns False where a pivot is not positive.
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


STEP_COST = 200  # a step on s of n variables takes as long as s^3 / 200 n pair updates
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
    `K` (n, n) is C-contiguous; bounds (n,) may be infinite; `violation` is the difference of slacks
    at which to stop.
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


def updates_of_step(beta: Floats, lower: Floats, upper: Floats) -> int:
    """Return the number of pair updates that take as long as a Newton step."""
    free = int(np.count_nonzero((beta > lower) & (beta < upper)))
    return free**3 // (STEP_COST * len(beta))


def newton_steps(
    K: Floats, beta: Floats, slack: Floats, lower: Floats, upper: Floats, limit: int = 25
) -> int:
    """Maximise over the free variables by Newton steps that stop at the box; return the steps.

    A step solves a Newton system on the free set (:class:`FreeSystem`); the exact line search makes
    it an ascent whatever the ridge of the system.  `beta` and `slack` (n,) are overwritten.
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
    beta: Floats, free: Ints, direction: Floats, lower: Floats, upper: Floats, length: float
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


BLOCK = 1500  # variables optimised at once, or more where more lie between their bounds
LARGEST = 4000  # block, of which the matrix takes 128 megabytes
MOST_BLOCKS = 500  # of one call
SHARE = 0.1  # of the violation that a block starts with and may keep
MANY_FREE = 500  # variables between their bounds, whose systems threads solve sooner
UPDATES_EACH = 50  # most pair updates of a block, for each of its variables


def block_ascent(
    K: SymmetricOperator,
    beta: Floats,
    slack: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    enough: Callable[[Floats, Floats], bool],
) -> tuple[int, int]:
    """Improve `beta` and ``slack = linear - K beta`` in place; return pair updates, Newton steps.

    `beta` (n,) is feasible; `violation` is the difference of slacks at which to stop; `enough`
    takes beta and slack, and returns True if the point will do.
    """
    updates = steps = 0
    diagonal = K.diagonal
    for _ in range(MOST_BLOCKS):
        rising, falling = beta < upper, beta > lower
        if not rising.any() or not falling.any():
            break
        violated = float(slack[rising].max() - slack[falling].min())
        if violated <= violation or enough(beta, slack):
            break
        points = _most_violating(slack, rising, falling)
        part, left, bounds = beta[points], slack[points], (lower[points], upper[points])
        of_block, kept = K.block(points), max(violation, SHARE * violated)
        most = UPDATES_EACH * len(points)
        updates += int(pair_updates(of_block, diagonal[points], part, left, *bounds, kept, most))
        steps += _newton_steps(of_block, part, left, *bounds)
        change = np.zeros(len(beta))
        change[points] = part - beta[points]
        if not change.any():
            break
        beta[points] = part
        slack -= K @ change
    return updates, steps


def _newton_steps(K: Floats, beta: Floats, slack: Floats, lower: Floats, upper: Floats) -> int:
    """Take Newton steps on a block; on few free variables by one thread of linear algebra.

    Their systems are solved in less time than threads take to synchronise.
    """
    few = np.count_nonzero((beta > lower) & (beta < upper)) < MANY_FREE
    with single_threaded() if few else nullcontext():
        return newton_steps(K, beta, slack, lower, upper)


def _most_violating(slack: Floats, rising: Bools, falling: Bools) -> Ints:
    """Return the block, at most half of which are variables between their bounds.

    The others are those of the largest slacks that may rise and of the least that may fall.  A
    block without the variables in between would only move the violation to them.
    """
    n = len(slack)
    if n <= BLOCK:
        return np.arange(n)
    free = np.flatnonzero(rising & falling)
    size = min(max(BLOCK, 2 * len(free)), LARGEST)
    middle = 0.5 * (slack[rising].max() + slack[falling].min())
    free = free[np.argsort(-np.abs(slack[free] - middle), kind="stable")[: size // 2]]
    each = (size - len(free)) // 2
    up = np.argsort(np.where(rising, -slack, np.inf), kind="stable")[:each]
    down = np.argsort(np.where(falling, slack, np.inf), kind="stable")[:each]
    return np.unique(np.concatenate([free, up[rising[up]], down[falling[down]]]))
