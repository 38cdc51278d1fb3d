"""The inner objective of block-norm MKL: the dual of one proximal step.

With ``v_m = rho + alpha_m / gamma`` and ``r_m = ||v_m||_{K_m}`` the inner objective, Eqs. (25),
(41) and (47) of Suzuki & Tomioka 2011, is up to a constant

    phi(rho) = h(rho) + sum_m max_s { r_m s - psi(s) - s^2 / (2 gamma) }   s.t.  1'rho = 0,

where psi is the regulariser and h the loss's conjugate, whose kinks multipliers smooth.  With
``c_m = s_m / r_m`` and ``s_m' = ds_m/dr_m`` its derivatives are, Eqs. (26) and (27),

    grad phi = grad h + sum_m c_m K_m v_m,
    Hess phi = Hess h + sum_m c_m K_m + sum_m (s_m' - c_m) / r_m^2 (K_m v_m)(K_m v_m)',

and only kernels with ``r_m > psi'(0+)`` contribute.  ``gamma = inf`` gives the dual of the whole
problem, Eq. (48).

An iterate keeps ``K_m alpha_m`` and ``||alpha_m||_{K_m}`` in place of the coefficients alpha_m.
``K_m rho`` follows rho along a line by one product with its direction, so that a line search
costs no kernel.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from mkldist.bank.requests import Combine, Matvec, Request
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.methods.block_norm.losses import Curve, Loss, Smoothing
from mkldist.methods.block_norm.regularizers import Regularizer, Response
from mkldist.optim.factored_matrix import FactoredMatrix, best_form


def roots(squared: Floats) -> Floats:
    """Return the square roots of squared norms, zero where rounding made a square negative."""
    norms: Floats = np.sqrt(np.maximum(squared, 0.0))
    return norms


@dataclass(frozen=True, eq=False)
class Iterate:
    """Dual point, components and multipliers between two steps, for some of the kernels.

    Parameters
    ----------
    rho : (n,) float64
        Dual point.
    multipliers : (n,) float64
        Multipliers of the kinks and walls of h.
    kernels : (S,) intp
        Indices of the kernels at hand; the components of all others are zero.
    products : (S, n) float64
        ``K_m rho``.
    images : (S, n) float64
        ``K_m alpha_m``.
    norms : (S,) float64
        ``||f_m|| = ||alpha_m||_{K_m}``.
    steps_followed : int
        Newton steps by which `products` were updated since the bank last gave them.
    largest : float
        Largest ``max_i |rho_i|`` from which they were updated since: its rounding stays in them.
    """

    rho: Floats
    multipliers: Floats
    kernels: Ints
    products: Floats
    images: Floats
    norms: Floats
    steps_followed: int = 0
    largest: float = 0.0

    @classmethod
    def without_kernels(cls, rho: Floats) -> Iterate:
        """Return the iterate at `rho` with no kernels and no multipliers."""
        none, n = np.empty(0, dtype=np.intp), len(rho)
        return cls(rho, np.zeros(n), none, np.empty((0, n)), np.empty((0, n)), np.empty(0))

    @property
    def size(self) -> float:
        """``max_i |rho_i|``, at least the smallest positive number."""
        return max(float(np.abs(self.rho).max()), np.finfo(np.float64).tiny)

    def scaled(self, factor: float) -> Iterate:
        """Return the iterate with a multiple of rho, and the same components."""
        return replace(
            self,
            rho=factor * self.rho,
            products=factor * self.products,
            largest=abs(factor) * self.largest,
        )

    def given(self, products: Floats) -> Iterate:
        """Return the iterate with the products (S, n) that the bank just gave."""
        return replace(self, products=products, steps_followed=0, largest=0.0)


def enlarged(iterate: Iterate, kernels: Ints) -> Generator[Request, Any, Iterate]:
    """Return the iterate with more kernels at hand, whose components are zero."""
    if not len(kernels):
        return iterate
    products = yield Matvec(kernels, iterate.rho)
    return replace(
        iterate,
        kernels=np.concatenate([iterate.kernels, kernels]),
        products=np.concatenate([iterate.products, products]),
        images=np.concatenate([iterate.images, np.zeros_like(products)]),
        norms=np.concatenate([iterate.norms, np.zeros(len(kernels))]),
    )


def reduced(iterate: Iterate, kept: Bools) -> Iterate:
    """Return the iterate without the kernels that `kept` (S,) does not name."""
    return replace(
        iterate,
        kernels=iterate.kernels[kept],
        products=iterate.products[kept],
        images=iterate.images[kept],
        norms=iterate.norms[kept],
    )


@dataclass(frozen=True, eq=False)
class InnerPoint:
    """A point with the value, the gradient and the parts of phi there.

    Parameters
    ----------
    rho : (n,) float64
        The point.
    products : (S, n) float64
        ``K_m rho``.
    value : float
        ``phi(rho)``.
    gradient : (n,) float64
        Eq. (26).
    radii : (S,) float64
        The dual norms ``r_m``.
    response : Response
        The maximisers ``s_m`` at these norms.
    curve : Curve
        The smoothed h.
    """

    rho: Floats
    products: Floats
    value: float
    gradient: Floats
    radii: Floats
    response: Response
    curve: Curve

    @property
    def rounding_scale(self) -> float:
        """Size of the terms of phi, against which rounding errors are small."""
        return abs(self.curve.value) + float(self.response.value.sum())


@dataclass(frozen=True, eq=False)
class ThinHessian:
    """The Hessian ``diag(curvature) + K + bends bends'``, never multiplied out.

    Parameters
    ----------
    curvature : (n,) float64
        Diagonal of the Hessian of h.
    K : FactoredMatrix
        ``sum_m c_m K_m``.
    bends : (n, b) float64
        ``sqrt(s_m' - c_m) / r_m K_m v_m`` as columns.
    """

    curvature: Floats
    K: FactoredMatrix
    bends: Floats


@dataclass(frozen=True, eq=False)
class InnerObjective:
    """The function phi of one outer iteration.

    Parameters
    ----------
    loss : Loss
        Loss with its labels.
    regularizer : Regularizer
        psi.
    anchor : Iterate
        Iterate whose ``alpha_m`` and multipliers phi depends on.
    smoothing : Smoothing
        Smoothing of h.
    damping : float
        ``1 / gamma``; 0 leaves out the proximal term.
    """

    loss: Loss
    regularizer: Regularizer
    anchor: Iterate
    smoothing: Smoothing
    damping: float

    def at(self, rho: Floats, products: Floats, curve: Curve | None = None) -> InnerPoint:
        """Evaluate phi and its gradient, Eq. (26).

        Parameters
        ----------
        rho : (n,) float64
            The point.
        products : (S, n) float64
            ``K_m rho``.
        curve : Curve, optional
            The smoothed h there, where it is known.
        """
        squared = products @ rho
        if self.damping > 0.0:
            alpha_squared = self.damping * self.anchor.norms**2
            squared += self.damping * (2.0 * (self.anchor.images @ rho) + alpha_squared)
        radii = roots(squared)
        response = self.regularizer.response(radii, self.damping)
        if curve is None:
            curve = self.curve_at(rho)
        gradient = curve.gradient + response.ratio @ products
        if self.damping > 0.0:
            gradient += (self.damping * response.ratio) @ self.anchor.images
        value = curve.value + float(response.value.sum())
        return InnerPoint(rho, products, value, gradient, radii, response, curve)

    def hessian(
        self, point: InnerPoint, memory: Floats | None = None
    ) -> Generator[Request, Any, Floats | ThinHessian]:
        """Ask for the combined kernel and return the Hessian at a point, Eq. (27).

        Parameters
        ----------
        point : InnerPoint
            Where.
        memory : (n, n) float64, optional
            A former Hessian, which this one may overwrite.

        Returns
        -------
        (n, n) float64 or ThinHessian
            The latter where the bank answers with an operator that stays one, see
            :func:`mkldist.optim.factored_matrix.best_form`.
        """
        K = best_form((yield Combine(point.response.ratio, self.anchor.kernels, memory, thin=True)))
        scales, images = self._bends(point)
        if isinstance(K, FactoredMatrix):
            return ThinHessian(point.curve.hessian, K, (np.sqrt(scales)[:, None] * images).T)
        if len(scales):
            scaled = (scales[:, None] * images).T
            # K is symmetric, and its transpose is in the order of columns that BLAS writes to
            scipy.linalg.blas.dgemm(1.0, scaled, images.T, 1.0, K.T, trans_b=1, overwrite_c=1)
        K.flat[:: len(K) + 1] += point.curve.hessian
        return K

    def _bends(self, point: InnerPoint) -> tuple[Floats, Floats]:
        """Return the b factors ``s_m' - c_m`` and vectors ``K_m v_m / r_m`` (b, n) in Eq. (27)."""
        ratio, slope = point.response.ratio, point.response.slope
        bent = np.flatnonzero((slope > 0.0) & (point.radii > 0.0))
        images = point.products[bent]
        if self.damping > 0.0:
            images = images + self.damping * self.anchor.images[bent]
        return np.maximum(slope[bent] - ratio[bent], 0.0), images / point.radii[bent, None]

    def curve_at(self, rho: Floats) -> Curve:
        """Return the smoothed h at a point."""
        return self.loss.smoothed(rho, self.anchor.multipliers, self.smoothing)

    def proximal_step(self, iterate: Iterate, point: InnerPoint) -> Iterate:
        """Move the components and the multipliers to where the minimiser of phi puts them.

        The new ``alpha_m`` is ``prox(alpha_m + gamma rho)``, for block1 the soft threshold,
        Eqs. (11) and (39); the loss's multipliers move by Eq. (40).

        Parameters
        ----------
        iterate : Iterate
            The minimiser rho of phi with its products.
        point : InnerPoint
            The parts of phi there.
        """
        ratio = point.response.ratio
        return replace(
            iterate,
            multipliers=point.curve.multipliers,
            images=ratio[:, None] * (self.damping * self.anchor.images + iterate.products),
            norms=ratio * point.radii,
        )


class Line:
    """phi along a line, which costs no kernel.

    The last trial is kept: a search ends at it, so that h is computed there once.

    Parameters
    ----------
    phi : InnerObjective
        phi.
    point : InnerPoint
        Where the line begins.
    direction : (n,) float64
        Its direction d.
    changes : (S, n) float64
        ``K_m d``.
    """

    def __init__(
        self, phi: InnerObjective, point: InnerPoint, direction: Floats, changes: Floats
    ) -> None:
        self._phi, self._point = phi, point
        self._direction, self._changes = direction, changes
        self._linear = changes @ point.rho
        if phi.damping > 0.0:
            self._linear += phi.damping * (phi.anchor.images @ direction)
        self._squared, self._start_squared = changes @ direction, point.radii**2
        self._trial: tuple[float, Floats, Curve] | None = None

    def slope_at(self, step: float) -> float:
        """Return phi's slope at a step."""
        linear, bent = self._linear, step * self._squared
        radii = roots(self._start_squared + step * (2.0 * linear + bent))
        ratio = self._phi.regularizer.response(radii, self._phi.damping).ratio
        _, curve = self._tried(step)
        return float(curve.gradient @ self._direction) + float(ratio @ (linear + bent))

    def at(self, step: float) -> InnerPoint:
        """Return phi, its gradient and its parts at a step."""
        rho, curve = self._tried(step)
        return self._phi.at(rho, self._point.products + step * self._changes, curve)

    def _tried(self, step: float) -> tuple[Floats, Curve]:
        """Return rho and the smoothed h at a step, and keep them."""
        if self._trial is None or self._trial[0] != step:
            rho = self._point.rho + step * self._direction
            self._trial = (step, rho, self._phi.curve_at(rho))
        return self._trial[1:]
