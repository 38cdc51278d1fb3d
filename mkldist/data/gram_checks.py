"""Checks that matrices are Gram matrices: square, finite, symmetric, positive semi-definite.

The eigenvalues of a Gram matrix that was saved in few digits may lie slightly below zero.
:func:`check_grams` accepts them.  A large C or a small regularisation would magnify them until the
objective is no longer convex and bounds on its minimum are void, so :func:`semidefinite` sets them
to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.errors import GramError

TOLERANCE = 1e-8
SINGLE_PRECISION_TOLERANCE = 1e-6


def check_grams(
    grams: npt.NDArray[Any], y: npt.NDArray[Any] | None = None, where: str = "grams"
) -> None:
    """Raise unless `grams` are M Gram matrices.

    With a tolerance ε of 1e-8 (1e-6 for single precision) a matrix must be finite, symmetric to
    ``ε max|K|``, and its smallest eigenvalue must not lie below ``-ε trace(K)``.
    :func:`semidefinite` removes eigenvalues between that and zero.

    Parameters
    ----------
    grams : (M, n, n) array of numbers
        The matrices, possibly memory-mapped; they are read one at a time.
    y : (n,) array, optional
        Labels, whose number must be n.
    where : str
        The place to name in a message.

    Raises
    ------
    GramError
        If a matrix is wrong; the message names the first such kernel and what is wrong with it.
    """
    _check_shape(grams, where)
    if y is not None and len(y) != grams.shape[1]:
        raise GramError(
            where, f"{len(y)} labels for matrices of {grams.shape[1]} points", "one label per point"
        )
    single = grams.dtype.kind == "f" and grams.dtype.itemsize <= 4
    tolerance = SINGLE_PRECISION_TOLERANCE if single else TOLERANCE
    for m in range(len(grams)):
        _check_matrix(np.asarray(grams[m], dtype=np.float64), tolerance, f"{where}: kernel {m}")


def semidefinite(grams: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `grams` with the negative eigenvalues of every matrix set to zero.

    Rounding alone moves zero eigenvalues of a product of features down to ``-n u trace(K)``, with u
    the machine epsilon of float64.  Matrices without lower eigenvalues are returned unchanged.

    Parameters
    ----------
    grams : (M, n, n) array of floats
        Symmetric matrices, possibly memory-mapped; they are read one at a time.

    Returns
    -------
    (M, n, n) array of floats
        `grams` itself if no matrix changes, else a copy.
    """
    result = grams
    for m in range(len(grams)):
        matrix = np.asarray(grams[m], dtype=np.float64)
        rounding = len(matrix) * np.finfo(np.float64).eps * float(np.trace(matrix))
        if not matrix.any() or _is_definite(matrix, rounding):
            continue
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        if values[0] >= -rounding:
            continue
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        result = np.array(grams) if result is grams else result
        result[m] = root @ root.T
    return result


def _check_shape(grams: npt.NDArray[Any], where: str) -> None:
    if grams.dtype.kind not in "fiub":
        raise GramError(where, f"an array of {grams.dtype}", "real numbers")
    if grams.ndim != 3 or grams.shape[1] != grams.shape[2]:
        raise GramError(where, f"shape {grams.shape}", "(M, n, n): M square matrices")
    if not grams.size:
        raise GramError(where, f"shape {grams.shape}", "at least one matrix of one point")


def _check_matrix(matrix: npt.NDArray[np.float64], tolerance: float, where: str) -> None:
    """Raise unless one (n, n) matrix is finite, symmetric and positive semi-definite."""
    largest = float(np.max(np.abs(matrix)))
    if not np.isfinite(largest):
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise GramError(where, f"entry ({i}, {j}) is {matrix[i, j]}", "finite numbers")
    if largest == 0.0:
        return
    difference = np.abs(matrix - matrix.T)
    asymmetry = float(np.max(difference))
    if asymmetry > tolerance * largest:
        i, j = np.unravel_index(int(np.argmax(difference)), matrix.shape)
        raise GramError(
            where,
            f"entries ({i}, {j}) and ({j}, {i}) are {matrix[i, j]:.9g} and {matrix[j, i]:.9g}",
            f"a symmetric matrix, to {tolerance:g} of its largest entry {largest:.3g}",
        )
    lowest = -tolerance * float(np.trace(matrix))
    if not _is_definite(matrix, -lowest):
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < lowest:
            raise GramError(
                where,
                f"smallest eigenvalue {smallest:.3g}",
                f"a positive semi-definite matrix: at least {lowest:.3g}, "
                f"-{tolerance:g} of the trace",
                "Add a ridge to the diagonal or clip the negative eigenvalues",
            )


def _is_definite(matrix: npt.NDArray[np.float64], shift: float) -> bool:
    """Return True if ``matrix + shift I`` has a Cholesky factor, far cheaper than eigenvalues."""
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += shift
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True
