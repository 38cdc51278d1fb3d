"""Newton's method on the inner objective of block-norm MKL, with a line search along each step.

The constraint ``1'rho = 0`` holds at every iterate: a step solves the bordered system
``H d + b 1 = -grad phi``, ``1'd = 0``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy

from mkldist.bank.requests import Matvec, Request
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.methods.block_norm.inner_objective import (
    InnerObjective,
    InnerPoint,
    Iterate,
    Line,
    ThinHessian,
)
from mkldist.optim.descent import root_of_slope
from mkldist.optim.thin_system import ThinSystem

RIDGE = 1e-14  # of the mean diagonal of the Hessian
LONGEST = 1e4  # of a direction, where the domain has size one
RESIDUAL = 0.05  # of the gradient, that conjugate gradients may leave


class Model(Protocol):
    """Quadratic model of phi on ``1'd = 0``."""

    @property
    def direction(self) -> Floats:
        """The minimiser d, (n,)."""

    def left_to_gain(self, gradient: Floats) -> float:
        """Return half the Newton decrement at a near point, by this model's curvature."""


@dataclass(frozen=True, eq=False)
class DenseModel:
    """Model by a Hessian with all its entries.

    Parameters
    ----------
    factor : (n, n) float64
        Cholesky factor of the Hessian H.
    of_ones : (n,) float64
        ``H^-1 1``.
    direction : (n,) float64
        Minimiser d of the model.
    """

    factor: Floats
    of_ones: Floats
    direction: Floats

    @classmethod
    def of(cls, H: Floats, gradient: Floats, bounded: bool) -> DenseModel:
        """Return the model with a ridge that makes H positive definite.

        Parameters
        ----------
        H : (n, n) float64
            Hessian of phi; overwritten.
        gradient : (n,) float64
            Gradient of phi.
        bounded : bool
            True for a polyhedral loss.
        """
        n = len(gradient)
        diagonal = np.diagonal(H).copy()
        ridge = _least_ridge(diagonal, gradient, bounded)
        right = np.column_stack([gradient.mean() - gradient, np.ones(n)])
        while True:
            H.flat[:: n + 1] = diagonal + ridge
            factor, solved, info = scipy.linalg.lapack.dposv(H.T, right, lower=1, overwrite_a=1)
            if not info:
                of_ones = solved[:, 1].copy()
                direction = _centred_step(solved[:, 0], of_ones)
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
    """Model by a Hessian of thin factors.

    Parameters
    ----------
    system : ThinSystem
        The Hessian with its preconditioner.
    direction : (n,) float64
        Minimiser d of the model, up to a share of the gradient.
    """

    system: ThinSystem
    direction: Floats

    @classmethod
    def of(cls, H: ThinHessian, gradient: Floats, bounded: bool) -> ThinModel:
        """Return the model of a Hessian, with the ridge that one of all entries has.

        Parameters are those of :meth:`DenseModel.of`.
        """
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
    """Newton's method, which counts its steps and reuses the memory of its Hessians.

    Parameters
    ----------
    counters : Counters
        Counters of Newton steps and combined kernels.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._memory: Floats | None = None  # of the last Hessian

    def minimise(
        self, phi: InnerObjective, start: Iterate, accuracy: float
    ) -> Generator[Request, Any, tuple[Iterate, InnerPoint]]:
        """Minimise phi; return the iterate at the minimiser, and the parts of phi there.

        Parameters
        ----------
        phi : InnerObjective
            Function of rho.
        start : Iterate
            Iterate to start from.
        accuracy : float
            Value of half the Newton decrement, an estimate of the gain left, at which to stop.
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
    ) -> Generator[Request, Any, _Descent]:
        """Take Newton steps until little is left to gain."""
        point, largest = phi.at(start.rho, start.products), 0.0
        for steps in range(STEP_LIMIT):
            H = yield from phi.hessian(point, self._memory)
            model = self._model(H, point.gradient, phi.loss.polyhedral)
            direction = model.direction
            decrement = -float(point.gradient @ direction)
            self._counters.newton_steps += 1
            largest = max(largest, float(np.abs(point.rho).max()))
            rounding = ROUNDING * point.rounding_scale
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

    def _model(self, H: Floats | ThinHessian, gradient: Floats, bounded: bool) -> Model:
        """Return the quadratic model of phi, and keep the memory of a Hessian of all entries."""
        if isinstance(H, ThinHessian):
            model = ThinModel.of(H, gradient, bounded)
            self._counters.cg_steps += model.system.steps
            return model
        self._memory = H
        return DenseModel.of(H, gradient, bounded)


def _polished(
    phi: InnerObjective, point: InnerPoint, direction: Floats, rounding: float
) -> Generator[Request, Any, InnerPoint]:
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
