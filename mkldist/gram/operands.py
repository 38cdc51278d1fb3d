"""Right-hand sides of a pass: the columns that multiply the entries of a bank.

``v' K v`` and ``<K, W>`` are products of the kept entries of K with a column of the same length, in
which entries off the diagonal tiles count twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mkldist.arrays import Floats
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
        edge, size = self._layout.tile, self._layout.tile_entries
        tiles = slice(entries.start // size, entries.stop // size)
        columns = np.empty((self.n_columns, tiles.stop - tiles.start, edge, edge))
        for source, where in zip(self._sources, self.slices, strict=True):
            source.write(tiles, columns[where])
        return columns.reshape(self.n_columns, entries.stop - entries.start)


class _QuadraticSource:
    def __init__(self, layout: TileLayout, request: Quadratic) -> None:
        self._layout = layout
        self._segments = _segments(layout, np.atleast_2d(request.vectors.T))
        self.n_columns = len(self._segments)

    def write(self, tiles: slice, out: Floats) -> None:
        """Write the weighted entries of ``v v'``, (columns, tiles, b, b)."""
        rows, cols = self._layout.coordinates
        left = self._segments[:, rows[tiles]] * self._layout.tile_weights[tiles, None]
        np.multiply(left[:, :, :, None], self._segments[:, cols[tiles], None, :], out=out)


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


def _source(layout: TileLayout, request: ColumnRequest) -> _QuadraticSource | _InnerSource:
    match request:
        case Quadratic():
            return _QuadraticSource(layout, request)
        case Inner():
            return _InnerSource(layout, request)


def _segments(layout: TileLayout, vectors: Floats) -> Floats:
    """Cut (R, n) vectors into (R, side, b), filled up with zeros."""
    padded = np.zeros((len(vectors), layout.side * layout.tile))
    padded[:, : layout.n_points] = vectors
    return padded.reshape(len(vectors), layout.side, layout.tile)
