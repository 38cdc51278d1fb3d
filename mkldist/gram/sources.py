"""Sources of the values of a bank: points and kernels, or given Gram matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floating, Floats
from mkldist.errors import GramError
from mkldist.gram.layout import TileLayout
from mkldist.kernel_functions.lengths import inverse_lengths
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.tile_values import fill_diagonals, fill_tiles


class BankSource(Protocol):
    """Source that computes the values of a bank, block by block."""

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""

    @property
    def n_points(self) -> int:
        """Number n of points."""

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """Write the values of k kernels on t tiles to `out`, (k, t, b, b), padding zeroed."""

    def diagonals(self, kernels: slice) -> Floats:
        """Return ``k(x, x)`` of k kernels and all points, (k, n)."""

    def name(self, kernel: int) -> str:
        """Return the name of a kernel for messages."""


@dataclass(frozen=True, eq=False)
class FeatureSource:
    """Kernels evaluated on points: the usual source.

    Parameters
    ----------
    points : (n, d) float64
        Preprocessed features.
    kernels : KernelList
        The M kernels.
    cosine : bool
        Scale every kernel to unit self-similarities, entry by entry.
    """

    points: Floats
    kernels: KernelList
    cosine: bool = False

    @cached_property
    def _columns(self) -> Floats:
        return np.ascontiguousarray(self.points.T)

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        return len(self.kernels)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return len(self.points)

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        rows, cols = (index[tiles] for index in layout.coordinates)
        columns, chosen = self._columns, self.kernels.select(kernels)
        fill_tiles(chosen, columns, rows, cols, out, cosine=self.cosine)

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        chosen = self.kernels.select(kernels)
        return fill_diagonals(chosen, self._columns, cosine=self.cosine)

    def name(self, kernel: int) -> str:
        """See :meth:`BankSource.name`."""
        return f"kernel {kernel}, {self.kernels.select([kernel]).names()[0]}"


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Given Gram matrices.

    Parameters
    ----------
    grams : (M, n, n) float array
        Symmetric matrices, possibly memory-mapped.  Asymmetry that is due to rounding is averaged.
    cosine : bool
        Scale every matrix to a diagonal of ones; rows of zero diagonal become zero.
    """

    grams: npt.NDArray[np.floating]
    cosine: bool = False

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        return len(self.grams)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return int(self.grams.shape[1])

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        coordinates = zip(*(index[tiles] for index in layout.coordinates), strict=True)
        grams = self.grams[kernels]
        scales = self._scales(grams)
        out[...] = 0.0
        for t, (i, j) in enumerate(coordinates):
            rows, cols = layout.rows_of(i), layout.rows_of(j)
            upper = grams[:, rows, cols].astype(np.float64)
            part = 0.5 * (upper + grams[:, cols, rows].swapaxes(1, 2))
            if scales is not None:
                part *= scales[:, rows, None] * scales[:, None, cols]
                if i == j:
                    ones = np.where(scales[:, rows] > 0, 1.0, 0.0)
                    np.einsum("kii->ki", part)[...] = ones
            out[:, t, : part.shape[1], : part.shape[2]] = part

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        diagonals: Floats = np.einsum("kii->ki", self.grams[kernels]).astype(np.float64)
        return (diagonals > 0).astype(np.float64) if self.cosine else diagonals

    def name(self, kernel: int) -> str:
        """See :meth:`BankSource.name`."""
        return f"kernel {kernel}"

    def _scales(self, grams: Floating) -> Floats | None:
        """Return the factors (k, n) that make the diagonals 1, or None without cosine."""
        if not self.cosine:
            return None
        diagonals = np.einsum("kii->ki", grams).astype(np.float64)
        return inverse_lengths(diagonals)


def check_finite(values: Floating, first: int, source: BankSource) -> None:
    """Raise GramError if a kernel has values that are not finite.

    Parameters
    ----------
    values : (k, e) float array
        Values of successive kernels.
    first : int
        Index of the first of them.
    source : BankSource
        Source of the values, which knows the names of the kernels.
    """
    if math.isfinite(float(np.add.reduce(values, axis=None))):
        return
    finite = np.isfinite(values).all(axis=1)
    if finite.all():  # only their sum is beyond the range
        return
    raise GramError(
        source.name(first + int(np.flatnonzero(~finite)[0])),
        f"values beyond the range of {values.dtype.name}",
        "finite values",
        "Scale the features, use the cosine normalisation, dtype = 'float64' or lower degrees",
    )
