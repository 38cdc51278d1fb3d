"""Regularisers of the block-norm formulation: ``sum_m psi(||f_m||)`` for one function psi.

With ``psi(s) = lam g(s^2)``, g concave and psi convex, this is Eq. (42) of Suzuki & Tomioka 2011;
the kernel weights of a solution are ``d_m = 1 / g'(||f_m||^2)`` up to one factor (Table 3).

===========  =======================================  ========================================
name         psi(s)                                   psi*(r)
===========  =======================================  ========================================
block1       lam s                                    0 if r <= lam, else infinite
elastic-net  lam [(1 - mix) s + mix/2 s^2]            (r - lam (1 - mix))_+^2 / (2 lam mix)
block-q      (lam/q) s^q,  1 < q <= 2                 (lam/p) (r/lam)^p,  1/p + 1/q = 1
uniform      lam/2 s^2                                r^2 / (2 lam)
===========  =======================================  ========================================

lam is the paper's C, and 1 / C of the methods' parameters.  For a regulariser of your own, subclass
:class:`Regularizer` with psi and its two derivatives, or give g and its two derivatives to
:class:`Concave`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.methods.components import Component

_ROOT_STEPS = 200
_CLEARANCE = 1e-10  # below the largest slope, where the conjugate's maximiser is at infinity
_LARGEST_POWER = 1e100  # of a dual norm; beyond it a parabola continues the conjugate


@dataclass(frozen=True, eq=False)
class Response:
    """Solution of ``max_s r s - psi(s) - damping/2 s^2`` for each entry of dual norms r."""

    value: Floats  # (S,) the maxima
    ratio: Floats  # (S,) ``s / r`` at the maximisers s; its limit where r is zero
    slope: Floats  # (S,) ``ds/dr``


class Regularizer(Component, ABC):
    """A convex, non-decreasing ``psi`` on norms ``s >= 0`` with ``psi(0) = 0``.

    ``psi'(s) / s`` must not increase in s, which means that g is concave.  This class solves the
    dual's maximisation by Newton's method within a bracket; a subclass that knows the solution in
    closed form overrides :meth:`response`.
    """

    @property
    def largest_slope(self) -> float:
        """Supremum of psi': beyond it the conjugate is infinite."""
        return np.inf

    @property
    @abstractmethod
    def threshold(self) -> float:
        """``psi'(0+)``: kernels whose dual norm does not exceed it are inactive."""

    @property
    def smooth_dual(self) -> bool:
        """True if psi* is finite everywhere, so that one minimisation of the dual is enough."""
        return bool(np.isinf(self.largest_slope))

    @abstractmethod
    def value(self, s: Floats) -> Floats:
        """Return psi at norms `s` (S,)."""

    @abstractmethod
    def derivative(self, s: Floats) -> Floats:
        """Return psi' at norms ``s > 0``."""

    @abstractmethod
    def curvature(self, s: Floats) -> Floats:
        """Return psi'' at norms ``s > 0``."""

    def response(self, r: Floats, damping: float) -> Response:
        """Return ``max_s r s - psi(s) - damping/2 s^2`` with maximisers.  Shapes: r (S,)."""
        s = np.zeros_like(r)
        active = r > self.threshold
        s[active] = self._roots(r[active], damping)
        value, ratio, slope = np.zeros_like(r), np.zeros_like(r), np.zeros_like(r)
        some = s[active]
        value[active] = r[active] * some - self.value(some) - 0.5 * damping * some**2
        ratio[active] = some / r[active]
        stiffness = self.curvature(some) + damping
        slope[active] = 1.0 / np.maximum(stiffness, np.finfo(np.float64).tiny)
        return Response(value, ratio, slope)

    def conjugate(self, r: Floats) -> Floats:
        """Return ``psi*(r)`` for dual norms `r` (M,), at most ``largest_slope``."""
        return self.response(r, 0.0).value

    def _roots(self, r: Floats, damping: float) -> Floats:
        """Solve ``psi'(s) + damping s = r`` for s > 0 by Newton steps within a bracket."""
        low, high = np.zeros_like(r), np.ones_like(r)
        for _ in range(_ROOT_STEPS):
            short = self.derivative(high) + damping * high < r
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 4.0 * high, high)
        s = 0.5 * (low + high)
        for _ in range(_ROOT_STEPS):
            excess = self.derivative(s) + damping * s - r
            low, high = np.where(excess < 0, s, low), np.where(excess < 0, high, s)
            stiffness = np.maximum(self.curvature(s) + damping, np.finfo(np.float64).tiny)
            newton = s - excess / stiffness
            inside = (newton > low) & (newton < high)
            moved = np.where(inside, newton, 0.5 * (low + high))
            if (np.abs(moved - s) <= 4e-16 * s).all():
                break
            s = moved
        return s


@dataclass(frozen=True)
class ElasticNet(Regularizer):
    """``lam [(1 - mix) s + mix/2 s^2]``, Eq. (43); mix 0 is block 1-norm, mix 1 uniform weights.

    Parameters
    ----------
    lam : float
        Strength.
    mix : float
        Share of the squared norm, in [0, 1].
    """

    lam: float
    mix: float

    @property
    def threshold(self) -> float:
        return self.lam * (1.0 - self.mix)

    @property
    def smooth_dual(self) -> bool:
        return self.mix > 0.0

    @property
    def largest_slope(self) -> float:
        return np.inf if self.mix > 0.0 else self.lam

    def value(self, s: Floats) -> Floats:
        return self.lam * ((1.0 - self.mix) * s + 0.5 * self.mix * s**2)

    def derivative(self, s: Floats) -> Floats:
        return self.lam * ((1.0 - self.mix) + self.mix * s)

    def curvature(self, s: Floats) -> Floats:
        return np.full_like(s, self.lam * self.mix)

    def conjugate(self, r: Floats) -> Floats:
        return super().conjugate(r) if self.mix > 0.0 else np.zeros_like(r)

    def response(self, r: Floats, damping: float) -> Response:
        stiffness = self.lam * self.mix + damping
        excess = np.maximum(r - self.threshold, 0.0)
        active = (excess > 0.0).astype(np.float64)
        if self.threshold == 0.0:  # every kernel is active; ratio is the limit of s / r at r = 0
            active[:] = 1.0
        ratio = np.divide(excess, r * stiffness, out=active / stiffness, where=r > 0.0)
        return Response(excess**2 / (2.0 * stiffness), ratio, active / stiffness)


def block1(lam: float) -> ElasticNet:
    """Return the block 1-norm, ``lam s``: Eq. (4)."""
    return ElasticNet(lam, 0.0)


def uniform(lam: float) -> ElasticNet:
    """Return the squared block 2-norm, ``lam/2 s^2``: uniform kernel weights."""
    return ElasticNet(lam, 1.0)


@dataclass(frozen=True)
class BlockQ(Regularizer):
    """``(lam/q) s^q`` with 1 < q <= 2.

    Parameters
    ----------
    lam : float
        Strength.
    q : float
        Exponent.
    """

    lam: float
    q: float

    @property
    def threshold(self) -> float:
        return 0.0

    def value(self, s: Floats) -> Floats:
        return (self.lam / self.q) * s**self.q

    def derivative(self, s: Floats) -> Floats:
        return self.lam * s ** (self.q - 1.0)

    def curvature(self, s: Floats) -> Floats:
        return self.lam * (self.q - 1.0) * s ** (self.q - 2.0)

    def response(self, r: Floats, damping: float) -> Response:
        if damping > 0.0:
            return super().response(r, damping)
        p = self.q / (self.q - 1.0)
        scaled = r / self.lam
        near = np.minimum(scaled, _LARGEST_POWER ** (1.0 / p))
        ratio = near ** (p - 2.0) / self.lam
        value = (self.lam / p) * near**p + 0.5 * self.lam**2 * ratio * (scaled**2 - near**2)
        return Response(value, ratio, np.where(scaled > near, ratio, (p - 1.0) * ratio))


@dataclass(frozen=True, eq=False)
class Concave(Regularizer):
    """``lam g(s^2)`` for a user's concave g, Eq. (42); ``s -> g(s^2)`` must be convex.

    Parameters
    ----------
    lam : float
        Strength.
    g, derivative_of_g, second_derivative_of_g : callable
        g, g' and g'' on arrays of squared norms u > 0; ``g(0) = 0``.
    threshold_of_g : float
        ``lim_{s -> 0} 2 s g'(s^2)``, e.g. 1 for ``g(u) = sqrt(u)`` and 0 where g' is finite at 0.
    largest_of_g : float
        ``lim_{s -> inf} 2 s g'(s^2)``; infinite where g(s^2) outgrows s.

    Examples
    --------
    >>> huber = Concave(1.0, lambda u: 2 * (np.sqrt(1 + u) - 1), lambda u: 1 / np.sqrt(1 + u),
    ...                 lambda u: -0.5 * (1 + u) ** -1.5, largest_of_g=2.0)
    >>> huber.value(np.array([0.0, np.sqrt(3.0)])).round(6).tolist()
    [0.0, 2.0]
    """

    lam: float
    g: Callable[[Floats], Floats]
    derivative_of_g: Callable[[Floats], Floats]
    second_derivative_of_g: Callable[[Floats], Floats]
    threshold_of_g: float = 0.0
    largest_of_g: float = np.inf

    @property
    def threshold(self) -> float:
        return self.lam * self.threshold_of_g

    @property
    def largest_slope(self) -> float:
        return self.lam * self.largest_of_g * (1.0 - _CLEARANCE)

    def value(self, s: Floats) -> Floats:
        return self.lam * self.g(s**2)

    def derivative(self, s: Floats) -> Floats:
        return self.lam * 2.0 * s * self.derivative_of_g(s**2)

    def curvature(self, s: Floats) -> Floats:
        u = s**2
        return self.lam * (2.0 * self.derivative_of_g(u) + 4.0 * u * self.second_derivative_of_g(u))
