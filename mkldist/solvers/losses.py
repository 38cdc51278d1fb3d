r"""Losses of the block-norm formulation, each with the conjugate that its dual needs.

A loss ``l(y, f)``, summed over the points, enters the dual through ``h(rho) = l*(-rho)``, whose
argument is ``rho_i = -dl/df_i``; Suzuki & Tomioka 2011, Eqs. (16), (17) and (34).

===========  ================================  ===========================================
loss         l(y, f)                           h(rho)
===========  ================================  ===========================================
logistic     log(1 + exp(-y f))                t log t + (1 - t) log(1 - t),  t = y rho
hinge        max(0, 1 - y f)                   -t,  0 <= t <= 1
squared      1/2 (y - f)^2                     1/2 rho^2 - y rho
epsilon      max(0, \\|y - f\\| - epsilon)       -y rho + epsilon \\|rho\\|,  \\|rho\\| <= 1
===========  ================================  ===========================================

Newton's method needs h twice differentiable.  Where it is not, its kinks and the walls of its
domain are taken over by multipliers (Sections 3.4.1 and 3.4.2): with multipliers z and penalty
gamma the part ``k`` of h that is not smooth becomes its envelope

    min_{rho'} k(rho') + gamma/2 ||rho + z/gamma - rho'||^2,

and z moves to ``z + gamma (rho - rho')`` between the minimisations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlogy

from mkldist.solvers import svm
from mkldist.solvers.base import Target

Floats = npt.NDArray[np.float64]

_BIAS_STEPS = 100
_FLOOR, _WALL = 1e-200, 1.0 - 2.0**-52  # where rounding ends the open interval (0, 1)


@dataclass(frozen=True, eq=False)
class Curve:
    """A separable function at a point: its value, gradient and the diagonal of its Hessian."""

    value: float
    gradient: Floats
    hessian: Floats


class Loss(ABC):
    """A convex loss on labels y.

    Parameters
    ----------
    y : (n,) float64
        Labels.
    """

    target = Target.CLASSES
    has_multipliers = False

    def __init__(self, y: Floats) -> None:
        self.y = y

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
    def smoothed(self, rho: Floats, multipliers: Floats, gamma: float) -> Curve:
        """Return h at `rho` with its kinks and walls replaced by their envelopes.

        Parameters
        ----------
        rho, multipliers : (n,) float64
            The point, and the multipliers of kinks and walls.
        gamma : float
            Penalty.
        """

    def next_multipliers(self, rho: Floats, multipliers: Floats, gamma: float) -> Floats:
        """Return the multipliers after a minimisation that ended in `rho`."""
        return multipliers

    def longest_step(self, rho: Floats, direction: Floats) -> float:
        """Return the step along `direction` at which the smoothed h ends."""
        return np.inf

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


class Logistic(Loss):
    """``log(1 + exp(-y f))``; h has its walls at infinite slope, Newton stays inside."""

    def value(self, f: Floats) -> float:
        return float(np.logaddexp(0.0, -self.y * f).sum())

    def conjugate(self, rho: Floats) -> float:
        t = self.y * rho
        return float((xlogy(t, t) + xlogy(1.0 - t, 1.0 - t)).sum())

    def into_domain(self, rho: Floats) -> Floats:
        inside: Floats = self.y * np.clip(self.y * rho, 0.0, 1.0)
        return inside

    def start(self) -> Floats:
        return _balanced(self.y)

    def best_bias(self, f: Floats) -> float:
        reach = float(np.abs(f).max()) + np.log(len(f)) + 1.0
        b, low, high = 0.0, -reach, reach
        for _ in range(_BIAS_STEPS):
            wrong = expit(-self.y * (f + b))
            slope = -float(self.y @ wrong)
            low, high = (b, high) if slope < 0.0 else (low, b)
            curvature = float(wrong @ (1.0 - wrong))
            moved = b - slope / curvature if abs(slope) < reach * curvature else np.inf
            if not low < moved < high:
                moved = 0.5 * (low + high)
            if abs(moved - b) <= 1e-15 * (1.0 + abs(b)):
                break
            b = moved
        return b

    def smoothed(self, rho: Floats, multipliers: Floats, gamma: float) -> Curve:
        t = self.y * rho
        gradient = self.y * (np.log(t) - np.log1p(-t))
        return Curve(self.conjugate(rho), gradient, 1.0 / (t * (1.0 - t)))

    def longest_step(self, rho: Floats, direction: Floats) -> float:
        t, change = self.y * rho, self.y * direction
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wall = np.where(change > 0, _WALL - t, _FLOOR - t)
            room = np.where(change == 0.0, np.inf, wall / change)
        return max(float(room.min()), 0.0)


class Squared(Loss):
    """``1/2 (y - f)^2``: kernel ridge regression's loss."""

    target = Target.VALUES

    def value(self, f: Floats) -> float:
        residual = self.y - f
        return 0.5 * float(residual @ residual)

    def conjugate(self, rho: Floats) -> float:
        return 0.5 * float(rho @ rho) - float(self.y @ rho)

    def into_domain(self, rho: Floats) -> Floats:
        return rho

    def feasible(self, rho: Floats) -> Floats:
        centred: Floats = rho - rho.mean()
        return centred

    def start(self) -> Floats:
        centred: Floats = self.y - self.y.mean()
        return centred

    def best_bias(self, f: Floats) -> float:
        return float((self.y - f).mean())

    def smoothed(self, rho: Floats, multipliers: Floats, gamma: float) -> Curve:
        return Curve(self.conjugate(rho), rho - self.y, np.ones_like(rho))


class _Polyhedral(Loss):
    """``h(rho) = -y'rho + k(rho)`` with k polyhedral: constant slopes, kinks and walls."""

    has_multipliers = True

    @abstractmethod
    def _kinks(self, rho: Floats) -> float:
        """Return ``k(rho)`` within the domain."""

    @abstractmethod
    def _nearest(self, point: Floats, gamma: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return ``argmin_r k(r) + gamma/2 ||r - point||^2`` and where it moves with `point`."""

    def conjugate(self, rho: Floats) -> float:
        return self._kinks(rho) - float(self.y @ rho)

    def smoothed(self, rho: Floats, multipliers: Floats, gamma: float) -> Curve:
        point = rho + multipliers / gamma
        nearest, moving = self._nearest(point, gamma)
        away = point - nearest
        value = self._kinks(nearest) + 0.5 * gamma * float(away @ away) - float(self.y @ rho)
        return Curve(value, gamma * away - self.y, np.where(moving, 0.0, gamma))

    def next_multipliers(self, rho: Floats, multipliers: Floats, gamma: float) -> Floats:
        point = rho + multipliers / gamma
        return gamma * (point - self._nearest(point, gamma)[0])


class Hinge(_Polyhedral):
    """``max(0, 1 - y f)``; the walls of ``0 <= y rho <= 1`` have multipliers (3.4.1)."""

    def value(self, f: Floats) -> float:
        return float(np.maximum(0.0, 1.0 - self.y * f).sum())

    def into_domain(self, rho: Floats) -> Floats:
        inside: Floats = self.y * np.clip(self.y * rho, 0.0, 1.0)
        return inside

    def start(self) -> Floats:
        return _balanced(self.y)

    def best_bias(self, f: Floats) -> float:
        return svm.best_bias(f, self.y)

    def _kinks(self, rho: Floats) -> float:
        return 0.0

    def _nearest(self, point: Floats, gamma: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
        t = self.y * point
        nearest: Floats = self.y * np.clip(t, 0.0, 1.0)
        return nearest, (t > 0.0) & (t < 1.0)


class EpsilonInsensitive(_Polyhedral):
    """``max(0, |y - f| - epsilon)``; the kink at zero and the walls have multipliers (3.4.2).

    Parameters
    ----------
    y : (n,) float64
        Real labels.
    epsilon : float
        Half the width of the tube without loss.
    """

    target = Target.VALUES

    def __init__(self, y: Floats, epsilon: float) -> None:
        super().__init__(y)
        self.epsilon = epsilon

    def value(self, f: Floats) -> float:
        return float(np.maximum(0.0, np.abs(self.y - f) - self.epsilon).sum())

    def into_domain(self, rho: Floats) -> Floats:
        inside: Floats = np.clip(rho, -1.0, 1.0)
        return inside

    def start(self) -> Floats:
        signs = np.sign(self.y - np.median(self.y))
        centred: Floats = 0.5 * (signs - signs.mean())
        return centred

    def best_bias(self, f: Floats) -> float:
        residual = self.y - f
        kinks = np.sort(np.concatenate([residual - self.epsilon, residual + self.epsilon]))
        n = len(residual)
        return float(0.5 * (kinks[n - 1] + kinks[n]))

    def _kinks(self, rho: Floats) -> float:
        return self.epsilon * float(np.abs(rho).sum())

    def _nearest(self, point: Floats, gamma: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
        excess = np.abs(point) - self.epsilon / gamma
        size = np.clip(excess, 0.0, 1.0)
        return np.sign(point) * size, (excess > 0.0) & (excess < 1.0)


def _balanced(y: Floats) -> Floats:
    """Return half of every label, the larger class scaled down so that the sum is zero."""
    positives, negatives = int((y > 0).sum()), int((y < 0).sum())
    smaller = min(positives, negatives)
    return 0.5 * np.where(y > 0, smaller / positives, -smaller / negatives)
