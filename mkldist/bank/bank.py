"""Kernel banks: M Gram matrices in tile layout that can be traversed chunk by chunk.

A bank is a (kernels × entries) matrix, see :mod:`mkldist.bank.layout`.  Subclasses keep the
entries in memory, read them from disk or compute them; :mod:`mkldist.bank.passes` answers requests
on any bank.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import sub
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mkldist.bank.layout import TileLayout
from mkldist.bank.requests import Request
from mkldist.core.arrays import Floating, Floats, Ints
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.optim.symmetric_operator import SymmetricOperator

SLAB_ENTRIES = 16_384
BLOCK_KERNELS = 480
FEW_KERNELS = 16  # of which a combination in a pass costs at least as much as one by one
BLOCK_BYTES = 2**29
ROW_GROUP_ENTRIES = 2**20

Answer: TypeAlias = Floats | SymmetricOperator | list[FactoredMatrix]
"""Answer of a bank to a request: numbers, or operators where a combination takes them."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """A rectangle of a bank.

    Parameters
    ----------
    kernels : slice
        Kernels covered.
    entries : slice
        Entries covered: whole tiles.
    values : (k, e) float32 or float64
        The stored entries.  Valid until the next chunk is requested.
    """

    kernels: slice
    entries: slice
    values: Floating


@dataclass(frozen=True, eq=False)
class Rows:
    """Some of the requested kernels.

    Parameters
    ----------
    positions : (s,) intp
        Positions of these kernels in the request.
    lines : (s,) intp
        Row of `values` that holds each of these kernels.
    values : (k, E) float32 or float64
        Entries.  Valid until the next rows are requested.
    """

    positions: Ints
    lines: Ints
    values: Floating


@dataclass(frozen=True, eq=False)
class DiagonalPart:
    """Self-similarities of some points under some kernels.

    Parameters
    ----------
    kernels : slice
        Kernels covered.
    points : slice
        Points covered.
    values : (k, p) float32 or float64
        ``k(x, x)``.  Valid until the next part is requested.
    """

    kernels: slice
    points: slice
    values: Floating


@dataclass
class PassCounter:
    """Work done on a bank.

    Parameters
    ----------
    passes : int
        Traversals of all kernels.
    combines : int
        Combinations whose few kernels of non-zero weight were read one by one.
    matvecs : int
        Products of one kernel with one request's vectors.
    diagonals : int
        Readings of all diagonals without a pass.
    radii : int
        Sets of points on which the radii of all kernels were computed.
    bytes_read : int
        Bytes of stored entries read.
    bytes_computed : int
        Bytes of entries computed, by banks that are not stored.
    threads_cpu_seconds : float
        Processor time of the bank's own threads, which read or compute ahead, and of its shards.
    bytes_moved : int
        Bytes of requests and answers that went to and from the shards of a bank.
    """

    passes: int = 0
    combines: int = 0
    matvecs: int = 0
    diagonals: int = 0
    radii: int = 0
    bytes_read: int = 0
    bytes_computed: int = 0
    threads_cpu_seconds: float = 0.0
    bytes_moved: int = 0

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

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    layout : TileLayout
        Places of the entries that are kept of a matrix.
    dtype : dtype
        Stored type, float32 or float64; answers are always float64.

    Attributes
    ----------
    counter : PassCounter
        Work done on the bank.
    known_radii : dict of str to (M,) float64
        Squared radii of all kernels, by the set of points: see :mod:`mkldist.bank.passes`.
    """

    n_kernels: int
    layout: TileLayout
    dtype: np.dtype[np.floating]
    counter: PassCounter = field(default_factory=PassCounter, init=False)
    known_radii: dict[str, Floats] = field(default_factory=dict, init=False)

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
    def chunks(self) -> Iterator[Chunk]:
        """Traverse the bank.

        Chunks cover every kernel and entry once.  The entries of a kernel come in ascending order,
        and so do the kernels at an entry.  The shapes of chunks depend on the bank alone.
        """

    @abc.abstractmethod
    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read the kernels of the given indices, some at a time, each position exactly once."""

    @abc.abstractmethod
    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the self-similarities of every kernel once, with as few other bytes as possible.

        The points of a kernel come in ascending order.
        """

    def close(self) -> None:  # noqa: B027 - most banks have nothing to close
        """Give back memory, files and threads; the bank must not be used afterwards."""


class ArrayBank(Bank):
    """A bank whose entries are one (M, E) array, in memory or mapped from a file.

    Parameters
    ----------
    values : (M, E) float32 or float64
        Entries of all kernels.
    layout : TileLayout
        Layout with E entries.
    """

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
        """Pack (M, n, n) symmetric Gram matrices.

        Parameters
        ----------
        grams : (M, n, n) array-like
            Gram matrices; the upper triangle of tiles is read.
        dtype : dtype
            float32 or float64.
        tile : int, optional
            Edge of a tile; by default :func:`mkldist.bank.layout.default_tile` of n.
        """
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
    """Return the number of kernels that a pass works on at once, given the layout of the bank.

    They take at most 512 MiB of float64 where one kernel does not take more.  Every chunk but the
    last one has whole blocks of them, and so has every shard, so that each product has the same
    shape wherever a bank is kept.

    Examples
    --------
    >>> [block_kernels(TileLayout.for_points(n)) for n in (200, 1000, 10_000)]
    [480, 119, 1]
    """
    return max(1, min(BLOCK_KERNELS, BLOCK_BYTES // (8 * layout.n_entries)))


def slabs(layout: TileLayout, within: slice | None = None) -> Iterator[slice]:
    """Cut the entries into slices of whole tiles, about 2^14 entries each.

    Parameters
    ----------
    layout : TileLayout
        Layout of the bank.
    within : slice, optional
        Entries of some of these slices, to yield only them.
    """
    step = max(1, SLAB_ENTRIES // layout.tile_entries) * layout.tile_entries
    whole = within or slice(0, layout.n_entries)
    for start in range(whole.start, whole.stop, step):
        yield slice(start, min(start + step, whole.stop))


class PartBank(Bank):
    """Some kernels of another bank.

    Parameters
    ----------
    whole : Bank
        The other bank, which stays open.  Its counter is advanced too.
    kernels : (S,) intp
        Indices of the kernels in it.
    """

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

    def chunks(self) -> Iterator[Chunk]:
        """Read the kernels some at a time, each group in slabs of some tiles."""
        for rows in self.rows(np.arange(self.n_kernels)):
            first, last = int(rows.positions[0]), int(rows.positions[-1])
            for entries in slabs(self.layout):
                yield Chunk(slice(first, last + 1), entries, rows.values[rows.lines, entries])

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels of the other bank."""
        before = self._whole.counter.copy()
        for rows in self._whole.rows(self._kernels[kernels]):
            spent = self._whole.counter - before
            self.counter.bytes_read += spent.bytes_read
            self.counter.bytes_computed += spent.bytes_computed
            yield rows
            before = self._whole.counter.copy()

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the kernels and take the diagonal of each."""
        for rows in self.rows(np.arange(self.n_kernels)):
            first, last = int(rows.positions[0]), int(rows.positions[-1])
            values = rows.values[rows.lines][:, self.layout.diagonal]
            yield DiagonalPart(slice(first, last + 1), slice(0, self.n_points), values)
