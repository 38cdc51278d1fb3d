r"""Losses of the block-norm formulation, each with its conjugate.

A loss ``l(y, f)``, summed over the points, enters the dual through ``h(rho) = l*(-rho)`` at
``rho_i = -dl/df_i``; Suzuki & Tomioka 2011, Eqs. (16), (17) and (34).

===========  ================================  ===========================================
loss         l(y, f)                           h(rho)
===========  ================================  ===========================================
logistic     log(1 + exp(-y f))                t log t + (1 - t) log(1 - t),  t = y rho
hinge        max(0, 1 - y f)                   -t,  0 <= t <= 1
squared      1/2 (y - f)^2                     1/2 rho^2 - y rho
epsilon      max(0, \|y - f\| - epsilon)       -y rho + epsilon \|rho\|,  \|rho\| <= 1
===========  ================================  ===========================================

Newton's method needs h twice differentiable, with a Hessian of bounded size.  But h has kinks,
and walls at the ends of its domain.  Multipliers z with a penalty gamma take their place
(Sections 3.4.1 and 3.4.2): the part k of ``h(rho) = k(rho) - c'rho`` is replaced by its envelope

    min_{rho'} k(rho') + gamma/2 ||rho + z/gamma - rho'||^2,

and z moves to ``z + gamma (rho - rho')`` after each minimisation, Eq. (40).  The paper does this
for the hinge and the epsilon-insensitive loss.  Here the logistic loss is treated alike: its h has
infinite slope at the walls, and steps that had to stay between the walls would come to a
standstill next to one.

Weights w of the points, 1 unless a user gives others, multiply their losses, so that h becomes
``w h(rho / w)``.

The envelope of a polyhedral k is piecewise quadratic, and Newton's method slows down at each
border between pieces.  So the corners of k are rounded off first, by a temperature T times the
negative entropy: k of the hinge loss becomes T times that of the logistic loss, and k of the
epsilon-insensitive loss becomes the same on both sides of zero.  The temperature falls to zero
with the duality gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from mkldist.core.arrays import Floats, Target
from mkldist.core.compiled import compiled
from mkldist.methods.components import Component
from mkldist.solvers import svm as hinge

_BIAS_STEPS = 100
_DOUBLINGS = 200  # of a bracket
_INSIDE = 1.0 - 1e-10  # share of a slope that phi may only reach at infinity


@dataclass(frozen=True, eq=False)
class Curve:
    """The smoothed h at a point."""

    value: float  # its value
    gradient: Floats  # (n,) its gradient
    hessian: Floats  # (n,) the diagonal of its Hessian
    # (n,) where a minimisation that ends at the point moves the multipliers, Eq. (40)
    multipliers: Floats


@dataclass(frozen=True)
class Smoothing:
    """Smoothing of the walls and kinks of h."""

    gamma: float  # penalty gamma of their multipliers; infinite for none, of the logistic loss
    temperature: float = 0.0  # factor T of the entropy that rounds off a polyhedral h; 0 for none


class Loss(ABC):
    """A convex loss on labels y (n,), with positive weights (n,) of the points, by default 1."""

    target = Target.CLASSES
    polyhedral = False
    """True if h has no curvature between its kinks."""
    has_walls = False
    """True if the ends of the domain of h, or its kinks, need multipliers in the paper, too."""
    curvature = 0.0
    """Modulus of strong convexity of h at weights of 1."""
    offset = 0.0
    """Shift of the labels, to be added to the bias of a predictor of `y`."""

    def __init__(self, y: Floats, weights: Floats | None = None) -> None:
        self.y, self.weights = y, weights
        self.w = np.ones(len(y)) if weights is None else weights

    @property
    def dual_curvature(self) -> float:
        """Modulus of strong convexity of h."""
        return self.curvature / float(self.w.max())

    @abstractmethod
    def value(self, f: Floats) -> float:
        """Return the sum of losses of predictions `f` (n,), bias included."""

    @abstractmethod
    def conjugate(self, rho: Floats) -> float:
        """Return ``h(rho)`` for `rho` (n,) in its domain."""

    @abstractmethod
    def into_domain(self, rho: Floats) -> Floats:
        """Return the point of the domain of h nearest to `rho`."""

    @abstractmethod
    def start(self) -> Floats:
        """Return a point well inside the domain with sum zero."""

    @abstractmethod
    def best_bias(self, f: Floats) -> float:
        """Return a minimiser over b of the loss of ``f + b``."""

    @abstractmethod
    def smoothed(self, rho: Floats, multipliers: Floats, smoothing: Smoothing) -> Curve:
        """Return h at `rho`, with its part of kinks and walls replaced by the envelope."""

    def steepest(self, f: Floats) -> float:
        """Return the largest slope of a point's loss at predictions `f`, or an upper bound."""
        return float(self.w.max())

    def entropy(self, rho: Floats) -> float:
        """Return the most by which a temperature of one lowers h at `rho`; 0 for smooth h."""
        return 0.0

    def feasible(self, rho: Floats) -> Floats:
        """Return a point of the domain with sum zero near `rho`.

        The larger of the positive and the negative total is scaled down to the other.
        """
        inside = self.into_domain(rho)
        up, down = inside[inside > 0].sum(), -inside[inside < 0].sum()
        if up > down:
            return np.where(inside > 0, inside * (down / up), inside)
        if down > up:
            return np.where(inside < 0, inside * (up / down), inside)
        return inside


class _Shifted(Loss):
    """A loss of real values, taken relative to their median, which the bias gives back.

    Differences of the values so keep their digits however far the values lie from zero, and values
    that are all equal become exactly zero.
    """

    target = Target.VALUES

    def __init__(self, y: Floats, weights: Floats | None = None) -> None:
        self.offset = float(np.median(y))
        super().__init__(y - self.offset, weights)

    def _mean(self, values: Floats) -> float:
        """Return the mean of values (n,), each as often as its point weighs."""
        return float(np.average(values, weights=self.weights))


class Squared(_Shifted):
    """``1/2 (y - f)^2``: kernel ridge regression's loss."""

    curvature = 1.0

    def value(self, f: Floats) -> float:
        residual = self.y - f
        return 0.5 * float(residual @ (self.w * residual))

    def conjugate(self, rho: Floats) -> float:
        return 0.5 * float(rho @ (rho / self.w)) - float(self.y @ rho)

    def steepest(self, f: Floats) -> float:
        return float((self.w * np.abs(self.y - f)).max())

    def into_domain(self, rho: Floats) -> Floats:
        return rho

    def feasible(self, rho: Floats) -> Floats:
        centred: Floats = rho - self.w * (rho.sum() / self.w.sum())
        return centred

    def start(self) -> Floats:
        return self.w * (self.y - self._mean(self.y))

    def best_bias(self, f: Floats) -> float:
        return self._mean(self.y - f)

    def smoothed(self, rho: Floats, multipliers: Floats, smoothing: Smoothing) -> Curve:
        return Curve(self.conjugate(rho), rho / self.w - self.y, 1.0 / self.w, multipliers)


@dataclass(frozen=True, eq=False)
class _Nearest:
    """The point ``r = argmin k(r) + gamma/2 ||r - point||^2`` of an envelope."""

    away: Floats
    """``point - r``, (n,), without that subtraction, whose error large penalties multiply."""
    moving: Floats  # (n,) derivatives of r by the point
    value: float  # k(r)


class _Enveloped(Loss):
    """``h = k - c'rho`` whose part k is replaced by its envelope."""

    @abstractmethod
    def _nearest(self, point: Floats, smoothing: Smoothing) -> _Nearest:
        """Return the minimiser that defines the envelope of k at a point."""

    @property
    def _linear(self) -> Floats:
        """The slope c."""
        return self.y if self.polyhedral else np.zeros_like(self.y)

    def smoothed(self, rho: Floats, multipliers: Floats, smoothing: Smoothing) -> Curve:
        gamma, linear = smoothing.gamma, self._linear
        point = rho + multipliers / gamma
        nearest = self._nearest(point, smoothing)
        away = nearest.away
        value = nearest.value + 0.5 * gamma * float(away @ away) - float(linear @ rho)
        pull = gamma * away
        return Curve(value, pull - linear, gamma * (1.0 - nearest.moving), pull)


class _OfMargins(_Enveloped):
    """A loss of y f, whose h is finite for ``0 <= y rho <= w``."""

    def into_domain(self, rho: Floats) -> Floats:
        return self.y * np.clip(self.y * rho, 0.0, self.w)

    def start(self) -> Floats:
        """Return half of every weight, the heavier class scaled down so that the sum is zero."""
        y, w = self.y, self.w
        positives, negatives = float(w[y > 0].sum()), float(w[y < 0].sum())
        smaller = min(positives, negatives)
        return 0.5 * w * np.where(y > 0, smaller / positives, -smaller / negatives)

    def _entropic(self, point: Floats, gamma: float, temperature: float) -> _Nearest:
        """Return the minimiser for k equal to the negative entropy times a temperature."""
        scaled = gamma * self.w / temperature
        nearest = entropic_prox(self.y * point / self.w, scaled, self.w)
        away = self.y * self.w * nearest.gaps
        return _Nearest(away, nearest.slopes, temperature * nearest.value)


class Logistic(_OfMargins):
    """``log(1 + exp(-y f))``; h is the negative entropy of ``t = y rho``, Eq. (16)."""

    curvature = 4.0

    def value(self, f: Floats) -> float:
        return float(self.w @ np.logaddexp(0.0, -self.y * f))

    def conjugate(self, rho: Floats) -> float:
        return -_entropy(self.y * rho / self.w, self.w)

    def best_bias(self, f: Floats) -> float:
        reach = float(np.abs(f).max()) + np.log(self.w.sum() / self.w.min()) + 1.0
        b, low, high = 0.0, -reach, reach
        for _ in range(_BIAS_STEPS):
            wrong = scipy.special.expit(-self.y * (f + b))
            slope = -float((self.w * self.y) @ wrong)
            low, high = (b, high) if slope < 0.0 else (low, b)
            curvature = float((self.w * wrong) @ (1.0 - wrong))
            moved = b - slope / curvature if abs(slope) < reach * curvature else np.inf
            if not low < moved < high:
                moved = 0.5 * (low + high)
            if abs(moved - b) <= 1e-15 * (1.0 + abs(b)):
                break
            b = moved
        return b

    def smoothed(self, rho: Floats, multipliers: Floats, smoothing: Smoothing) -> Curve:
        if np.isfinite(smoothing.gamma):
            return super().smoothed(rho, multipliers, smoothing)
        t = self.y * rho / self.w
        if not 0.0 < t.min() <= t.max() < 1.0:
            return Curve(np.inf, np.zeros_like(t), np.zeros_like(t), multipliers)
        gradient = self.y * scipy.special.logit(t)
        return Curve(self.conjugate(rho), gradient, 1.0 / (self.w * t * (1.0 - t)), multipliers)

    def _nearest(self, point: Floats, smoothing: Smoothing) -> _Nearest:
        return self._entropic(point, smoothing.gamma, 1.0)


class Hinge(_OfMargins):
    """``max(0, 1 - y f)``; the walls of ``0 <= y rho <= w`` have multipliers (3.4.1)."""

    polyhedral = has_walls = True

    def value(self, f: Floats) -> float:
        return float(self.w @ np.maximum(0.0, 1.0 - self.y * f))

    def conjugate(self, rho: Floats) -> float:
        return -float(self.y @ rho)

    def entropy(self, rho: Floats) -> float:
        return _entropy(np.clip(self.y * rho / self.w, 0.0, 1.0), self.w)

    def best_bias(self, f: Floats) -> float:
        return hinge.best_bias(f, self.y, self.weights)

    def _nearest(self, point: Floats, smoothing: Smoothing) -> _Nearest:
        if smoothing.temperature > 0.0:
            return self._entropic(point, smoothing.gamma, smoothing.temperature)
        t = self.y * point
        moving = ((t > 0.0) & (t < self.w)).astype(np.float64)
        return _Nearest(point - self.into_domain(point), moving, 0.0)


class EpsilonInsensitive(_Shifted, _Enveloped):
    """``max(0, |y - f| - epsilon)``; the kink at zero and the walls have multipliers (3.4.2)."""

    polyhedral = has_walls = True

    def __init__(self, y: Floats, epsilon: float, weights: Floats | None = None) -> None:
        super().__init__(y, weights)
        self.epsilon = epsilon

    def value(self, f: Floats) -> float:
        return float(self.w @ np.maximum(0.0, np.abs(self.y - f) - self.epsilon))

    def into_domain(self, rho: Floats) -> Floats:
        return np.clip(rho, -self.w, self.w)

    def start(self) -> Floats:
        signs = np.sign(self.y - np.median(self.y))
        return 0.5 * self.w * (signs - self._mean(signs))

    def best_bias(self, f: Floats) -> float:
        residual = self.y - f
        kinks = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        if self.weights is not None:
            return hinge.middle_kink(kinks, np.tile(self.w, 2), float(self.w.sum()))
        kinks.sort()
        n = len(residual)
        return float(0.5 * (kinks[n - 1] + kinks[n]))

    def conjugate(self, rho: Floats) -> float:
        return self.epsilon * float(np.abs(rho).sum()) - float(self.y @ rho)

    def entropy(self, rho: Floats) -> float:
        a = 0.5 + 0.5 * np.minimum(np.abs(rho) / self.w, 1.0)
        return 2.0 * _entropy(a, self.w)

    def _nearest(self, point: Floats, smoothing: Smoothing) -> _Nearest:
        gamma, temperature = smoothing.gamma, smoothing.temperature
        if temperature > 0.0:
            w, scaled = self.w, gamma * self.w / temperature
            near = entropic_prox(point / w, scaled, w, width=self.epsilon / temperature)
            return _Nearest(w * near.gaps, near.slopes, temperature * near.value)
        excess = np.abs(point) - self.epsilon / gamma
        size = np.clip(excess, 0.0, self.w)
        moving = ((excess > 0.0) & (excess < self.w)).astype(np.float64)
        return _Nearest(point - np.sign(point) * size, moving, self.epsilon * float(size.sum()))


@dataclass(frozen=True, eq=False)
class LossFunction(Component):
    """A convex, differentiable loss of the user: ``phi(y f)`` of classes, ``phi(y - f)`` of values.

    The conjugate of phi, which the certificate rests on, is found by Newton's method: phi'(u) = s
    gives ``phi*(s) = s u - phi(u)``.

    Parameters
    ----------
    value, derivative, second_derivative : callable
        phi, phi' and phi'' on arrays (n,) of numbers u.  phi'' may jump.
    of : {"margins", "residuals"}
        What u is: margins ``y f`` of classes, or residuals ``y - f`` of values.
    least_slope, largest_slope : float
        Limits of phi' at minus and plus infinity; infinite where phi outgrows every line.

    Raises
    ------
    ValueError
        If phi' is no slope of a convex phi: where ``phi(v) < phi(u) + phi'(u) (v - u)`` for some
        u and v between -100 and 100.

    Examples
    --------
    >>> huber = LossFunction(
    ...     lambda u: np.where(np.abs(u) < 1, 0.5 * u**2, np.abs(u) - 0.5),
    ...     lambda u: np.clip(u, -1, 1),
    ...     lambda u: (np.abs(u) < 1).astype(float),
    ...     of="residuals", least_slope=-1.0, largest_slope=1.0)
    >>> huber.on(np.array([0.0, 1.0, 5.0])).value(np.zeros(3))
    4.0
    """

    value: Callable[[Floats], Floats]
    derivative: Callable[[Floats], Floats]
    second_derivative: Callable[[Floats], Floats]
    of: str
    least_slope: float = -np.inf
    largest_slope: float = np.inf

    def __post_init__(self) -> None:
        """Refuse functions that are no convex loss, for their bounds would be wrong."""
        if self.of not in ("margins", "residuals"):
            raise ValueError(f"found of = {self.of!r}; expected 'margins' or 'residuals'")
        sizes = np.geomspace(1e-3, 100.0, 26)
        u = np.concatenate([-sizes[::-1], [0.0], sizes])
        values, slopes = self.value(u), self.derivative(u)
        lines = values[:, None] + slopes[:, None] * (u - u[:, None])
        if not (lines <= values + 1e-9 * (1.0 + np.abs(values) + np.abs(lines))).all():
            raise ValueError("found a value below a tangent; expected a convex loss and its slope")
        if not self.least_slope <= slopes.min() <= slopes.max() <= self.largest_slope:
            found = f"slopes from {slopes.min():.3g} to {slopes.max():.3g}"
            expected = f"slopes from {self.least_slope:g} to {self.largest_slope:g}, as given"
            raise ValueError(f"found {found}; expected {expected}")
        if not self.least_slope <= 0.0 <= self.largest_slope:
            raise ValueError("found a loss without a lower bound; expected one that has a minimum")
        if self.of == "margins" and self.derivative(np.zeros(1))[0] >= 0.0:
            raise ValueError(
                "found a loss that does not fall at margin 0; expected a slope below 0"
            )

    @property
    def target(self) -> Target:
        """Kind of labels that the loss learns."""
        return Target.CLASSES if self.of == "margins" else Target.VALUES

    def on(self, y: Floats, weights: Floats | None = None) -> Loss:
        """Return the loss on labels `y` of points of some weights, (n,)."""
        return _Own(self, y, weights)


class _Own(_Enveloped):
    """A `LossFunction` phi on labels: ``rho = a phi'(u)``, a = -y of margins and 1 of residuals."""

    has_walls = True

    def __init__(self, phi: LossFunction, y: Floats, weights: Floats | None = None) -> None:
        self.target = phi.target
        if phi.of == "residuals":
            self.offset = float(np.median(y))
        super().__init__(y - self.offset, weights)
        self._phi = phi
        self._sign = -self.y if phi.of == "margins" else np.ones_like(self.y)

    @property
    def _linear(self) -> Floats:
        return self.y if self._phi.of == "residuals" else np.zeros_like(self.y)

    def _argument(self, f: Floats) -> Floats:
        """Return u: margins or residuals of predictions, (n,)."""
        return self._linear - self._sign * f

    def value(self, f: Floats) -> float:
        return float(self.w @ self._phi.value(self._argument(f)))

    def steepest(self, f: Floats) -> float:
        return float((self.w * np.abs(self._phi.derivative(self._argument(f)))).max())

    def into_domain(self, rho: Floats) -> Floats:
        least, largest = self._phi.least_slope, self._phi.largest_slope
        slopes = np.clip(self._sign * rho / self.w, least * _INSIDE, largest * _INSIDE)
        return self._sign * self.w * slopes

    def start(self) -> Floats:
        """Return half of the slopes at predictions of 0, made to have sum zero."""
        slopes = 0.5 * self._phi.derivative(self._linear)
        return self.feasible(self._sign * self.w * slopes)

    def best_bias(self, f: Floats) -> float:
        def slope(b: Floats) -> Floats:
            slopes = self._phi.derivative(self._argument(f + b))
            return np.array([-float(self._sign * self.w @ slopes)])

        def bend(b: Floats) -> Floats:
            return np.array([float(self.w @ self._phi.second_derivative(self._argument(f + b)))])

        return float(increasing_roots(slope, bend, 1)[0])

    def conjugate(self, rho: Floats) -> float:
        phi, slopes = self._phi, self._sign * rho / self.w
        u = increasing_roots(
            lambda u: phi.derivative(u) - slopes, phi.second_derivative, len(slopes)
        )
        reached = np.abs(phi.derivative(u) - slopes) <= 1e-6 * (1.0 + np.abs(slopes))
        values = np.where(reached, slopes * u - phi.value(u), np.inf)
        return float(self.w @ values) - float(self._linear @ rho)

    def _nearest(self, point: Floats, smoothing: Smoothing) -> _Nearest:
        """Return ``r = a w phi'(u)`` with ``u + gamma (w phi'(u) - a point) = 0``."""
        phi, strength = self._phi, smoothing.gamma * self.w
        aim = smoothing.gamma * self._sign * point
        u = increasing_roots(
            lambda u: u + strength * phi.derivative(u) - aim,
            lambda u: 1.0 + strength * phi.second_derivative(u),
            len(point),
        )
        slopes, bend = phi.derivative(u), strength * phi.second_derivative(u)
        away = self._sign * u / smoothing.gamma
        return _Nearest(away, bend / (1.0 + bend), float(self.w @ (slopes * u - phi.value(u))))


def increasing_roots(
    function: Callable[[Floats], Floats], slope: Callable[[Floats], Floats], n: int
) -> Floats:
    """Return the roots (n,) of n increasing functions, by Newton's steps within brackets."""
    low, high = -np.ones(n), np.ones(n)
    with np.errstate(all="ignore"):  # far from a root, where a value may overflow
        for _ in range(_DOUBLINGS):
            over, under = function(low) > 0.0, function(high) < 0.0
            if not (over | under).any():
                break
            low, high = (
                np.where(over, 4.0 * low, np.where(under, high, low)),
                np.where(under, 4.0 * np.abs(high), np.where(over, low, high)),
            )
        u = 0.5 * (low + high)
        for _ in range(_NEWTON_STEPS):
            excess = function(u)
            low, high = np.where(excess < 0.0, u, low), np.where(excess < 0.0, high, u)
            newton = u - excess / slope(u)
            inside = (newton > low) & (newton < high)
            moved = np.where(excess == 0.0, u, np.where(inside, newton, 0.5 * (low + high)))
            if (np.abs(moved - u) <= 4e-16 * (1.0 + np.abs(u))).all():
                break
            u = moved
    return u


def _entropy(t: Floats, w: Floats) -> float:
    """Return ``-sum_i w_i (t_i log t_i + (1 - t_i) log (1 - t_i))``."""
    return -float(w @ (scipy.special.xlogy(t, t) + scipy.special.xlogy(1.0 - t, 1.0 - t)))


_NEWTON_STEPS = 100
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
    centres: Floats,
    gamma: float | Floats,
    weights: Floats | None = None,
    *,
    width: float | None = None,
) -> EntropicProx:
    """Minimise ``e(t) + gamma/2 (t - p)^2`` over ``0 <= t <= 1`` for each centre p, (n,).

    With a `width` the points are ``a - b``, which minimise ``e(a) + e(b) + width (a + b) + gamma/2
    (a - b - p)^2``, and the value holds the entropic and the linear term.  `gamma` > 0 is one or
    (n,); `weights` (n,) are those of the points in the value, by default 1.

    The derivative of ``e(t) = t log t + (1 - t) log(1 - t)`` is the logit of t.  So the condition
    of optimality is an equation for one logit, which Newton steps within a bracket solve.
    """
    n, points, gaps, slopes = len(centres), *np.empty((3, len(centres)))
    weights, gammas = np.ones(n) if weights is None else weights, np.full(n, gamma, dtype=float)
    shifts = (0.0, np.inf) if width is None else (width, 2.0 * width)
    value = _write_prox(centres, gammas, *shifts, weights, points, gaps, slopes)
    return EntropicProx(points, gaps, slopes, value)


@compiled
def _write_prox(
    centres: Floats,
    gammas: Floats,
    width: float,
    shift: float,
    weights: Floats,
    points: Floats,
    gaps: Floats,
    slopes: Floats,
) -> float:
    """Write ``a - b``, its gaps and its slopes, and return the value of a and b.

    For ``p >= 0``, a being the larger, ``a = expit(x)`` and ``b = expit(-x - shift)`` with
    ``x + gamma (a - b) = gamma p - width``; an infinite shift leaves a alone, of any p.
    """
    value, alone = 0.0, shift == np.inf
    for i in range(len(centres)):
        gamma = gammas[i]
        size = centres[i] if alone else abs(centres[i])
        sign = 1.0 if alone or centres[i] >= 0.0 else -1.0
        x = _root(gamma * size - width, gamma, shift, size)
        a, not_a = _expit(x), _expit(-x)
        b, not_b = (0.0, 1.0) if alone else (_expit(-x - shift), _expit(x + shift))
        bend = gamma * (a * not_a + b * not_b)
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
    for _ in range(_NEWTON_STEPS):
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
