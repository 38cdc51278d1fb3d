"""Some kernels of a source, in any order, as a source of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mkldist.arrays import Floating, Floats, Ints
from mkldist.gram.layout import TileLayout
from mkldist.gram.sources import BankSource
from mkldist.kernels.gaps import Presence


@dataclass(frozen=True, eq=False)
class SelectedSource:
    """Some kernels of a source.

    Parameters
    ----------
    whole : BankSource
        The source.
    index : (S,) intp
        The kernels.  Successive ones that follow each other there are computed together.
    """

    whole: BankSource
    index: Ints

    @property
    def n_kernels(self) -> int:
        """Number S of kernels."""
        return len(self.index)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return self.whole.n_points

    @cached_property
    def presence(self) -> Presence | None:
        """See :attr:`BankSource.presence`."""
        found = self.whole.presence
        return None if found is None else Presence(found.patterns, found.of_kernel[self.index])

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        for there, place in self._runs(kernels):
            self.whole.fill(there, tiles, layout, out[place])

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        return np.concatenate([self.whole.diagonals(there) for there, _ in self._runs(kernels)])

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`BankSource.between`."""
        return self.whole.between(int(self.index[kernel]), rows, columns)

    def name(self, kernel: int) -> str:
        """See :meth:`BankSource.name`."""
        return self.whole.name(int(self.index[kernel]))

    def at(self, points: Ints) -> SelectedSource:
        """See :meth:`BankSource.at`."""
        return replace(self, whole=self.whole.at(points))

    def _runs(self, kernels: slice) -> Iterator[tuple[slice, slice]]:
        """Cut kernels where the next is not the next one of the source.

        Yields
        ------
        tuple of slice
            Kernels of the source, and their places among `kernels`.
        """
        asked = self.index[kernels]
        ends = [*(np.flatnonzero(np.diff(asked) != 1) + 1).tolist(), len(asked)]
        first = 0
        for end in ends:
            start = int(asked[first])
            yield slice(start, start + end - first), slice(first, end)
            first = end
