"""The inner objective of block-norm MKL, the dual of one proximal step, and Newton's method on it.

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
costs no kernel.  The constraint ``1'rho = 0`` holds at every iterate: a Newton step solves the
bordered system ``H d + b 1 = -grad phi``, ``1'd = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from mkldist.bank.requests import Combine, Matvec
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.methods.block_norm_losses import Curve, Loss, Smoothing
from mkldist.methods.regularizers import Regularizer, Response
from mkldist.optim.descent import root_of_slope
from mkldist.optim.factored_matrix import FactoredMatrix, ThinSystem, best_form
from mkldist.solvers.base import Counters, Requesting


def roots(squared: Floats) -> Floats:
    """Return the square roots of squared norms, zero where rounding made a square negative."""
    return np.sqrt(np.maximum(squared, 0.0))


@dataclass(frozen=True, eq=False)
class Iterate:
    """Dual point, components and multipliers between two steps, for some of the kernels."""

    rho: Floats  # (n,) dual point
    multipliers: Floats  # (n,) multipliers of the kinks and walls of h
    kernels: Ints  # (S,) indices of the kernels at hand; the components of all others are zero
    products: Floats  # (S, n) ``K_m rho``
    images: Floats  # (S, n) ``K_m alpha_m``
    norms: Floats  # (S,) ``||f_m|| = ||alpha_m||_{K_m}``
    # Newton steps by which `products` were updated since the bank last gave them
    steps_followed: int = 0
    # largest ``max_i |rho_i|`` from which they were updated since: its rounding stays in them
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


def enlarged(iterate: Iterate, kernels: Ints) -> Requesting[Iterate]:
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
    """A point with the value, the gradient and the parts of phi there."""

    rho: Floats  # (n,) the point
    products: Floats  # (S, n) ``K_m rho``
    value: float  # ``phi(rho)``
    gradient: Floats  # (n,) Eq. (26)
    radii: Floats  # (S,) the dual norms ``r_m``
    response: Response  # the maximisers ``s_m`` at these norms
    curve: Curve  # the smoothed h


@dataclass(frozen=True, eq=False)
class ThinHessian:
    """The Hessian ``diag(curvature) + K + bends bends'``, never multiplied out."""

    curvature: Floats  # (n,) diagonal of the Hessian of h
    K: FactoredMatrix  # ``sum_m c_m K_m``
    bends: Floats  # (n, b) ``sqrt(s_m' - c_m) / r_m K_m v_m`` as columns


@dataclass(frozen=True, eq=False)
class InnerObjective:
    """The function phi of one outer iteration."""

    loss: Loss  # loss with its labels
    regularizer: Regularizer  # psi
    anchor: Iterate  # iterate whose ``alpha_m`` and multipliers phi depends on
    smoothing: Smoothing  # smoothing of h
    damping: float  # ``1 / gamma``; 0 leaves out the proximal term

    def at(self, rho: Floats, products: Floats, curve: Curve | None = None) -> InnerPoint:
        """Evaluate phi and its gradient, Eq. (26), at rho with products ``K_m rho`` (S, n)."""
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
        self, point: InnerPoint, memory: Floats | None = None, *, thin: bool = True
    ) -> Requesting[Floats | ThinHessian]:
        """Ask for the combined kernel and return the Hessian at a point, Eq. (27).

        It may overwrite `memory`, a former Hessian (n, n).  It is thin where the bank answers with
        an operator that stays one, see :func:`mkldist.optim.factored_matrix.best_form`.
        """
        K = best_form((yield Combine(point.response.ratio, self.anchor.kernels, memory, thin=thin)))
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
        """
        ratio = point.response.ratio
        return replace(
            iterate,
            multipliers=point.curve.multipliers,
            images=ratio[:, None] * (self.damping * self.anchor.images + iterate.products),
            norms=ratio * point.radii,
        )


class Line:
    """phi on the line from a point along d (n,), at no kernel; `changes` (S, n) are ``K_m d``.

    The last trial is kept: a search ends at it, so that h is computed there once.
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


RIDGE = 1e-14  # of the mean diagonal of the Hessian
LONGEST = 1e4  # of a direction, where the domain has size one
RESIDUAL = 0.05  # of the gradient, that conjugate gradients may leave


@dataclass(frozen=True, eq=False)
class DenseModel:
    """Model by a Hessian with all its entries."""

    factor: Floats  # (n, n) Cholesky factor of the Hessian H
    of_ones: Floats  # (n,) ``H^-1 1``
    direction: Floats  # (n,) minimiser d of the model

    @classmethod
    def of(cls, H: Floats, gradient: Floats, bounded: bool, *, centred: bool = True) -> DenseModel:
        """Return the model of a Hessian H, overwritten, made positive definite by a ridge.

        Its minimiser sums to zero if `centred`.
        """
        n = len(gradient)
        diagonal = np.diagonal(H).copy()
        ridge = _least_ridge(diagonal, gradient, bounded)
        right = np.column_stack([gradient.mean() * centred - gradient, np.ones(n)])
        while True:
            H.flat[:: n + 1] = diagonal + ridge
            factor, solved, info = scipy.linalg.lapack.dposv(H.T, right, lower=1, overwrite_a=1)
            if not info:
                of_ones = solved[:, 1].copy()
                direction = _centred_step(solved[:, 0], of_ones) if centred else solved[:, 0]
                if np.isfinite(direction).all():
                    return cls(factor, of_ones, direction)
            if not np.isfinite(ridge):  # H is not finite either: no direction is known
                return cls(np.eye(n, order="F"), np.ones(n), np.zeros(n))
            below = np.tril(H, -1)  # the part of H that the factorisation leaves
            H[:] = below + below.T
            ridge *= 100.0

    def left_to_gain(self, gradient: Floats) -> float:
        """Return half the Newton decrement at a near point, by this model's curvature."""
        solved, _ = scipy.linalg.lapack.dpotrs(self.factor, gradient, lower=1)
        return -0.5 * float(gradient @ _centred_step(-solved, self.of_ones))


@dataclass(frozen=True, eq=False)
class ThinModel:
    """Model by a Hessian of thin factors."""

    system: ThinSystem  # the Hessian with its preconditioner
    direction: Floats  # (n,) minimiser d of the model, up to a share of the gradient

    @classmethod
    def of(cls, H: ThinHessian, gradient: Floats, bounded: bool) -> ThinModel:
        """Return the model of a Hessian, with the ridge that one of all entries has."""
        diagonal = H.curvature + H.K.diagonal + np.einsum("nb,nb->n", H.bends, H.bends)
        ridge = _least_ridge(diagonal, gradient, bounded)
        weights, factors = np.append(H.K.weights, 1.0), [*H.K.factors, H.bends]
        system = ThinSystem(H.curvature + ridge, weights, factors, H.K.products)
        return cls(system, system.minimiser(gradient, RESIDUAL))

    def left_to_gain(self, gradient: Floats) -> float:
        """Return at least half the Newton decrement: the preconditioner lies below H."""
        return 0.5 * float(gradient @ self.system.preconditioned(gradient))


def _least_ridge(diagonal: Floats, gradient: Floats, bounded: bool) -> float:
    """Return the first ridge to try.

    A polyhedral loss has no curvature between its kinks, but its h has a domain of size one.  A
    ridge in proportion to the gradient keeps the direction from leaving that domain by far.
    """
    ridge = max(RIDGE * float(diagonal.mean()), np.finfo(np.float64).tiny)
    if bounded:
        ridge = max(ridge, float(np.abs(gradient - gradient.mean()).max()) / LONGEST)
    return ridge


def _centred_step(solved: Floats, of_ones: Floats) -> Floats:
    """Return ``H^-1 v`` moved along ``H^-1 1`` so that it sums to zero."""
    direction: Floats = solved - of_ones * (solved.sum() / of_ones.sum())
    direction -= direction.mean()
    return direction


STEP_LIMIT = 100  # Newton steps of one minimisation
STALE = 8  # steps after which the updated products are asked for again
SHRUNKEN = 10.0  # factor by which rho may shrink until then: their rounding is that of the larger
SLOPE_SHARE = 0.1  # of the first slope, that a line search may leave
ROUNDING = 1e-17  # of phi's terms: a smaller Newton decrement is rounding error


class _Descent(NamedTuple):
    """End of a minimisation, the number of Newton steps that led there, and the largest |rho_i|."""

    point: InnerPoint
    steps: int
    largest: float


class DualNewton:
    """Newton's method, which counts its steps and reuses the memory of its Hessians."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._memory: Floats | None = None  # of the last Hessian

    def minimise(
        self, phi: InnerObjective, start: Iterate, accuracy: float
    ) -> Requesting[tuple[Iterate, InnerPoint]]:
        """Minimise phi; return the iterate at the minimiser, and the parts of phi there.

        It stops where half the Newton decrement, an estimate of the gain left, is at most
        `accuracy`.
        """
        point, steps, largest = yield from self._descend(phi, start, accuracy)
        end = replace(
            start,
            rho=point.rho,
            products=point.products,
            steps_followed=start.steps_followed + steps,
            largest=max(start.largest, largest),
        )
        stale = end.steps_followed >= STALE or end.largest > SHRUNKEN * end.size
        if stale and len(end.kernels):
            end = end.given((yield Matvec(end.kernels, end.rho)))
            point = phi.at(end.rho, end.products, point.curve)
        return end, point

    def _descend(
        self, phi: InnerObjective, start: Iterate, accuracy: float
    ) -> Requesting[_Descent]:
        """Take Newton steps until little is left to gain."""
        point, largest = phi.at(start.rho, start.products), 0.0
        for steps in range(STEP_LIMIT):
            H = yield from phi.hessian(point, self._memory)
            model = self._model(H, point.gradient, phi.loss.polyhedral)
            direction = model.direction
            decrement = -float(point.gradient @ direction)
            self._counters.newton_steps += 1
            largest = max(largest, float(np.abs(point.rho).max()))
            rounding = ROUNDING * (abs(point.curve.value) + float(point.response.value.sum()))
            if 0.5 * decrement <= rounding:
                point = yield from _polished(phi, point, direction, rounding)
                return _Descent(point, steps + 1, largest)
            if 0.5 * decrement <= accuracy:
                return _Descent(point, steps, largest)
            changes = yield Matvec(start.kernels, direction)
            step, moved = _line_search(Line(phi, point, direction, changes), -decrement)
            if step == 0.0:
                return _Descent(point, steps, largest)
            point = moved
            if step == 1.0 and rounding < model.left_to_gain(point.gradient) <= accuracy:
                return _Descent(point, steps + 1, largest)
        return _Descent(point, STEP_LIMIT, largest)

    def _model(
        self, H: Floats | ThinHessian, gradient: Floats, bounded: bool
    ) -> DenseModel | ThinModel:
        """Return the quadratic model of phi, and keep the memory of a Hessian of all entries."""
        if isinstance(H, ThinHessian):
            model = ThinModel.of(H, gradient, bounded)
            self._counters.cg_steps += model.system.steps
            return model
        self._memory = H
        return DenseModel.of(H, gradient, bounded)


def _polished(
    phi: InnerObjective, point: InnerPoint, direction: Floats, rounding: float
) -> Requesting[InnerPoint]:
    """Return the point after a full step, or the old one where phi rises by more than rounding.

    The gain of such a step is below the rounding error of phi.  It is taken because large
    penalties multiply the error of rho that it corrects.
    """
    changes = yield Matvec(phi.anchor.kernels, direction)
    moved = phi.at(point.rho + direction, point.products + changes)
    return moved if moved.value <= point.value + 10.0 * rounding else point


def _line_search(line: Line, slope: float) -> tuple[float, InnerPoint]:
    """Return a step at which the slope of phi is almost zero, given the first, and the end of it.

    The full Newton step is taken where phi still falls at its end: slopes show this even where
    rounding hides differences of values.
    """
    end = line.slope_at(1.0)
    if end <= SLOPE_SHARE * -slope:
        return 1.0, line.at(1.0)
    step = root_of_slope(line.slope_at, slope, 1.0, end_slope=end, share=SLOPE_SHARE)
    return step, line.at(step)
