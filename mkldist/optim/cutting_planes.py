"""Cutting-plane model of a convex function on the simplex: its minimum and its level sets.

A cut is linear, so that its values at the vertices of the simplex determine it.  The model
``g(p) = max_j cut_j(p)`` is then the payoff of a matrix game.  The projection onto a level set,

    min_p 1/2 ||p - centre||^2   s.t.   payoff p <= level 1,  1'p = 1,  p >= 0,

has a dual with one multiplier for each cut, and few of them are positive.  For fixed multipliers w
the minimiser is the projection of ``centre - payoff' w`` onto the simplex.  So the dual function is
concave, piecewise quadratic and continuously differentiable, and a few semismooth Newton steps
maximise it.  Each solves a system of the size of the number of active cuts.

The matrix game ``min_p max_j (payoff p)_j`` over the simplex of columns is the linear programme

    min v  s.t.  payoff p <= v 1,  1'p = 1,  p >= 0,

whose dual is ``max v  s.t.  payoff' w >= v 1, 1'w = 1, w >= 0``.  A dual simplex method with warm
starts solves it.  The basis holds only the active rows R, those with w_j > 0, and as many columns
S, those with p_m > 0.  So a pivot costs the solution of a system of size |R| + 1 and one product of
|R| rows with all columns.  Rows of many sizes occur in practice, and a general solver, HiGHS, takes
over where the pivots break down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from mkldist.core.arrays import Floats, Ints
from mkldist.core.compiled import compiled
from mkldist.optim.weight_sets import project_shifted

_NEWTON_LIMIT = 60
_HALVINGS = 50
_CURVATURE_FLOOR = 1e-15  # of a cut's own


def nearest_below(
    payoff: Floats, centre: Floats, level: float, slack: float, start: Floats
) -> tuple[Floats | None, Floats]:
    """Project `centre` (M,) onto ``{p in simplex : payoff p <= level}``, payoff (J, M).

    The level is at least the model's minimum, `slack` the violation of an active cut that may
    remain, and `start` (J,) are multipliers to start from.  Returns the point, of sum one, and its
    multipliers; the point is None where ``payoff point <= level + slack`` was not reached.
    """
    multipliers = start
    gradient, point = project_shifted(payoff, centre, level, multipliers)
    for _ in range(_NEWTON_LIMIT):
        held = gradient[multipliers > 0.0]  # equations; the other cuts are inequalities
        if max(gradient.max(), -held.min(initial=0.0)) <= slack:
            break
        direction = _newton_direction(payoff, point, gradient, multipliers)
        slope = gradient @ direction
        if slope <= 0.0:
            break
        length = 1.0
        for _ in range(_HALVINGS):
            trial = np.maximum(multipliers + length * direction, 0.0)
            trial_gradient, trial_point = project_shifted(payoff, centre, level, trial)
            if trial_gradient @ direction >= -0.1 * slope:
                break
            length *= 0.5
        multipliers, gradient, point = trial, trial_gradient, trial_point
    total = float(point.sum())
    if gradient.max() <= slack and total > 0.0:
        return point / total, multipliers
    nothing = np.zeros_like(start)  # those of another problem may lead far away
    return nearest_below(payoff, centre, level, slack, nothing) if start.any() else (None, nothing)


def _newton_direction(
    payoff: Floats, point: Floats, gradient: Floats, multipliers: Floats
) -> Floats:
    """Return the step to the maximiser over multipliers >= 0 of the local quadratic model.

    Its Hessian on the free cuts is ``-A (I - 11'/|S|) A'`` with A the payoff on the support S.
    """
    free = np.flatnonzero((multipliers > 0.0) | (gradient > 0.0))
    rows = payoff[free][:, point > 0.0]
    rows -= rows[:, :1]  # a row that is constant becomes zero, not what rounding leaves of a mean
    rows -= rows.sum(axis=1)[:, None] / rows.shape[1]
    hessian = rows @ rows.T
    diagonal = hessian.reshape(-1)[:: len(free) + 1]
    trace = float(diagonal.sum())
    diagonal += 1e-14 * trace / len(free) if trace > 0.0 else 1.0
    current = multipliers[free]
    best = _nonnegative_minimiser(hessian, gradient[free] + hessian @ current, current)
    direction = np.zeros(len(multipliers))
    direction[free] = best - current
    return direction


def _nonnegative_minimiser(hessian: Floats, linear: Floats, start: Floats) -> Floats:
    """Minimise ``1/2 u'Hu - linear'u`` over u >= 0 by the active-set method of Lawson & Hanson.

    Elimination solves for the passive variables, those that may be positive.  Directions of no
    curvature up to rounding, as equal cuts have, get the least that counts.
    """
    u, passive = start.copy(), (start > 0.0).astype(np.intp)
    pull = 1e-12 * float(np.abs(linear).max(initial=0.0))
    _minimise(hessian, linear, pull, u, passive, np.empty_like(hessian), np.empty_like(linear))
    return u


@compiled(python_first=True)
def _minimise(  # noqa: C901, PLR0912  (numba compiles a callee anew in its caller)
    hessian: Floats,
    linear: Floats,
    smallest_pull: float,
    u: Floats,
    passive: Ints,
    left: Floats,
    target: Floats,
) -> None:
    """Move u, (n,), in place; `left` (n, n) and `target` (n,) are scratch."""
    n = len(linear)
    for _ in range(3 * n + 10):
        for a in range(n):
            target[a] = linear[a] if passive[a] else 0.0
            for b in range(n):
                left[a, b] = hessian[a, b] if passive[a] and passive[b] else 0.0
        for c in range(n):
            floor = _CURVATURE_FLOOR * hessian[c, c]  # also if not passive
            if left[c, c] < floor:
                left[c, c] = floor
            for a in range(c + 1, n):
                factor = left[a, c] / left[c, c]
                target[a] -= factor * target[c]
                for b in range(c + 1, n):
                    left[a, b] -= factor * left[c, b]
        for c in range(n - 1, -1, -1):
            for b in range(c + 1, n):
                target[c] -= left[c, b] * target[b]
            target[c] /= left[c, c]
        length, blocker = 1.0, -1
        for a in range(n):
            if passive[a] and target[a] <= 0.0:
                ratio = u[a] / (u[a] - target[a]) if u[a] > target[a] else 0.0
                if blocker < 0 or ratio < length:
                    length, blocker = ratio, a
        for a in range(n):
            if passive[a]:
                u[a] += length * (target[a] - u[a])
        if blocker >= 0:
            u[blocker], passive[blocker] = 0.0, 0
            continue
        entering, largest_pull = -1, smallest_pull
        for a in range(n):
            pull = linear[a]
            for b in range(n):
                pull -= hessian[a, b] * u[b]
            if not passive[a] and pull > largest_pull:
                entering, largest_pull = a, pull
        if entering < 0:
            break
        passive[entering] = 1


LEVEL = 0.8  # share of the upper bound in the level
LEVEL_SLACK = 1e-3  # violation of the level that may remain, of the distance of the bounds


class CuttingPlanes:
    """A bundle of cuts over the simplex of M variables, `size`."""

    def __init__(self, size: int) -> None:
        self._rows: Floats = np.empty((16, size))
        self._n_cuts = 0
        self._active: Ints = np.empty(0, dtype=np.intp)  # basis of the last game
        self._support: Ints = np.empty(0, dtype=np.intp)
        self._multipliers: Floats = np.empty(0)

    @property
    def payoff(self) -> Floats:
        """Values of the cuts at the vertices of the simplex, (J, M)."""
        return self._rows[: self._n_cuts]

    def add(self, height: float, slopes: Floats) -> None:
        """Add the cut ``height + slopes'p``, slopes (M,)."""
        if self._n_cuts == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        np.add(slopes, height, out=self._rows[self._n_cuts])
        self._n_cuts += 1
        self._multipliers = np.append(self._multipliers, 0.0)

    def widen(self, values: Floats) -> None:
        """Add K variables to the simplex, at whose vertices the cuts have `values` (J, K)."""
        wider = np.empty((len(self._rows), self._rows.shape[1] + values.shape[1]))
        wider[: self._n_cuts] = np.concatenate([self.payoff, values], axis=1)
        self._rows = wider

    def minimum(self) -> GameSolution:
        """Minimise the model over the simplex; the value is a lower bound of the function's."""
        solution = solve_game(self.payoff, self._active, self._support)
        self._active, self._support = solution.active, solution.support
        return solution

    def level_step(self, centre: Floats, upper: float, lower: float) -> Floats:
        """Return the next point of the Level method, the projection of `centre` onto a level set.

        Where rounding keeps the projection from that level, it is the model's minimiser.  `upper`
        and `lower` bound the function's minimum, the lower is at most the model's minimum.
        """
        level = LEVEL * upper + (1.0 - LEVEL) * lower
        point = self.project(centre, level, LEVEL_SLACK * (upper - lower))
        return self.minimum().columns if point is None else point

    def project(self, centre: Floats, level: float, slack: float) -> Floats | None:
        """Return the point of ``{p in simplex : g(p) <= level}`` nearest to `centre`, (M,).

        The level is at least the model's minimum, and may be violated by `slack`; None where it was
        not reached.
        """
        start = self._multipliers
        point, self._multipliers = nearest_below(self.payoff, centre, level, slack, start)
        return point


USUAL = (1e-8, 1e8)  # sizes of payoffs that are not scaled
_PIVOT_LIMIT = 1000
_WEIGHT_TOLERANCE = 1e-12
_PAYOFF_TOLERANCE = 64.0 * float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class GameSolution:
    """Both players' strategies, and a lower bound of the value."""

    bound: float  # ``min_m (w' payoff)_m``: a lower bound of the game's value in spite of rounding
    columns: Floats  # (M,), the minimiser p
    rows: Floats  # (J,), the maximiser w
    active: Ints  # (k,), the optimal basis, to start the next game with; empty when it is not known
    support: Ints


def solve_game(payoff: Floats, active: Ints, support: Ints) -> GameSolution:
    """Solve the game `payoff` (J, M) from a basis of a game like it, or anew if that does not fit.

    A basis `active`, `support` (k,), or empty, fits if the payoff is that game with further rows,
    or with further columns, and mostly if it is near such a game.
    """
    scale = _scale(payoff)
    scaled = payoff if scale == 1.0 else payoff / scale
    found = _from_basis(scaled, active, support) if _lies_in(payoff, active, support) else None
    if found is None:  # no basis, or one that does not fit
        best_reply = np.array([scaled[0].argmin()])
        found = _dual_simplex(scaled, np.zeros(1, dtype=np.intp), best_reply)
    if found is None:
        return _solve_by_general_solver(payoff)
    return found if scale == 1.0 else replace(found, bound=scale * found.bound)


def _lies_in(payoff: Floats, active: Ints, support: Ints) -> bool:
    """Return True if a basis is one of rows and columns of this game."""
    n_rows, n_columns = payoff.shape
    if not 0 < len(active) == len(support) <= min(n_rows, n_columns):
        return False
    return bool(active.max() < n_rows and support.max() < n_columns)


def _from_basis(payoff: Floats, active: Ints, support: Ints) -> GameSolution | None:
    """Solve a game with more rows than that of the basis, or with more columns; else return None.

    Further columns are further rows of the other player's game, whose payoff is ``-payoff'``.
    """
    found = _dual_simplex(payoff, active, support)
    if found is not None:
        return found
    other = _dual_simplex(np.ascontiguousarray(-payoff.T), support, active)
    if other is None:
        return None
    return _certified(payoff, other.rows, other.columns, other.support, other.active)


def _scale(payoff: Floats) -> float:
    """Return the power of two by which to divide payoffs, whose pivots have absolute tolerances.

    It is one for payoffs of usual size.
    """
    largest = max(float(payoff.max()), -float(payoff.min()))
    if largest == 0.0 or USUAL[0] <= largest <= USUAL[1]:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1])


def _solve_by_general_solver(payoff: Floats) -> GameSolution:
    """Solve a game on which the warm start broke down, by HiGHS."""
    n_rows, n_columns = payoff.shape
    scale = max(float(np.abs(payoff).max()), _TINY)
    result = scipy.optimize.linprog(
        np.r_[np.zeros(n_columns), 1.0],
        A_ub=np.column_stack([payoff / scale, -np.ones(n_rows)]),
        b_ub=np.zeros(n_rows),
        A_eq=np.r_[np.ones(n_columns), 0.0][None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * n_columns + [(None, None)],
        method="highs",
    )
    columns = np.maximum(np.asarray(result.x)[:-1], 0.0)
    rows = np.maximum(-np.asarray(result.ineqlin.marginals), 0.0)
    active, support = np.flatnonzero(rows), np.flatnonzero(columns)
    is_basis = len(active) == len(support)  # not of a degenerate solution
    none = np.empty(0, dtype=np.intp)
    return _certified(payoff, columns, rows, *((active, support) if is_basis else (none, none)))


def _certified(
    payoff: Floats, columns: Floats, rows: Floats, active: Ints, support: Ints
) -> GameSolution:
    """Normalise both strategies and evaluate the bound from the rows'."""
    rows = rows / rows.sum()
    bound = float((rows @ payoff).min())
    return GameSolution(bound, columns / columns.sum(), rows, active, support)


def _dual_simplex(payoff: Floats, active: Ints, support: Ints) -> GameSolution | None:
    """Pivot from a basis (R, S) to the optimum; return None if it does not fit or breaks down.

    On a basis ``payoff_RS p = v 1`` and ``payoff_RS' w = v 1``.  At each pivot a row above v
    enters or a column of negative p_m leaves.  The ratio test keeps the dual feasible, and v grows
    with every pivot.
    """
    n = min(payoff.shape) + 1  # equations of the largest basis
    primal, dual = np.empty((1, n)), np.empty((2, n))  # p and v; w and v, and their change
    scratch = np.empty((2, n, n)), np.empty((2, n)), np.empty(n, np.intp)
    for number in range(_PIVOT_LIMIT):
        if not _solve_basis(payoff, active, support, False, -1, -1, primal, *scratch):
            return None
        row, leaving = _infeasible(payoff, active, support, primal[0])
        if not _solve_basis(payoff, active, support, True, row, leaving, dual, *scratch):
            return None
        feasible, blocking_row, blocking_column = _blocking(payoff, active, support, dual, row)
        if number == 0 and not feasible:
            return None
        if row < 0 and leaving < 0:
            k, p, w = len(active), np.zeros(payoff.shape[1]), np.zeros(len(payoff))
            p[support] = np.maximum(primal[0, :k], 0.0)
            w[active] = np.maximum(dual[0, :k], 0.0)
            return _certified(payoff, p, w, active, support)
        if blocking_row < 0 and blocking_column < 0:
            return None
        active, support = _exchanged(active, support, row, leaving, blocking_row, blocking_column)
    return None


def _exchanged(
    active: Ints, support: Ints, row: int, leaving: int, blocking_row: int, blocking_column: int
) -> tuple[Ints, Ints]:
    """Return the basis after a pivot: `row` enters or `leaving` leaves, against what blocks."""
    if row >= 0 and blocking_column >= 0:
        return np.append(active, row), np.append(support, blocking_column)
    if row < 0 and blocking_column < 0:
        return (
            np.concatenate((active[:blocking_row], active[blocking_row + 1 :])),
            np.concatenate((support[:leaving], support[leaving + 1 :])),
        )
    active, support = active.copy(), support.copy()
    if row >= 0:
        active[blocking_row] = row
    else:
        support[leaving] = blocking_column
    return active, support


@compiled(python_first=True)
def _solve_basis(  # noqa: C901, PLR0912  (numba compiles a callee anew in its caller)
    payoff: Floats,
    active: Ints,
    support: Ints,
    transposed: bool,
    row: int,
    leaving: int,
    solutions: Floats,
    matrices: Floats,
    columns: Floats,
    order: Ints,
) -> bool:
    """Solve ``[[B, -1], [1', 0]] x = e`` for the payoff B of a basis, or its transpose.

    The last entry of e is 1, the others 0.  A second solution is the change of the first one as a
    row enters or a column leaves.

    Each row is divided by its largest absolute entry: these may differ by more than the range of
    digits.  One step of refinement keeps the residual so small that a column like one of the basis
    never seems to differ from it.

    `active` and `support` (k,) are the basis, `row` that which enters and `leaving` the position of
    the column that leaves, or -1.  `solutions` (q, n) are one or two, of k + 1 entries, and
    overwritten; scratch for at least k + 1 equations are `matrices` (2, n, n), `columns` (2, n) and
    `order` (n,).  Returns False if the system is singular, or v of the first solution NaN.
    """
    scaled, factors, sizes, rest = matrices[0], matrices[1], columns[0], columns[1]
    k, n = len(active), len(active) + 1
    for a in range(k):
        scaled[a, k], scaled[k, a] = -1.0, 1.0
        for s in range(k):
            if transposed:
                scaled[s, a] = payoff[active[a], support[s]]
            else:
                scaled[a, s] = payoff[active[a], support[s]]
    scaled[k, k] = 0.0
    for a in range(n):
        sizes[a] = 1.0
        for s in range(k):
            sizes[a] = max(sizes[a], abs(scaled[a, s]))
        for s in range(n):
            scaled[a, s] /= sizes[a]
            factors[a, s] = scaled[a, s]
    for c in range(n):  # LU factors by partial pivoting, rows exchanged in place
        largest = c
        for a in range(c + 1, n):
            if abs(factors[a, c]) > abs(factors[largest, c]):
                largest = a
        order[c] = largest
        if not abs(factors[largest, c]) > 0.0:
            return False
        for s in range(n):
            factors[c, s], factors[largest, s] = factors[largest, s], factors[c, s]
        for a in range(c + 1, n):
            factors[a, c] /= factors[c, c]
            for s in range(c + 1, n):
                factors[a, s] -= factors[a, c] * factors[c, s]
    for turn in range(2 * len(solutions)):  # each solution, then its refinement
        right = turn // 2
        for a in range(n):
            if right == 0:
                rest[a] = 1.0 if a == k else 0.0
            elif row >= 0:
                rest[a] = -1.0 if a == k else -payoff[row, support[a]]
            else:
                rest[a] = 1.0 if a == leaving else 0.0
            rest[a] /= sizes[a]
            if turn % 2 == 0:
                solutions[right, a] = 0.0
        for a in range(n):
            for s in range(n):
                rest[a] -= scaled[a, s] * solutions[right, s]
        for a in range(n):
            rest[a], rest[order[a]] = rest[order[a]], rest[a]
        for a in range(n):
            for s in range(a):
                rest[a] -= factors[a, s] * rest[s]
        for a in range(n - 1, -1, -1):
            for s in range(a + 1, n):
                rest[a] -= factors[a, s] * rest[s]
            rest[a] /= factors[a, a]
        for a in range(n):
            solutions[right, a] += rest[a]
    return not math.isnan(solutions[0, k])


@compiled(python_first=True)
def _infeasible(payoff: Floats, active: Ints, support: Ints, primal: Floats) -> tuple[int, int]:
    """Return the row that most exceeds v, and -1; or -1, and the position of a negative weight.

    `primal` is p on `support`, and v.  A row counts only if its excess is more than rounding of the
    row's own terms, because the sizes of rows may differ by more than the range of digits.  A
    weight counts if its effect on the rows, its size times that of its column, is more than
    rounding of the others'.  If none counts, -1 is returned twice.
    """
    k, v = len(support), primal[len(support)]
    worst, largest = -1, 0.0
    for j in range(len(payoff)):
        value, size = -v, abs(v)
        for s in range(k):
            term = payoff[j, support[s]] * primal[s]
            value += term
            size += abs(term)
        if value > largest and value > _PAYOFF_TOLERANCE * size:
            inside = False
            for a in range(k):
                inside = inside or active[a] == j
            if not inside:
                worst, largest = j, value
    if worst >= 0:
        return worst, -1
    leaving, least, strongest = -1, 0.0, 0.0
    for s in range(k):
        size = _TINY
        for a in range(k):
            size = max(size, abs(payoff[active[a], support[s]]))
        effect = primal[s] * size
        strongest = max(strongest, abs(effect))
        if effect < least:
            leaving, least = s, effect
    return -1, leaving if least < -_WEIGHT_TOLERANCE * strongest else -1


@compiled(python_first=True)
def _blocking(
    payoff: Floats, active: Ints, support: Ints, dual: Floats, row: int
) -> tuple[bool, int, int]:
    """Return whether the dual is feasible, and the entry that its change turns infeasible first.

    The entry is a position in w, and -1; or -1, and a column; or -1 twice if none does.  Of several
    at once, that of the largest change is the best pivot.  `dual` is w and v, and its change,
    (2, k + 1); the row that enters, or -1, has weight one in the change.
    """
    k, n_columns = len(active), payoff.shape[1]
    feasible, step, blocking_row, blocking_column, pivot = True, np.inf, -1, -1, 0.0
    for a in range(k):
        w, change = dual[0, a], dual[1, a]
        feasible = feasible and w >= -_WEIGHT_TOLERANCE
        if change < -_WEIGHT_TOLERANCE:
            ratio = max(w, 0.0) / -change
            if ratio < step or (ratio == step and -change > pivot):
                step, blocking_row, pivot = ratio, a, -change
    for m in range(n_columns):
        inside = False
        for s in range(k):
            inside = inside or support[s] == m
        if inside:
            continue  # w' payoff = v there, whatever w
        excess, size = -dual[0, k], abs(dual[0, k])
        entering = payoff[row, m] if row >= 0 else 0.0
        drift, drift_size = entering - dual[1, k], abs(entering) + abs(dual[1, k])
        for a in range(k):
            term, moved = dual[0, a] * payoff[active[a], m], dual[1, a] * payoff[active[a], m]
            excess += term
            size += abs(term)
            drift += moved
            drift_size += abs(moved)
        feasible = feasible and excess >= -_PAYOFF_TOLERANCE * size
        if drift < -_PAYOFF_TOLERANCE * drift_size:
            ratio = max(excess, 0.0) / -drift
            if ratio < step or (blocking_column >= 0 and ratio == step and -drift > pivot):
                step, blocking_row, blocking_column, pivot = ratio, -1, m, -drift
    return feasible, blocking_row, blocking_column
