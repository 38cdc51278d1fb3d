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

WIDTH = 8


ColumnRequest = Quadratic | Inner


class Columns:
    """Columns of some requests, computed for one slice of entries at a time.

    Columns come in groups of 8, the last group filled up with zeros, so that every product has
    the same shape and a column's result does not depend on the columns beside it.

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
        self.n_groups = -(-self.n_columns // WIDTH)

    def over(self, entries: slice) -> Floats:
        """Return the columns at the entries of some whole tiles, (groups, e, 8)."""
        size = self._layout.tile_entries
        tiles = slice(entries.start // size, entries.stop // size)
        grouped = np.zeros((self.n_groups, entries.stop - entries.start, WIDTH))
        for source, where in zip(self._sources, self.slices, strict=True):
            values = source.over(tiles).reshape(source.n_columns, -1)
            for column, entries_of in enumerate(values, where.start):
                grouped[column // WIDTH, :, column % WIDTH] = entries_of
        return grouped


class _QuadraticSource:
    def __init__(self, layout: TileLayout, request: Quadratic) -> None:
        self._layout = layout
        self._segments = _segments(layout, np.atleast_2d(request.vectors.T))
        self.n_columns = len(self._segments)

    def over(self, tiles: slice) -> Floats:
        """Return the weighted entries of ``v v'``, (columns, tiles, b, b)."""
        rows, cols = self._layout.coordinates
        left = self._segments[:, rows[tiles]] * self._layout.tile_weights[tiles, None]
        return left[:, :, :, None] * self._segments[:, cols[tiles], None, :]


class _InnerSource:
    def __init__(self, layout: TileLayout, request: Inner) -> None:
        self._layout = layout
        edge = layout.tile
        packed = layout.pack(np.asarray(request.matrices, dtype=np.float64))
        self._packed = packed.reshape(len(packed), layout.n_tiles, edge, edge)
        self.n_columns = len(packed)

    def over(self, tiles: slice) -> Floats:
        """Return the weighted entries of the matrices, (columns, tiles, b, b)."""
        return self._packed[:, tiles] * self._layout.tile_weights[tiles, None, None]


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
