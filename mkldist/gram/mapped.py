"""A bank in a memory-mapped file, shared by the processes of a node through the page cache."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mkldist.gram.bank import (
    BLOCK_KERNELS,
    ArrayBank,
    Chunk,
    DiagonalPart,
    Ints,
    Rows,
    kernel_groups,
)
from mkldist.gram.layout import TileLayout


class MappedBank(ArrayBank):
    """A bank whose (M, E) entries begin a file.

    Pages of a memory map count as memory of every process that touched them.  A bank larger than
    `resident_limit` therefore gives its pages back as it is traversed; they stay in the page
    cache as long as the machine has room for them.

    Parameters
    ----------
    path : Path
        The file, of which the first M·E entries are read.  It may be deleted while mapped.
    n_kernels : int
        Number M of kernels.
    layout : TileLayout
        Layout with E entries.
    dtype : dtype
        float32 or float64.
    resident_limit : int, optional
        Bytes of the bank that may stay mapped in; all by default.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is too short.
    """

    def __init__(
        self,
        path: Path,
        n_kernels: int,
        layout: TileLayout,
        dtype: np.dtype[np.floating],
        resident_limit: int | None = None,
    ) -> None:
        n_bytes = n_kernels * layout.n_entries * dtype.itemsize
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_READ)
        values = np.frombuffer(self._map, dtype=dtype).reshape(n_kernels, layout.n_entries)
        super().__init__(values, layout)
        self._limit = resident_limit
        self._gives_back = resident_limit is not None and n_bytes > resident_limit

    def chunks(self) -> Iterator[Chunk]:
        """Traverse the file in slabs of some tiles, as many kernels at once as may stay."""
        for chunk in super().chunks():
            yield from self._parts(chunk)

    def _parts(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield a chunk, in parts of whole blocks of kernels if it is more than may stay."""
        if not self._gives_back or self._limit is None:
            yield chunk
            return
        blocks = self._limit * self.n_kernels // (4 * chunk.values.nbytes * BLOCK_KERNELS)
        step = max(1, blocks) * BLOCK_KERNELS
        for first in range(0, self.n_kernels, step):
            kernels = slice(first, min(first + step, self.n_kernels))
            yield Chunk(kernels, chunk.entries, chunk.values[kernels])
            self.give_back()

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels; many are a traversal, in which pages are given back too."""
        if not self._gives_back or len(kernels) <= self.sparse_limit:
            yield from super().rows(kernels)
            return
        for group in kernel_groups(len(kernels), self.layout.n_entries):
            for rows in super().rows(kernels[group]):
                yield replace(rows, positions=rows.positions + group.start)
            self.give_back()

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the diagonals, giving back the pages of the kernels that they lie in."""
        for part in super().diagonals():
            yield part
            if self._gives_back:
                self.give_back()

    def give_back(self) -> None:
        """Unmap all pages; they are mapped again, from the page cache, when they are read."""
        self._map.madvise(mmap.MADV_DONTNEED)
