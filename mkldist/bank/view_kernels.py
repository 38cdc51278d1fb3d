"""Copies of kernels on the points of a view, so that repeated requests read a kernel only once.

A view of n of the bank's N points needs n²/N² of each kernel's entries.  Requests for all kernels
share a pass over all entries with those of other views; requests for few kernels are answered from
copies that hold only the entries of the view.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mkldist.bank.bank import Bank, Rows
from mkldist.bank.kept_rows import KeptRows, MemoryBudget
from mkldist.bank.layout import TileLayout
from mkldist.core.arrays import Floating, Floats, Ints

LARGEST_SHARE = 0.7  # of a kernel's entries; a larger copy saves too little


class ViewKernels:
    """Kernels of a bank on some of its points, each copied at its first request.

    Parameters
    ----------
    bank : Bank
        The bank, over N points.
    index : (n,) intp
        The points.
    centred : bool
        True if kernels are centred in feature space on these points.
    budget : MemoryBudget
        Memory of the copies, shared with other views.

    Attributes
    ----------
    layout : TileLayout
        Layout of n points.
    """

    def __init__(self, bank: Bank, index: Ints, *, centred: bool, budget: MemoryBudget) -> None:
        self.counter = bank.counter
        self.layout = TileLayout.for_points(len(index))
        self._bank, self._index, self._centred = bank, index, centred
        dtype = np.float64 if centred else bank.dtype
        self._kept = KeptRows(self.layout.n_entries, dtype, budget)

    @staticmethod
    def pays(n_points: int, bank: Bank) -> bool:
        """Return True if kernels on so many of a bank's points are much smaller than on all."""
        return n_points**2 <= LARGEST_SHARE * bank.n_points**2

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Return some kernels, some at a time, each position exactly once."""
        yield from self._kept.rows(kernels, self._fetch)

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        """Read kernels of the bank and keep the part on the view's points."""
        for whole in self._bank.rows(np.array(kernels)):
            for position, line in zip(whole.positions, whole.lines, strict=True):
                matrix = self._bank.layout.submatrix(whole.values[line], self._index)
                if self._centred:
                    matrix = centred_matrices(matrix)
                self.layout.pack(matrix, out=rows[position])


def centred_matrices(matrices: Floats) -> Floats:
    """Return ``H W H``, ``H = I - 11'/n``, for symmetric (..., n, n) matrices, overwriting them."""
    means = matrices.mean(axis=-1)
    overall = means.mean(axis=-1)[..., None, None]
    matrices -= means[..., None, :]
    matrices -= means[..., :, None]
    matrices += overall
    return matrices
