"""Symmetric matrices that are known by their products with vectors."""

from __future__ import annotations

import abc

from mkldist.core.arrays import Floats, Ints


class SymmetricOperator(abc.ABC):
    """A symmetric positive semi-definite (n, n) matrix of which blocks alone are multiplied out."""

    @property
    @abc.abstractmethod
    def diagonal(self) -> Floats:
        """Diagonal of K, (n,)."""

    @abc.abstractmethod
    def __matmul__(self, vectors: Floats) -> Floats:
        """Return ``K v``."""

    @abc.abstractmethod
    def block(self, points: Ints) -> Floats:
        """Return the rows and columns of K of some points, (q, q), in memory of their own."""
