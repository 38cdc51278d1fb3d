"""Upper-tile layout of symmetric matrices: the entries kept of a Gram matrix, and their places.

An n × n symmetric matrix is cut into b × b tiles.  The T = s(s+1)/2 tiles on or above the diagonal
(s = ceil(n/b)) are kept in row-major order, each stored whole; the last row and column of tiles are
padded with zeros.  A matrix is then a vector of T·b² entries, and a bank is a (kernels × entries)
matrix.  A sum over the whole matrix is a sum over entries with weight 2 off the diagonal tiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import read_only
from mkldist.core.compiled import compiled

LAYOUT_VERSION = 2
MAX_TILE = 256
TILES_PER_SIDE = 8


def default_tile(n_points: int) -> int:
    """Return a tile edge that wastes little padding and keeps about half of the entries.

    Examples
    --------
    >>> default_tile(200), default_tile(10), default_tile(10_000)
    (25, 2, 250)
    """
    side = max(TILES_PER_SIDE, math.ceil(n_points / MAX_TILE))
    return max(1, math.ceil(n_points / side))


@dataclass(frozen=True)
class TileLayout:
    """Upper tiles of edge `tile` of a symmetric `n_points` × `n_points` matrix."""

    n_points: int
    tile: int

    @classmethod
    def for_points(cls, n_points: int) -> TileLayout:
        """Return the default layout for n points."""
        return cls(n_points, default_tile(n_points))

    @property
    def side(self) -> int:
        """Number of tiles along one side."""
        return math.ceil(self.n_points / self.tile)

    @property
    def n_tiles(self) -> int:
        """Number T of tiles kept."""
        return self.side * (self.side + 1) // 2

    @property
    def tile_entries(self) -> int:
        """Entries of one tile."""
        return self.tile * self.tile

    @property
    def n_entries(self) -> int:
        """Entries kept per matrix, padding included."""
        return self.n_tiles * self.tile_entries

    @cached_property
    def coordinates(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Row and column of each kept tile, each (T,)."""
        rows, cols = np.triu_indices(self.side)
        return rows, cols

    @cached_property
    def tile_weights(self) -> npt.NDArray[np.float64]:
        """Weight of each tile in a sum over the whole matrix, (T,): 1 on the diagonal, 2 off it."""
        rows, cols = self.coordinates
        return np.where(rows == cols, 1.0, 2.0)

    @cached_property
    def diagonal(self) -> npt.NDArray[np.intp]:
        """Position of each diagonal entry among all kept entries, (n,), ascending."""
        home, place = np.divmod(np.arange(self.n_points), self.tile)
        tiles = home * self.side - home * (home - 1) // 2
        entries: npt.NDArray[np.intp] = tiles * self.tile_entries + place * (self.tile + 1)
        return entries

    def rows_of(self, index: int) -> slice:
        """Return the matrix rows (or columns) that tile row `index` covers."""
        return slice(index * self.tile, min((index + 1) * self.tile, self.n_points))

    def pack(
        self, matrices: npt.NDArray[np.floating], out: npt.NDArray[np.floating] | None = None
    ) -> npt.NDArray[np.floating]:
        """Return (..., n, n) symmetric matrices as (..., T·b²) vectors, written to `out` if given.

        Without `out`, the vectors are of the matrices' dtype.
        """
        lead, b = matrices.shape[:-2], self.tile
        if out is None:
            out = np.empty((*lead, self.n_entries), dtype=matrices.dtype)
        tiles = out.reshape(*lead, self.n_tiles, b, b)
        t = 0
        for i in range(self.side):  # all tiles of a row at once, then the last one if it is cut off
            rows = self.rows_of(i)
            strip, height = matrices[..., rows, i * b :], rows.stop - rows.start
            whole, rest = divmod(strip.shape[-1], b)
            parts = strip[..., : whole * b].reshape(*lead, height, whole, b)
            tiles[..., t : t + whole, :height, :] = parts.swapaxes(-3, -2)
            t += whole
            if height < b:
                tiles[..., t - whole : t, height:, :] = 0.0
            if rest:
                tiles[..., t, :, :] = 0.0
                tiles[..., t, :height, :rest] = strip[..., whole * b :]
                t += 1
        return out

    def unpack(
        self, packed: npt.NDArray[np.floating], out: npt.NDArray[np.floating] | None = None
    ) -> npt.NDArray[np.floating]:
        """Return one (T·b²) vector as an (n, n) symmetric matrix, written to `out` if given."""
        n = self.n_points
        matrix = np.empty((n, n), dtype=packed.dtype) if out is None else out
        tiles = read_only(packed.reshape(self.n_tiles, self.tile, self.tile))
        _unpack(tiles, self.side, matrix)
        return matrix

    def submatrix(
        self, packed: npt.NDArray[np.floating], points: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.float64]:
        """Return rows and columns `points` (m,) of one (T·b²) vector's matrix, (m, m) float64."""
        matrix = np.empty((len(points), len(points)))
        tiles = read_only(packed.reshape(self.n_tiles, self.tile, self.tile))
        _cut(tiles, self.side, *np.divmod(points, self.tile), matrix)
        return matrix


@compiled
def _unpack(tiles: npt.NDArray[np.floating], side: int, matrix: npt.NDArray[np.floating]) -> None:
    """Write upper tiles, row by row, to both of their places in a symmetric matrix."""
    n, edge = len(matrix), tiles.shape[1]
    t = 0
    for row in range(side):
        for col in range(row, side):
            for i in range(row * edge, min((row + 1) * edge, n)):
                for j in range(max(col * edge, i), min((col + 1) * edge, n)):
                    value = tiles[t, i - row * edge, j - col * edge]
                    matrix[i, j] = value
                    matrix[j, i] = value
            t += 1


@compiled
def _cut(
    tiles: npt.NDArray[np.floating],
    side: int,
    homes: npt.NDArray[np.intp],
    places: npt.NDArray[np.intp],
    matrix: npt.NDArray[np.floating],
) -> None:
    """Fill a symmetric matrix with entries of upper tiles; points lie in tiles `homes`."""
    for i in range(len(matrix)):
        for j in range(i, len(matrix)):
            row, col, p, q = homes[i], homes[j], places[i], places[j]
            if row > col:
                row, col, p, q = col, row, q, p
            value = tiles[row * side - row * (row - 1) // 2 + col - row, p, q]
            matrix[i, j] = value
            matrix[j, i] = value
