"""Solution of a matrix game with few active rows, by a dual simplex method with warm starts.

Solves ``min_p max_j (payoff p)_j`` over the simplex of columns, i.e. the linear programme

    min v  s.t.  payoff p <= v 1,  1'p = 1,  p >= 0,

whose dual is ``max v  s.t.  payoff' w >= v 1, 1'w = 1, w >= 0``.  The basis holds only the active
rows R, those with w_j > 0, and as many columns S, those with p_m > 0.  So a pivot costs the
solution of a system of size |R| + 1 and one product of |R| rows with all columns.  Rows of many
sizes occur in practice, and a general solver, HiGHS, takes over where the pivots break down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import scipy

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled

Numbers = TypeVar("Numbers", Floats, Ints)

USUAL = (1e-8, 1e8)  # sizes of payoffs that are not scaled
_PIVOT_LIMIT = 1000
_WEIGHT_TOLERANCE = 1e-12
_PAYOFF_TOLERANCE = 64.0 * float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class GameSolution:
    """Both players' strategies, and a lower bound of the value.

    Parameters
    ----------
    bound : float
        ``min_m (w' payoff)_m``: a lower bound of the game's value in spite of rounding.
    columns : (M,) float64
        The minimiser p.
    rows : (J,) float64
        The maximiser w.
    active, support : (k,) intp
        The optimal basis, to start the next game with; empty when it is not known.
    """

    bound: float
    columns: Floats
    rows: Floats
    active: Ints
    support: Ints


def solve_game(payoff: Floats, active: Ints, support: Ints) -> GameSolution:
    """Solve the game from a basis of a game like it, or anew where the basis does not fit.

    Parameters
    ----------
    payoff : (J, M) float64
        Payoff of row j against column m.
    active, support : (k,) intp
        Optimal basis of an earlier game, or empty.  It fits if `payoff` begins with the rows of
        that game, and mostly if it begins with rows near these.

    Returns
    -------
    GameSolution
    """
    scale = _scale(payoff)
    scaled = payoff if scale == 1.0 else payoff / scale
    found = _dual_simplex(scaled, active, support) if len(active) else None
    if found is None:  # no basis, or one that does not fit
        best_reply = np.array([scaled[0].argmin()])
        found = _dual_simplex(scaled, np.zeros(1, dtype=np.intp), best_reply)
    if found is None:
        return _solve_by_general_solver(payoff)
    return found if scale == 1.0 else replace(found, bound=scale * found.bound)


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
    none = np.empty(0, dtype=np.intp)
    columns = np.maximum(np.asarray(result.x)[:-1], 0.0)
    rows = np.maximum(-np.asarray(result.ineqlin.marginals), 0.0)
    return _certified(payoff, columns, rows, none, none)


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
    for number in range(_PIVOT_LIMIT):
        k = len(active)
        primal_system = _System.of(payoff, active, support, False)
        dual_system = _System.of(payoff, active, support, True)
        if primal_system is None or dual_system is None:
            return None
        unit = _unit(k + 1, k)
        primal, dual = _solved(*primal_system, unit), _solved(*dual_system, unit)
        p, w = primal[:k], dual[:k]
        excess, size = _excess(payoff, active, support, dual)
        if number == 0 and not _feasible(w, excess, size):
            return None
        row = _worst_row(payoff, active, support, primal)
        leaving = _negative_weight(payoff[active][:, support], p) if row < 0 else -1
        if row < 0 and leaving < 0:
            columns, rows = np.zeros(payoff.shape[1]), np.zeros(len(payoff))
            columns[support] = np.maximum(p, 0.0)
            rows[active] = np.maximum(w, 0.0)
            return _certified(payoff, columns, rows, active, support)
        right = _with(-payoff[row, support], -1.0) if row >= 0 else _unit(k + 1, leaving)
        change = _solved(*dual_system, right)
        drift, size = _excess(payoff, active, support, change)
        if row >= 0:
            drift += payoff[row]
            size += np.abs(payoff[row])
            drift[support] = 0.0
        blocking_row, blocking_column = _ratio_test(w, change, excess, drift, size)
        if blocking_row < 0 and blocking_column < 0:
            return None
        if row >= 0 and blocking_column >= 0:
            active, support = _with(active, row), _with(support, blocking_column)
        elif row >= 0:
            active = _with(active, row, blocking_row)
        elif blocking_column >= 0:
            support = _with(support, blocking_column, leaving)
        else:
            active, support = _without(active, blocking_row), _without(support, leaving)
    return None


def _unit(size: int, position: int) -> Floats:
    """Return the unit vector of this size with its one at `position`."""
    unit = np.zeros(size)
    unit[position] = 1.0
    return unit


def _with(values: Numbers, value: float, position: int | None = None) -> Numbers:
    """Return `values` with another one at `position`, or at the end."""
    size = len(values)
    changed = np.empty(size + (position is None), values.dtype)
    changed[:size] = values
    changed[size if position is None else position] = value
    return changed


def _without(indices: Ints, position: int) -> Ints:
    """Return `indices` without the one at `position`."""
    return np.concatenate((indices[:position], indices[position + 1 :]))


class _System(NamedTuple):
    """``[[B, -1], [1', 0]]`` for the payoff B of a basis, or its transpose, and its LU factors.

    Parameters
    ----------
    scaled, factors : (k + 1, k + 1) float64
        The system, each row divided by its size, and its factors.
    order : (k + 1,) intp
        Which row was exchanged with each.
    sizes : (k + 1,) float64
        Largest absolute entries of the rows, which may differ by more than the range of digits.
    """

    scaled: Floats
    factors: Floats
    order: Ints
    sizes: Floats

    @classmethod
    def of(cls, payoff: Floats, active: Ints, support: Ints, transposed: bool) -> _System | None:
        """Return the factorised system of a basis; None if it is singular."""
        n = len(active) + 1
        system = cls(np.empty((n, n)), np.empty((n, n)), np.empty(n, np.intp), np.empty(n))
        scaled, factors, order, sizes = system
        _write_system(payoff, active, support, transposed, scaled, factors, sizes)
        return system if _factorise(factors, order) else None


@compiled
def _write_system(
    payoff: Floats,
    active: Ints,
    support: Ints,
    transposed: bool,
    scaled: Floats,
    copy: Floats,
    sizes: Floats,
) -> None:
    """Write the scaled matrix of a :class:`_System`, twice, and the sizes of its rows."""
    k = len(active)
    for a in range(k):
        scaled[a, k], scaled[k, a] = -1.0, 1.0
        for s in range(k):
            if transposed:
                scaled[s, a] = payoff[active[a], support[s]]
            else:
                scaled[a, s] = payoff[active[a], support[s]]
    scaled[k, k] = 0.0
    for a in range(k + 1):
        sizes[a] = 1.0
        for s in range(k):
            sizes[a] = max(sizes[a], abs(scaled[a, s]))
        for s in range(k + 1):
            scaled[a, s] /= sizes[a]
            copy[a, s] = scaled[a, s]


@compiled
def _factorise(matrix: Floats, order: Ints) -> bool:
    """Overwrite a matrix by its LU factors; return False if it is singular.

    `order` becomes the row that was exchanged with each, by partial pivoting.
    """
    n = len(order)
    for c in range(n):
        largest = c
        for a in range(c + 1, n):
            if abs(matrix[a, c]) > abs(matrix[largest, c]):
                largest = a
        order[c] = largest
        if not abs(matrix[largest, c]) > 0.0:
            return False
        for s in range(n):
            matrix[c, s], matrix[largest, s] = matrix[largest, s], matrix[c, s]
        for a in range(c + 1, n):
            matrix[a, c] /= matrix[c, c]
            for s in range(c + 1, n):
                matrix[a, s] -= matrix[a, c] * matrix[c, s]
    return True


@compiled
def _solved(scaled: Floats, factors: Floats, order: Ints, sizes: Floats, right: Floats) -> Floats:
    """Solve a factorised system.

    One step of refinement keeps the residual so small that a column like one of the basis never
    seems to differ from it.
    """
    n = len(right)
    solution, residual = np.empty(n), np.empty(n)
    for a in range(n):
        solution[a] = 0.0
    for _ in range(2):
        for a in range(n):
            residual[a] = right[a] / sizes[a]
            for s in range(n):
                residual[a] -= scaled[a, s] * solution[s]
        for a in range(n):
            residual[a], residual[order[a]] = residual[order[a]], residual[a]
        for a in range(n):
            for s in range(a):
                residual[a] -= factors[a, s] * residual[s]
        for a in range(n - 1, -1, -1):
            for s in range(a + 1, n):
                residual[a] -= factors[a, s] * residual[s]
            residual[a] /= factors[a, a]
            solution[a] += residual[a]
    return solution


@compiled
def _excess(payoff: Floats, active: Ints, support: Ints, solution: Floats) -> tuple[Floats, Floats]:
    """Return ``payoff_R' w - v 1``, (M,), and the sum of its terms' sizes, for rounding errors.

    `solution` is w and v.  The excess is zero on the support.
    """
    k, n_columns = len(active), payoff.shape[1]
    v = solution[k]
    excess, size = np.empty(n_columns), np.empty(n_columns)
    for m in range(n_columns):
        excess[m], size[m] = -v, abs(v)
    for a in range(k):
        for m in range(n_columns):
            term = solution[a] * payoff[active[a], m]
            excess[m] += term
            size[m] += abs(term)
    for s in range(k):
        excess[support[s]] = 0.0
    return excess, size


def _feasible(w: Floats, excess: Floats, size: Floats) -> bool:
    """Return whether no weight and no excess is negative beyond rounding."""
    return bool(w.min() >= -_WEIGHT_TOLERANCE and (excess >= -_PAYOFF_TOLERANCE * size).all())


@compiled
def _worst_row(payoff: Floats, active: Ints, support: Ints, solution: Floats) -> int:
    """Return the row that most exceeds v at the weights p on `support`, or -1.

    `solution` is p and v.  A row counts only if its excess is more than rounding of the row's own
    terms, because the sizes of rows may differ by more than the range of digits.
    """
    v = solution[len(support)]
    worst, largest = -1, 0.0
    for j in range(len(payoff)):
        value, size = -v, abs(v)
        for s in range(len(support)):
            term = payoff[j, support[s]] * solution[s]
            value += term
            size += abs(term)
        if value > largest and value > _PAYOFF_TOLERANCE * size:
            inside = False
            for a in range(len(active)):
                inside = inside or active[a] == j
            if not inside:
                worst, largest = j, value
    return worst


def _negative_weight(block: Floats, p: Floats) -> int:
    """Return the position of the weight that is negative beyond rounding, or -1.

    The effect of a weight on the rows, its size times that of its column, is held to rounding.
    """
    effects = p * np.maximum(np.abs(block).max(axis=0), _TINY)
    leaving = int(effects.argmin())
    return leaving if effects[leaving] < -_WEIGHT_TOLERANCE * np.abs(effects).max() else -1


@compiled
def _ratio_test(
    w: Floats, change: Floats, excess: Floats, drift: Floats, size: Floats
) -> tuple[int, int]:
    """Return the entry that turns dual infeasible first along the drift.

    It is a position in w, and -1; or -1, and a column; or -1 twice if none does.  Of several at
    once, that of the largest drift is the best pivot.
    """
    step, row, column, pivot = np.inf, -1, -1, 0.0
    for a in range(len(w)):
        if change[a] < -_WEIGHT_TOLERANCE:
            ratio = max(w[a], 0.0) / -change[a]
            if ratio < step or (ratio == step and -change[a] > pivot):
                step, row, pivot = ratio, a, -change[a]
    for m in range(len(excess)):
        if drift[m] < -_PAYOFF_TOLERANCE * size[m]:
            ratio = max(excess[m], 0.0) / -drift[m]
            if ratio < step or (column >= 0 and ratio == step and -drift[m] > pivot):
                step, row, column, pivot = ratio, -1, m, -drift[m]
    return row, column
