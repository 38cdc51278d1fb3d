"""Products of kernels with vectors, quadratic forms and sums of kernels, in compiled loops.

As in :mod:`.expansion_sums`, no matrix of kernel values is written: some hundred values of a row of
a kernel are multiplied while they are in the processor's first cache.  The loops take the kernels
that :func:`mkldist.kernels.expansion_sums.takes` accepts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled
from mkldist.kernels.expansion_sums import EXPONENTS, TOTAL
from mkldist.kernels.gram_tiles import (
    BASE_OF,
    INNER,
    SQUARED,
    VALUES,
    add_features,
    aligned_rows,
    exponentials,
    powers,
)
from mkldist.kernels.kernel_list import KernelList

WIDTH = 512  # values of a row that are computed at once


def kernel_products(kernels: KernelList, points: Floats, vectors: Floats, x: Floats) -> Floats:
    """Return ``sum_i k_m(x, points[i]) vectors[i]`` of each kernel, (S, t, R).

    Parameters
    ----------
    kernels : KernelList
        S kernels.
    points : (s, d) float64
        Points of the columns.
    vectors : (s, R) float64
        The vectors.
    x : (t, d) float64
        Points of the rows.
    """
    found = np.zeros((len(kernels), len(x), vectors.shape[1]))
    columns, scratch = _prepared(points, x)
    _products(
        columns, kernels.function, kernels.parameter, kernels.offset, kernels.subset,
        kernels.subset_indptr, kernels.subset_indices, np.ascontiguousarray(vectors.T),
        len(points), scratch, scratch[EXPONENTS].view(np.int64), found,
    )  # fmt: skip
    return found


def kernel_forms(kernels: KernelList, points: Floats, vectors: Floats, rows: slice) -> Floats:
    """Return the part of ``v'K_m v`` that some rows of the lower triangles have, (M, R).

    Values off the diagonal count twice: the parts of all rows add up to the forms.

    Parameters
    ----------
    kernels : KernelList
        M kernels.
    points : (n, d) float64
        The points.
    vectors : (n, R) float64
        The vectors v.
    rows : slice
        The rows.
    """
    found = np.zeros((len(kernels), vectors.shape[1]))
    columns, scratch = _prepared(points[: rows.stop], points[:0])
    _forms(
        columns, kernels.function, kernels.parameter, kernels.offset, kernels.subset,
        kernels.subset_indptr, kernels.subset_indices, np.ascontiguousarray(vectors.T),
        rows.start, rows.stop, scratch, scratch[EXPONENTS].view(np.int64), found,
    )  # fmt: skip
    return found


def weighted_values(kernels: KernelList, weights: Floats, points: Floats, x: Floats) -> Floats:
    """Return ``sum_m weights[m] k_m(x, points)``, (t, s)."""
    found = np.zeros((len(x), len(points)))
    columns, scratch = _prepared(points, x)
    _totals(
        columns, kernels.function, kernels.parameter, kernels.offset, kernels.subset,
        kernels.subset_indptr, kernels.subset_indices, weights, scratch,
        scratch[EXPONENTS].view(np.int64), found,
    )  # fmt: skip
    return found


def _prepared(points: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the points of columns and, behind them, of rows, one feature a row; and scratch."""
    columns = np.ascontiguousarray(np.concatenate([points, x]).T)
    return columns, aligned_rows(TOTAL + 1, min(WIDTH, max(len(points), 1)))


@compiled
def _take_values(
    columns: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    subset: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    m: int,
    i: int,
    left: int,
    width: int,
    scratch: Floats,
    bits: npt.NDArray[np.int64],
) -> None:
    """Write the values of kernel m at point i and some points; kernels of a subset in order."""
    if m == 0 or subset[m] != subset[m - 1]:
        needed, last = 0, m
        while last < len(function) and subset[last] == subset[m]:
            needed |= 1 << BASE_OF[function[last]]
            last += 1
        features = indices[indptr[subset[m]] : indptr[subset[m] + 1]]
        add_features(columns, features, needed, i, left, width, scratch)
    base, p = BASE_OF[function[m]], parameter[m]
    if base == INNER:
        powers(offset[m], int(p), width, scratch)
    else:
        factor = -0.5 / (p * p) if base == SQUARED else -1.0 / p
        exponentials(base, factor, width, scratch, bits)


@compiled(fastmath={"contract", "reassoc"})
def _product(values: Floats, vector: Floats, left: int, width: int) -> float:
    """Return the product of values with a part of a vector."""
    part, total = vector[left : left + width], 0.0
    for j in range(width):
        total += values[j] * part[j]
    return total


@compiled
def _products(
    columns: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    subset: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    vectors: Floats,
    n_columns: int,
    scratch: Floats,
    bits: npt.NDArray[np.int64],
    out: Floats,
) -> None:
    """Write the products of every kernel at the points behind those of the columns."""
    for i in range(out.shape[1]):
        for left in range(0, n_columns, WIDTH):
            width = min(WIDTH, n_columns - left)
            for m in range(len(function)):
                _take_values(
                    columns, function, parameter, offset, subset, indptr, indices,
                    m, n_columns + i, left, width, scratch, bits,
                )  # fmt: skip
                for r in range(len(vectors)):
                    out[m, i, r] += _product(scratch[VALUES], vectors[r], left, width)


@compiled
def _forms(
    columns: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    subset: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    vectors: Floats,
    start: int,
    stop: int,
    scratch: Floats,
    bits: npt.NDArray[np.int64],
    out: Floats,
) -> None:
    """Add the parts of quadratic forms that rows of the lower triangles have."""
    for i in range(start, stop):
        for left in range(0, i + 1, WIDTH):
            width = min(WIDTH, i + 1 - left)
            for m in range(len(function)):
                _take_values(
                    columns, function, parameter, offset, subset, indptr, indices,
                    m, i, left, width, scratch, bits,
                )  # fmt: skip
                if left + width > i:
                    scratch[VALUES, i - left] *= 0.5
                for r in range(len(vectors)):
                    part = _product(scratch[VALUES], vectors[r], left, width)
                    out[m, r] += 2.0 * vectors[r, i] * part


@compiled
def _totals(
    columns: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    subset: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    weights: Floats,
    scratch: Floats,
    bits: npt.NDArray[np.int64],
    out: Floats,
) -> None:
    """Add the weighted values of all kernels at the points behind those of the columns."""
    n_columns = out.shape[1]
    for i in range(len(out)):
        for left in range(0, n_columns, WIDTH):
            width = min(WIDTH, n_columns - left)
            for m in range(len(function)):
                _take_values(
                    columns, function, parameter, offset, subset, indptr, indices,
                    m, n_columns + i, left, width, scratch, bits,
                )  # fmt: skip
                for j in range(width):
                    out[i, left + j] += weights[m] * scratch[VALUES, j]
