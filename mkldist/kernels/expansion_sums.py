"""Sums of kernels between new points and support points, in one compiled loop.

This is the fast path of decision functions at many points.  As in
:mod:`mkldist.kernels.gram_tiles`, whose loops it shares, one new point is taken at a time: its
distances to all support points stay in the processor's first cache while every kernel of the
feature subset is applied to them, and no matrix of kernel values is ever written.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled
from mkldist.kernels.gram_tiles import (
    BASE_OF,
    INNER,
    SQUARED,
    VALUES,
    WIDE,
    ZEROS,
    add_features,
    aligned_rows,
    exponentials,
    powers,
)
from mkldist.kernels.kernel_list import KernelList

EXPONENTS = VALUES + 1
TOTAL = ZEROS + 1


def takes(kernels: KernelList) -> bool:
    """Return True if the loop knows these kernels, and no product of matrices is faster."""
    known = bool((kernels.function < len(BASE_OF)).all())
    return known and bool((np.diff(kernels.subset_indptr) <= WIDE).all())


def expansion_sums(
    kernels: KernelList,
    points: Floats,
    weights: Floats,
    coefficients: Floats,
    x: Floats,
) -> Floats:
    """Return ``sum_m weights[m] sum_i coefficients[(m,) i, c] k_m(x, points[i])``, (t, k).

    Parameters
    ----------
    kernels : KernelList
        S kernels, which :func:`takes` accepts.
    points : (s, d) float64
        Support points.
    weights : (S,) float64
        Weights of the kernels.
    coefficients : (s, k) or (S, s, k) float64
        Coefficients, shared by all kernels or of each kernel's own.
    x : (t, d) float64
        New points.
    """
    found = np.zeros((len(x), coefficients.shape[-1]))
    shared = coefficients.ndim == 2
    rows = coefficients.T[None] if shared else coefficients.swapaxes(1, 2)
    rows = np.ascontiguousarray(rows)  # (1 or S, k, s)
    columns = np.ascontiguousarray(np.concatenate([points, x]).T)
    scratch = aligned_rows(TOTAL + 1, len(points))
    _sum(
        columns, kernels.function, kernels.parameter, kernels.offset, kernels.subset,
        kernels.subset_indptr, kernels.subset_indices, weights, rows, len(points), shared,
        scratch, scratch[EXPONENTS].view(np.int64), found,
    )  # fmt: skip
    return found


@compiled
def _sum(
    columns: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    subset: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    weights: Floats,
    coefficients: Floats,
    width: int,
    shared: bool,
    scratch: Floats,
    bits: npt.NDArray[np.int64],
    out: Floats,
) -> None:
    """Write the sums of every new point, which stand behind the `width` support points."""
    for i in range(len(out)):
        for j in range(width):
            scratch[TOTAL, j] = 0.0
        for m in range(len(function)):
            base = BASE_OF[function[m]]
            if m == 0 or subset[m] != subset[m - 1]:
                needed, last = 0, m
                while last < len(function) and subset[last] == subset[m]:
                    needed |= 1 << BASE_OF[function[last]]
                    last += 1
                features = indices[indptr[subset[m]] : indptr[subset[m] + 1]]
                add_features(columns, features, needed, width + i, 0, width, scratch)
            if base == INNER:
                powers(offset[m], int(parameter[m]), width, scratch)
            else:
                p = parameter[m]
                factor = -0.5 / (p * p) if base == SQUARED else -1.0 / p
                exponentials(base, factor, width, scratch, bits)
            if shared:
                for j in range(width):
                    scratch[TOTAL, j] += weights[m] * scratch[VALUES, j]
            else:
                _add_products(weights[m], scratch[VALUES], coefficients[m], width, out[i])
        if shared:
            _add_products(1.0, scratch[TOTAL], coefficients[0], width, out[i])


@compiled(fastmath={"contract", "reassoc"})
def _add_products(
    weight: float, values: Floats, coefficients: Floats, width: int, out: Floats
) -> None:
    """Add the weighted products of values with each row of coefficients, (k, s), to `out`."""
    for c in range(len(coefficients)):
        row, total = coefficients[c], 0.0
        for j in range(width):
            total += row[j] * values[j]
        out[c] += weight * total
