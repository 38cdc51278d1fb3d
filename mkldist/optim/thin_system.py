"""Systems with a diagonal plus thin factors, by preconditioned conjugate gradients.

    min_x  1/2 x'H x + g'x   s.t.  1'x = 0,       H = diag(D) + sum_s w_s G_s G_s'

No matrix of all n rows is made: a product with H takes two thin products a factor.  The
preconditioner keeps the diagonal and the heaviest columns F of the weighted factors,

    P = diag(D) + F F' <= H,     P^-1 = D^-1 - D^-1 F (I + F'D^-1 F)^-1 F'D^-1,

and leaves out the others.  The heaviest columns are those of the largest ``f'D^-1 f``; of a pivoted
Cholesky factor these are the first ones, which hold most of its trace.  Where all columns are few,
P is H and one step suffices.

On vectors of sum zero, every column of F may be shifted by a multiple of 1.  The shifts with
``1'D^-1 F = 0`` make ``P^-1 1 = D^-1 1``, without the cancellation of nearly constant kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from mkldist.core.arrays import Floats
from mkldist.optim.factored_matrix import ON_HOST, Thin, ThinProducts, values_of

COLUMNS = 600  # most columns of the preconditioner
TINY = float(np.finfo(np.float64).tiny)
STEPS = 200  # most conjugate gradient steps of a solution


class ThinSystem:
    """The matrix H with its preconditioner.

    Of a positive `diagonal` D (n,), `weights` w (S,) and `factors` G, each (n, r_s) or elsewhere.
    `steps` counts conjugate gradient steps of all solutions.
    """

    def __init__(
        self,
        diagonal: Floats,
        weights: Floats,
        factors: Sequence[Thin],
        products: ThinProducts = ON_HOST,
    ) -> None:
        self._diagonal, self._weights, self._factors = diagonal, weights, factors
        self._products = products
        self._root = 1.0 / np.sqrt(diagonal)
        with np.errstate(over="ignore", invalid="ignore"):
            self._F = self._heaviest()
            capacity = products.projected(self._F, self._F)
        if not np.isfinite(capacity).all():  # the diagonal alone preconditions
            self._F, capacity = self._F[:, :0], np.empty((0, 0))
        self._capacity = _factorised(capacity)
        self._of_ones = (self._root**2)[:, None]
        self.steps = 0

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return ``H v`` for (n,) or (n, R) vectors."""
        total: Floats = (self._diagonal * vectors.T).T
        total += self._products.times(self._factors, self._weights, vectors)
        return total

    def preconditioned(self, gradient: Floats) -> Floats:
        """Return the minimiser that P has in place of H, up to its sign, (n,)."""
        return self._balanced(gradient[:, None])[0][:, 0]

    def minimiser(self, gradients: Floats, share: float) -> Floats:
        """Return x, as far as conjugate gradients take the norm of the residual to a share.

        `gradients` (n,) or (n, R) are each solved for by conjugate gradients of their own; `share`
        is that of the first residual, in the norm of P^-1, at which to stop.
        """
        residual = gradients.reshape(len(gradients), -1).copy()
        x = np.zeros_like(residual)
        z, shift = self._balanced(residual)
        residual -= shift
        p, rho = -z, _dots(residual, z)
        enough = share**2 * np.maximum(rho, 0.0)
        for _ in range(STEPS):
            product = self @ p
            curvature = _dots(p, product)
            going = (rho > enough) & (curvature > 0.0)
            if not going.any():
                break
            self.steps += 1
            length = np.divide(rho, curvature, out=np.zeros_like(rho), where=going)
            x += length * p
            residual += length * product
            z, shift = self._balanced(residual)
            residual -= shift  # it would drown what is left
            last, rho = rho, _dots(residual, z)
            p = np.divide(rho, last, out=np.zeros_like(rho), where=going) * p - z
        x -= x.mean(axis=0)
        return x.reshape(gradients.shape)

    def _balanced(self, residual: Floats) -> tuple[Floats, Floats]:
        """Return ``P^-1 (residual - 1 b')`` with columns of sum zero, and b (R,)."""
        solved = self._inverse(residual)
        shift = solved.sum(axis=0) / self._of_ones.sum()
        return solved - self._of_ones * shift, shift

    def _inverse(self, vectors: Floats) -> Floats:
        """Return ``P^-1 v`` for (n, R) vectors."""
        scaled = self._root[:, None] * vectors
        solved = scipy.linalg.cho_solve(self._capacity, self._products.projected(self._F, scaled))
        scaled -= self._products.spread(self._F, solved)
        return self._root[:, None] * scaled

    def _heaviest(self) -> Floats:
        """Return ``D^-1/2 F`` for the heaviest columns of ``sqrt(w_s) G_s``, shifted, (n, k)."""
        inverse = self._root**2
        masses = [
            weight * np.einsum("nr,nr,n->r", factor, factor, inverse)
            for weight, factor in zip(self._weights, map(values_of, self._factors), strict=True)
        ]
        every = np.concatenate([np.empty(0), *masses])
        heavy = every >= TINY
        heavy[np.argsort(-every, kind="stable")[COLUMNS:]] = False  # of equal ones too
        places = np.split(heavy, np.cumsum([len(mass) for mass in masses])[:-1])
        kept = [
            (np.sqrt(weight) * self._root)[:, None] * values_of(factor)[:, place]
            for weight, factor, place in zip(self._weights, self._factors, places, strict=False)
            if place.any()
        ]
        scaled = np.concatenate([np.empty((len(self._root), 0)), *kept], axis=1)
        unit = self._root / np.linalg.norm(self._root)
        scaled -= np.outer(unit, unit @ scaled)
        return scaled


def _dots(left: Floats, right: Floats) -> Floats:
    """Return the inner products of columns, (R,)."""
    products: Floats = np.einsum("nr,nr->r", left, right)
    return products


def _factorised(products: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of ``I + F'F``, or of ``c I + F'F`` where rounding asks for c > 1.

    The preconditioner stays positive definite with any such c.
    """
    ridge = 1.0
    while True:
        try:
            ridged = products + ridge * np.eye(len(products))
            factor, lower = scipy.linalg.cho_factor(ridged, lower=True, overwrite_a=True)
            return factor, lower
        except scipy.linalg.LinAlgError:
            ridge *= 100.0
