"""Values of kernels in compiled loops: tiles of Gram matrices, and sums that need no matrix.

These are the fast paths of :mod:`mkldist.kernels.evaluate` for some kernel functions.  A loop takes
one row of a matrix at a time.  The base of a feature subset (inner products, distances) on this row
stays in the processor's first cache while every kernel of the subset is applied to it.  For tiles
on many features, the BLAS computes the inner products of a row of tiles before the loop, and numpy
takes squared distances from those of centred points.

Products with vectors, quadratic forms and weighted sums multiply some hundred values of a row while
they are in that cache, and write no kernel values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floating, Floats, Ints, may_overflow
from mkldist.core.compiled import compiled
from mkldist.kernel_functions.bases import (
    CITY_BLOCK,
    INNER_PRODUCT,
    SQUARED_DISTANCE,
    VANISHES_AT,
    inverse_lengths,
)
from mkldist.kernel_functions.products import LINEAR, POLYNOMIAL
from mkldist.kernel_functions.radial import GAUSSIAN, LAPLACIAN
from mkldist.kernels.evaluate import diagonals, evaluate
from mkldist.kernels.kernel_list import KernelList

COMPILED = (GAUSSIAN, POLYNOMIAL, LINEAR, LAPLACIAN)
"""The functions of the loop, in the order of their codes from 0."""
BASES = (INNER_PRODUCT, SQUARED_DISTANCE, CITY_BLOCK)
INNER, SQUARED, CITY = range(3)
LINE = 8  # float64 entries of a cache line
VALUES, EXPONENTS, ZEROS, TOTAL = 3, 4, 5, 6  # rows of the scratch, after those of the bases
BASE_OF = np.array([BASES.index(function.base) for function in COMPILED])

WIDTH = 1024  # values of a row that products and sums compute at once
WIDE = 64  # number of features beyond which the BLAS multiplies faster than loops
OF_ZERO = -1023.0 * math.log(2.0)  # an exponent of two whose bits are those of zero
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it leaves the nearest integer in the last bits
NO_PRODUCTS = np.empty((0, 0, 0))
TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))

Codes: TypeAlias = npt.NDArray[np.uint8]
Indices: TypeAlias = npt.NDArray[np.int32]
Bits: TypeAlias = npt.NDArray[np.int64]
Lists: TypeAlias = tuple[Codes, Floats, Floats, Indices, Bits, Indices]
Prepared: TypeAlias = tuple[Floats, Lists, Floats, Bits]


def fill_tiles(
    kernels: KernelList,
    columns: Floats,
    rows: Ints,
    cols: Ints,
    out: Floating,
    *,
    cosine: bool = False,
) -> None:
    """Write the values of M kernels on t tiles of their Gram matrices to `out`.

    The values are exactly symmetric on diagonal tiles, and exactly 1 on the diagonal of gaussian,
    laplacian-rbf and cosine kernels.  Entries beyond the last point are zero.

    `columns` (d, n): points, one feature a row, C-contiguous. `rows`, `cols` (t,): row and column
    of each tile; tiles of one row are adjacent, without gaps between columns. `out` (M, t, b, b)
    float32 or float64: tiles of edge b, C-contiguous. `cosine`: divide by
    ``sqrt(k(x, x) k(z, z))``; values of points with ``k(x, x) = 0`` become 0.
    """
    for some, is_compiled in _stretches(kernels):
        chosen = kernels.select(some) if some != slice(0, len(kernels)) else kernels
        if is_compiled:
            _fill_compiled(chosen, columns, rows, cols, out[some], cosine=cosine)
        else:
            _fill_plainly(chosen, columns, rows, cols, out[some], cosine=cosine)


def _stretches(kernels: KernelList) -> Iterator[tuple[slice, bool]]:
    """Yield the slices of adjacent kernels that are all compiled or all not, and which it is."""
    compiled: Bools = kernels.function < len(COMPILED)
    starts = [0, *(np.flatnonzero(compiled[1:] != compiled[:-1]) + 1).tolist(), len(kernels)]
    for start, stop in itertools.pairwise(starts):
        if start < stop:
            yield slice(start, stop), bool(compiled[start])


def _fill_plainly(
    kernels: KernelList, columns: Floats, rows: Ints, cols: Ints, out: Floating, *, cosine: bool
) -> None:
    """Write the values of kernels without a loop, tile by tile."""
    edge = out.shape[2]
    for t, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
        left, right = (columns[:, side * edge : (side + 1) * edge].T for side in (i, j))
        r, c = len(left), len(right)
        out[:, t, r:] = 0.0
        out[:, t, :r, c:] = 0.0
        evaluate(kernels, left, right, cosine=cosine, symmetric=bool(i == j), out=out[:, t, :r, :c])


def _fill_compiled(
    kernels: KernelList, columns: Floats, rows: Ints, cols: Ints, out: Floating, *, cosine: bool
) -> None:
    """Write the values of kernels that the loop knows."""
    divided = cosine and bool((BASE_OF[kernels.function] == INNER).any())
    factors = inverse_lengths(diagonals(kernels, columns.T)) if divided else np.empty((0, 0))
    scratch = _aligned_rows(ZEROS + 1, columns.shape[1])
    bits = scratch[EXPONENTS].view(np.int64)
    for some, tiles, products in _shares(kernels, columns, rows, cols, out.shape[2]):
        _fill(
            columns, _lists(kernels), some.start, some.stop, rows, cols, tiles.start, tiles.stop,
            products, factors, scratch, bits, out,
        )  # fmt: skip


def _lists(kernels: KernelList) -> Lists:
    """Return the arrays of a list of kernels, which the loops take after the points."""
    return (
        kernels.function, kernels.parameter, kernels.offset, kernels.subset,
        kernels.subset_indptr, kernels.subset_indices,
    )  # fmt: skip


def _aligned_rows(count: int, length: int) -> Floats:
    """Return rows of zeros that start where cache lines do, which saves loops a tenth of time."""
    stride = -(-length // LINE) * LINE
    memory = np.zeros(count * stride + LINE)
    first = -memory.__array_interface__["data"][0] // memory.itemsize % LINE
    return memory[first : first + count * stride].reshape(count, stride)


def _shares(
    kernels: KernelList, columns: Floats, rows: Ints, cols: Ints, edge: int
) -> Iterator[tuple[slice, slice, Floats]]:
    """Yield some kernels, some tiles, and what :func:`_wide_products` yields for both.

    Only the kernels of a subset of many features come with products, the others with none.
    """
    first, whole = 0, slice(0, len(rows))
    for run in _wide_runs(kernels):
        if first < run.start:
            yield slice(first, run.start), whole, NO_PRODUCTS
        points = columns[kernels.features_of(run.start)]
        bases = set(BASE_OF[kernels.function[run]].tolist())
        for tiles, products in _wide_products(points, bases, rows, cols, edge):
            yield run, tiles, products
        first = run.stop
    if first < len(kernels):
        yield slice(first, len(kernels)), whole, NO_PRODUCTS


def _wide_runs(kernels: KernelList) -> Iterator[slice]:
    """Yield the kernels of each subset of many features that need products."""
    if len(kernels.subset_indices) > WIDE:  # else no subset has many
        wide = np.diff(kernels.subset_indptr) > WIDE
        for run in kernels.runs() if wide.any() else ():
            if wide[kernels.subset[run.start]] and (BASE_OF[kernels.function[run]] != CITY).any():
                yield run


def _wide_products(
    points: Floats, bases: set[int], rows: Ints, cols: Ints, edge: int
) -> Iterator[tuple[slice, Floats]]:
    """Yield the tiles of a row of tiles, and their inner products and squared distances, (2, r, c).

    The distances are those of centred points, which loses few digits; what no base needs is not
    computed.  All are exactly symmetric where rows and columns are the same points.
    """
    seen = {INNER: points} if INNER in bases else {}
    if SQUARED in bases:
        with may_overflow():
            seen[SQUARED] = centred = points - (points.sum(axis=1) / points.shape[1])[:, None]
            norms = np.einsum("si,si->i", centred, centred)
    starts = [0, *(np.flatnonzero(rows[1:] != rows[:-1]) + 1).tolist(), len(rows)]
    for start, stop in itertools.pairwise(starts):
        top, left, right = int(rows[start]), int(cols[start]), int(cols[stop - 1]) + 1
        own, others = slice(top * edge, (top + 1) * edge), slice(left * edge, right * edge)
        products = np.empty((2, points[0, own].size, points[0, others].size))
        square = (top - left) * edge if left <= top < right else None
        for base, z in seen.items():
            with may_overflow():
                _multiply(z[:, own], z[:, others], square, products[base])
                if base == SQUARED:
                    _turn_to_distances(norms[own], norms[others], square, products[base])
        yield slice(start, stop), products


def _multiply(left: Floats, right: Floats, square: int | None, products: Floats) -> None:
    """Write inner products of points (d, r) and (d, c), (r, c).

    They are symmetric from column `square` on, where both are the same points, unless it is None.
    """
    np.matmul(left.T, right, out=products)
    if square is not None:
        i, j = np.tril_indices(len(products), -1)
        products[i, square + j] = products[j, square + i]


def _turn_to_distances(own: Floats, others: Floats, square: int | None, products: Floats) -> None:
    """Turn inner products, as :func:`_multiply` writes them, into squared distances.

    The squared lengths of the points are `own` (r,) and `others` (c,).
    """
    products *= -2.0
    products += own[:, None] + others  # one sum, so that symmetric entries are equal
    np.maximum(products, 0.0, out=products)
    if square is not None:
        np.fill_diagonal(products[:, square:], 0.0)


@compiled
def _fill(
    columns: Floats,
    lists: Lists,
    first: int,
    behind: int,
    rows: Ints,
    cols: Ints,
    tile: int,
    behind_tiles: int,
    products: Floats,
    factors: Floats,
    scratch: Floats,
    bits: Bits,
    out: Floating,
) -> None:
    """Write kernels from `first` on, subset by subset, row by row of the matrices.

    The scratch has the rows of the bases, the values, and the exponents, whose bits are `bits`.
    """
    function, parameter, offset, subset, indptr, indices = lists
    n_points, edge = columns.shape[1], out.shape[2]
    while first < behind:
        last, needed = first, 0
        while last < behind and subset[last] == subset[first]:
            needed |= 1 << BASE_OF[function[last]]
            last += 1
        features = indices[indptr[subset[first]] : indptr[subset[first] + 1]]
        start = tile
        while start < behind_tiles:
            stop = start + 1
            while stop < behind_tiles and rows[stop] == rows[start]:
                stop += 1
            top, left = rows[start] * edge, cols[start] * edge
            width = min((cols[stop - 1] + 1) * edge, n_points) - left
            for i in range(top, top + edge):
                if i >= n_points:
                    width = 0  # zeros only
                else:
                    _take_products(products, needed, i - top, width, scratch)
                    of_loops = needed >> len(products) << len(products)
                    _add_features(columns, features, of_loops, i, left, width, scratch)
                for m in range(first, last):
                    _apply(BASE_OF[function[m]], parameter[m], offset[m], width, scratch, bits)
                    if BASE_OF[function[m]] == INNER and len(factors) > 0:
                        _divide_by_lengths(factors, m, i, left, width, scratch)
                    _scatter(scratch, width, start, stop, i - top, m, out)
            start = stop
        first = last


@compiled(inner=True)
def _take_products(products: Floats, needed: int, r: int, width: int, bases: Floats) -> None:
    """Write the needed bases of row r of some tiles that were computed before the loop."""
    for base in range(len(products)):
        if needed >> base & 1:
            for j in range(width):
                bases[base, j] = products[base, r, j]


@compiled(fastmath={"contract"}, inner=True)
def _add_features(
    columns: Floats, features: Indices, needed: int, i: int, left: int, width: int, bases: Floats
) -> None:
    """Write the needed bases of point i and the points from `left` on, feature by feature."""
    for base in range(3):
        if needed >> base & 1:
            row = bases[base, :width]
            for j in range(len(row)):
                row[j] = 0.0
            for s in range(0, len(features), 2):
                x, z = columns[features[s], i], columns[features[s], left : left + width]
                t = features[s + 1] if s + 1 < len(features) else -1
                own = columns[t, i] if t >= 0 else 0.0
                others = columns[t, left : left + width] if t >= 0 else bases[ZEROS, :width]
                if base == INNER:
                    for j in range(len(row)):
                        row[j] = row[j] + x * z[j] + own * others[j]
                elif base == SQUARED:
                    for j in range(len(row)):
                        d, e = x - z[j], own - others[j]
                        row[j] = row[j] + d * d + e * e
                else:
                    for j in range(len(row)):
                        row[j] = row[j] + abs(x - z[j]) + abs(own - others[j])


@compiled(fastmath={"contract"}, inner=True)
def _exponentials(base: int, factor: float, width: int, scratch: Floats, bits: Bits) -> None:
    """Write ``exp(factor base)`` for non-positive arguments, to about one unit in the last place.

    Values vanish where those of :func:`mkldist.kernel_functions.bases.exponential` do.
    ``exp(x) = 2^k exp(r)`` with k the integer nearest to ``x / ln 2``; the Taylor polynomial of
    degree 13 gives ``exp(r)`` for ``|r| <= ln(2) / 2``.  The compiler vectorises these loops, which
    have no calls and branches, but not the exponential of the C library.
    """
    row, values, exponents = scratch[base], scratch[VALUES], scratch[EXPONENTS]
    for j in range(width):
        x = row[j] * factor
        exponents[j] = (OF_ZERO if x <= VANISHES_AT else x) * LOG2_E + ROUND
    for j in range(width):
        k, x = exponents[j] - ROUND, row[j] * factor
        r = (OF_ZERO if x <= VANISHES_AT else x) - k * LN2_HIGH
        r -= k * LN2_LOW
        p = TAYLOR[0]
        for c in TAYLOR[1:]:
            p = p * r + c
        values[j] = p
    for j in range(width):
        bits[j] = (bits[j] << 52) + (1023 << 52)
    for j in range(width):
        values[j] *= exponents[j]


@compiled(inner=True)
def _powers(offset: float, degree: int, width: int, scratch: Floats) -> None:
    """Write ``(offset + x'z)^degree``, by squaring."""
    row, values, factor = scratch[INNER], scratch[VALUES], scratch[EXPONENTS]
    for j in range(width):
        factor[j] = row[j] + offset
        values[j] = factor[j] if degree & 1 else 1.0
    degree >>= 1
    while degree > 0:
        for j in range(width):
            factor[j] *= factor[j]
        if degree & 1:
            for j in range(width):
                values[j] *= factor[j]
        degree >>= 1


@compiled(inner=True)
def _apply(base: int, p: float, offset: float, width: int, scratch: Floats, bits: Bits) -> None:
    """Write the values of a kernel, given those of its base and its parameter p."""
    if base == INNER:
        _powers(offset, int(p), width, scratch)
    else:
        _exponentials(base, -0.5 / (p * p) if base == SQUARED else -1.0 / p, width, scratch, bits)


@compiled(inner=True)
def _divide_by_lengths(
    factors: Floats, m: int, i: int, left: int, width: int, scratch: Floats
) -> None:
    """Turn inner products in the feature space of kernel m into cosines, in place."""
    values, own, others = scratch[VALUES], factors[m, i], factors[m, left:]
    for j in range(width):
        values[j] *= own * others[j]
    if left <= i < left + width:
        values[i - left] = 1.0 if own > 0.0 else 0.0


@compiled(inner=True)
def _scatter(
    scratch: Floats, width: int, start: int, stop: int, r: int, m: int, out: Floating
) -> None:
    """Write the values to row r of some tiles of kernel m, and zeros behind their end."""
    edge, values = out.shape[2], scratch[VALUES]
    for t in range(start, stop):
        part, place = out[m, t, r], (t - start) * edge
        here = min(edge, width - place)
        for j in range(here):
            part[j] = values[place + j]
        for j in range(max(here, 0), edge):
            part[j] = 0.0


# Sums


def takes(kernels: KernelList) -> bool:
    """Return True if the loops know these kernels, and no product of matrices is faster."""
    known = bool((kernels.function < len(BASE_OF)).all())
    return known and bool((np.diff(kernels.subset_indptr) <= WIDE).all())


def kernel_products(kernels: KernelList, points: Floats, vectors: Floats, x: Floats) -> Floats:
    """Return ``sum_i k_m(x, points[i]) vectors[(m,) i]`` of each kernel, (S, t, R).

    `points` (s, d) and `x` (t, d); `vectors` (s, R), or (S, s, R) with those of each kernel.
    """
    found = np.zeros((len(kernels), len(x), vectors.shape[-1]))
    of_kernels = vectors if vectors.ndim == 3 else vectors[None]
    rows = np.ascontiguousarray(of_kernels.swapaxes(-1, -2))
    _products(*_prepared(kernels, points, x), rows, len(points), found)
    return found


def kernel_forms(kernels: KernelList, points: Floats, vectors: Floats, rows: slice) -> Floats:
    """Return the part of ``v'K_m v`` that some rows of the lower triangles have, (M, R).

    Values off the diagonal count twice: the parts of all rows add up to the forms.

    `points` (n, d), `vectors` (n, R).
    """
    found = np.zeros((len(kernels), vectors.shape[1]))
    prepared = _prepared(kernels, points[: rows.stop], points[:0])
    _forms(*prepared, np.ascontiguousarray(vectors.T), rows.start, rows.stop, found)
    return found


def weighted_values(kernels: KernelList, weights: Floats, points: Floats, x: Floats) -> Floats:
    """Return ``sum_m weights[m] k_m(x, points)``, (t, s)."""
    found = np.zeros((len(x), len(points)))
    no_vectors = np.empty((0, len(points)))
    _sums(*_prepared(kernels, points, x), weights, no_vectors, len(points), found)
    return found


def expansion_sums(
    kernels: KernelList, points: Floats, weights: Floats, coefficients: Floats, x: Floats
) -> Floats:
    """Return ``sum_m weights[m] sum_i coefficients[(m,) i, c] k_m(x, points[i])``, (t, k).

    `points` (s, d) and `x` (t, d); `coefficients` (s, k), or (S, s, k) with those of each kernel.
    """
    if coefficients.ndim == 3:
        products = kernel_products(kernels, points, coefficients, x)
        return np.asarray(np.tensordot(weights, products, axes=1))
    found = np.zeros((len(x), coefficients.shape[1]))
    rows = np.ascontiguousarray(coefficients.T)
    _sums(*_prepared(kernels, points, x), weights, rows, len(points), found)
    return found


def _prepared(kernels: KernelList, points: Floats, x: Floats) -> Prepared:
    """Return the points of columns and, behind them, of rows, one feature a row; lists; scratch."""
    columns = np.ascontiguousarray(np.concatenate([points, x]).T)
    scratch = _aligned_rows(TOTAL + 1, min(WIDTH, max(len(points), 1)))
    return columns, _lists(kernels), scratch, scratch[EXPONENTS].view(np.int64)


@compiled
def _take_values(
    columns: Floats,
    lists: Lists,
    scratch: Floats,
    bits: Bits,
    m: int,
    i: int,
    left: int,
    width: int,
) -> None:
    """Write the values of kernel m at point i and some points; kernels of a subset in order."""
    function, parameter, offset, subset, indptr, indices = lists
    if m == 0 or subset[m] != subset[m - 1]:
        needed, last = 0, m
        while last < len(function) and subset[last] == subset[m]:
            needed |= 1 << BASE_OF[function[last]]
            last += 1
        features = indices[indptr[subset[m]] : indptr[subset[m] + 1]]
        _add_features(columns, features, needed, i, left, width, scratch)
    _apply(BASE_OF[function[m]], parameter[m], offset[m], width, scratch, bits)


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
    lists: Lists,
    scratch: Floats,
    bits: Bits,
    vectors: Floats,
    n_columns: int,
    out: Floats,
) -> None:
    """Add the products of every kernel at the points behind those of the columns.

    Vectors are (1, R, s), or (S, R, s) with those of each kernel.
    """
    for i in range(out.shape[1]):
        for left in range(0, n_columns, WIDTH):
            width = min(WIDTH, n_columns - left)
            for m in range(len(lists[0])):
                _take_values(columns, lists, scratch, bits, m, n_columns + i, left, width)
                own = vectors[m if len(vectors) > 1 else 0]
                for r in range(len(own)):
                    out[m, i, r] += _product(scratch[VALUES], own[r], left, width)


@compiled
def _forms(
    columns: Floats,
    lists: Lists,
    scratch: Floats,
    bits: Bits,
    vectors: Floats,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Add the parts of quadratic forms that rows of the lower triangles have."""
    for i in range(start, stop):
        for left in range(0, i + 1, WIDTH):
            width = min(WIDTH, i + 1 - left)
            for m in range(len(lists[0])):
                _take_values(columns, lists, scratch, bits, m, i, left, width)
                if left + width > i:
                    scratch[VALUES, i - left] *= 0.5
                for r in range(len(vectors)):
                    part = _product(scratch[VALUES], vectors[r], left, width)
                    out[m, r] += 2.0 * vectors[r, i] * part


@compiled
def _sums(
    columns: Floats,
    lists: Lists,
    scratch: Floats,
    bits: Bits,
    weights: Floats,
    vectors: Floats,
    n_columns: int,
    out: Floats,
) -> None:
    """Write the weighted sums of all kernels at the points behind those of the columns.

    Without vectors these are written themselves, else their products with vectors are added.
    """
    for i in range(len(out)):
        for left in range(0, n_columns, WIDTH):
            width = min(WIDTH, n_columns - left)
            for j in range(width):
                scratch[TOTAL, j] = 0.0
            for m in range(len(lists[0])):
                _take_values(columns, lists, scratch, bits, m, n_columns + i, left, width)
                for j in range(width):
                    scratch[TOTAL, j] += weights[m] * scratch[VALUES, j]
            if len(vectors) == 0:
                for j in range(width):
                    out[i, left + j] = scratch[TOTAL, j]
            for c in range(len(vectors)):
                out[i, c] += _product(scratch[TOTAL], vectors[c], left, width)
