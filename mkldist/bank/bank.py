"""Kernel banks: M Gram matrices in tile layout that can be traversed chunk by chunk.

An n × n symmetric matrix is cut into b × b tiles.  The T = s(s+1)/2 tiles on or above the diagonal
(s = ceil(n/b)) are stored whole in row-major order; the last row and column of tiles are padded
with zeros.  A matrix is then a vector of T·b² entries, and a bank a (kernels × entries) matrix.  A
sum over the whole matrix is a sum over entries with weight 2 off the diagonal tiles.

Subclasses of :class:`Bank` hold the entries in memory, read them from disk or compute them;
:mod:`mkldist.bank.passes` answers requests on any bank.
"""

from __future__ import annotations

import abc
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import sub
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floating, Floats, Ints, read_only
from mkldist.core.compiled import compiled
from mkldist.optim.factored_matrix import FactoredMatrix, SymmetricOperator

LAYOUT_VERSION = 2
MAX_TILE = 256
TILES_PER_SIDE = 8


def default_tile(n_points: int) -> int:
    """Return a tile edge that wastes little padding and keeps about half of the entries."""
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

    def matrix_rows(
        self, packed: npt.NDArray[np.floating], points: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.float64]:
        """Return rows `points` (m,) of one (T·b²) vector's matrix, (m, n) float64."""
        rows = np.empty((len(points), self.n_points))
        tiles = read_only(packed.reshape(self.n_tiles, self.tile, self.tile))
        _take_rows(tiles, self.side, *np.divmod(points, self.tile), rows)
        return rows


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


@compiled
def _take_rows(
    tiles: npt.NDArray[np.floating],
    side: int,
    homes: npt.NDArray[np.intp],
    places: npt.NDArray[np.intp],
    rows: npt.NDArray[np.floating],
) -> None:
    """Fill rows of a symmetric matrix with entries of upper tiles; points lie in tiles `homes`."""
    n, edge = rows.shape[1], tiles.shape[1]
    for i in range(len(rows)):
        home, place = homes[i], places[i]
        for other in range(side):
            row, col = min(home, other), max(home, other)
            tile = tiles[row * side - row * (row - 1) // 2 + col - row]
            for j in range(other * edge, min((other + 1) * edge, n)):
                k = j - other * edge
                rows[i, j] = tile[place, k] if other >= home else tile[k, place]


SLAB_ENTRIES = 16_384
BLOCK_KERNELS = 480
FEW_KERNELS = 16  # of which a combination in a pass costs at least as much as one by one
BLOCK_BYTES = 2**29
ROW_GROUP_ENTRIES = 2**20

Answer: TypeAlias = Floats | SymmetricOperator | list[FactoredMatrix]
"""Answer of a bank to a request: numbers, or operators where a combination takes them."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """A rectangle of a bank; its `values` (k, e) are valid until the next one is requested."""

    kernels: slice
    entries: slice
    values: Floating


@dataclass(frozen=True, eq=False)
class Rows:
    """Some of the requested kernels, valid until the next rows are requested."""

    positions: Ints  # (s,) of these kernels in the request
    lines: Ints  # (s,) rows of `values` that hold them
    values: Floating  # (k, E) entries


@dataclass(frozen=True, eq=False)
class DiagonalPart:
    """``k(x, x)`` of some points under some kernels, (k, p), valid until the next part."""

    kernels: slice
    points: slice
    values: Floating


@dataclass
class PassCounter:
    """Work done on a bank."""

    passes: int = 0
    combines: int = 0  # combinations whose few kernels of non-zero weight were read one by one
    matvecs: int = 0  # products of one kernel with one request's vectors
    diagonals: int = 0  # readings of all diagonals without a pass
    radii: int = 0  # sets of points on which the radii of all kernels were computed
    bytes_read: int = 0
    bytes_computed: int = 0  # of entries, by banks that are not stored
    threads_cpu_seconds: float = 0.0  # of own threads, which read or compute ahead, and of shards
    bytes_moved: int = 0  # of requests and answers that went to and from the shards of a bank

    @property
    def value_bytes(self) -> int:
        """Bytes of entries that were read or computed."""
        return self.bytes_read + self.bytes_computed

    def copy(self) -> PassCounter:
        """Return the counts as they are now."""
        return PassCounter(**vars(self))

    def __sub__(self, earlier: PassCounter) -> PassCounter:
        """Return what was counted since `earlier`."""
        return PassCounter(*map(sub, vars(self).values(), vars(earlier).values()))


@dataclass(eq=False)
class Bank(abc.ABC):
    """M Gram matrices over n points.

    A subclass counts the bytes that it reads, and :mod:`mkldist.bank.passes` all other work.
    """

    n_kernels: int
    layout: TileLayout  # places of the entries that are kept of a matrix
    dtype: np.dtype[np.floating]  # as stored, float32 or float64; answers are float64
    counter: PassCounter = field(default_factory=PassCounter, init=False)
    known_radii: dict[str, Floats] = field(default_factory=dict, init=False)
    """Squared radii of all kernels, by the set of points: see :mod:`mkldist.bank.passes`."""

    @property
    def n_points(self) -> int:
        """Number of points n."""
        return self.layout.n_points

    @property
    def n_bytes(self) -> int:
        """Bytes of all stored entries."""
        return self.n_kernels * self.layout.n_entries * self.dtype.itemsize

    @property
    def sparse_limit(self) -> int:
        """Largest number of kernels that cost less one by one than by a pass."""
        return max(self.n_kernels // 4, FEW_KERNELS)

    @property
    def shares_rows(self) -> bool:
        """True if reading few kernels costs so much that solvers should read them together."""
        return False

    def own_answer(self, request: Request) -> Answer | None:
        """Return the answer to a request that the bank has without its entries, or None."""
        return None

    def own_answers(self, requests: Sequence[Request]) -> dict[int, Answer]:
        """Return the answers that the bank has without its entries, by positions of requests."""
        found = ((at, self.own_answer(request)) for at, request in enumerate(requests))
        return {at: answer for at, answer in found if answer is not None}

    @abc.abstractmethod
    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read the kernels of the given indices, some at a time, each position exactly once."""

    def chunks(self) -> Iterator[Chunk]:
        """Traverse the bank.

        Chunks cover every kernel and entry once.  The entries of a kernel come in ascending order,
        and so do the kernels at an entry.  The shapes of chunks depend on the bank alone.
        """
        for rows in self.rows(np.arange(self.n_kernels)):
            first, last = int(rows.positions[0]), int(rows.positions[-1])
            for entries in slabs(self.layout):
                yield Chunk(slice(first, last + 1), entries, rows.values[rows.lines, entries])

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the self-similarities of every kernel once, with as few other bytes as possible.

        The points of a kernel come in ascending order.
        """
        for rows in self.rows(np.arange(self.n_kernels)):
            first, last = int(rows.positions[0]), int(rows.positions[-1])
            values = rows.values[np.ix_(rows.lines, self.layout.diagonal)]
            yield DiagonalPart(slice(first, last + 1), slice(0, self.n_points), values)

    def close(self) -> None:  # noqa: B027 - most banks have nothing to close
        """Give back memory, files and threads; the bank must not be used afterwards."""


class ArrayBank(Bank):
    """A bank whose entries are one array `values` (M, E), in memory or mapped from a file."""

    def __init__(self, values: Floating, layout: TileLayout) -> None:
        if values.ndim != 2 or values.shape[1] != layout.n_entries:
            raise ValueError(
                f"values: found shape {values.shape}; expected (M, {layout.n_entries})"
            )
        if values.dtype not in (np.float32, np.float64):
            raise ValueError(f"values: found {values.dtype}; expected float32 or float64")
        super().__init__(len(values), layout, values.dtype)
        self._values = values

    def chunks(self) -> Iterator[Chunk]:
        """Traverse the array in slabs of some tiles, all kernels at once."""
        yield from self.slabs_of(slice(0, self.n_kernels))

    def slabs_of(self, kernels: slice) -> Iterator[Chunk]:
        """Traverse some kernels in slabs of some tiles."""
        yield from (self.slab_of(kernels, entries) for entries in slabs(self.layout))

    def slab_of(self, kernels: slice, entries: slice) -> Chunk:
        """Return some entries, of whole tiles, of some kernels."""
        values = self._values[kernels, entries]
        self.counter.bytes_read += values.nbytes
        return Chunk(kernels, entries, values)

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Return some kernels at once, as a part of the whole array."""
        if len(kernels):
            self.counter.bytes_read += len(kernels) * self.layout.n_entries * self.dtype.itemsize
            yield Rows(np.arange(len(kernels)), kernels, self._values)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the diagonals of a few megabytes of kernels at a time, as they lie far apart."""
        for kernels in kernel_groups(self.n_kernels, self.layout.n_entries):
            values = self._values[kernels][:, self.layout.diagonal]
            self.counter.bytes_read += values.nbytes
            yield DiagonalPart(kernels, slice(0, self.n_points), values)


class MemoryBank(ArrayBank):
    """A bank in main memory."""

    @classmethod
    def from_grams(
        cls, grams: npt.ArrayLike, dtype: npt.DTypeLike = np.float64, tile: int | None = None
    ) -> MemoryBank:
        """Pack symmetric Gram matrices (M, n, n), whose upper triangles of tiles are read."""
        matrices = np.asarray(grams)
        if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
            raise ValueError(f"grams: found shape {matrices.shape}; expected (M, n, n)")
        n = matrices.shape[1]
        layout = TileLayout.for_points(n) if tile is None else TileLayout(n, tile)
        values = np.empty((len(matrices), layout.n_entries), dtype=dtype)
        step = max(1, ROW_GROUP_ENTRIES // layout.n_entries)
        for start in range(0, len(matrices), step):
            values[start : start + step] = layout.pack(matrices[start : start + step])
        return cls(values, layout)


def diagonal_part(layout: TileLayout, chunk: Chunk) -> DiagonalPart:
    """Return the self-similarities in a chunk, which may cover those of no point."""
    entries = chunk.entries
    first, last = np.searchsorted(layout.diagonal, (entries.start, entries.stop)).tolist()
    within = layout.diagonal[first:last] - entries.start
    return DiagonalPart(chunk.kernels, slice(first, last), chunk.values[:, within])


def kernel_groups(n_kernels: int, entries: int) -> Iterator[slice]:
    """Cut the kernels into slices of a few megabytes, given the entries read of each kernel."""
    step = max(1, ROW_GROUP_ENTRIES // entries)
    for start in range(0, n_kernels, step):
        yield slice(start, min(start + step, n_kernels))


def block_kernels(layout: TileLayout) -> int:
    """Return the number of kernels that a file of a bank has, given its layout.

    They take at most 512 MiB of float64 where one kernel does not take more.
    """
    return max(1, min(BLOCK_KERNELS, BLOCK_BYTES // (8 * layout.n_entries)))


def slabs(layout: TileLayout, within: slice | None = None) -> Iterator[slice]:
    """Cut the entries into slices of whole tiles, about 2^14 entries each."""
    step = max(1, SLAB_ENTRIES // layout.tile_entries) * layout.tile_entries
    whole = within or slice(0, layout.n_entries)
    for start in range(whole.start, whole.stop, step):
        yield slice(start, min(start + step, whole.stop))


class PartBank(Bank):
    """Some kernels of another bank."""

    def __init__(self, whole: Bank, kernels: Ints) -> None:
        super().__init__(len(kernels), whole.layout, whole.dtype)
        self._whole, self._kernels = whole, kernels

    @property
    def sparse_limit(self) -> int:
        """Largest number of kernels that cost less one by one than by a pass."""
        return min(super().sparse_limit, self._whole.sparse_limit)

    @property
    def shares_rows(self) -> bool:
        """True if the other bank's kernels should be read together."""
        return self._whole.shares_rows

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels of the other bank."""
        before = self._whole.counter.copy()
        for rows in self._whole.rows(self._kernels[kernels]):
            spent = self._whole.counter - before
            self.counter.bytes_read += spent.bytes_read
            self.counter.bytes_computed += spent.bytes_computed
            yield rows
            before = self._whole.counter.copy()


Fetch = Callable[[list[int], list[Floating]], None]

FIRST_LINES = 32
PATIENCE = 2  # times the longest interval between two uses, after which no use is expected
GROWTH = 1.25  # small, because memory that one cache reserves is taken from others


@dataclass
class _Usage:
    """Memory of a cache, its last use, and the interval between its last two uses.

    Uses are numbered over all caches together; the interval is a difference of these numbers.
    """

    n_bytes: int
    last_use: int
    interval: int = 0


class MemoryBudget:
    """Memory that several caches of kernels share.

    A cache that grows takes memory from the others.  Solvers use the caches in rounds, one after
    the other.  If the caches do not all fit, evicting the least recently used one would evict the
    one that is used next, and in the end every cache once in a round.  Therefore the most recently
    used of the other caches is evicted, unless one has not been used for twice the longest
    interval: that one is evicted first, as its solver has probably ended.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._usages: dict[RowCache, _Usage] = {}
        self._n_uses = 0
        self._latest: RowCache | None = None

    def reserve(self, cache: RowCache, n_bytes: int) -> None:
        """Reserve bytes for the cache that is used now, and evict others until all fit."""
        if cache is not self._latest:
            self._n_uses, self._latest = self._n_uses + 1, cache
        usage = self._usages.setdefault(cache, _Usage(n_bytes, self._n_uses))
        if usage.last_use < self._n_uses:
            usage.last_use, usage.interval = self._n_uses, self._n_uses - usage.last_use
        usage.n_bytes = n_bytes
        usages = self._usages
        while len(usages) > 1 and sum(one.n_bytes for one in usages.values()) > self.n_bytes:
            self._least_needed().clear()

    def release(self, cache: RowCache) -> None:
        """Take back the memory of a cache."""
        self._usages.pop(cache, None)

    def _least_needed(self) -> RowCache:
        """Return the cache, other than the one used now, whose next use seems farthest away."""
        longest = max(usage.interval for usage in self._usages.values()) or math.inf
        others = [cache for cache in self._usages if cache is not self._latest]
        others.sort(key=lambda cache: self._usages[cache].last_use)
        unused_for = self._n_uses - self._usages[others[0]].last_use
        return others[0] if unused_for > PATIENCE * longest else others[-1]


class RowCache:
    """A cache of the kernels requested last, each with all of its entries."""

    def __init__(
        self, n_entries: int, dtype: npt.DTypeLike, budget: MemoryBudget, most: int | None = None
    ) -> None:
        self._row_bytes = n_entries * np.dtype(dtype).itemsize
        fit = budget.n_bytes // self._row_bytes
        self.capacity = max(1, fit if most is None else min(fit, most))
        self._budget = budget
        self._values = np.empty((0, n_entries), dtype)
        self._lines: OrderedDict[int, int] = OrderedDict()

    def rows(self, kernels: Ints, fetch: Fetch) -> Iterator[Rows]:
        """Yield kernels by their indices (s,), in any order, as many at a time as fit."""
        for start in range(0, len(kernels), self.capacity):
            positions = np.arange(start, min(start + self.capacity, len(kernels)))
            wanted = kernels[positions].tolist()
            self._take(wanted, fetch)
            lines = np.array([self._lines[kernel] for kernel in wanted], dtype=np.intp)
            yield Rows(positions, lines, self._values)

    def clear(self) -> None:
        """Drop all kernels and give their memory back."""
        self._lines.clear()
        self._values = self._values[:0].copy()
        self._budget.release(self)

    def _take(self, wanted: list[int], fetch: Fetch) -> None:
        """Put the given kernels, which must fit, into the cache."""
        for kernel in wanted:
            if kernel in self._lines:
                self._lines.move_to_end(kernel)
        missing = sorted(set(wanted) - self._lines.keys())
        self._grow(len(self._lines) + len(missing))
        if not missing:
            return
        while len(self._lines) + len(missing) > len(self._values):
            self._lines.popitem(last=False)
        free = sorted(set(range(len(self._values))) - set(self._lines.values()))[: len(missing)]
        fetch(missing, [self._values[line] for line in free])
        self._lines.update(zip(missing, free, strict=True))

    def _grow(self, n_lines: int) -> None:
        """Reserve memory for so many kernels, or for as many as fit."""
        size = len(self._values)
        if n_lines > size:
            size = min(self.capacity, max(int(GROWTH * size), FIRST_LINES, n_lines))
        self._budget.reserve(self, size * self._row_bytes)
        if size > len(self._values):
            values = np.empty((size, self._values.shape[1]), self._values.dtype)
            values[: len(self._values)] = self._values
            self._values = values


class CachedRowsBank(Bank):
    """A bank that caches single kernels, because solvers come back to their active kernels.

    At least one kernel fits the memory for them, `row_cache_bytes`, and at most all.
    """

    def __init__(
        self, n_kernels: int, layout: TileLayout, dtype: np.dtype[np.floating], row_cache_bytes: int
    ) -> None:
        super().__init__(n_kernels, layout, dtype)
        budget = MemoryBudget(row_cache_bytes)
        self._cache = RowCache(layout.n_entries, dtype, budget, n_kernels)

    @property
    def sparse_limit(self) -> int:
        """Largest number of kernels that cost less one by one than by a pass."""
        return min(super().sparse_limit, self._cache.capacity)

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Return some kernels, fetched unless they are cached."""
        yield from self._cache.rows(kernels, self._fetch)

    def close(self) -> None:
        """Give back the memory of cached kernels."""
        self._cache.clear()

    @abc.abstractmethod
    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        """Write kernels of ascending indices to the rows."""
