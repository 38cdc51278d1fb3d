"""Projection onto a level set of a cutting-plane model on the simplex.

    min_p 1/2 ||p - centre||^2   s.t.   payoff p <= level 1,  1'p = 1,  p >= 0

Its dual has one multiplier for each cut, and few of them are positive.  For fixed multipliers w
the minimiser is the projection of ``centre - payoff' w`` onto the simplex.  So the dual function is
concave, piecewise quadratic and continuously differentiable, and a few semismooth Newton steps
maximise it.  Each solves a system of the size of the number of active cuts.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled
from mkldist.optim.simplex import project_onto_simplex

_NEWTON_LIMIT = 60
_HALVINGS = 50


def nearest_below(
    payoff: Floats, centre: Floats, level: float, slack: float, start: Floats
) -> tuple[Floats | None, Floats]:
    """Return the projection of :func:`project_onto_level_set`, of sum one, and its multipliers.

    The point is None when the level set was not reached.
    """
    point, multipliers, reached = project_onto_level_set(payoff, centre, level, slack, start)
    total = float(point.sum())
    return (point / total if reached and total > 0.0 else None), multipliers


@compiled
def project_onto_level_set(
    payoff: Floats, centre: Floats, level: float, slack: float, start: Floats
) -> tuple[Floats, Floats, bool]:
    """Project `centre` onto ``{p in simplex : payoff p <= level}``.

    Parameters
    ----------
    payoff : (J, M) float64
        Values of the cuts at the vertices of the simplex.
    centre : (M,) float64
        Point to project.
    level : float
        Level, at least the model's minimum.
    slack : float
        Violation of an active cut that may remain, in units of the payoff.
    start : (J,) float64
        Multipliers to start from, non-negative.

    Returns
    -------
    point : (M,) float64
        A point of the simplex.
    multipliers : (J,) float64
        Its multipliers.
    reached : bool
        True if ``payoff point <= level + slack``.
    """
    multipliers = start.copy()
    gradient, point = _dual(payoff, centre, level, multipliers)
    for _ in range(_NEWTON_LIMIT):
        violation = gradient.max()
        for j in range(len(multipliers)):
            if multipliers[j] > 0.0:
                violation = max(violation, -gradient[j])
        if violation <= slack:
            return point, multipliers, True
        free = np.flatnonzero((multipliers > 0.0) | (gradient > 0.0))
        direction = _newton_direction(payoff, point, gradient, multipliers, free)
        slope = np.dot(gradient, direction)
        if slope <= 0.0:
            break
        length = 1.0
        for _ in range(_HALVINGS):
            trial = np.maximum(multipliers + length * direction, 0.0)
            trial_gradient, trial_point = _dual(payoff, centre, level, trial)
            if np.dot(trial_gradient, direction) >= -0.1 * slope:
                break
            length *= 0.5
        multipliers, gradient, point = trial, trial_gradient, trial_point
    return point, multipliers, gradient.max() <= slack


@compiled
def _dual(
    payoff: Floats, centre: Floats, level: float, multipliers: Floats
) -> tuple[Floats, Floats]:
    """Return the dual function's gradient ``payoff p - level`` and the minimiser p."""
    shifted = centre.copy()
    for j in range(len(multipliers)):
        if multipliers[j] != 0.0:
            shifted -= multipliers[j] * payoff[j]
    point = project_onto_simplex(shifted)
    return np.dot(payoff, point) - level, point


@compiled
def _newton_direction(
    payoff: Floats, point: Floats, gradient: Floats, multipliers: Floats, free: Ints
) -> Floats:
    """Return the step to the maximiser over multipliers >= 0 of the local quadratic model.

    Its Hessian on the free cuts is ``-A (I - 11'/|S|) A'`` with A the payoff on the support S.
    """
    support = np.flatnonzero(point > 0.0)
    rows = np.empty((len(free), len(support)))
    for a in range(len(free)):
        for s in range(len(support)):
            rows[a, s] = payoff[free[a], support[s]]
        rows[a] -= rows[a].mean()
    hessian = np.dot(rows, rows.T)
    trace = np.trace(hessian)
    ridge = 1e-14 * trace / len(free) if trace > 0.0 else 1.0
    for a in range(len(free)):
        hessian[a, a] += ridge
    current = multipliers[free]
    best = _nonnegative_minimiser(hessian, gradient[free] + np.dot(hessian, current), current)
    direction = np.zeros(len(multipliers))
    direction[free] = best - current
    return direction


@compiled
def _nonnegative_minimiser(hessian: Floats, linear: Floats, start: Floats) -> Floats:
    """Minimise ``1/2 u'Hu - linear'u`` over u >= 0 by the active-set method of Lawson & Hanson."""
    u = start.copy()
    passive = u > 0.0
    for _ in range(3 * len(u) + 10):
        inside = np.flatnonzero(passive)
        if len(inside):
            block = np.empty((len(inside), len(inside)))
            for a in range(len(inside)):
                for b in range(len(inside)):
                    block[a, b] = hessian[inside[a], inside[b]]
            target = np.linalg.solve(block, linear[inside])
            if target.min() <= 0.0:
                length, blocker = 1.0, -1
                for a in range(len(inside)):
                    if target[a] <= 0.0:
                        now = u[inside[a]]
                        ratio = now / (now - target[a]) if now > target[a] else 0.0
                        if blocker < 0 or ratio < length:
                            length, blocker = ratio, inside[a]
                u[inside] += length * (target - u[inside])
                u[blocker], passive[blocker] = 0.0, False
                continue
            u[inside] = target
        pull = linear - np.dot(hessian, u)
        pull[inside] = 0.0
        entering = np.argmax(pull)
        if pull[entering] <= 1e-12 * np.abs(linear).max():
            break
        passive[entering] = True
    return np.maximum(u, 0.0)
