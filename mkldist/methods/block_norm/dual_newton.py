"""Newton's method on the proximal dual of block-norm MKL, over a working set of kernels.

With ``v_m = rho + alpha_m / gamma`` and ``r_m = ||v_m||_{K_m}``, the inner objective of
SpicyMKL (Suzuki & Tomioka 2011, Eqs. (25) and (41)) is, up to a constant,

    phi(rho) = h(rho) + sum_m max_s { r_m s - psi(s) - s^2 / (2 gamma) }   s.t.  1'rho = 0,

where h is the loss's conjugate with its kinks smoothed by multipliers and psi the regulariser.
With ``c_m = s_m / r_m`` and ``s_m' = ds_m/dr_m`` its derivatives are Eqs. (26) and (27),

    grad phi = grad h + sum_m c_m K_m v_m,
    Hess phi = Hess h + sum_m c_m K_m + sum_m (s_m' - c_m) / r_m^2 (K_m v_m)(K_m v_m)',

and only kernels with ``r_m > psi'(0+)`` contribute.  ``gamma = inf`` is the dual itself.

Of the coefficients ``alpha_m`` only ``K_m alpha_m`` and ``alpha_m' K_m alpha_m`` are kept, and
``K_m rho`` follows rho along a line by one product with its direction, so that a line search
costs no kernel.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dposv, dpotrs

from mkldist.arrays import Bools, Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Matvec, Request
from mkldist.methods.block_norm.losses import Curve, Loss, Smoothing
from mkldist.methods.block_norm.regularizers import Regularizer, Response
from mkldist.optim.line_search import root_of_slope

STEP_LIMIT = 100  # Newton steps of one minimisation
STALE = 8  # steps that products follow, before they are formed anew
SLOPE_SHARE = 0.1  # of the first slope, that a line search may leave
RIDGE = 1e-14
ROUNDING = 1e-17  # of phi, below which a decrement says nothing
LONGEST = 1e4  # of a direction, where the domain has size one


@dataclass(frozen=True, eq=False)
class _Point:
    """phi and its parts at one rho."""

    value: float
    gradient: Floats
    radii: Floats
    response: Response
    curve: Curve


@dataclass(frozen=True, eq=False)
class DualState:
    """A point and its multipliers.

    Parameters
    ----------
    rho : (n,) float64
        The point.
    kernels : (S,) intp
        The working set.
    images, squares : (S, n) and (S,) float64
        ``K_m alpha_m`` and ``alpha_m' K_m alpha_m``.
    multipliers : (n,) float64
        Of the loss.
    """

    rho: Floats
    kernels: Ints
    images: Floats
    squares: Floats
    multipliers: Floats


class ProximalDual:
    """The inner objective: its multipliers, its working set and the point reached.

    Parameters
    ----------
    loss : Loss
        With its labels.
    regularizer : Regularizer
        psi.
    counters : Counters
        Where Newton steps and requests are counted.
    """

    def __init__(self, loss: Loss, regularizer: Regularizer, counters: Counters) -> None:
        n = len(loss.y)
        self.rho = loss.start()
        self.kernels: Ints = np.empty(0, dtype=np.intp)
        self.damping = 0.0
        self.smoothing = Smoothing(1.0)
        self._loss, self._regularizer = loss, regularizer
        self._counters = counters
        self._multipliers = np.zeros(n)
        self._products = np.empty((0, n))  # K_m rho
        self._stale = 0  # steps whose rounding they carry
        self._images = np.empty((0, n))  # K_m alpha_m
        self._squares = np.empty(0)  # alpha_m' K_m alpha_m
        self._matrix: Floats | None = None  # what was the last Hessian

    @property
    def state(self) -> DualState:
        """Where another minimisation may start."""
        return DualState(self.rho, self.kernels, self._images, self._squares, self._multipliers)

    def go_on(self, start: DualState, scale: float) -> Generator[Request, Any, None]:
        """Take over the working set, its components and multipliers, and a multiple of rho."""
        self.rho, self.kernels = scale * start.rho, start.kernels
        self._images, self._squares = start.images, start.squares
        self._multipliers = start.multipliers
        self._products = yield Matvec(self.kernels, self.rho)

    def drop(self, outside: Bools) -> None:
        """Take kernels out of the working set whose ``alpha_m`` is zero.

        Parameters
        ----------
        outside : (S,) bool
            Which of the working set's kernels are no longer wanted.
        """
        kept = ~outside | (self._squares > 0.0)
        if not kept.all():
            self.kernels = self.kernels[kept]
            self._products, self._images = self._products[kept], self._images[kept]
            self._squares = self._squares[kept]

    def enlarge(self, kernels: Ints) -> Generator[Request, Any, None]:
        """Take more kernels into the working set, with ``alpha_m = 0``."""
        if not len(kernels):
            return
        products = yield Matvec(kernels, self.rho)
        self.kernels = np.concatenate([self.kernels, kernels])
        self._products = np.concatenate([self._products, products])
        self._images = np.concatenate([self._images, np.zeros_like(products)])
        self._squares = np.concatenate([self._squares, np.zeros(len(kernels))])

    def minimise(self, accuracy: float) -> Generator[Request, Any, None]:
        """Minimise phi over the working set by Newton steps with a search along each.

        Parameters
        ----------
        accuracy : float
            Half the Newton decrement, an estimate of what is left to gain, at which to stop.
        """
        point = self._at(self.rho, self._products)
        self._stale += yield from self._newton(point, accuracy)
        if self._stale >= STALE and len(self.kernels):
            self._products = yield Matvec(self.kernels, self.rho)
            self._stale = 0

    def _newton(self, point: _Point, accuracy: float) -> Generator[Request, Any, int]:
        """Go by Newton steps from a point; return how many were taken."""
        for steps in range(STEP_LIMIT):
            H = yield from self._hessian(point)
            model = _newton_model(H, point.gradient, self._loss.polyhedral)
            direction = model.direction
            decrement = -float(point.gradient @ direction)
            self._counters.newton_steps += 1
            rounding = ROUNDING * (abs(point.curve.value) + float(point.response.value.sum()))
            if 0.5 * decrement <= rounding:
                yield from self._polish(point, direction, rounding)
                return steps + 1
            if 0.5 * decrement <= accuracy:
                return steps
            changes = yield Matvec(self.kernels, direction)
            step = self._line_search(point, direction, changes)
            if step == 0.0:
                return steps
            self.rho = self.rho + step * direction
            self._products = self._products + step * changes
            point = self._at(self.rho, self._products)
            if step == 1.0 and rounding < model.left_to_gain(point.gradient) <= accuracy:
                return steps + 1
        return STEP_LIMIT

    def _polish(
        self, point: _Point, direction: Floats, rounding: float
    ) -> Generator[Request, Any, None]:
        """Take a full step whose gain drowns in the rounding of phi, unless phi rises by more.

        Large penalties multiply what it corrects.
        """
        changes = yield Matvec(self.kernels, direction)
        rho, products = self.rho + direction, self._products + changes
        if self._at(rho, products).value <= point.value + 10.0 * rounding:
            self.rho, self._products = rho, products

    def advance(self) -> Floats:
        """Move ``alpha_m`` to its proximal point and the loss's multipliers (Eqs. (38)-(40)).

        Returns
        -------
        (S,) float64
            The norms ``s_m = ||f_m||`` of the working set's components.
        """
        point = self._at(self.rho, self._products)
        ratio = point.response.ratio
        norms: Floats = ratio * point.radii
        self._images = ratio[:, None] * (self.damping * self._images + self._products)
        self._squares = norms**2
        self._multipliers = self._loss.next_multipliers(self.rho, self._multipliers, self.smoothing)
        return norms

    @property
    def products(self) -> Floats:
        """``K_m rho`` of the working set, (S, n)."""
        return self._products

    @property
    def size(self) -> float:
        """``max_i |rho_i|``."""
        return max(float(np.abs(self.rho).max()), np.finfo(np.float64).tiny)

    def _radii(self, rho: Floats, products: Floats) -> Floats:
        """Return ``||rho + alpha_m / gamma||`` in the norm of each kernel."""
        squared = products @ rho
        if self.damping > 0.0:
            squared += self.damping * (2.0 * (self._images @ rho) + self.damping * self._squares)
        radii: Floats = np.sqrt(np.maximum(squared, 0.0))
        return radii

    def _at(self, rho: Floats, products: Floats) -> _Point:
        radii = self._radii(rho, products)
        response = self._regularizer.response(radii, self.damping)
        curve = self._loss.smoothed(rho, self._multipliers, self.smoothing)
        ratio = response.ratio
        gradient = curve.gradient + ratio @ products
        if self.damping > 0.0:
            gradient += (self.damping * ratio) @ self._images
        value = curve.value + float(response.value.sum())
        return _Point(value, gradient, radii, response, curve)

    def _hessian(self, point: _Point) -> Generator[Request, Any, Floats]:
        """Ask for the Hessian of phi at a point, Eq. (27)."""
        ratio, slope = point.response.ratio, point.response.slope
        H: Floats = yield Combine(ratio, self.kernels, self._matrix)
        self._matrix = H
        self._counters.combines += 1
        bent = np.flatnonzero((slope > 0.0) & (point.radii > 0.0))
        if len(bent):
            images = self._products[bent]
            if self.damping > 0.0:
                images = images + self.damping * self._images[bent]
            images = images / point.radii[bent, None]
            excess = slope[bent] - ratio[bent]
            scaled = (excess[:, None] * images).T
            dgemm(1.0, scaled, images.T, 1.0, H.T, trans_b=1, overwrite_c=1)  # H is symmetric
        H.flat[:: len(H) + 1] += point.curve.hessian
        return H

    def _line_search(self, point: _Point, direction: Floats, changes: Floats) -> float:
        """Return a step at which the slope of the convex phi has all but vanished.

        Where phi still falls at the full Newton step, that is taken: slopes tell so even where
        rounding hides differences of values.
        """
        slope = float(point.gradient @ direction)
        linear = (changes @ self.rho) + self.damping * (self._images @ direction)
        squared = changes @ direction

        def slope_at(step: float) -> float:
            radii = np.sqrt(
                np.maximum(point.radii**2 + step * (2.0 * linear + step * squared), 0.0)
            )
            ratio = self._regularizer.response(radii, self.damping).ratio
            rho = self.rho + step * direction
            curve = self._loss.smoothed(rho, self._multipliers, self.smoothing)
            return float(curve.gradient @ direction) + float(ratio @ (linear + step * squared))

        end = slope_at(1.0)
        if end <= SLOPE_SHARE * -slope:
            return 1.0
        return root_of_slope(slope_at, slope, 1.0, end_slope=end, share=SLOPE_SHARE)


@dataclass(frozen=True, eq=False)
class _Model:
    """The quadratic model of phi on ``1'd = 0``: a factor of H, ``H^-1 1``, and its minimiser."""

    factor: Floats
    of_ones: Floats
    direction: Floats

    def left_to_gain(self, gradient: Floats) -> float:
        """Return half the Newton decrement at a near point, whose curvature may be another."""
        solved, _ = dpotrs(self.factor, gradient, lower=1)
        return -0.5 * float(gradient @ _centred_step(-solved, self.of_ones))


def _newton_model(H: Floats, gradient: Floats, bounded: bool) -> _Model:
    """Solve ``H d + b 1 = -gradient``, ``1'd = 0``, with a ridge that allows it.

    A polyhedral loss has no curvature between its kinks, but a domain of size one: there a ridge
    in proportion to the gradient keeps the direction from leaving it by far.

    Parameters
    ----------
    H : (n, n) float64
        Overwritten.
    gradient : (n,) float64
        Of phi.
    bounded : bool
        Whether the loss is polyhedral.
    """
    n = len(gradient)
    centred = gradient - gradient.mean()
    diagonal = np.diagonal(H).copy()
    ridge = max(RIDGE * float(diagonal.mean()), np.finfo(np.float64).tiny)
    if bounded:
        ridge = max(ridge, float(np.abs(centred).max()) / LONGEST)
    right = np.column_stack([-centred, np.ones(n)])
    while True:
        H.flat[:: n + 1] = diagonal + ridge
        factor, solved, info = dposv(H.T, right, lower=1, overwrite_a=1)
        if not info:
            of_ones = solved[:, 1].copy()
            direction = _centred_step(solved[:, 0], of_ones)
            if np.isfinite(direction).all():
                return _Model(factor, of_ones, direction)
        if not np.isfinite(ridge):  # nor is H: no direction is known
            return _Model(np.eye(n, order="F"), np.ones(n), np.zeros(n))
        below = np.tril(H, -1)  # what the factorisation has left of H
        H[:] = below + below.T
        ridge *= 100.0


def _centred_step(solved: Floats, of_ones: Floats) -> Floats:
    """Return ``H^-1 v`` moved along ``H^-1 1`` so that it sums to zero."""
    direction: Floats = solved - of_ones * (solved.sum() / of_ones.sum())
    direction -= direction.mean()
    return direction
