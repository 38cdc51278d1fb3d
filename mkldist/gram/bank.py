"""Kernel banks: M Gram matrices in tile layout that can be traversed chunk by chunk.

A bank is a (kernels × entries) matrix, see :mod:`mkldist.gram.layout`.  Where it lives is the
subclass's business; :mod:`mkldist.gram.passes` answers requests on any of them.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floating, Floats, Ints
from mkldist.gram.layout import TileLayout

SLAB_ENTRIES = 16_384
BLOCK_KERNELS = 480  # that a pass works on at once; a chunk that is no last one has whole blocks
ROW_GROUP_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class Chunk:
    """A rectangle of a bank.

    Parameters
    ----------
    kernels : slice
        Kernels covered.
    entries : slice
        Entries covered; begins and ends between two tiles.
    values : (k, e) float32 or float64
        What is stored there.  Valid until the next chunk is asked for.
    """

    kernels: slice
    entries: slice
    values: Floating


@dataclass(frozen=True, eq=False)
class Rows:
    """Some of the kernels that were asked for.

    Parameters
    ----------
    positions : (s,) intp
        Places of these kernels in the list that was asked for.
    lines : (s,) intp
        Rows of `values` that these kernels are.
    values : (k, E) float32 or float64
        Entries.  Valid until the next rows are asked for.
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
        ``k(x, x)``.  Valid until the next part is asked for.
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
        Combinations that were read kernel by kernel because few weights were not zero.
    matvecs : int
        Products of one kernel with one request's vectors.
    diagonals : int
        Readings of the diagonals of all kernels, without a pass.
    radii : int
        Sets of points on which the radii of all kernels were computed.
    bytes_read : int
        Bytes of stored entries read.
    seconds : float
        Wall-clock seconds spent in answering.
    """

    passes: int = 0
    combines: int = 0
    matvecs: int = 0
    diagonals: int = 0
    radii: int = 0
    bytes_read: int = 0
    seconds: float = 0.0

    def copy(self) -> PassCounter:
        """Return the counts as they are now."""
        return PassCounter(*(getattr(self, f.name) for f in fields(self)))

    def __sub__(self, earlier: PassCounter) -> PassCounter:
        """Return what was counted since `earlier`."""
        return PassCounter(
            *(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self))
        )


@dataclass(eq=False)
class Bank(abc.ABC):
    """M Gram matrices over n points.

    A subclass counts the bytes that it reads; :mod:`mkldist.gram.passes` counts everything else.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    layout : TileLayout
        Which entries of a matrix are kept, and where.
    dtype : dtype
        float32 or float64, as stored; answers are float64 always.

    Attributes
    ----------
    counter : PassCounter
        Work done on the bank.
    known_radii : dict of str to (M,) float64
        Squared radii of all kernels, by the set of points: see :mod:`mkldist.gram.radii`.
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
        """Largest number of kernels that are better read one by one than by a pass."""
        return self.n_kernels // 4

    @property
    def shares_rows(self) -> bool:
        """Whether reading few kernels is so dear that solvers should wait to read together."""
        return False

    @abc.abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Traverse the bank.

        Chunks cover every kernel and entry once, the entries of a kernel in ascending order and
        the kernels at an entry too.  Their shapes depend on nothing but the bank.
        """

    @abc.abstractmethod
    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read the kernels of the given indices, some at a time, each place exactly once."""

    @abc.abstractmethod
    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read every kernel's self-similarities once, and as little else as the medium allows.

        The points of a kernel come in ascending order.
        """

    def close(self) -> None:  # noqa: B027 - most banks hold nothing that needs closing
        """Give back memory, files and threads; the bank must not be used afterwards."""


class ArrayBank(Bank):
    """A bank whose entries are one (M, E) array, wherever the array lives.

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
        for entries in slabs(self.layout):
            values = self._values[kernels, entries]
            self.counter.bytes_read += values.nbytes
            yield Chunk(kernels, entries, values)

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels as they lie, all at once."""
        if len(kernels):
            self.counter.bytes_read += len(kernels) * self.layout.n_entries * self.dtype.itemsize
            yield Rows(np.arange(len(kernels)), kernels, self._values)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the diagonals, which lie all over their kernels, of a few megabytes of these."""
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
            Edge of a tile; by default chosen from n.
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
    """Return the self-similarities that lie in a chunk, possibly of no points."""
    entries = chunk.entries
    first, last = np.searchsorted(layout.diagonal, (entries.start, entries.stop)).tolist()
    within = layout.diagonal[first:last] - entries.start
    return DiagonalPart(chunk.kernels, slice(first, last), chunk.values[:, within])


def kernel_groups(n_kernels: int, entries: int) -> Iterator[slice]:
    """Cut the kernels into slices of a few megabytes, given the entries needed of each."""
    step = max(1, ROW_GROUP_ENTRIES // entries)
    for start in range(0, n_kernels, step):
        yield slice(start, min(start + step, n_kernels))


def slabs(layout: TileLayout) -> Iterator[slice]:
    """Cut the entries into slices of whole tiles, about 2^14 entries each."""
    step = max(1, SLAB_ENTRIES // layout.tile_entries) * layout.tile_entries
    for start in range(0, layout.n_entries, step):
        yield slice(start, min(start + step, layout.n_entries))
