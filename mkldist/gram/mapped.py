"""A bank in a memory-mapped file, shared by the processes of a node through the page cache."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mkldist.arrays import Ints
from mkldist.gram.bank import ArrayBank, Chunk, DiagonalPart, Rows, block_kernels, kernel_groups
from mkldist.gram.layout import TileLayout

SHARE_OF_TRAVERSAL = 4  # a traversal may keep one part in 4 of the limit mapped in


class MappedBank(ArrayBank):
    """A bank whose (M, E) entries begin a file.

    Pages of a memory map count as memory of every process that touched them.  A bank larger than
    `resident_limit` therefore gives its pages back while it is traversed.  They stay in the page
    cache as long as the machine has memory for them.

    Parameters
    ----------
    path : Path
        The file, which begins with M·E entries.  It may be deleted while it is mapped.
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
        self._row_bytes = n_bytes // n_kernels
        self._gives_back = resident_limit is not None and n_bytes > resident_limit
        # The rest of the limit is left to the active kernels of solvers, read by `rows`.
        self._may_stay = (resident_limit or 0) // SHARE_OF_TRAVERSAL
        self._mapped_in = 0

    def chunks(self) -> Iterator[Chunk]:
        """Traverse the file, in groups of adjacent kernels if pages are given back."""
        if not self._gives_back:
            yield from super().chunks()
            return
        block = block_kernels(self.layout)
        step = max(1, self._may_stay // (self._row_bytes * block)) * block
        for first in range(0, self.n_kernels, step):
            kernels = slice(first, min(first + step, self.n_kernels))
            for chunk in self.slabs_of(kernels):
                yield chunk
                self._traversed(chunk.values.nbytes)

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels; pages are given back on the way if these are many."""
        if not self._gives_back or len(kernels) <= self.sparse_limit:
            yield from super().rows(kernels)
            return
        for group in kernel_groups(len(kernels), self.layout.n_entries):
            for rows in super().rows(kernels[group]):
                yield replace(rows, positions=rows.positions + group.start)
            self._traversed((group.stop - group.start) * self._row_bytes)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the diagonals, and give back the pages of the kernels that hold them."""
        for part in super().diagonals():
            yield part
            if self._gives_back:
                self._traversed(len(part.values) * self._row_bytes)

    def _traversed(self, n_bytes: int) -> None:
        """Count bytes as mapped in, and give pages back if the next step would exceed the limit."""
        self._mapped_in += n_bytes
        if self._mapped_in + n_bytes > self._may_stay:
            self.give_back()

    def give_back(self) -> None:
        """Unmap all pages; the next read maps them again, from the page cache."""
        self._map.madvise(mmap.MADV_DONTNEED)
        self._mapped_in = 0
