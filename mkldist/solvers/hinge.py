"""Hinge loss of a decision function: its least bias, and how much rounding may hide of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled

EPS = float(np.finfo(np.float64).eps)


class HingeTerms(NamedTuple):
    """Sums over the points that the bounds of a hinge-loss machine consist of.

    Parameters
    ----------
    norm : float
        ``beta'f``, the squared norm of the decision function.
    total : float
        ``sum |beta|``.
    loss, loss_rounding : float
        Weighted hinge loss, and how much rounding may have taken off it.
    energy : float
        ``sum_i K_ii beta_i^2``.
    rest : float
        ``sum beta``, zero up to rounding at a feasible point.
    """

    norm: float
    total: float
    loss: float
    loss_rounding: float
    energy: float
    rest: float


def hinge_terms(
    beta: Floats, f: Floats, y: Floats, weights: Floats, bias: float, reach: Floats
) -> HingeTerms:
    """Return the sums at coefficients `beta` and decision values `f` without bias, in one pass."""
    return HingeTerms(*_sums(beta, f, y, weights, bias, reach, np.empty(len(f))))


@compiled(python_first=True)
def _sums(
    beta: Floats,
    f: Floats,
    y: Floats,
    weights: Floats,
    bias: float,
    reach: Floats,
    slack: Floats,
) -> tuple[float, float, float, float, float, float]:
    """Return the fields of :class:`HingeTerms`; the slacks are overwritten."""
    norm = total = loss = largest = energy = rest = 0.0
    for i in range(len(f)):
        slack[i] = 1.0 - y[i] * (f[i] + bias)
        norm += beta[i] * f[i]
        total += abs(beta[i])
        loss += weights[i] * max(slack[i], 0.0)
        largest = max(largest, weights[i])
        size = reach[i] * beta[i]
        energy += size * size
        rest += beta[i]
    return norm, total, loss, largest * slack_rounding(slack, reach, beta), energy, rest


@compiled(python_first=True)
def slack_rounding(slack: Floats, reach: Floats, beta: Floats) -> float:
    """Return how much rounding may have taken off the sum of the positive parts of slacks.

    With ``reach_i = sqrt(K_ii)``, f_i is a sum of terms of at most ``reach_i reach_j |beta_j|``.
    Their rounding errors add up like a random walk.

    Parameters
    ----------
    slack : (n,) float64
        ``1 - y_i (f_i + b)`` as computed.
    reach : (n,) float64
        Roots of the diagonal of K.
    beta : (n,) float64
        Expansion coefficients.
    """
    squares = total = 0.0
    for i in range(len(slack)):
        term = reach[i] * beta[i]
        squares += term * term
    size = math.sqrt(squares)
    for i in range(len(slack)):
        unsure = EPS * (reach[i] * size + 1.0)
        if slack[i] > -unsure:
            total += unsure
    return total


def best_bias(f: Floats, y: Floats, weights: Floats | None = None) -> float:
    """Return the middle of the minimisers over b of ``sum_i w_i max(0, 1 - y_i (f_i + b))``.

    The sum is convex and piecewise linear in b with kinks at ``y_i - f_i``; its slope is minus
    the weight of the positives, plus w_i at each kink.

    Parameters
    ----------
    f : (n,) float64
        Decision values without bias.
    y : (n,) float64
        Labels in {-1, +1}.
    weights : (n,) float64, optional
        Positive weights w of the points; by default one for each.
    """
    kinks = y - f
    if weights is not None:
        return middle_kink(kinks, weights, float(weights[y > 0].sum()))
    kinks.sort()
    positives = int(np.count_nonzero(y > 0))
    left = kinks[min(positives, len(kinks)) - 1] if positives else kinks[0]
    right = kinks[positives] if positives < len(kinks) else left
    return float(0.5 * (left + right))


def middle_kink(kinks: Floats, weights: Floats, wanted: float) -> float:
    """Return the middle of the interval in which the weight of the kinks passed is `wanted`."""
    order = np.argsort(kinks, kind="stable")
    passed = np.cumsum(weights[order])
    rounding = 1e-12 * float(passed[-1])
    left, right = np.searchsorted(passed, [wanted - rounding, wanted + rounding])
    last = len(kinks) - 1
    ends = kinks[order[[min(int(left), last), min(int(right), last)]]]
    return float(ends.mean())


def slack_spread(slack: Floats, beta: Floats, lower: Floats, upper: Floats) -> float:
    """Return how far apart the slacks of points below their bounds are, as a bias sees them.

    Parameters
    ----------
    slack : (n,) float64
        ``y_i - f_i`` without bias.
    beta, lower, upper : (n,) float64
        Expansion coefficients and their bounds.
    """
    rising, falling = slack[beta < upper], slack[beta > lower]
    return float(rising.max() - falling.min()) if len(rising) and len(falling) else 0.0
