"""Cutting-plane model of a convex function on the simplex: its minimum and its level sets.

A cut is linear, so that its values at the vertices of the simplex determine it.  The model
``g(p) = max_j cut_j(p)`` is then the payoff of a matrix game.  The projection onto a level set,

    min_p 1/2 ||p - centre||^2   s.t.   payoff p <= level 1,  1'p = 1,  p >= 0,

has a dual with one multiplier for each cut, and few of them are positive.  For fixed multipliers w
the minimiser is the projection of ``centre - payoff' w`` onto the simplex.  So the dual function is
concave, piecewise quadratic and continuously differentiable, and a few semismooth Newton steps
maximise it.  Each solves a system of the size of the number of active cuts.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.compiled import compiled
from mkldist.optim.matrix_game import GameSolution, solve_game
from mkldist.optim.weight_sets import write_projection

_NEWTON_LIMIT = 60
_HALVINGS = 50
_CURVATURE_FLOOR = 1e-15  # of a cut's own


def nearest_below(
    payoff: Floats, centre: Floats, level: float, slack: float, start: Floats
) -> tuple[Floats | None, Floats]:
    """Return the projection of :func:`project_onto_level_set`, of sum one, and its multipliers.

    The point is None when the level set was not reached.
    """
    point, multipliers, reached = project_onto_level_set(payoff, centre, level, slack, start)
    total = float(point.sum())
    return (point / total if reached and total > 0.0 else None), multipliers


def project_onto_level_set(
    payoff: Floats, centre: Floats, level: float, slack: float, start: Floats
) -> tuple[Floats, Floats, bool]:
    """Project `centre` (M,) onto ``{p in simplex : payoff p <= level}``, payoff (J, M).

    The level is at least the model's minimum, `slack` the violation of an active cut that may
    remain, and `start` (J,) are multipliers to start from.  Returns a point of the simplex, its
    multipliers, and True if ``payoff point <= level + slack``.
    """
    multipliers = start
    gradient, point = _dual(payoff, centre, level, multipliers)
    for _ in range(_NEWTON_LIMIT):
        held = gradient[multipliers > 0.0]  # equations; the other cuts are inequalities
        if max(gradient.max(), -held.min(initial=0.0)) <= slack:
            return point, multipliers, True
        direction = _newton_direction(payoff, point, gradient, multipliers)
        slope = gradient @ direction
        if slope <= 0.0:
            break
        length = 1.0
        for _ in range(_HALVINGS):
            trial = np.maximum(multipliers + length * direction, 0.0)
            trial_gradient, trial_point = _dual(payoff, centre, level, trial)
            if trial_gradient @ direction >= -0.1 * slope:
                break
            length *= 0.5
        multipliers, gradient, point = trial, trial_gradient, trial_point
    return point, multipliers, bool(gradient.max() <= slack)


def _dual(
    payoff: Floats, centre: Floats, level: float, multipliers: Floats
) -> tuple[Floats, Floats]:
    """Return the dual function's gradient ``payoff p - level`` and the minimiser p."""
    n_cuts, n_columns = payoff.shape
    shifted, gradient, point = np.empty(n_columns), np.empty(n_cuts), np.empty(n_columns)
    _write_dual(payoff, centre, level, multipliers, shifted, gradient, point)
    return gradient, point


@compiled(python_first=True)
def _write_dual(
    payoff: Floats,
    centre: Floats,
    level: float,
    multipliers: Floats,
    shifted: Floats,
    gradient: Floats,
    point: Floats,
) -> None:
    """Write the point that is projected onto the simplex, the gradient, and the minimiser."""
    n_cuts, n_columns = payoff.shape
    for m in range(n_columns):
        shifted[m] = centre[m]
    for j in range(n_cuts):
        if multipliers[j] != 0.0:
            for m in range(n_columns):
                shifted[m] -= multipliers[j] * payoff[j, m]
    write_projection(shifted, point)
    for j in range(n_cuts):
        gradient[j] = -level
    for m in range(n_columns):
        if point[m] > 0.0:
            for j in range(n_cuts):
                gradient[j] += payoff[j, m] * point[m]


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
        point, self._multipliers = nearest_below(
            self.payoff, centre, level, slack, self._multipliers
        )
        return point
