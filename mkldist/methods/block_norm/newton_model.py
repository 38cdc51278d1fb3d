"""Quadratic models of the inner objective at a point: their minimiser, and what is left to gain.

A model solves ``H d + b 1 = -gradient``, ``1'd = 0``.  Of a Hessian with all entries it keeps the
Cholesky factor.  A Hessian of thin factors is solved by preconditioned conjugate gradients
(:mod:`mkldist.optim.thin_system`), which is Newton-CG.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from mkldist.arrays import Floats
from mkldist.methods.block_norm.inner_objective import ThinHessian
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
