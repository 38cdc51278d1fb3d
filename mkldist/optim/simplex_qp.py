"""Quadratic programmes with a Hessian of low rank over the simplex or the non-negative orthant.

    min_x 1/2 ||root x||^2 + 1/2 ridge ||x||^2 + linear'x   s.t.  x >= 0  (and 1'x = 1)

An active-set method solves the small system of the equality-constrained problem on a support,
drops the variables that stop it, or all that would turn negative, and adds those of the most
negative multipliers: one, and twice as many after each time that some of them stayed.
It only forms the block of the Hessian on the support, so that a step costs one product of the root
with all variables.  The ridge makes the minimiser unique where variables are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from mkldist.core.arrays import Floats, Ints

_RIDGE_SHARE = 1e-11  # of the objective's scale, below which systems are not solvable
_RIDGE_KNOWN = 1e-9  # of the squared root, above which rounding leaves the ridge its digits
_TOLERANCE = 1e-12  # share of the gradient by which a multiplier may be negative


@dataclass(frozen=True, eq=False)
class LowRankQuadratic:
    """``1/2 ||root x||^2 + 1/2 ridge ||x||^2 + linear'x``."""

    root: Floats  # (k, S), root of the Hessian
    linear: Floats  # (S,), linear term
    ridge: float = 0.0  # addition to the Hessian's diagonal; raised to a share 1e-11 of the scale

    @classmethod
    def around(
        cls, point: Floats, gradient: Floats, root: Floats, ridge: float
    ) -> LowRankQuadratic:
        """Return the second-order model of a function that touches it at `point`, less a constant.

        `ridge` is the weight of the proximal term ``1/2 ||x - point||^2``, which leaves the
        gradient there.
        """
        curved = (root @ point) @ root + ridge * point
        return cls(root, gradient - curved, ridge)

    def gradient(self, x: Floats) -> Floats:
        """Return the gradient at `x`."""
        support = np.flatnonzero(x)
        curved: Floats = (self.root[:, support] @ x[support]) @ self.root
        return curved + self.ridge * x + self.linear

    def value(self, x: Floats) -> float:
        """Return the value at `x`."""
        image = self.root @ x
        return 0.5 * float(image @ image + self.ridge * (x @ x)) + float(self.linear @ x)


def minimise_over_simplex(objective: LowRankQuadratic, support: Ints) -> Floats:
    """Minimise over ``{x >= 0, 1'x = 1}``; return x (S,), exactly zero off its support.

    `support` (s,) are variables expected to be positive; empty when nothing is known.
    """
    diagonal = _diagonal(objective)
    if not len(support):
        support = np.array([int(np.argmin(objective.linear + 0.5 * diagonal))])
    x = np.zeros(len(objective.linear))
    x[support] = 1.0 / len(support)
    scale = float(diagonal.max()) + float(np.ptp(objective.linear))
    x = _active_set(objective, x, scale, sums_to_one=True)
    normalised: Floats = x / x.sum()
    return normalised


def minimise_over_orthant(objective: LowRankQuadratic, support: Ints) -> Floats:
    """Minimise over ``{x >= 0}``; return x (S,), exactly zero off its support.

    The ridge keeps the minimiser bounded.  `support` (s,) are variables expected to be positive.
    """
    diagonal = _diagonal(objective)
    x = np.zeros(len(objective.linear))
    x[support] = 1.0
    return _active_set(objective, x, float(diagonal.max()), sums_to_one=False)


def _diagonal(objective: LowRankQuadratic) -> Floats:
    """Return the Hessian's diagonal."""
    diagonal: Floats = np.einsum("ks,ks->s", objective.root, objective.root) + objective.ridge
    return diagonal


def _active_set(
    objective: LowRankQuadratic, x: Floats, scale: float, *, sums_to_one: bool
) -> Floats:
    """Move from a feasible `x` to the minimiser."""
    ridge = max(objective.ridge, _RIDGE_SHARE * scale, float(np.finfo(np.float64).tiny))
    objective = LowRankQuadratic(objective.root, objective.linear, ridge)
    support, refused = x > 0.0, np.zeros(len(x), dtype=bool)
    entered, at_once = np.empty(0, dtype=np.intp), 1
    gradient = objective.gradient(x)
    for _ in range(20 * len(x) + 100):
        kept = np.flatnonzero(support)
        step = _newton_step(objective, kept, gradient[kept], sums_to_one=sums_to_one)
        x, leaving, moved = _advanced(objective, x, kept, step, sums_to_one=sums_to_one)
        if moved:
            refused[:] = False
        elif len(entered) == 1 and entered[0] in leaving:
            refused[entered] = True  # rounding sends back what has just entered
        support[leaving] = False
        gradient = objective.gradient(x)
        if len(leaving) and not refused.any():
            continue
        multiplier = float(gradient @ x) if sums_to_one else 0.0
        reduced = np.where(support | refused, np.inf, gradient - multiplier)
        least = -_TOLERANCE * (np.abs(gradient).max() + abs(multiplier))
        if reduced.min() >= least:
            break
        # One alone always moves; of several that enter, each may be sent back.
        at_once = 2 * at_once if support[entered].any() else 1
        entered = np.argsort(reduced, kind="stable")[:at_once]
        entered = entered[reduced[entered] < least]
        support[entered] = True
    return x


def _advanced(
    objective: LowRankQuadratic, x: Floats, kept: Ints, step: Floats, *, sums_to_one: bool
) -> tuple[Floats, Ints, bool]:
    """Return the next point, the variables that leave the support, and whether the point moved.

    The step ends where the first variable vanishes.  If it is better that all which would turn
    negative vanish, they leave together, as thousands may.
    """
    length, leaving = _blocking(x, kept, step)
    stopped = x.copy()
    stopped[kept] = np.maximum(x[kept] + length * step, 0.0)
    stopped[leaving] = 0.0
    if length < 1.0:
        whole, turned = x.copy(), np.maximum(x[kept] + step, 0.0)
        whole[kept] = turned / turned.sum() if sums_to_one else turned
        if objective.value(whole) < objective.value(stopped):
            return whole, kept[turned == 0.0], True
    return stopped, leaving, length > 0.0


def _blocking(x: Floats, kept: Ints, step: Floats) -> tuple[float, Ints]:
    """Return the share of a step that keeps x >= 0, and the variables that stop it."""
    blocked = x[kept] + step < 0.0
    room = np.where(blocked, x[kept] / np.where(blocked, -step, 1.0), np.inf)
    length = min(1.0, float(room.min(initial=np.inf)))
    return length, kept[room <= length]


def _newton_step(
    objective: LowRankQuadratic, kept: Ints, gradient: Floats, *, sums_to_one: bool
) -> Floats:
    """Return the step to the stationary point on a support, without regard to signs.

    The factor of the Hessian comes from its root by a QR decomposition.  In the Hessian itself,
    rounding would hide the ridge, and only the ridge determines dependent variables.
    """
    root, gradient = objective.root[:, kept], -gradient
    if sums_to_one:
        root, gradient = _reflected(root)[:, 1:], _reflected(gradient)[1:]
    size = len(gradient)
    if not size:
        return np.zeros(len(kept))
    ridge, many = objective.ridge, size > 2 * len(root)
    if many and ridge > _RIDGE_KNOWN * np.square(root).sum():  # (R'R + r I)^-1 by that of RR' + r I
        step = (gradient - root.T @ _solved(root.T, ridge, root @ gradient)) / ridge
    else:
        step = _solved(root, ridge, gradient)
    return _reflected(np.append(0.0, step)) if sums_to_one else step


def _solved(root: Floats, ridge: float, right: Floats) -> Floats:
    """Return ``(root'root + ridge I)^-1 right``."""
    tall = np.vstack([root, math.sqrt(ridge) * np.eye(root.shape[1])])
    factor = np.linalg.qr(tall, mode="r")
    half = scipy.linalg.solve_triangular(factor, right, trans="T", check_finite=False)
    solved: Floats = scipy.linalg.solve_triangular(factor, half, check_finite=False)
    return solved


def _reflected(rows: Floats) -> Floats:
    """Reflect the last axis so that 1 turns into a multiple of the first unit vector."""
    normal = np.ones(rows.shape[-1])
    normal[0] += math.sqrt(len(normal))
    reflected: Floats = rows - np.multiply.outer(rows @ normal, normal * (2.0 / (normal @ normal)))
    return reflected
