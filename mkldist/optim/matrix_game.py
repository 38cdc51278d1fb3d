"""Solution of a matrix game with few active rows, by a dual simplex method with warm starts.

Solves ``min_p max_j (payoff p)_j`` over the simplex of columns, i.e. the linear programme

    min v  s.t.  payoff p <= v 1,  1'p = 1,  p >= 0,

whose dual is ``max v  s.t.  payoff' w >= v 1, 1'w = 1, w >= 0``.  The basis holds only the active
rows R, those with w_j > 0, and as many columns S, those with p_m > 0.  So a pivot costs the
solution of a system of size |R| + 1 and one product of |R| rows with all columns.  Rows of many
sizes occur in practice, and a general solver, HiGHS, takes over where the pivots break down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled

_PIVOT_LIMIT = 1000
_WEIGHT_TOLERANCE = 1e-12
_PAYOFF_TOLERANCE = 64.0 * float(np.finfo(np.float64).eps)


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
    try:
        if not len(active) or not _dual_feasible(payoff, active, support):
            active = np.zeros(1, dtype=np.intp)
            support = np.array([payoff[0].argmin()], dtype=np.intp)
        active, support, w, p, optimal = _dual_simplex(payoff, active, support)
    except np.linalg.LinAlgError:
        optimal = False
    if not optimal:
        return _solve_by_general_solver(payoff)
    columns, rows = np.zeros(payoff.shape[1]), np.zeros(len(payoff))
    columns[support] = np.maximum(p, 0.0)
    rows[active] = np.maximum(w, 0.0)
    return _certified(payoff, columns, rows, active, support)


def _solve_by_general_solver(payoff: Floats) -> GameSolution:
    """Solve a game on which the warm start broke down, by HiGHS."""
    from scipy.optimize import linprog  # rarely needed, and slow to import

    n_rows, n_columns = payoff.shape
    scale = max(float(np.abs(payoff).max()), float(np.finfo(np.float64).tiny))
    result = linprog(
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


@compiled
def _bordered(block: Floats) -> Floats:
    """Return ``[[block, -1], [1', 0]]``."""
    k = len(block)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = block
    system[:k, k] = -1.0
    system[k, :k] = 1.0
    return system


@compiled
def _solve(system: Floats, right: Floats) -> Floats:
    """Solve a square system whose rows may differ by more than the range of digits.

    One step of refinement keeps the residual so small that a column like one of the basis never
    seems to differ from it.
    """
    scaled, scaled_right = system.copy(), right.copy()
    for i in range(len(system)):
        size = np.abs(system[i]).max()
        if size > 0.0:
            scaled[i] /= size
            scaled_right[i] /= size
    solved = np.linalg.solve(scaled, scaled_right)
    residual = scaled_right - np.dot(scaled, solved)
    return (solved + np.linalg.solve(scaled, residual)).astype(np.float64)


@compiled
def _with(indices: Ints, value: int) -> Ints:
    """Return `indices` and `value`."""
    grown = np.empty(len(indices) + 1, dtype=indices.dtype)
    grown[:-1] = indices
    grown[-1] = value
    return grown


@compiled
def _without(indices: Ints, position: int) -> Ints:
    """Return `indices` less the one at `position`."""
    return np.concatenate((indices[:position], indices[position + 1 :]))


@compiled
def _weighted_rows(payoff: Floats, active: Ints, weights: Floats) -> Floats:
    """Return ``sum_a weights[a] payoff[active[a]]``, (M,)."""
    total = np.zeros(payoff.shape[1])
    for a in range(len(active)):
        total += weights[a] * payoff[active[a]]
    return total


@compiled
def _weighted_sizes(payoff: Floats, active: Ints, weights: Floats) -> Floats:
    """Return ``sum_a |weights[a] payoff[active[a]]|``, (M,), the scale of rounding errors."""
    total = np.zeros(payoff.shape[1])
    for a in range(len(active)):
        total += np.abs(weights[a] * payoff[active[a]])
    return total


@compiled
def _worst_row(payoff: Floats, active: Ints, support: Ints, p: Floats, v: float) -> int:
    """Return the row that most exceeds `v` at the weights `p` on `support`, or -1.

    A row counts only if its excess is more than rounding of the row's own terms, because the
    sizes of rows may differ by more than the range of digits.
    """
    worst, largest = -1, 0.0
    for j in range(len(payoff)):
        value, size = -v, abs(v)
        for s in range(len(support)):
            term = payoff[j, support[s]] * p[s]
            value += term
            size += abs(term)
        if value > largest and value > _PAYOFF_TOLERANCE * size and not np.any(active == j):
            worst, largest = j, value
    return worst


@compiled
def _ratio_test(
    w: Floats, w_drift: Floats, excess: Floats, excess_drift: Floats, support: Ints, size: Floats
) -> tuple[int, bool]:
    """Return the first entry to turn dual infeasible along the drift, and True if it is a column.

    The entry is a position in w or a column; it is -1 if none turns infeasible.
    """
    step, blocker, is_column, pivot = np.inf, -1, False, 0.0
    for a in range(len(w)):
        if w_drift[a] < -_WEIGHT_TOLERANCE:
            ratio = max(w[a], 0.0) / -w_drift[a]
            if ratio < step or (ratio == step and -w_drift[a] > pivot):
                step, blocker, pivot = ratio, a, -w_drift[a]
    excess_drift[support] = 0.0
    for m in range(len(excess)):
        if excess_drift[m] < -_PAYOFF_TOLERANCE * size[m]:
            ratio = max(excess[m], 0.0) / -excess_drift[m]
            if ratio < step or (is_column and ratio == step and -excess_drift[m] > pivot):
                step, blocker, is_column, pivot = ratio, m, True, -excess_drift[m]
    return blocker, is_column


@compiled
def _block(payoff: Floats, active: Ints, support: Ints) -> Floats:
    """Return ``payoff[active][:, support]``."""
    block = np.empty((len(active), len(support)))
    for a in range(len(active)):
        for s in range(len(support)):
            block[a, s] = payoff[active[a], support[s]]
    return block


@compiled
def _negative_weight(block: Floats, p: Floats) -> int:
    """Return the position of the weight that is negative beyond rounding, or -1.

    The effect of a weight on the rows, its size times that of its column, is held to rounding.
    """
    effects = np.empty(len(p))
    for s in range(len(p)):
        effects[s] = p[s] * max(np.abs(block[:, s]).max(), np.finfo(np.float64).tiny)
    leaving = int(np.argmin(effects))
    return leaving if effects[leaving] < -_WEIGHT_TOLERANCE * np.abs(effects).max() else -1


@compiled
def _exchange(
    active: Ints, support: Ints, row: int, leaving: int, blocker: int, is_column: bool
) -> tuple[Ints, Ints]:
    """Return the next basis: `row` enters or, if `row` is negative, the column at `leaving` leaves.

    The blocker is a column, which enters the support, or the position of a row, which leaves.
    """
    active, support = active.copy(), support.copy()
    if row >= 0 and is_column:
        return _with(active, row), _with(support, blocker)
    if row >= 0:
        active[blocker] = row
        return active, support
    if is_column:
        support[leaving] = blocker
        return active, support
    return _without(active, blocker), _without(support, leaving)


@compiled
def _dual_feasible(payoff: Floats, active: Ints, support: Ints) -> bool:
    """Return whether a basis has ``w >= 0`` and ``payoff' w >= v 1`` up to rounding."""
    k = len(active)
    unit = np.zeros(k + 1)
    unit[k] = 1.0
    dual = _solve(_bordered(_block(payoff, active, support).T.copy()), unit)
    w, v = dual[:k].copy(), dual[k]
    excess = _weighted_rows(payoff, active, w) - v
    excess[support] = 0.0
    size = _weighted_sizes(payoff, active, w) + abs(v)
    return bool(w.min() >= -_WEIGHT_TOLERANCE and (excess >= -_PAYOFF_TOLERANCE * size).all())


@compiled
def _dual_simplex(
    payoff: Floats, active: Ints, support: Ints
) -> tuple[Ints, Ints, Floats, Floats, bool]:
    """Pivot from a dual feasible basis (R, S) to the optimum.

    On a basis ``payoff_RS p = v 1`` and ``payoff_RS' w = v 1``.  At each pivot a row above v
    enters or a column of negative p_m leaves.  The ratio test keeps the dual feasible, and v grows
    with every pivot.
    """
    w, p = np.ones(1), np.ones(1)
    for _ in range(_PIVOT_LIMIT):
        k = len(active)
        block = _block(payoff, active, support)
        column_system = _bordered(block.T.copy())
        unit = np.zeros(k + 1)
        unit[k] = 1.0
        primal, dual = _solve(_bordered(block), unit), _solve(column_system, unit)
        p, w = primal[:k].copy(), dual[:k].copy()
        row = _worst_row(payoff, active, support, p, primal[k])
        leaving = _negative_weight(block, p)
        if row < 0 and leaving < 0:
            return active, support, w, p, True
        right = np.zeros(k + 1)
        if row >= 0:
            for s in range(k):
                right[s] = -payoff[row, support[s]]
            right[k] = -1.0
        else:
            right[leaving] = 1.0
        change = _solve(column_system, right)
        excess_drift = _weighted_rows(payoff, active, change[:k]) - change[k]
        size = _weighted_sizes(payoff, active, change[:k]) + abs(change[k])
        if row >= 0:
            excess_drift += payoff[row]
            size += np.abs(payoff[row])
        excess = _weighted_rows(payoff, active, w) - dual[k]
        blocker, is_column = _ratio_test(w, change[:k], excess, excess_drift, support, size)
        if blocker < 0:
            return active, support, w, p, False
        active, support = _exchange(active, support, row, leaving, blocker, is_column)
    return active, support, w, p, False
