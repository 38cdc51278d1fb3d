"""Right-hand sides of a pass: the columns that multiply the entries of a bank.

``v' K v`` and ``<K, W>`` are products of the kept entries of K with a column of the same length, in
which entries off the diagonal tiles count twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.compiled import compiled
from mkldist.gram.layout import TileLayout
from mkldist.gram.requests import Inner, Quadratic

ColumnRequest = Quadratic | Inner


class Columns:
    """Columns of some requests, computed for one slice of entries at a time.

    Parameters
    ----------
    layout : TileLayout
        Layout of the bank.
    requests : sequence of Quadratic or Inner
        The requests, in the order of their columns.
    """

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
    """Columns of the forms ``v' K v``: the entries of ``v v'``, times the weights of their tiles.

    Parameters
    ----------
    layout : TileLayout
        Layout of the matrices K.
    vectors : (n,) or (n, R) float64
        The vectors v.

    Attributes
    ----------
    n_columns : int
        Number R of vectors.
    """

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
