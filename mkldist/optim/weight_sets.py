"""Sets of feasible weights, the simplex and the non-negative part of an lp ball: projections."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled

_LIMIT = 100
_ACCURACY = 1e-15


def project_onto_simplex(z: Floats) -> Floats:
    """Return ``argmin_p 1/2 ||p - z||^2  s.t.  p >= 0, sum(p) = 1``, (M,), zero off its support.

    Michelot's algorithm subtracts the mean excess of the entries that are still positive until
    none turns negative.  It ends after few sweeps because the support shrinks at each.
    """
    p = np.empty(len(z))
    write_projection(z, p)
    return p


@compiled(python_first=True)
def write_projection(z: Floats, p: Floats) -> None:
    """Write the projection of z onto the simplex to p, both (M,) float64.

    What rounding may have left of a zero is zero.
    """
    size, total = len(z), 0.0
    for m in range(len(z)):
        p[m] = 1.0  # while m is in the support
        total += z[m]
    shift = (total - 1.0) / size
    while True:
        kept, total = 0, 0.0
        for m in range(len(z)):
            if p[m] > 0.0 and z[m] - shift > _ACCURACY * (1.0 + abs(z[m])):
                kept += 1
                total += z[m]
            else:
                p[m] = 0.0
        if kept == size or kept == 0:
            break
        size = kept
        shift = (total - 1.0) / size
    largest = 0
    for m in range(len(z)):
        if p[m] > 0.0:
            p[m] = z[m] - shift
        if z[m] > z[largest]:
            largest = m
    if kept == 0:  # rounding hides the differences of entries as large as these
        p[largest] = 1.0


def project_shifted(
    payoff: Floats, centre: Floats, level: float, multipliers: Floats
) -> tuple[Floats, Floats]:
    """Return ``payoff p - level`` and p, ``centre - payoff' multipliers`` on the simplex."""
    n_cuts, n_columns = payoff.shape
    shifted, gradient, point = np.empty(n_columns), np.empty(n_cuts), np.empty(n_columns)
    _write_shifted(payoff, centre, level, multipliers, shifted, gradient, point)
    return gradient, point


@compiled(python_first=True)
def _write_shifted(
    payoff: Floats,
    centre: Floats,
    level: float,
    multipliers: Floats,
    shifted: Floats,
    gradient: Floats,
    point: Floats,
) -> None:
    """Write the point that is projected, the gradient, and the projection."""
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


@compiled
def _shrunk(z: float, mu: float, p: float) -> float:
    """Return x in [0, z] with ``x + mu x^(p-1) = z``.

    Newton's method solves for x itself if p >= 2 and for ``x^(p-1)`` if p < 2, because the
    equation is convex in that variable.  Started right of the root, it never oversteps the root.
    """
    if z <= 0.0:
        return 0.0
    convex = p >= 2.0
    power = p - 1.0 if convex else 1.0 / (p - 1.0)
    if power == 2.0:  # p = 3 and p = 3/2: a quadratic equation
        if convex:
            return 2.0 * z / (1.0 + math.sqrt(1.0 + 4.0 * mu * z))
        return (2.0 * z / (mu + math.sqrt(mu * mu + 4.0 * z))) ** 2
    v = min(z, (z / mu) ** (1.0 / power)) if convex else min(z ** (p - 1.0), z / mu)
    for _ in range(_LIMIT):
        raised = v**power
        value = (v + mu * raised if convex else raised + mu * v) - z
        slope = 1.0 + mu * power * raised / v if convex else mu + power * raised / v
        step = value / slope
        v = max(v - step, 0.5 * v)
        if step <= _ACCURACY * v:
            break
    root: float = v if convex else v**power
    return root


@compiled
def _write_projection(z: Floats, p: float, x: Floats) -> None:
    """Write the point of the sphere nearest to `z` >= 0 outside the ball to x.

    The multiplier is bisected by its logarithm.
    """
    low, high = 0.0, 1.0
    while True:  # the norm falls to 0 as the multiplier grows
        total = 0.0
        for m in range(len(z)):
            total += _shrunk(z[m], high, p) ** p
        if total <= 1.0:
            break
        low, high = high, 4.0 * high
    mu = high
    for _ in range(_LIMIT):
        total, change = 0.0, 0.0
        for m in range(len(z)):
            x[m] = _shrunk(z[m], mu, p)
            if x[m] > 0.0:
                raised = x[m] ** (p - 1.0)
                total += raised * x[m]
                change -= p * raised * raised / (1.0 + mu * (p - 1.0) * raised / x[m])
        if total > 1.0:
            low = mu
        else:
            high = mu
        if abs(total - 1.0) <= _ACCURACY * p or high - low <= _ACCURACY * high:
            break
        mu -= (total - 1.0) / change if change < 0.0 else 0.0
        if not low < mu < high:
            mu = 0.5 * (low + high)


def project_onto_lp_ball(z: Floats, p: float) -> Floats:
    """Return ``argmin_x 1/2 ||x - z||^2  s.t.  x >= 0, ||x||_p <= 1``, (M,), for p > 1.

    The optimality condition ``x + mu x^(p-1) = z`` is solved entry by entry for a multiplier mu,
    which Newton steps inside a bracket bring to ``||x||_p = 1``.
    """
    positive: Floats = np.maximum(z, 0.0)
    norm = lp_norm(positive, p)
    if norm <= 1.0:
        return positive
    if p == 2.0:
        return positive / norm
    projected = np.empty_like(positive)
    _write_projection(positive, p, projected)
    return projected / lp_norm(projected, p)


def lp_norm(x: Floats, p: float) -> float:
    """Return ``||x||_p`` of a non-negative vector without overflow; p may be infinite."""
    largest = float(x.max(initial=0.0))
    if largest == 0.0 or np.isinf(p):
        return largest
    norm: float = largest * float(((x / largest) ** p).sum()) ** (1.0 / p)
    return norm


@dataclass(frozen=True)
class WeightSet:
    """The simplex for ``norm=1``, else ``{d >= 0, ||d||_norm <= 1}``."""

    norm: float

    @property
    def is_simplex(self) -> bool:
        """True for the simplex, where weights sum to one."""
        return self.norm == 1.0

    def uniform(self, size: int) -> Floats:
        """Return equal weights of norm 1, (size,)."""
        return np.full(size, float(size) ** (-1.0 / self.norm))

    def length(self, d: Floats) -> float:
        """Return the norm of non-negative weights."""
        return float(d.sum()) if self.is_simplex else lp_norm(d, self.norm)

    def project(self, d: Floats) -> Floats:
        """Return the point of the set that is nearest to `d`."""
        if self.is_simplex:
            return project_onto_simplex(d)
        return project_onto_lp_ball(d, self.norm)

    def largest(self, q: Floats) -> float:
        """Return the maximum of ``q'd`` over the set: the dual norm of a non-negative `q`."""
        if self.is_simplex:
            return float(q.max())
        return lp_norm(np.maximum(q, 0.0), self.norm / (self.norm - 1.0))
