"""Values of many kernels on tiles of a Gram matrix, in one compiled loop.

This is the fast path of :mod:`mkldist.kernels.evaluate` for the Gram matrix of one set of points.
The loop takes one row of the matrix at a time.  The base of a feature subset (inner products,
distances) on this row stays in the processor's first cache while every kernel of the subset is
applied to it.  For many features, the BLAS computes the inner products and, from those of centred
points, the squared distances.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled
from mkldist.kernels.functions import KernelFunction
from mkldist.kernels.kernel_list import KernelList

GAUSSIAN, POLYNOMIAL = int(KernelFunction.GAUSSIAN), int(KernelFunction.POLYNOMIAL)
LINEAR = int(KernelFunction.LINEAR)
INNER, SQUARED, CITY = 0, 1, 2  # rows of the array of bases

WIDE = 64  # number of features beyond which the BLAS multiplies faster than loops
SMALLEST_EXPONENT = -708.0  # below it, the exponential is subnormal
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it leaves the nearest integer in the last bits
TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))


def evaluate_gram_tiles(
    kernels: KernelList,
    columns: Floats,
    rows: Ints,
    cols: Ints,
    out: npt.NDArray[np.floating],
    *,
    cosine: bool = False,
) -> None:
    """Write the values of M kernels on t tiles of their Gram matrices to `out`.

    The values are exactly symmetric on diagonal tiles, and exactly 1 on the diagonal of gaussian,
    laplacian-rbf and cosine kernels.  Entries beyond the last point are zero.

    Parameters
    ----------
    kernels : KernelList
        M kernels.
    columns : (d, n) float64
        Points, one feature a row, C-contiguous.
    rows, cols : (t,) intp
        Row and column of each tile.  Tiles of one row are adjacent, without gaps between columns.
    out : (M, t, b, b) float32 or float64
        Tiles of edge b.
    cosine : bool
        Divide by ``sqrt(k(x, x) k(z, z))``; values of points with ``k(x, x) = 0`` become 0.
    """
    _fill(
        columns,
        kernels.function,
        kernels.parameter,
        kernels.offset,
        kernels.subset,
        kernels.subset_indptr,
        kernels.subset_indices,
        rows,
        cols,
        cosine,
        out,
    )


def evaluate_diagonals(kernels: KernelList, columns: Floats, *, cosine: bool = False) -> Floats:
    """Return ``k_m(x, x)`` of M kernels and n points, (M, n).

    Up to rounding these are the diagonals of :func:`evaluate_gram_tiles`.  They need only the
    lengths of the points.

    Parameters
    ----------
    kernels : KernelList
        M kernels.
    columns : (d, n) float64
        Points, one feature a row, C-contiguous.
    cosine : bool
        Divide by ``k(x, x)``; zeros stay zero.
    """
    out = np.empty((len(kernels), columns.shape[1]))
    for run in kernels.runs():
        points = columns[kernels.features_of(run.start)]
        functions, parameters = kernels.function[run], kernels.parameter[run]
        _self_similarities(points, functions, parameters, kernels.offset[run], out[run])
    if cosine:
        out[...] = (out > 0.0) & (out < np.inf)
    return out


@compiled
def _fill(
    columns: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    subset: npt.NDArray[np.int32],
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    rows: Ints,
    cols: Ints,
    cosine: bool,
    out: npt.NDArray[np.floating],
) -> None:
    first = 0
    while first < len(function):  # the kernels of one feature subset
        last = first + 1
        while last < len(function) and subset[last] == subset[first]:
            last += 1
        points = columns[indices[indptr[subset[first]] : indptr[subset[first] + 1]]]
        some = slice(first, last)
        _fill_subset(
            points, function[some], parameter[some], offset[some], rows, cols, cosine, out[some]
        )
        first = last


@compiled
def _fill_subset(
    points: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    rows: Ints,
    cols: Ints,
    cosine: bool,
    out: npt.NDArray[np.floating],
) -> None:
    """Write the tiles of kernels on the same features, (s, n)."""
    n_points, edge = points.shape[1], out.shape[2]
    bases, needed = np.empty((3, n_points)), np.empty(3, dtype=np.bool_)
    values, exponents = np.empty(n_points), np.empty(n_points)
    _which_bases(function, needed)
    factors = _inverse_lengths(points, function, parameter, offset, cosine)
    wide = len(points) > WIDE
    centred = _centred(points) if wide and needed[SQUARED] else points[:0]
    norms = (centred * centred).sum(axis=0)
    inner = of_centred = np.empty((0, 0))
    start = 0
    while start < len(rows):  # the tiles of one row of tiles
        stop = start + 1
        while stop < len(rows) and rows[stop] == rows[start]:
            stop += 1
        top, left = rows[start] * edge, cols[start] * edge
        right = min((cols[stop - 1] + 1) * edge, n_points)
        if wide and needed[INNER]:
            inner = _inner_products(points, top, edge, left, right)
        if wide and needed[SQUARED]:
            of_centred = _inner_products(centred, top, edge, left, right)
        for r in range(edge):
            i = top + r
            if i >= n_points:
                out[:, start:stop, r] = 0.0
                continue
            if wide:
                _fill_wide_bases(inner[r : r + 1], of_centred[r : r + 1], norms, i, left, bases)
            _fill_bases(points, i, left, right, needed, bases, wide)
            row = values[: right - left]
            for m in range(len(function)):
                _apply(function[m], parameter[m], offset[m], bases, row, exponents)
                if cosine and function[m] <= LINEAR and function[m] != GAUSSIAN:
                    _divide_by_lengths(row, factors[m], i, left)
                _scatter(row, out[m, start:stop, r], edge)
        start = stop


@compiled
def _which_bases(functions: npt.NDArray[np.uint8], needed: npt.NDArray[np.bool_]) -> None:
    """Mark the bases that the functions need."""
    needed[:] = False
    for code in functions:
        if code == GAUSSIAN:
            needed[SQUARED] = True
        elif code in (POLYNOMIAL, LINEAR):
            needed[INNER] = True
        else:
            needed[CITY] = True


@compiled(fastmath={"contract"})
def _fill_bases(
    points: Floats,
    i: int,
    left: int,
    right: int,
    needed: npt.NDArray[np.bool_],
    bases: Floats,
    wide: bool,
) -> None:
    """Write the needed bases of point i and the points from `left` to `right`.

    Of wide points, the BLAS gives all bases but the last, city-block distances.
    """
    for base in range(3):
        if not needed[base] or (wide and base != CITY):
            continue
        row = bases[base, : right - left]
        row[:] = 0.0
        for s in range(len(points)):
            own, others = points[s, i], points[s, left:right]
            if base == INNER:
                for j in range(len(row)):
                    row[j] += own * others[j]
            elif base == SQUARED:
                for j in range(len(row)):
                    row[j] += (own - others[j]) ** 2
            else:
                for j in range(len(row)):
                    row[j] += abs(own - others[j])


@compiled
def _inner_products(points: Floats, top: int, edge: int, left: int, right: int) -> Floats:
    """Return the inner products of the points of a row of tiles with those of its columns.

    They are exactly symmetric where rows and columns are the same points.
    """
    bottom = min(top + edge, points.shape[1])
    own = np.ascontiguousarray(points[:, top:bottom].T)
    products: Floats = np.dot(own, np.ascontiguousarray(points[:, left:right]))
    for i in range(top, bottom):
        for j in range(max(top, left), min(i, right)):
            if left <= i < right:
                products[i - top, j - left] = products[j - top, i - left]
    return products


@compiled
def _fill_wide_bases(
    inner: Floats, of_centred: Floats, norms: Floats, i: int, left: int, bases: Floats
) -> None:
    """Write the bases of point i and the points from `left` on, given their inner products.

    Parameters
    ----------
    inner, of_centred : (1, w) or (0, 0) float64
        Inner products of the points, and of the centred points; (0, 0) if not needed.
    norms : (n,) float64
        Squared lengths of all centred points.
    """
    for row in inner:
        bases[INNER, : len(row)] = row
    for row in of_centred:
        for j in range(len(row)):
            bases[SQUARED, j] = max(norms[i] + norms[left + j] - 2.0 * row[j], 0.0)
        if left <= i < left + len(row):
            bases[SQUARED, i - left] = 0.0


@compiled
def _centred(points: Floats) -> Floats:
    """Return centred features, whose inner products give distances with few digits lost."""
    centred = np.empty_like(points)
    for s in range(len(points)):
        centred[s] = points[s] - points[s].mean()
    return centred


@compiled
def _apply(
    function: int, parameter: float, offset: float, bases: Floats, out: Floats, exponents: Floats
) -> None:
    """Write one kernel's values of a row of bases to `out`."""
    if function == GAUSSIAN:
        _exponentials(bases[SQUARED, : len(out)], -0.5 / parameter**2, out, exponents)
    elif function == POLYNOMIAL:
        _powers(bases[INNER, : len(out)], offset, int(parameter), out)
    elif function == LINEAR:
        out[:] = bases[INNER, : len(out)]
    else:
        _exponentials(bases[CITY, : len(out)], -1.0 / parameter, out, exponents)


@compiled(fastmath={"contract"})
def _exponentials(base: Floats, factor: float, out: Floats, exponents: Floats) -> None:
    """Write ``exp(factor base)`` for non-positive arguments, to about one unit in the last place.

    ``exp(x) = 2^k exp(r)`` with k the integer nearest to ``x / ln 2``; the Taylor polynomial of
    degree 13 gives ``exp(r)`` for ``|r| <= ln(2) / 2``.  The compiler vectorises these loops, which
    have no calls and branches, but not the exponential of the C library.
    """
    bits = exponents.view(np.int64)
    for j in range(len(base)):
        exponents[j] = max(base[j] * factor, SMALLEST_EXPONENT) * LOG2_E + ROUND
    for j in range(len(base)):
        k = exponents[j] - ROUND
        r = max(base[j] * factor, SMALLEST_EXPONENT) - k * LN2_HIGH
        r -= k * LN2_LOW
        p = TAYLOR[0]
        for c in TAYLOR[1:]:
            p = p * r + c
        out[j] = p
    for j in range(len(base)):
        bits[j] = (bits[j] << 52) + (1023 << 52)
    for j in range(len(base)):
        out[j] *= exponents[j]


@compiled
def _powers(base: Floats, offset: float, degree: int, out: Floats) -> None:
    """Write ``(offset + base)^degree``, by squaring."""
    for j in range(len(base)):
        factor, power, left = base[j] + offset, 1.0, degree
        while left > 0:
            if left & 1:
                power *= factor
            factor *= factor
            left >>= 1
        out[j] = power


@compiled
def _inverse_lengths(
    points: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    cosine: bool,
) -> Floats:
    """Return ``1 / sqrt(k(x, x))``, or 0 where ``k(x, x) = 0``, of each kernel and point."""
    if not cosine:
        return np.empty((0, 0))
    factors = np.empty((len(function), points.shape[1]))
    _self_similarities(points, function, parameter, offset, factors)
    for row in factors:
        for j in range(len(row)):
            row[j] = 1.0 / math.sqrt(row[j]) if row[j] > 0.0 else 0.0
    return factors


@compiled
def _self_similarities(
    points: Floats,
    function: npt.NDArray[np.uint8],
    parameter: Floats,
    offset: Floats,
    out: Floats,
) -> None:
    """Write ``k(x, x)`` of kernels on the same features, (s, n), to `out`."""
    norms = np.zeros((1, points.shape[1]))
    for s in range(len(points)):
        norms[0] += points[s] ** 2
    for m in range(len(function)):
        if function[m] == POLYNOMIAL:
            _powers(norms[0], offset[m], int(parameter[m]), out[m])
        elif function[m] == LINEAR:
            out[m] = norms[0]
        else:
            out[m] = 1.0


@compiled
def _divide_by_lengths(row: Floats, factors: Floats, i: int, left: int) -> None:
    """Turn inner products in feature space into cosines, in place."""
    for j in range(len(row)):
        row[j] *= factors[i] * factors[left + j]
    if left <= i < left + len(row):
        row[i - left] = 1.0 if factors[i] > 0.0 else 0.0


@compiled
def _scatter(row: Floats, tiles: npt.NDArray[np.floating], edge: int) -> None:
    """Write a row to the parts of successive tiles, (t, b), and zeros behind its end."""
    for t in range(len(tiles)):
        part = row[t * edge : (t + 1) * edge]
        tiles[t, : len(part)] = part
        tiles[t, len(part) :] = 0.0
