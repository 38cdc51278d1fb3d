"""Systems of the support vectors of a machine with a squared loss.

They have the matrix ``[[K_sv + lam I, 1], [1', 0]]``, in which points may have a lam each.  A Gram
matrix is factorised; the operator of thin factors is solved by preconditioned conjugate gradients
(:mod:`mkldist.optim.thin_system`).
"""

from __future__ import annotations

import numpy as np
import scipy

from mkldist.core.arrays import Bools, Floats
from mkldist.optim.factored_matrix import FactoredMatrix, Gram, best_form, on_points
from mkldist.optim.thin_system import ThinSystem

SHARE = 1e-5  # of the first residual, that conjugate gradients leave


def support_system(K: Gram, sv: Bools, lam: float | Floats) -> SupportSystem | ThinSupportSystem:
    """Return the system of the support vectors `sv` (n,) of a Gram matrix or of an operator."""
    K_sv = best_form(on_points(K, np.flatnonzero(sv)))
    if isinstance(K_sv, FactoredMatrix):
        return ThinSupportSystem(K_sv, lam)
    return SupportSystem(K_sv, lam)


class SupportSystem:
    """The factorised matrix ``[[K_sv + lam I, 1], [1', 0]]`` of the support vectors.

    Parameters
    ----------
    K_sv : (s, s) float64
        Gram matrix of the support vectors, at least one; its diagonal is overwritten.
    lam : float or (s,) float64
        Regularisation; multiplied by 10 until the factorisation succeeds where `K_sv` is too
        ill-conditioned for it.
    """

    def __init__(self, K_sv: Floats, lam: float | Floats) -> None:
        diagonal = K_sv.diagonal().copy()
        while True:
            K_sv[np.diag_indices_from(K_sv)] = diagonal + lam
            try:
                self._factor = scipy.linalg.cholesky(K_sv, lower=True, check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                lam = 10.0 * np.maximum(lam, np.finfo(np.float64).eps * diagonal.max())
        self._ones = self.halved(np.ones(len(K_sv)))
        self._total = float(self._ones @ self._ones)

    def halved(self, columns: Floats) -> Floats:
        """Return ``L^-1 columns`` for the Cholesky factor L."""
        solved: Floats = scipy.linalg.solve_triangular(
            self._factor, columns, lower=True, check_finite=False
        )
        return solved

    def projected(self, columns: Floats) -> Floats:
        """Return B with ``B'B = X' (W - W 1 1'W / 1'W1) X``, W the inverse of ``K_sv + lam I``."""
        halves = self.halved(columns)
        return halves - np.outer(self._ones, (self._ones @ halves) / self._total)

    def solve(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Return x and b with ``(K_sv + lam I) x + b 1 = right`` and ``1'x = total``."""
        half = self.halved(right)
        b = (float(self._ones @ half) - total) / self._total
        x: Floats = scipy.linalg.solve_triangular(
            self._factor, half - b * self._ones, lower=True, trans="T", check_finite=False
        )
        return x, b


class ThinSupportSystem:
    """The same system of an operator.

    Parameters
    ----------
    K_sv : FactoredMatrix
        Gram matrix of the support vectors, at least one, as the operator.
    lam : float or (s,) float64
        Regularisation.
    """

    def __init__(self, K_sv: FactoredMatrix, lam: float | Floats) -> None:
        diagonal = np.zeros(K_sv.n_points) + (lam + K_sv.ridge)
        self._system = ThinSystem(diagonal, K_sv.weights, K_sv.factors, K_sv.products)

    def projected(self, columns: Floats) -> Floats:
        """Return B with ``B'B = X' (W - W 1 1'W / 1'W1) X``, W the inverse of ``K_sv + lam I``."""
        product = -columns.T @ self._system.minimiser(columns, SHARE)
        values, vectors = np.linalg.eigh(0.5 * (product + product.T))
        root: Floats = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        return root

    def solve(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Return x and b with ``(K_sv + lam I) x + b 1 = right`` and ``1'x = total``."""
        level = np.full(len(right), total / len(right))
        x: Floats = level + self._system.minimiser(self._system @ level - right, SHARE)
        return x, float((right - self._system @ x).mean())
