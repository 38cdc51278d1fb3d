"""Products of tiles of kernels with vectors and matrices: all kernels, or a few of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mkldist.bank.bank import PassCounter, Rows, TileLayout, slabs
from mkldist.bank.requests import Combine, Inner, Matvec, Quadratic
from mkldist.core.arrays import Floating, Floats, Ints, read_only
from mkldist.core.compiled import compiled

ENTRIES, COLUMNS = 512, 64  # of so many columns stay in the processor's second cache
FEW = 4  # columns; of so few, COLUMNS // FEW blocks of ENTRIES stay in that cache


def add_dots(values: Floating, lines: Ints, columns: Floats, sums: Floats) -> None:
    """Add ``values[lines[s]] . columns[r]`` to ``sums[s, r]``.

    A product is the same to the last bit whatever other lines and columns stand beside it.

    `values` (k, E): entries of matrices; each row is contiguous. `lines` (s,): rows of `values` to
    use. `columns` (R, E): the columns, contiguous. `sums` (s, R): sums to which the products are
    added; contiguous.
    """
    memory, step = flat(values)
    blocks = COLUMNS // FEW if len(columns) <= FEW else 1
    _add(memory, step, lines, columns, sums, blocks * ENTRIES)


def flat(values: Floating) -> tuple[Floating, int]:
    """Return all entries of rows (k, E) in one dimension, and the distance from row to row.

    Nothing is copied where the entries of a row lie side by side.  The entries cannot be written.
    """
    if values.flags.c_contiguous:
        return read_only(values.reshape(-1)), values.shape[1]
    size = values.itemsize
    if values.strides[1] != size or values.strides[0] < 0:
        values = np.ascontiguousarray(values)
    step = values.strides[0] // size
    shape = ((len(values) - 1) * step + values.shape[1],)
    return as_strided(values, shape, (size,), writeable=False), step


@compiled(fastmath={"reassoc", "contract", "nsz"})
def add_dots_of_one(
    memory: Floating, first: int, starts: Ints, column: Floats, sums: Floats
) -> None:
    """Add ``memory[a : a + e] . column`` with ``a = first + starts[s]`` to ``sums[s]``.

    Four stretches of memory are read side by side.  The last one fills up the last four, so that
    the last bits of a sum do not depend on the others.  They differ from those of
    :func:`add_dots`.  As there, the products of :data:`ENTRIES` entries are added up at a time,
    which keeps the rounding of long sums small.

    `memory` (E,): entries, as of :func:`flat`; every stretch must lie inside. `starts` (s,): where
    each stretch begins. `column` (e,): the column, contiguous. `sums` (s,): sums to which the
    products are added; contiguous.
    """
    last = len(starts) - 1
    for s in range(0, len(starts), 4):
        i, j, k = min(s + 1, last), min(s + 2, last), min(s + 3, last)
        at, bt = first + starts[s], first + starts[i]
        ct, dt = first + starts[j], first + starts[k]
        for here in range(0, len(column), ENTRIES):
            there = min(here + ENTRIES, len(column))
            a, b = memory[at + here : at + there], memory[bt + here : bt + there]
            c, d = memory[ct + here : ct + there], memory[dt + here : dt + there]
            x = column[here:there]
            ax = bx = cx = dx = 0.0
            for e in range(there - here):
                f = x[e]
                ax += a[e] * f
                bx += b[e] * f
                cx += c[e] * f
                dx += d[e] * f
            ax, bx, cx, dx = ax + sums[s], bx + sums[i], cx + sums[j], dx + sums[k]
            sums[s], sums[i], sums[j], sums[k] = ax, bx, cx, dx


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add(
    memory: Floating, step: int, lines: Ints, columns: Floats, sums: Floats, n_at_once: int
) -> None:
    """Add the products with rows that begin every `step` entries of memory.

    The loops go through `n_at_once` entries of all lines before they turn to the next entries.
    Four lines are multiplied with two columns at a time: eight sums stay in registers, and memory
    limits the speed.  The last line fills up the last four, and the last column the last two, so
    that all products are computed in one way.  A sum takes :data:`ENTRIES` entries at a time, in
    their order, so that its bits do not depend on `n_at_once` either.
    """
    n_columns, n_entries = columns.shape
    last, right = len(lines) - 1, n_columns - 1
    for start in range(0, n_entries, n_at_once):
        end = min(start + n_at_once, n_entries)
        for first in range(0, n_columns, COLUMNS):
            for s in range(0, len(lines), 4):
                i, j, k = min(s + 1, last), min(s + 2, last), min(s + 3, last)
                at, bt, ct, dt = lines[s] * step, lines[i] * step, lines[j] * step, lines[k] * step
                for p in range(first, min(first + COLUMNS, n_columns), 2):
                    q = min(p + 1, right)
                    for here in range(start, end, ENTRIES):
                        there = min(here + ENTRIES, end)
                        a, b = memory[at + here : at + there], memory[bt + here : bt + there]
                        c, d = memory[ct + here : ct + there], memory[dt + here : dt + there]
                        x, y = columns[p, here:there], columns[q, here:there]
                        ax = bx = cx = dx = ay = by = cy = dy = 0.0
                        for e in range(there - here):
                            f, g = x[e], y[e]
                            ax += a[e] * f
                            bx += b[e] * f
                            cx += c[e] * f
                            dx += d[e] * f
                            ay += a[e] * g
                            by += b[e] * g
                            cy += c[e] * g
                            dy += d[e] * g
                        ax, bx = ax + sums[s, p], bx + sums[i, p]
                        cx, dx = cx + sums[j, p], dx + sums[k, p]
                        ay, by = ay + sums[s, q], by + sums[i, q]
                        cy, dy = cy + sums[j, q], dy + sums[k, q]
                        sums[s, p], sums[i, p], sums[j, p], sums[k, p] = ax, bx, cx, dx
                        sums[s, q], sums[i, q], sums[j, q], sums[k, q] = ay, by, cy, dy


ColumnRequest = Quadratic | Inner


class Columns:
    """Columns of some requests, computed for one slice of entries at a time."""

    def __init__(self, layout: TileLayout, requests: Sequence[ColumnRequest]) -> None:
        self._layout = layout
        self._sources = [_source(layout, request) for request in requests]
        ends = np.cumsum([0, *(source.n_columns for source in self._sources)])
        self.slices = [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]
        self.n_columns = int(ends[-1])

    def over(self, entries: slice) -> Floats:
        """Return the columns at the entries of some whole tiles, (R, e)."""
        tiles, columns = _room(self._layout, self.n_columns, entries)
        for source, where in zip(self._sources, self.slices, strict=True):
            source.write(tiles, columns[where])
        return columns.reshape(self.n_columns, entries.stop - entries.start)


class OuterProducts:
    """Columns of ``v' K v`` of `vectors` (n, R): ``v v'``, times the weights of their tiles."""

    def __init__(self, layout: TileLayout, vectors: Floats) -> None:
        self._layout = layout
        self._segments = _segments(layout, np.atleast_2d(vectors.T))
        self.n_columns = len(self._segments)

    def over(self, entries: slice) -> Floats:
        """Return the columns at the entries of some whole tiles, (R, e)."""
        tiles, columns = _room(self._layout, self.n_columns, entries)
        self.write(tiles, columns)
        return columns.reshape(self.n_columns, entries.stop - entries.start)

    def write(self, tiles: slice, out: Floats) -> None:
        """Write the weighted entries of ``v v'``, (columns, tiles, b, b)."""
        rows, cols = self._layout.coordinates
        weights = self._layout.tile_weights[tiles]
        _write_outer(self._segments, rows[tiles], cols[tiles], weights, out)


class _InnerSource:
    def __init__(self, layout: TileLayout, request: Inner) -> None:
        self._layout = layout
        edge = layout.tile
        packed = layout.pack(np.asarray(request.matrices, dtype=np.float64))
        self._packed = packed.reshape(len(packed), layout.n_tiles, edge, edge)
        self.n_columns = len(packed)

    def write(self, tiles: slice, out: Floats) -> None:
        """Write the weighted entries of the matrices, (columns, tiles, b, b)."""
        np.multiply(self._packed[:, tiles], self._layout.tile_weights[tiles, None, None], out=out)


def _source(layout: TileLayout, request: ColumnRequest) -> OuterProducts | _InnerSource:
    match request:
        case Quadratic():
            return OuterProducts(layout, request.vectors)
        case Inner():
            return _InnerSource(layout, request)


@compiled
def _write_outer(segments: Floats, rows: Ints, cols: Ints, weights: Floats, out: Floats) -> None:
    """Write ``v v'`` times weights, (R, t, b, b), at tiles (t,) for segments (R, side, b) of v."""
    edge = segments.shape[2]
    for r in range(len(segments)):
        for t in range(len(rows)):
            left, right, tile = segments[r, rows[t]], segments[r, cols[t]], out[r, t]
            for i in range(edge):
                factor = weights[t] * left[i]
                for j in range(edge):
                    tile[i, j] = factor * right[j]


def _room(layout: TileLayout, n_columns: int, entries: slice) -> tuple[slice, Floats]:
    """Return the tiles of some entries, and memory for columns at them, (R, tiles, b, b)."""
    tiles = slice(entries.start // layout.tile_entries, entries.stop // layout.tile_entries)
    return tiles, np.empty((n_columns, tiles.stop - tiles.start, layout.tile, layout.tile))


def _segments(layout: TileLayout, vectors: Floats) -> Floats:
    """Cut (R, n) vectors into (R, side, b), filled up with zeros."""
    padded = np.zeros((len(vectors), layout.side * layout.tile))
    padded[:, : layout.n_points] = vectors
    return padded.reshape(len(vectors), layout.side, layout.tile)


MANY = 16  # vectors; beyond so many, the BLAS takes forms faster, though it needs whole matrices
STRETCH = 512  # entries of five rows, which stay in the processor's first cache


def multiply(layout: TileLayout, values: Floating, lines: Ints, vectors: Floats) -> Floats:
    """Return ``K V`` for some matrices K.

    Few vectors are multiplied with the tiles themselves: each entry is read once and used for both
    of its places in the matrix.  Vectors with one entry each take rows of a matrix.  For many other
    vectors a matrix is unpacked and multiplied by the BLAS.

    `values` (k, E): the kept entries of matrices. `lines` (s,): rows of `values` to use. `vectors`
    (n,) or (n, R): V. The result is (s, n) or (s, n, R).
    """
    if vectors.ndim == 2 and vectors.shape[1] > FEW:
        products = np.empty((len(lines), *vectors.shape))
        ones = np.count_nonzero(vectors, axis=0).max() <= 1
        points = np.abs(vectors).argmax(axis=0) if ones else np.arange(0)
        for product, line in zip(products, lines, strict=True):
            if ones:
                product[...] = layout.matrix_rows(values[line], points).T
            else:
                np.matmul(_unpacked(layout, values[line]), vectors, out=product)
        return products * vectors[points, np.arange(len(points))] if ones else products
    padded = _padded(layout, vectors)
    sums = np.zeros((len(lines), *padded.shape))
    memory, step = flat(values)
    starts = np.arange(0, layout.tile_entries, layout.tile)
    shape = (len(padded), layout.side, layout.tile)
    segments, by_tile = padded.reshape(shape), sums.reshape(len(lines), *shape)
    _add_products(memory, lines * step, starts, segments, by_tile)
    answer: Floats = sums[:, :, : layout.n_points].transpose(0, 2, 1)
    return answer[:, :, 0] if vectors.ndim == 1 else answer


def quadratic_forms(layout: TileLayout, values: Floating, lines: Ints, vectors: Floats) -> Floats:
    """Return ``v'K v`` for some matrices K and each vector v.

    Up to :data:`MANY` vectors, the tiles of ``v v'`` are multiplied with those of K.  For more, a
    matrix is unpacked and multiplied by the BLAS.  The last bits of a form differ between one
    vector, several, and many.

    `values` (k, E): the kept entries of matrices. `lines` (s,): rows of `values` to use. `vectors`
    (n,) or (n, R): the vectors. The result is (s,) or (s, R).
    """
    if vectors.ndim == 2 and vectors.shape[1] > MANY:
        forms = np.empty((len(lines), vectors.shape[1]))
        for form, line in zip(forms, lines, strict=True):
            form[...] = _forms(_unpacked(layout, values[line]), vectors)
        return forms
    outer = OuterProducts(layout, vectors)
    if outer.n_columns == 1:
        memory, step = flat(values)
        starts, sums = lines * step, np.zeros(len(lines))
        for entries in slabs(layout):
            add_dots_of_one(memory, entries.start, starts, outer.over(entries)[0], sums)
        return sums.reshape(len(lines), *vectors.shape[1:])
    forms = np.zeros((len(lines), outer.n_columns))
    for entries in slabs(layout):
        add_dots(values[:, entries], lines, outer.over(entries), forms)
    return forms


def _unpacked(layout: TileLayout, entries: Floating) -> Floats:
    """Return a matrix (n, n) float64, of its kept entries (E,)."""
    return np.asarray(layout.unpack(entries.astype(np.float64, copy=False)), dtype=np.float64)


def _forms(matrix: Floats, vectors: Floats) -> Floats:
    """Return ``v'K v`` for a matrix and each of some vectors (n, R)."""
    forms: Floats = np.einsum("nr,nr->r", vectors, matrix @ vectors)
    return forms


def _padded(layout: TileLayout, vectors: Floats) -> Floats:
    """Return vectors (n,) or (n, R) as rows, (R, side * tile), filled up with zeros."""
    columns = vectors[:, None] if vectors.ndim == 1 else vectors
    padded = np.zeros((columns.shape[1], layout.side * layout.tile))
    padded[:, : layout.n_points] = columns.T
    return padded


@compiled
def _add_products(
    memory: Floating, places: Ints, starts: Ints, vectors: Floats, sums: Floats
) -> None:
    """Add K @ vector to `sums`, (s, R, side, b), for s matrices and R vectors in whole tiles.

    The tiles of a matrix begin at its place in memory, and the rows of a tile `starts` (b,) entries
    after its first one.
    """
    side, edge = vectors.shape[1], vectors.shape[2]
    for s in range(len(places)):
        for r in range(len(vectors)):
            tile = places[s]
            for row in range(side):
                for col in range(row, side):
                    right, left = vectors[r, col], vectors[r, row]
                    if row == col:
                        add_dots_of_one(memory, tile, starts, right, sums[s, r, row])
                    else:
                        _add_both(memory, tile, right, left, sums[s, r, row], sums[s, r, col])
                    tile += edge * edge


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add_both(
    memory: Floating, first: int, right: Floats, left: Floats, above: Floats, below: Floats
) -> None:
    """Add ``tile @ right`` to `above` and ``tile' @ left`` to `below`; each entry is read once.

    The tile begins at `first`.
    """
    edge = len(right)
    whole = edge - edge % 4
    for i in range(0, whole, 4):
        at, bt = first + i * edge, first + (i + 1) * edge
        ct, dt = first + (i + 2) * edge, first + (i + 3) * edge
        a, b = memory[at : at + edge], memory[bt : bt + edge]
        c, d = memory[ct : ct + edge], memory[dt : dt + edge]
        f0, f1, f2, f3 = left[i], left[i + 1], left[i + 2], left[i + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(edge):
            factor = right[j]
            s0 += a[j] * factor
            s1 += b[j] * factor
            s2 += c[j] * factor
            s3 += d[j] * factor
            below[j] += a[j] * f0 + b[j] * f1 + c[j] * f2 + d[j] * f3
        above[i] += s0
        above[i + 1] += s1
        above[i + 2] += s2
        above[i + 3] += s3
    for i in range(whole, edge):
        at, f0, s0 = first + i * edge, left[i], 0.0
        a = memory[at : at + edge]
        for j in range(edge):
            s0 += a[j] * right[j]
            below[j] += a[j] * f0
        above[i] += s0


def add_rows(
    values: Floating, lines: Ints, weights: Floats, totals: Floats, first: int = 0
) -> None:
    """Add ``sum_s weights[r, s] values[lines[s]]`` to `totals` from entry `first` on, (R, E).

    The kernels are added one after the other, so that a sum does not depend on the other sums, nor
    on how the kernels and entries are cut into calls.

    `values` (k, e): entries of matrices. `lines` (s,): rows of `values` to use. `weights` (R, s):
    their weights in each sum. `totals`: overwritten; contiguous.
    """
    memory, step = flat(values)
    weights = np.ascontiguousarray(weights)
    _add_rows(memory, lines * step, values.shape[1], weights, totals, first)


@compiled
def _add_rows(
    memory: Floating, starts: Ints, count: int, weights: Floats, totals: Floats, first: int
) -> None:
    """Add rows of `count` entries, four at a time, a stretch of them to all sums."""
    whole = len(starts) - len(starts) % 4
    for begin in range(0, count, STRETCH):
        end = min(begin + STRETCH, count)
        for s in range(0, whole, 4):
            at, bt, ct, dt = starts[s], starts[s + 1], starts[s + 2], starts[s + 3]
            a, b = memory[at + begin : at + end], memory[bt + begin : bt + end]
            c, d = memory[ct + begin : ct + end], memory[dt + begin : dt + end]
            for r in range(len(totals)):
                sums, w0, w1 = (
                    totals[r, first + begin : first + end],
                    weights[r, s],
                    weights[r, s + 1],
                )
                w2, w3 = weights[r, s + 2], weights[r, s + 3]
                for e in range(len(sums)):  # one after the other, but read and written only once
                    sums[e] = sums[e] + w0 * a[e] + w1 * b[e] + w2 * c[e] + w3 * d[e]
        for s in range(whole, len(starts)):
            a = memory[starts[s] + begin : starts[s] + end]
            for r in range(len(totals)):
                sums, w0 = totals[r, first + begin : first + end], weights[r, s]
                for e in range(len(sums)):
                    sums[e] += w0 * a[e]


class KernelRows(Protocol):
    """Source of single kernels: a bank, or the part of a bank that a view keeps."""

    @property
    def layout(self) -> TileLayout:
        """Places of the entries that are kept of a kernel."""

    @property
    def counter(self) -> PassCounter:
        """Work done."""

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read the kernels of the given indices, some at a time, each position exactly once."""


def answer_few(source: KernelRows, request: Combine | Matvec | Quadratic) -> Floats:
    """Answer a request for few kernels, which are read one by one."""
    if not isinstance(request, Combine):
        return products(source, request)
    sums, found = weighted_sums(request, source.layout.n_points)
    combine_few(source, sums)
    return found


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """Weights of some kernels, and the (n, n) matrix to which their combination is written."""

    kernels: Ints
    weights: Floats
    target: Floats


def weighted_sums(request: Combine, n: int) -> tuple[list[WeightedSum], Floats]:
    """Return the requested sums over kernels of non-zero weight, and the array of the answer."""
    rows = np.atleast_2d(request.weights)
    if request.memory is not None and request.memory.shape == (n, n) and len(rows) == 1:
        matrices = request.memory[None]
    else:
        matrices = np.empty((len(rows), n, n))
    sums = []
    for row, matrix in zip(rows, matrices, strict=True):
        used = np.flatnonzero(row)
        kernels = used if request.kernels is None else request.kernels[used]
        sums.append(WeightedSum(kernels, row[used], matrix))
    return sums, matrices[0] if request.weights.ndim == 1 else matrices


def combine_few(source: KernelRows, sums: Sequence[WeightedSum]) -> None:
    """Write combinations of few kernels to their targets; each kernel is read once for all sums."""
    active, weights = _weights_by_kernel(sums)
    packed = np.zeros((len(sums), source.layout.n_entries))
    for rows in source.rows(active):
        for r, row in enumerate(weights[:, rows.positions]):
            used = np.flatnonzero(row)
            add_rows(rows.values, rows.lines[used], row[None, used], packed[r : r + 1])
    for wanted, entries in zip(sums, packed, strict=True):
        source.layout.unpack(entries, out=wanted.target)
    source.counter.combines += len(sums)


def _weights_by_kernel(sums: Sequence[WeightedSum]) -> tuple[Ints, Floats]:
    """Return the kernels of some sums, (s,) and ascending, and their weights in each, (R, s)."""
    if len(sums) == 1:
        order = np.argsort(sums[0].kernels)
        return sums[0].kernels[order], sums[0].weights[None, order]
    kernels = np.unique(np.concatenate([wanted.kernels for wanted in sums]))
    weights = np.zeros((len(sums), len(kernels)))
    for row, wanted in zip(weights, sums, strict=True):
        row[np.searchsorted(kernels, wanted.kernels)] = wanted.weights
    return kernels, weights


def products(source: KernelRows, request: Matvec | Quadratic) -> Floats:
    """Return the products ``K V`` or the forms ``v'K v`` of the kernels that a request names."""
    kernels = np.asarray(request.kernels, dtype=np.intp)
    forms = isinstance(request, Quadratic)
    multiplied = quadratic_forms if forms else multiply
    shape = request.vectors.shape[1:] if forms else request.vectors.shape
    answers = np.empty((len(kernels), *shape))
    for rows in source.rows(kernels):
        answers[rows.positions] = multiplied(
            source.layout, rows.values, rows.lines, request.vectors
        )
    source.counter.matvecs += len(kernels)
    return answers
