"""Kernels on sparse points, never made dense, and on texts: a source without a compiled loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkldist.arrays import Floating, Floats, Ints
from mkldist.gram.layout import TileLayout
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.gaps import Presence
from mkldist.kernels.kernel_list import KernelList

FEW_POINTS = 64  # whose diagonals are computed at once


@dataclass(frozen=True, eq=False)
class PlainSource:
    """Kernels evaluated tile by tile, on sparse points by sparse products.

    Parameters
    ----------
    points : (n, d) csr_array of float64 or array of str objects
        The points; texts are empty where a point has none.
    kernels : KernelList
        The M kernels; on sparse points of inner products and squared distances.
    cosine : bool
        Scale every kernel to unit self-similarities, entry by entry.
    names : tuple of str
        Names of the kernels for messages; by default their numbers, function and columns.
    """

    points: Any
    kernels: KernelList
    cosine: bool = False
    names: tuple[str, ...] = ()

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        return len(self.kernels)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return int(self.points.shape[0])

    @cached_property
    def presence(self) -> Presence | None:
        """See :attr:`mkldist.gram.sources.BankSource.presence`: sparse points lack nothing."""
        return Presence.of(self.kernels, self.points)

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`mkldist.gram.sources.BankSource.fill`."""
        chosen = self.kernels.select(kernels)
        out[...] = 0.0
        rows, cols = (index[tiles].tolist() for index in layout.coordinates)
        for t, (i, j) in enumerate(zip(rows, cols, strict=True)):
            left, right = self.points[layout.rows_of(i)], self.points[layout.rows_of(j)]
            values = evaluate(chosen, left, right, cosine=self.cosine, symmetric=i == j)
            out[:, t, : values.shape[1], : values.shape[2]] = values

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`mkldist.gram.sources.BankSource.diagonals`."""
        chosen = self.kernels.select(kernels)
        found = np.empty((len(chosen), self.n_points))
        for start in range(0, self.n_points, FEW_POINTS):
            part = slice(start, min(start + FEW_POINTS, self.n_points))
            few = self.points[part]
            square = evaluate(chosen, few, few, cosine=self.cosine, symmetric=True)
            found[:, part] = np.einsum("mii->mi", square)
        return found

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`mkldist.gram.sources.BankSource.between`."""
        chosen = self.kernels.select([kernel])
        values = evaluate(chosen, self.points[rows], self.points[columns], cosine=self.cosine)
        of_kernel: Floats = values[0]
        return of_kernel

    def name(self, kernel: int) -> str:
        """See :meth:`mkldist.gram.sources.BankSource.name`."""
        if self.names:
            return self.names[kernel]
        return f"kernel {kernel}, {self.kernels.select([kernel]).names()[0]}"

    def at(self, points: Ints) -> PlainSource:
        """See :meth:`mkldist.gram.sources.BankSource.at`."""
        return replace(self, points=self.points[points])
