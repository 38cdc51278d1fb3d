"""Values of many kernels on tiles of a Gram matrix, in one compiled loop.

This is the fast path of :mod:`mkldist.kernels.evaluate` for the Gram matrix of one set of points.
The loop takes one row of the matrix at a time.  The base of a feature subset (inner products,
distances) on this row stays in the processor's first cache while every kernel of the subset is
applied to it.  For many features, the BLAS computes the inner products and, from those of centred
points, the squared distances, before the loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled
from mkldist.kernels.functions import Base, KernelFunction, integer_power
from mkldist.kernels.kernel_list import KernelList

BASES = (Base.INNER_PRODUCT, Base.SQUARED_DISTANCE, Base.CITY_BLOCK)
INNER, SQUARED, CITY = range(3)
LINE = 8  # float64 entries of a cache line
VALUES, EXPONENTS = 3, 4  # rows of the scratch, after those of the bases
BASE_OF = np.array([BASES.index(function.base) for function in KernelFunction])

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
        Tiles of edge b, C-contiguous.
    cosine : bool
        Divide by ``sqrt(k(x, x) k(z, z))``; values of points with ``k(x, x) = 0`` become 0.
    """
    base = BASE_OF[kernels.function]
    number, degree = _numbers(kernels, base)
    factors = _inverse_lengths(kernels, columns) if cosine else np.empty((0, columns.shape[1]))
    scratch = _aligned_rows(EXPONENTS + 1, columns.shape[1])
    bits = scratch[EXPONENTS].view(np.int64)
    bands = _bands(rows, cols, out.shape[2], columns.shape[1])
    for share in _shares(kernels, base, columns, bands, out.shape[2]):
        _fill(
            columns, kernels.subset_indices, share.groups, share.bands, share.given,
            base, number, degree, factors, scratch, bits, out,
        )  # fmt: skip


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
    out = np.ones((len(kernels), columns.shape[1]))
    squares, of_products = columns * columns, BASE_OF[kernels.function] == INNER
    for run in kernels.runs():
        if of_products[run].any():
            out[run] = squares[kernels.features_of(run.start)].sum(axis=0)
    out[~of_products] = 1.0
    polynomial = kernels.function == KernelFunction.POLYNOMIAL
    for degree in np.unique(kernels.parameter[polynomial]).tolist():
        some = np.flatnonzero(polynomial & (kernels.parameter == degree))
        values = out[some] + kernels.offset[some, None]
        with np.errstate(over="ignore", under="ignore"):
            integer_power(values, int(degree))
        out[some] = values
    if cosine:
        out[...] = (out > 0.0) & (out < np.inf)
    return out


def _numbers(kernels: KernelList, base: Ints) -> tuple[Floats, Ints]:
    """Return the factor of the exponent or the offset of each kernel, and its degree, (M,)."""
    p = kernels.parameter
    of_exponent = np.where(base == SQUARED, -0.5 / p**2, -1.0 / p)
    degree = np.where(kernels.function == KernelFunction.POLYNOMIAL, p, 1.0).astype(np.intp)
    return np.where(base == INNER, kernels.offset, of_exponent), degree


def _inverse_lengths(kernels: KernelList, columns: Floats) -> Floats:
    """Return ``1 / sqrt(k(x, x))``, or 0 where ``k(x, x) = 0``, of each kernel and point."""
    lengths = np.sqrt(evaluate_diagonals(kernels, columns))
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)


def _aligned_rows(count: int, length: int) -> Floats:
    """Return rows that start where cache lines do: loops over others take a tenth longer."""
    stride = -(-length // LINE) * LINE
    memory = np.empty(count * stride + LINE)
    first = -memory.ctypes.data // memory.itemsize % LINE
    return memory[first : first + count * stride].reshape(count, stride)


@dataclass(frozen=True, eq=False)
class _Share:
    """Some kernels on some tiles.

    Parameters
    ----------
    groups : (g, 5) intp
        Each a run of kernels on the same features: the first kernel and the one behind the last,
        the places of their features, and the bases to compute, a bit each.
    bands : (w, 5) intp
        Each the tiles of one row of tiles: the first tile and the one behind the last, the first
        row and column of the matrix, and the number of its columns.
    given : (2, r, c) float64
        Inner products and squared distances by the BLAS for the points of one band; r = c = 0
        where all bases are computed.
    """

    groups: Ints
    bands: Ints
    given: Floats


def _bands(rows: Ints, cols: Ints, edge: int, n_points: int) -> Ints:
    """Return the bands of some tiles."""
    starts, stops = _runs(rows)
    bands = np.empty((len(starts), 5), dtype=np.intp)
    bands[:, 0], bands[:, 1] = starts, stops
    bands[:, 2], bands[:, 3] = rows[starts] * edge, cols[starts] * edge
    bands[:, 4] = np.minimum((cols[stops - 1] + 1) * edge, n_points) - bands[:, 3]
    return bands


def _runs(keys: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Return where each run of equal keys starts, and where it stops."""
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    ends = np.concatenate([[0], changes, [len(keys)]])
    return ends[:-1], ends[1:]


def _shares(
    kernels: KernelList, base: Ints, columns: Floats, bands: Ints, edge: int
) -> Iterator[_Share]:
    """Yield the whole work, in one share unless some subset has many features."""
    starts, stops = _runs(kernels.subset)
    subset = kernels.subset[starts]
    groups = np.empty((len(starts), 5), dtype=np.intp)
    groups[:, 0], groups[:, 1] = starts, stops
    begin, end, needed = groups.T[2:]
    begin[:], end[:] = kernels.subset_indptr[subset], kernels.subset_indptr[subset + 1]
    needed[:] = np.bitwise_or.reduceat(1 << base, starts)
    wide = (end - begin > WIDE) & (needed & (1 << INNER | 1 << SQUARED) != 0)
    yield _Share(groups[~wide], bands, np.empty((2, 0, 0)))
    for g in np.flatnonzero(wide).tolist():
        points = columns[kernels.subset_indices[begin[g] : end[g]]]
        others = groups[g : g + 1] & [-1, -1, -1, -1, 1 << CITY]
        for w, given in enumerate(_products(points, int(needed[g]), bands, edge)):
            yield _Share(others, bands[w : w + 1], given)


def _products(points: Floats, needed: int, bands: Ints, edge: int) -> Iterator[Floats]:
    """Yield the needed ones of the inner products and squared distances of each band.

    Inner products of centred features give distances with few digits lost.  Both are exactly
    symmetric where rows and columns are the same points.
    """
    if needed & 1 << SQUARED:
        centred = points - points.mean(axis=1, keepdims=True)
        norms = np.einsum("si,si->i", centred, centred)
    for _, _, top, left, width in bands.tolist():
        own, others = slice(top, min(top + edge, points.shape[1])), slice(left, left + width)
        given = np.empty((2, own.stop - own.start, width))
        inner, squared = given
        if needed & 1 << INNER:
            np.matmul(points[:, own].T, points[:, others], out=inner)
        if needed & 1 << SQUARED:
            np.matmul(centred[:, own].T, centred[:, others], out=squared)
            squared *= -2.0
            squared += norms[own, None]
            squared += norms[others]
            np.maximum(squared, 0.0, out=squared)
        if top == left:
            below = np.tril_indices(len(inner), -1)
            given[:, *below] = given[:, *below[::-1]]
            np.fill_diagonal(squared, 0.0)
        yield given


@compiled
def _fill(
    columns: Floats,
    indices: npt.NDArray[np.int32],
    groups: Ints,
    bands: Ints,
    given: Floats,
    base: Ints,
    number: Floats,
    degree: Ints,
    factors: Floats,
    scratch: Floats,
    bits: npt.NDArray[np.int64],
    out: npt.NDArray[np.floating],
) -> None:
    """Write the kernels of all groups on the tiles of all bands, row by row of the matrices.

    The scratch has the rows of the bases, the values, and the exponents, whose bits are `bits`.
    """
    n_points, edge = columns.shape[1], out.shape[2]
    for g in range(len(groups)):
        features, needed = indices[groups[g, 2] : groups[g, 3]], groups[g, 4]
        for w in range(len(bands)):
            top, left, width = bands[w, 2], bands[w, 3], bands[w, 4]
            for r in range(edge):
                if top + r < n_points:
                    for j in range(given.shape[2]):
                        scratch[INNER, j] = given[INNER, r, j]
                        scratch[SQUARED, j] = given[SQUARED, r, j]
                    _add_features(columns, features, needed, top + r, left, width, scratch)
                else:
                    width = 0  # zeros only
                for m in range(groups[g, 0], groups[g, 1]):
                    if base[m] == INNER:
                        _powers(number[m], degree[m], width, scratch)
                        if len(factors) > 0:
                            _divide_by_lengths(factors, m, top + r, left, width, scratch)
                    else:
                        _exponentials(base[m], number[m], width, scratch, bits)
                    _scatter(scratch, width, bands[w, 0], bands[w, 1], r, m, out)


@compiled(fastmath={"contract"})
def _add_features(
    columns: Floats,
    features: npt.NDArray[np.int32],
    needed: int,
    i: int,
    left: int,
    width: int,
    bases: Floats,
) -> None:
    """Write the needed bases of point i and the points from `left` on, feature by feature."""
    for base in range(3):
        if needed >> base & 1:
            row = bases[base, :width]
            for j in range(len(row)):
                row[j] = 0.0
            for feature in features:
                own, others = columns[feature, i], columns[feature, left : left + width]
                if base == INNER:
                    for j in range(len(row)):
                        row[j] += own * others[j]
                elif base == SQUARED:
                    for j in range(len(row)):
                        row[j] += (own - others[j]) ** 2
                else:
                    for j in range(len(row)):
                        row[j] += abs(own - others[j])


@compiled(fastmath={"contract"})
def _exponentials(
    base: int, factor: float, width: int, scratch: Floats, bits: npt.NDArray[np.int64]
) -> None:
    """Write ``exp(factor base)`` for non-positive arguments, to about one unit in the last place.

    ``exp(x) = 2^k exp(r)`` with k the integer nearest to ``x / ln 2``; the Taylor polynomial of
    degree 13 gives ``exp(r)`` for ``|r| <= ln(2) / 2``.  The compiler vectorises these loops, which
    have no calls and branches, but not the exponential of the C library.
    """
    row, values, exponents = scratch[base], scratch[VALUES], scratch[EXPONENTS]
    for j in range(width):
        exponents[j] = max(row[j] * factor, SMALLEST_EXPONENT) * LOG2_E + ROUND
    for j in range(width):
        k = exponents[j] - ROUND
        r = max(row[j] * factor, SMALLEST_EXPONENT) - k * LN2_HIGH
        r -= k * LN2_LOW
        p = TAYLOR[0]
        for c in TAYLOR[1:]:
            p = p * r + c
        values[j] = p
    for j in range(width):
        bits[j] = (bits[j] << 52) + (1023 << 52)
    for j in range(width):
        values[j] *= exponents[j]


@compiled
def _powers(offset: float, degree: int, width: int, scratch: Floats) -> None:
    """Write ``(offset + x'z)^degree``, by squaring."""
    row, values, factor = scratch[INNER], scratch[VALUES], scratch[EXPONENTS]
    for j in range(width):
        factor[j] = row[j] + offset
        values[j] = 1.0
    while degree > 0:
        if degree & 1:
            for j in range(width):
                values[j] *= factor[j]
        degree >>= 1
        if degree > 0:
            for j in range(width):
                factor[j] *= factor[j]


@compiled
def _divide_by_lengths(
    factors: Floats, m: int, i: int, left: int, width: int, scratch: Floats
) -> None:
    """Turn inner products in the feature space of kernel m into cosines, in place."""
    values, own, others = scratch[VALUES], factors[m, i], factors[m, left:]
    for j in range(width):
        values[j] *= own * others[j]
    if left <= i < left + width:
        values[i - left] = 1.0 if own > 0.0 else 0.0


@compiled
def _scatter(
    scratch: Floats,
    width: int,
    tile: int,
    behind: int,
    r: int,
    m: int,
    out: npt.NDArray[np.floating],
) -> None:
    """Write the values to row r of some tiles of kernel m, and zeros behind their end."""
    edge, values = out.shape[2], scratch[VALUES]
    for t in range(tile, behind):
        start = (t - tile) * edge
        for j in range(edge):
            out[m, t, r, j] = values[start + j] if start + j < width else 0.0
