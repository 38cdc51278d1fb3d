"""Precomputed Gram matrices, checked to be such.

They are square, finite, symmetric and positive semi-definite.  The eigenvalues of a Gram matrix
that was saved in few digits may lie slightly below zero.  A large C or a small regularisation would
magnify them until the objective is no longer convex and bounds on its minimum are void, so
:func:`semidefinite` sets them to zero.  Rounding alone moves zero eigenvalues of a product of
features down to ``-n u trace(K)``, with u the machine epsilon of float64; these stay.  One Cholesky
factorisation with a shift of that size shows that a matrix needs no change; only where it fails are
eigenvalues computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import LARGEST, Floats
from mkldist.core.threads import has_cholesky_factor
from mkldist.core.wording import pluralize
from mkldist.errors import GramError
from mkldist.spec.kinds import Indefinite

TOLERANCE = 1e-8
SINGLE_PRECISION_TOLERANCE = 1e-6
OF_TEXTS = SINGLE_PRECISION_TOLERANCE  # of text files, which have six digits or so
LARGEST_SINGLE = 1e37  # as float32


@dataclass(frozen=True, eq=False)
class Repairs:
    """What becomes of Gram matrices with negative eigenvalues, and which have become it.

    With the eigenvectors V of negative eigenvalues Λ, ``clip`` makes ``K - V Λ V'`` of K, ``flip``
    ``K - 2 V Λ V'`` and ``shift`` ``K - min(Λ) I``.
    """

    kind: Indefinite
    lowest: dict[int, float] = field(default_factory=dict)
    """The smallest eigenvalue of each matrix that was changed, relative to the largest."""
    negative: dict[int, Floats] = field(default_factory=dict)  # V (n, k) of each

    @classmethod
    def of(cls, kind: Indefinite | None) -> Repairs | None:
        """Return the repairs of a kind; None for none, with which such matrices are refused."""
        return None if kind is None else cls(kind)

    def repaired(self, matrix: Floats, m: int, values: Floats, vectors: Floats) -> Floats:
        """Return the matrix of number m, of these eigenvalues, ascending, and eigenvectors."""
        self.lowest[m] = float(values[0] / max(values[-1], np.finfo(np.float64).tiny))
        if self.kind == "shift":
            shifted: Floats = matrix - values[0] * np.eye(len(matrix))
            return shifted
        own, below = vectors[:, values < 0.0], values[values < 0.0]
        self.negative[m] = own
        changed: Floats = matrix - self._times * (own * below) @ own.T
        return 0.5 * (changed + changed.T)

    @property
    def _times(self) -> float:
        return 2.0 if self.kind == "flip" else 1.0

    def between(self, rows: Floats, m: int) -> Floats:
        """Return kernel values (r, n) of other points with those of matrix m, changed like it."""
        own = self.negative.get(m)
        return rows if own is None else rows - self._times * (rows @ own) @ own.T

    def notes(self, n_kernels: int) -> tuple[str, ...]:
        """Return the number of changed matrices and their most negative eigenvalue in words."""
        if not self.lowest:
            return ()
        done = {"clip": "set to zero", "flip": "made positive", "shift": "shifted to zero"}
        return (
            f"{len(self.lowest)} of {pluralize(n_kernels, 'Gram matrix', 'Gram matrices')} had "
            f"negative eigenvalues, down to {min(self.lowest.values()):.2g} of the largest, which "
            f"are {done[self.kind]}",
        )


def usable_grams(
    grams: npt.NDArray[Any],
    y: npt.NDArray[Any] | None = None,
    where: str = "grams",
    repairs: Repairs | None = None,
    tolerance: float | None = None,
) -> npt.NDArray[np.floating]:
    """Return M Gram matrices, checked one by one.

    With a tolerance ε, by default of 1e-8 (1e-6 for single precision), a matrix must be finite,
    symmetric to ``ε max|K|``, and its smallest eigenvalue must not lie below ``-ε trace(K)``.  In
    double precision, eigenvalues between that and zero are set to zero; in single precision
    rounding would undo the change.  With `repairs`, matrices with smaller ones are changed.
    """
    check_stack(grams, where)
    if y is not None and len(y) != grams.shape[1]:
        found = f"{pluralize(len(y), 'label')} for matrices of {grams.shape[1]} points"
        raise GramError(where, found, "one label per point")
    tolerance = tolerance_of(grams.dtype) if tolerance is None else tolerance
    result = grams if grams.dtype.kind == "f" else grams.astype(np.float64)
    for m in range(len(grams)):
        matrix = np.asarray(grams[m], dtype=np.float64)
        place = f"{where}: kernel {m}"
        symmetric(matrix, tolerance, place)
        if result.dtype != np.float64 and repairs is None:
            check_semidefinite(matrix, tolerance, place)
        elif (changed := semidefinite(matrix, tolerance, place, repairs, m)) is not matrix:
            result = np.array(grams, dtype=np.float64) if result is grams else result
            result[m] = changed
    return result


def tolerance_of(dtype: np.dtype[Any]) -> float:
    """Return the tolerance ε for matrices that were stored in a type."""
    single = dtype.kind == "f" and dtype.itemsize <= 4
    return SINGLE_PRECISION_TOLERANCE if single else TOLERANCE


def check_stack(grams: npt.NDArray[Any], where: str) -> None:
    """Raise GramError unless an array has the type and shape of M Gram matrices."""
    if grams.dtype.kind not in "fiub":
        raise GramError(where, f"an array of {grams.dtype}", "real numbers")
    if grams.ndim != 3 or grams.shape[1] != grams.shape[2]:
        raise GramError(
            where, f"shape {grams.shape}", "(M, n, n): M square matrices", _instead_of(grams.shape)
        )
    if not grams.size:
        raise GramError(where, f"shape {grams.shape}", "at least one matrix of one point")


def _instead_of(shape: tuple[int, ...]) -> str:
    """Return how to make a stack of matrices of an array that is one matrix."""
    if len(shape) != 2:
        return ""
    if shape[0] == shape[1]:
        return "Give one matrix as grams[None]"
    return 'Make kernels of features first: mkldist.KernelBank(X, "xu2008")'


def check_finite(matrix: Floats, where: str, largest: float = LARGEST) -> None:
    """Raise GramError if an (n, n) matrix has an entry that is not finite, or one too large.

    The largest entry of a positive semi-definite matrix stands on its diagonal.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    if np.isfinite(total) or np.isfinite(matrix).all():
        greatest = float(matrix.diagonal().max())
        if greatest > largest:
            expected = f"at most {largest:.0e}, so that sums of squares are finite"
            hint = "Divide the matrix by a number; it then needs C times that number"
            raise GramError(where, f"values up to {greatest:.1e}", expected, hint)
        return
    i, j = np.argwhere(~np.isfinite(matrix))[0]
    raise GramError(where, f"entry ({i}, {j}) of {matrix[i, j]}", "finite numbers")


def symmetric(matrix: Floats, tolerance: float, where: str) -> Floats:
    """Return an (n, n) matrix, or the mean of its triangles where these differ by rounding.

    One that is not finite, or not symmetric to ``tolerance max|K|``, is refused.
    """
    check_finite(matrix, where)
    if np.array_equal(matrix, matrix.T):
        return matrix
    largest = float(np.abs(matrix).max())
    difference = np.abs(matrix - matrix.T)
    if float(difference.max()) > tolerance * largest:
        i, j = np.unravel_index(int(np.argmax(difference)), matrix.shape)
        found = f"entries ({i}, {j}) and ({j}, {i}) of {matrix[i, j]:.9g} and {matrix[j, i]:.9g}"
        expected = f"a symmetric matrix, to {tolerance:g} of its largest entry {largest:.3g}"
        raise GramError(where, found, expected)
    return 0.5 * (matrix + matrix.T)


def check_semidefinite(matrix: Floats, tolerance: float, where: str) -> None:
    """Raise GramError if a symmetric matrix has an eigenvalue below ``-tolerance trace(K)``."""
    trace = float(np.trace(matrix))
    if not has_cholesky_factor(matrix, tolerance * trace):
        _refuse_below(float(np.linalg.eigvalsh(matrix)[0]), trace, tolerance, where)


def semidefinite(
    matrix: Floats, tolerance: float, where: str, repairs: Repairs | None = None, m: int = 0
) -> Floats:
    """Return a symmetric matrix, of number m, with its negative eigenvalues set to zero.

    One with eigenvalues below ``-tolerance trace(K)`` is changed by `repairs`, else refused.
    """
    trace = float(np.trace(matrix))
    rounding = len(matrix) * np.finfo(np.float64).eps * trace
    if has_cholesky_factor(matrix, rounding) or not matrix.any():
        return matrix
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if repairs is not None and values[0] < -tolerance * trace <= 0.0:
        return repairs.repaired(matrix, m, values, vectors)
    _refuse_below(float(values[0]), trace, tolerance, where)
    if values[0] >= -rounding:
        return matrix
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ root.T)


def _refuse_below(smallest: float, trace: float, tolerance: float, where: str) -> None:
    """Raise GramError if the smallest eigenvalue lies below ``-tolerance trace(K)``."""
    if trace < 0.0:
        expected = "a positive semi-definite matrix, whose trace is not negative"
        hint = "Check its sign: kernel values grow with similarity, distances do not"
        raise GramError(where, f"a trace of {trace:.3g}", expected, hint)
    lowest = 0.0 - tolerance * trace  # 0 rather than -0 for a trace of 0
    if smallest < lowest:
        raise GramError(
            where,
            f"a smallest eigenvalue of {smallest:.3g}",
            f"a positive semi-definite matrix: at least {lowest:.3g}, -{tolerance:g} of the trace",
            'Set indefinite = "clip", "flip" or "shift" where the matrices are given',
        )
