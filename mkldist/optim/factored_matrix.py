"""Weighted sums of matrices ``G G'`` with thin factors G, which are never multiplied out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mkldist.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class FactoredMatrix:
    """The operator ``K = sum_s w_s G_s G_s'``, symmetric positive semi-definite.

    A product with a vector takes ``2 n sum_s r_s`` multiplications.  The factors are shared with
    their owner, so that a sum takes no memory of its own.

    Parameters
    ----------
    weights : (S,) float64
        Non-negative weights w.
    factors : sequence of (n, r_s) float64
        The factors G.
    diagonals : (S, n) float64
        Diagonals of ``G_s G_s'``.
    n_points : int
        Number n of rows.
    """

    weights: Floats
    factors: Sequence[Floats]
    diagonals: Floats
    n_points: int

    @property
    def diagonal(self) -> Floats:
        """Diagonal of K, (n,)."""
        total: Floats = self.weights @ self.diagonals
        return total

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return ``K v`` for (n,) or (n, R) vectors."""
        total = np.zeros_like(vectors, dtype=np.float64)
        for weight, factor in zip(self.weights, self.factors, strict=True):
            total += factor @ (weight * (factor.T @ vectors))
        return total

    def on(self, points: Ints) -> FactoredMatrix:
        """Return the operator on some points, in rows of the factors of its own."""
        return replace(
            self,
            factors=[factor[points] for factor in self.factors],
            diagonals=self.diagonals[:, points],
            n_points=len(points),
        )

    def block(self, points: Ints) -> Floats:
        """Return the rows and columns of K of some points, (q, q)."""
        total = np.zeros((len(points), len(points)))
        for weight, factor in zip(self.weights, self.factors, strict=True):
            rows = factor[points]
            rows *= np.sqrt(weight)
            total += rows @ rows.T
        return total


def diagonal_of(K: Floats | FactoredMatrix) -> Floats:
    """Return the diagonal of a matrix or of an operator, (n,)."""
    return K.diagonal if isinstance(K, FactoredMatrix) else np.ascontiguousarray(np.diagonal(K))
