"""Proximal points of the entropy: each follows from the root of an increasing function.

The derivative of ``e(t) = t log t + (1 - t) log(1 - t)`` is the logit of t.  So the condition of
optimality is an equation for one logit, which Newton steps within a bracket solve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled

_STEPS = 100
_TINY = np.finfo(np.float64).tiny
_INNER = 1e-12  # least distance from the ends of (0, 1) at which a search for a logit starts


@dataclass(frozen=True, eq=False)
class EntropicProx:
    """Minimisers of an entropic and a quadratic term."""

    points: Floats  # (n,), the minimisers
    gaps: Floats  # (n,), ``centres - points``, without the rounding of that difference
    slopes: Floats  # (n,), derivatives of the points by their centres
    value: float  # the entropic term, summed over the points by their weights


def entropic_prox(
    centres: Floats, gamma: float | Floats, weights: Floats | None = None
) -> EntropicProx:
    """Minimise ``e(t) + gamma/2 (t - p)^2`` over ``0 <= t <= 1`` for each centre p, (n,).

    `gamma` > 0 is one or (n,); `weights` (n,) are those of the points in the value, by default 1.
    """
    n, points, gaps, slopes = len(centres), *np.empty((3, len(centres)))
    weights, gammas = np.ones(n) if weights is None else weights, np.full(n, gamma, dtype=float)
    value = _one_sided(centres, gammas, weights, points, gaps, slopes)
    return EntropicProx(points, gaps, slopes, value)


def two_sided_entropic_prox(
    centres: Floats, gamma: float | Floats, width: float, weights: Floats | None = None
) -> EntropicProx:
    """Minimise ``e(a) + e(b) + width (a + b) + gamma/2 (a - b - p)^2`` for each centre p, (n,).

    The points are ``a - b``, and the value holds the entropic and the linear term.
    """
    n, points, gaps, slopes = len(centres), *np.empty((3, len(centres)))
    weights, gammas = np.ones(n) if weights is None else weights, np.full(n, gamma, dtype=float)
    value = _two_sided(centres, gammas, width, weights, points, gaps, slopes)
    return EntropicProx(points, gaps, slopes, value)


@compiled
def _one_sided(
    centres: Floats, gammas: Floats, weights: Floats, points: Floats, gaps: Floats, slopes: Floats
) -> float:
    """Write ``t = expit(x)`` with ``x + gamma t = gamma p``, and the rest; return sum w e(t)."""
    value = 0.0
    for i in range(len(centres)):
        gamma = gammas[i]
        x = _root(gamma * centres[i], gamma, np.inf, centres[i])
        t, rest = _expit(x), _expit(-x)
        bend = gamma * t * rest
        points[i], gaps[i], slopes[i] = t, x / gamma, bend / (1.0 + bend)
        value += weights[i] * _negative_entropy(t, rest)
    return value


@compiled
def _two_sided(
    centres: Floats,
    gammas: Floats,
    width: float,
    weights: Floats,
    points: Floats,
    gaps: Floats,
    slopes: Floats,
) -> float:
    """Write ``a - b``, its gaps and its slopes, and return the value of a and b.

    For ``p >= 0``, a being the larger, ``a = expit(x)`` and ``b = expit(-x - 2 width)`` with
    ``x + gamma (a - b) = gamma p - width``.
    """
    value, shift = 0.0, 2.0 * width
    for i in range(len(centres)):
        size, gamma = abs(centres[i]), gammas[i]
        x = _root(gamma * size - width, gamma, shift, size)
        a, not_a, b, not_b = _expit(x), _expit(-x), _expit(-x - shift), _expit(x + shift)
        bend = gamma * (a * not_a + b * not_b)
        sign = 1.0 if centres[i] >= 0.0 else -1.0
        points[i], gaps[i] = sign * (a - b), sign * (x + width) / gamma
        slopes[i] = bend / (1.0 + bend)
        own = _negative_entropy(a, not_a) + _negative_entropy(b, not_b) + width * (a + b)
        value += weights[i] * own
    return value


@compiled
def _root(aim: float, gamma: float, shift: float, guess: float) -> float:
    """Solve ``x + gamma [expit(x) - expit(-x - shift)] = aim``, from the logit of a guess."""
    low, high = aim - gamma, aim if shift == np.inf else aim + gamma
    inner = min(max(guess, _INNER), 1.0 - _INNER)
    x: float = min(max(np.log(inner / (1.0 - inner)), low, -0.5 * shift), high)
    last = np.inf
    for _ in range(_STEPS):
        small = np.exp(-abs(x))
        excess = x + gamma * (1.0 if x >= 0.0 else small) / (1.0 + small) - aim
        slope = 1.0 + gamma * small / (1.0 + small) ** 2
        if shift < np.inf:
            small = np.exp(-abs(x + shift))
            excess -= gamma * (1.0 if x <= -shift else small) / (1.0 + small)
            slope += gamma * small / (1.0 + small) ** 2
        if excess < 0.0:
            low = x
        else:
            high = x
        moved = x - excess / slope
        if not low <= moved <= high or abs(moved - x) > 0.5 * last:
            moved = 0.5 * (low + high)
        last = abs(moved - x)
        if last <= 1e-15 * (1.0 + abs(x)):
            break
        x = moved
    return x


@compiled
def _expit(x: float) -> float:
    """Return ``1 / (1 + exp(-x))``, to full relative precision."""
    small: float = np.exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@compiled
def _negative_entropy(t: float, rest: float) -> float:
    """Return ``t log t + (1 - t) log (1 - t)``, the rest being ``1 - t``."""
    value: float = t * np.log(max(t, _TINY)) + rest * np.log(max(rest, _TINY))
    return value
