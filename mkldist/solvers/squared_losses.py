"""Squared losses: half the squared distance of a decision value to the interval of right ones.

    L(u) = sum_i w_i/2 dist(u_i, [lower_i, upper_i])^2 + slope b,      u = f + b 1

====================  =====================================  ===========  =====
loss                  lower, upper                           targets      slope
====================  =====================================  ===========  =====
squared hinge         [1, inf) for y = 1, (-inf, -1] else    classes      0
squared               [y, y]                                 values       0
epsilon-squared       [y - epsilon, y + epsilon]             values       0
one class             [0, inf) for y = 1, all reals else     one class    1
====================  =====================================  ===========  =====

The one-class machine ``1/2 sum_i (rho - f_i)_+^2 - rho`` is the last line with b = -rho.

The weights w_i of the points are 1 by default.  The *residual* ``r_i = w_i (P(u) - u)_i``, with P
the projection onto the intervals, is minus the derivative of the half squared distances.  At the
best b, ``sum_i r_i = slope``.  The conjugate gives the dual

    min_{a, b} lam/2 a'K a + L(K a + b 1)
        = max_r { sum_i [ lower_i (r_i)_+ - upper_i (-r_i)_+ - r_i^2 / (2 w_i) ]
                - 1/(2 lam) r'K r :
                  1'r = slope },

with ``a = r / lam`` at the optimum.  Where the upper end is infinite r is non-negative, where the
lower end is infinite non-positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Bools, Floats
from mkldist.core.compiled import compiled


@dataclass(frozen=True, eq=False)
class SquaredLoss:
    """A sum of half squared distances to intervals, and a multiple of the bias."""

    lower: Floats  # (n,), ends of the intervals, infinite where a side is free
    upper: Floats
    slope: float = 0.0  # coefficient of the bias
    weights: Floats | None = None  # (n,), positive weights of the points; 1 by default

    def residual(self, u: Floats) -> Floats:
        """Return ``w (P(u) - u)`` (n,), minus the derivative of the loss but for its slope."""
        r: Floats = np.clip(u, self.lower, self.upper) - u
        return self.weighted(r)

    def weighted(self, v: Floats) -> Floats:
        """Return ``w v`` for `v` (n,)."""
        return v if self.weights is None else self.weights * v

    def ridge(self, lam: float, sv: Bools) -> float | Floats:
        """Return ``lam / w`` at the points of a mask `sv` (n,); lam where all weights are 1."""
        return lam if self.weights is None else lam / self.weights[sv]

    def squares(self, r: Floats) -> float:
        """Return ``sum_i r_i^2 / w_i`` of residuals `r` (n,)."""
        return float(r @ r) if self.weights is None else float(r @ (r / self.weights))

    def value(self, r: Floats, b: float) -> float:
        """Return the loss of decision values with residual `r` (n,) and bias `b`."""
        return 0.5 * self.squares(r) + self.slope * b

    def active(self, r: Floats) -> Bools:
        """Return a mask (n,) of the points where the loss is curved, the support vectors."""
        curved: Bools = (r != 0.0) | (self.lower == self.upper)
        return curved

    def best_bias(self, f: Floats) -> float:
        """Return the minimiser over b of the loss at ``f + b``, the middle one of many."""
        # The search starts in the middle of the kinks, so that the shift it finds is no larger than
        # their spread, and residuals of targets far from zero lose no digits.
        kinks = np.concatenate([self.lower - f, self.upper - f])
        kinks = kinks[np.isfinite(kinks)]
        middle = 0.5 * float(kinks.min() + kinks.max())
        return middle + self.best_step(f + middle, np.ones(len(f)), self.slope, 0.0)

    def best_step(self, u: Floats, change: Floats, constant: float, curvature: float) -> float:
        """Return the minimiser over s of the distances at ``u + s change`` plus a parabola in s.

        The parabola is ``constant s + curvature s^2 / 2``; the curvature is not negative.
        """
        ends = self.lower, self.upper
        return root_on_line(u, change, *ends, constant, curvature, self.weights)

    def feasible(self, r: Floats) -> Floats:
        """Return `r` (n,) with the entries of one sign scaled so that all sum to the slope."""
        positive, negative = float(r[r > 0].sum()), -float(r[r < 0].sum())
        of_positive = of_negative = 1.0
        if positive > negative + self.slope:
            of_positive = (negative + self.slope) / positive
        elif self.slope > 0.0 and negative == 0.0:
            of_positive = self.slope / positive if positive > 0.0 else 0.0
        else:
            excess = positive - self.slope
            of_negative = excess / negative if excess > 0.0 and negative > 0.0 else 0.0
        return np.where(r > 0, of_positive * r, of_negative * r)

    def dual_value(self, r: Floats, b: float) -> float:
        """Return the dual value at a feasible `r` (n,), without its term in K.

        It is the same for any `b`.  With one near the optimal bias no digits cancel where targets
        are far from zero.
        """
        ends = np.where(r > 0, self.lower, np.where(r < 0, self.upper, b)) - b
        return float(ends @ r) - 0.5 * self.squares(r) + self.slope * b


def squared_hinge(y: Floats, weights: Floats | None = None) -> SquaredLoss:
    """Return ``w/2 max(0, 1 - y u)^2`` for classes `y` (n,)."""
    ends = np.where(y > 0, 1.0, -np.inf), np.where(y > 0, np.inf, -1.0)
    return SquaredLoss(*ends, weights=weights)


def squared(y: Floats, weights: Floats | None = None) -> SquaredLoss:
    """Return ``w/2 (y - u)^2`` for values `y` (n,)."""
    return SquaredLoss(y, y, weights=weights)


def epsilon_squared(y: Floats, epsilon: float, weights: Floats | None = None) -> SquaredLoss:
    """Return ``w/2 max(0, |y - u| - epsilon)^2`` for values `y` (n,)."""
    return SquaredLoss(y - epsilon, y + epsilon, weights=weights)


def one_class(y: Floats, weights: Floats | None = None) -> SquaredLoss:
    """Return ``w/2 max(0, -u)^2`` on the points with ``y = 1``, plus the bias."""
    lower = np.where(y > 0, 0.0, -np.inf)
    return SquaredLoss(lower, np.full(len(y), np.inf), slope=1.0, weights=weights)


@compiled
def _derivatives(
    s: float,
    u: Floats,
    change: Floats,
    lower: Floats,
    upper: Floats,
    constant: float,
    curvature: float,
    weights: Floats,
) -> tuple[float, float]:
    """Return the first and the second derivative along the line at step s."""
    first, second = constant + curvature * s, curvature
    for i in range(len(u)):
        at = u[i] + s * change[i]
        if at < lower[i]:
            first -= weights[i] * ((lower[i] - at) * change[i])
            second += weights[i] * (change[i] * change[i])
        elif at > upper[i]:
            first -= weights[i] * ((upper[i] - at) * change[i])
            second += weights[i] * (change[i] * change[i])
    return first, second


def root_on_line(
    u: Floats,
    change: Floats,
    lower: Floats,
    upper: Floats,
    constant: float,
    curvature: float,
    weights: Floats | None = None,
) -> float:
    """Return where ``constant + curvature s - sum_i r_i(u + s change) change_i`` vanishes.

    The function is piecewise linear and does not decrease.  Halving the set of kinks finds the
    piece on which the sign changes, and its straight line gives the root.  Of many roots it is the
    middle one.
    """
    u, change = np.ascontiguousarray(u), np.ascontiguousarray(change)
    kinks = np.empty(2 * len(u))
    weights = np.ones(len(u)) if weights is None else np.ascontiguousarray(weights)
    at = float(constant), float(curvature)
    return _root(u, change, lower, upper, *at, weights, kinks)


@compiled
def _write_kinks(u: Floats, change: Floats, lower: Floats, upper: Floats, kinks: Floats) -> int:
    """Write the steps at which decision values meet ends of intervals; return how many there are.

    They come in no order.
    """
    count = 0
    for i in range(len(u)):
        if change[i] != 0.0:
            for end in (lower[i], upper[i]):
                if -np.inf < end < np.inf:
                    kinks[count] = (end - u[i]) / change[i]
                    count += 1
    return count


@compiled
def _root(
    u: Floats,
    change: Floats,
    lower: Floats,
    upper: Floats,
    constant: float,
    curvature: float,
    weights: Floats,
    kinks: Floats,
) -> float:
    """Return the root of :func:`root_on_line`; `kinks` (2 n,) is scratch."""
    count = _write_kinks(u, change, lower, upper, kinks)
    if count == 0:
        return -constant / curvature if curvature > 0.0 else 0.0
    roots, above = 0.0, 0.0
    for side in range(2):  # right of the piece is a kink of value >= 0, then one of value > 0
        if above > 0.0:
            return roots  # it is the same piece
        left, right, low, high, above = -np.inf, np.inf, 0, count, np.inf
        while low < high:  # all kinks between left and right are kinks[low:high]
            kink = kinks[(low + high) // 2]
            at = _derivatives(kink, u, change, lower, upper, constant, curvature, weights)[0]
            is_right = at > 0.0 or (at == 0.0 and side == 0)
            place = low
            for k in range(low, high):
                if (kinks[k] < kink) if is_right else not kinks[k] > kink:
                    kinks[place], kinks[k] = kinks[k], kinks[place]
                    place += 1
            if is_right:
                right, high, above = kink, place, at
            else:
                left, low = kink, place
        # Kinks of a change at rounding level lie so far off that the line is lost there.
        if left < 0.0 < right:
            inside = 0.0
        elif left >= 0.0:
            inside = left + 0.5 * min(right - left, 1.0 + left)
        else:
            inside = right - 0.5 * min(right - left, 1.0 - right)
        at, slope = _derivatives(inside, u, change, lower, upper, constant, curvature, weights)
        flat = right if left == -np.inf or (side == 0 and right < np.inf) else left
        root = inside - at / slope if slope > 0.0 else flat
        root = min(max(root, left), right)
        roots = 0.5 * (roots + root) if side else root
    return roots
