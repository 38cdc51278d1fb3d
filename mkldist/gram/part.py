"""Some kernels of a bank, in any order, as a bank of their own that shares the memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mkldist.arrays import Ints
from mkldist.gram.bank import Bank, Chunk, DiagonalPart, Rows, slabs


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
