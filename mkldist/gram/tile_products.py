"""Products and sums of matrices in upper tiles, which are neither unpacked nor copied."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floating, Floats, Ints, read_only
from mkldist.compiled import compiled
from mkldist.gram.bank import slabs
from mkldist.gram.dots import add_dots, add_dots_of_one, flat
from mkldist.gram.layout import TileLayout
from mkldist.gram.operands import OuterProducts

FEW = 4  # vectors; up to so many, reading the tiles takes longer than multiplying them
MANY = 16  # vectors; beyond so many, the BLAS takes forms faster, though it needs whole matrices
STRETCH = 4096  # entries of a sum that stay in the processor's first cache


def multiply(layout: TileLayout, values: Floating, lines: Ints, vectors: Floats) -> Floats:
    """Return ``K V`` for some matrices K.

    Few vectors are multiplied with the tiles themselves: each entry is read once and used for both
    of its places in the matrix.  For many vectors a matrix is unpacked and multiplied by the BLAS.

    Parameters
    ----------
    layout : TileLayout
        Of n points.
    values : (k, E) float32 or float64
        The kept entries of matrices.
    lines : (s,) intp
        Rows of `values` to use.
    vectors : (n,) or (n, R) float64
        V.

    Returns
    -------
    (s, n) or (s, n, R) float64
    """
    if vectors.ndim == 2 and vectors.shape[1] > FEW:
        products = np.empty((len(lines), *vectors.shape))
        for product, line in zip(products, lines, strict=True):
            np.matmul(_unpacked(layout, values[line]), vectors, out=product)
        return products
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

    Parameters
    ----------
    layout : TileLayout
        Of n points.
    values : (k, E) float32 or float64
        The kept entries of matrices.
    lines : (s,) intp
        Rows of `values` to use.
    vectors : (n,) or (n, R) float64
        The vectors.

    Returns
    -------
    (s,) or (s, R) float64
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


def add_rows(values: Floating, lines: Ints, weights: Floats, total: Floats) -> None:
    """Add ``sum_s weights[s] values[lines[s]]`` to `total`, (E,), in the order of s.

    Parameters
    ----------
    values : (k, E) float32 or float64
        Entries of matrices.
    lines : (s,) intp
        Rows of `values` to use.
    weights : (s,) float64
        Their weights.
    total : (E,) float64
        Overwritten.
    """
    _add_rows(read_only(values), lines, weights, total)


@compiled
def _add_rows(values: Floating, lines: Ints, weights: Floats, total: Floats) -> None:
    """Add rows, four at a time: a stretch of `total` is read and written once for each four."""
    whole = len(lines) - len(lines) % 4
    for start in range(0, len(total), STRETCH):
        here = slice(start, start + STRETCH)
        sums = total[here]
        for s in range(0, whole, 4):
            a, b = values[lines[s], here], values[lines[s + 1], here]
            c, d = values[lines[s + 2], here], values[lines[s + 3], here]
            w0, w1, w2, w3 = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
            for e in range(len(sums)):  # one after the other, but read and written only once
                sums[e] = sums[e] + w0 * a[e] + w1 * b[e] + w2 * c[e] + w3 * d[e]
        for s in range(whole, len(lines)):
            a, w0 = values[lines[s], here], weights[s]
            for e in range(len(sums)):
                sums[e] += w0 * a[e]
