"""Sources of the values of a bank: points and kernels, or given Gram matrices."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import TileLayout, kernel_groups
from mkldist.bank.requests import Combine, Request
from mkldist.core.arrays import Bools, Floating, Floats, Ints
from mkldist.errors import GramError
from mkldist.kernel_functions.bases import inverse_lengths
from mkldist.kernels.evaluate import Presence, diagonals, evaluate, gaps_of, without_gaps
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import fill_tiles


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

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """Return the values of one kernel between some points and others, (r, c)."""

    def name(self, kernel: int) -> str:
        """Return the name of a kernel for messages."""

    def at(self, points: Ints) -> BankSource:
        """Return the same kernels on some of the points."""

    @property
    def presence(self) -> Presence | None:
        """Which points have the features, or the view, of which kernels; None if all have all."""


FEW_POINTS = 64  # whose diagonals are computed at once


@dataclass(frozen=True, eq=False)
class PlainSource:
    """Kernels evaluated tile by tile, on sparse points by sparse products."""

    points: Any  # (n, d); texts are empty where a point has none
    kernels: KernelList  # on sparse points of inner products and squared distances
    cosine: bool = False  # True to scale every kernel to unit self-similarities, entry by entry
    names: tuple[str, ...] = ()  # for messages; by default numbers, functions and columns

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
        """See :attr:`BankSource.presence`."""
        return Presence.of(self.kernels, self.points)

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        chosen = self.kernels.select(kernels)
        out[...] = 0.0
        rows, cols = (index[tiles].tolist() for index in layout.coordinates)
        for t, (i, j) in enumerate(zip(rows, cols, strict=True)):
            left, right = self.points[layout.rows_of(i)], self.points[layout.rows_of(j)]
            values = evaluate(chosen, left, right, cosine=self.cosine, symmetric=i == j)
            out[:, t, : values.shape[1], : values.shape[2]] = values

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        chosen = self.kernels.select(kernels)
        found = np.empty((len(chosen), self.n_points))
        for start in range(0, self.n_points, FEW_POINTS):
            part = slice(start, min(start + FEW_POINTS, self.n_points))
            few = self.points[part]
            square = evaluate(chosen, few, few, cosine=self.cosine, symmetric=True)
            found[:, part] = np.einsum("mii->mi", square)
        return found

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`BankSource.between`."""
        chosen = self.kernels.select([kernel])
        values = evaluate(chosen, self.points[rows], self.points[columns], cosine=self.cosine)
        of_kernel: Floats = values[0]
        return of_kernel

    def name(self, kernel: int) -> str:
        """See :meth:`BankSource.name`."""
        if self.names:
            return self.names[kernel]
        return f"kernel {kernel}, {self.kernels.select([kernel]).names()[0]}"

    def at(self, points: Ints) -> Self:
        """See :meth:`BankSource.at`."""
        return replace(self, points=self.points[points])


@dataclass(frozen=True, eq=False)
class FeatureSource(PlainSource):
    """Kernels evaluated on features (n, d) by compiled loops: the usual source.

    Features that a point lacks are NaN.
    """

    @property
    def passes(self) -> Any:
        """Passes on a device, a :class:`mkldist.bank.device.DevicePasses`; None without one."""
        return None

    @cached_property
    def _columns(self) -> Floats:
        complete = gaps_of(self.points) is None
        return np.ascontiguousarray((self.points if complete else without_gaps(self.points)).T)

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        rows, cols = (index[tiles] for index in layout.coordinates)
        fill_tiles(self.kernels.select(kernels), self._columns, rows, cols, out, cosine=self.cosine)
        if self.presence is not None:
            zero_tiles(self.presence[kernels], tiles, layout, out)

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        found = diagonals(self.kernels.select(kernels), self._columns.T, cosine=self.cosine)
        return found if self.presence is None else found * self.presence[kernels]


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Given Gram matrices."""

    grams: npt.NDArray[np.floating]
    """(M, N, N), perhaps mapped.  Asymmetry that is due to rounding is averaged."""
    cosine: bool = False  # True to scale to diagonals of ones; rows of zero diagonal become zero
    rows: Ints | None = None  # (n,) points of the bank among the N; None for all
    presence: Presence | None = None  # which points have which matrices; others' rows are zero
    names: tuple[str, ...] = ()  # of the matrices, for messages; by default their numbers
    symmetric: bool = False  # True if each matrix equals its transpose

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        return len(self.grams)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return int(self.grams.shape[1]) if self.rows is None else len(self.rows)

    def answer(self, request: Request) -> Floats | None:
        """Answer a request for one sum of all matrices, if they can be added as they lie."""
        whole = self.symmetric and self.rows is None and self.presence is None and not self.cosine
        as_they_lie = whole and self.grams.dtype == np.float64 and self.grams.flags.c_contiguous
        match request:
            case Combine(weights, None) if as_they_lie and weights.ndim == 1 and weights.all():
                return np.tensordot(weights, self.grams, 1)
            case _:
                return None

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        coordinates = zip(*(index[tiles] for index in layout.coordinates), strict=True)
        grams = self.grams[kernels]
        scales = self._scales(kernels)
        out[...] = 0.0
        for t, (i, j) in enumerate(coordinates):
            rows, cols = layout.rows_of(i), layout.rows_of(j)
            upper = self._part(grams, rows, cols).astype(np.float64)
            part = 0.5 * (upper + self._part(grams, cols, rows).swapaxes(1, 2))
            if scales is not None:
                part *= scales[:, rows, None] * scales[:, None, cols]
                if i == j:
                    ones = np.where(scales[:, rows] > 0, 1.0, 0.0)
                    np.einsum("kii->ki", part)[...] = ones
            out[:, t, : part.shape[1], : part.shape[2]] = part
        if self.presence is not None:
            zero_tiles(self.presence[kernels], tiles, layout, out)

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        found = self._given_diagonals(kernels)
        found = (found > 0).astype(np.float64) if self.cosine else found
        return found if self.presence is None else found * self.presence[kernels]

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`BankSource.between`."""
        gram = self.grams[kernel]
        own_rows, own_columns = (
            np.arange(self.n_points)[index] if self.rows is None else self.rows[index]
            for index in (rows, columns)
        )
        upper, lower = gram[own_rows[:, None], own_columns], gram[own_columns, own_rows[:, None]]
        values: Floats = 0.5 * (upper.astype(np.float64) + lower)
        scales = self._scales(slice(kernel, kernel + 1))
        if scales is not None:
            values *= scales[0, rows, None] * scales[0, columns]
        if self.presence is not None:
            [present] = self.presence[slice(kernel, kernel + 1)]
            values *= present[rows, None] & present[columns]
        return values

    def name(self, kernel: int) -> str:
        """See :meth:`BankSource.name`."""
        return self.names[kernel] if self.names else f"kernel {kernel}"

    def at(self, points: Ints) -> ArraySource:
        """See :meth:`BankSource.at`."""
        presence = None if self.presence is None else self.presence.at(points)
        rows = points if self.rows is None else self.rows[points]
        return replace(self, rows=rows, presence=presence)

    def _part(self, grams: Floating, rows: slice, cols: slice) -> Floating:
        """Return some rows and columns of the bank's points."""
        if self.rows is None:
            return grams[:, rows, cols]
        return grams[:, self.rows[rows, None], self.rows[cols]]

    def _given_diagonals(self, kernels: slice) -> Floats:
        """Return the diagonals as they are given, (k, n)."""
        found: Floats = np.einsum("kii->ki", self.grams[kernels]).astype(np.float64)
        return found if self.rows is None else found[:, self.rows]

    def _scales(self, kernels: slice) -> Floats | None:
        """Return the factors (k, n) that make the diagonals 1, or None without cosine."""
        return inverse_lengths(self._given_diagonals(kernels)) if self.cosine else None


class _PartsOfSources(abc.ABC):
    """Kernels of other sources, in runs of adjacent ones."""

    @abc.abstractmethod
    def _parts(self, kernels: slice) -> Iterator[tuple[BankSource, slice, slice]]:
        """Yield the sources of some kernels, the kernels there, and their places among these."""

    def fill(self, kernels: slice, tiles: slice, layout: TileLayout, out: Floating) -> None:
        """See :meth:`BankSource.fill`."""
        for source, there, place in self._parts(kernels):
            source.fill(there, tiles, layout, out[place])

    def diagonals(self, kernels: slice) -> Floats:
        """See :meth:`BankSource.diagonals`."""
        parts = self._parts(kernels)
        return np.concatenate([source.diagonals(there) for source, there, _ in parts])

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`BankSource.between`."""
        [(source, there, _)] = self._parts(slice(kernel, kernel + 1))
        return source.between(there.start, rows, columns)

    def name(self, kernel: int) -> str:
        """See :meth:`BankSource.name`."""
        [(source, there, _)] = self._parts(slice(kernel, kernel + 1))
        return source.name(there.start)


@dataclass(frozen=True, eq=False)
class JoinedSource(_PartsOfSources):
    """The kernels of several sources on the same points, one source after the other."""

    parts: tuple[BankSource, ...]

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        return sum(part.n_kernels for part in self.parts)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return self.parts[0].n_points

    @cached_property
    def presence(self) -> Presence | None:
        """See :attr:`BankSource.presence`."""
        parts = [(part.presence, part.n_kernels) for part in self.parts]
        return Presence.joined(parts, self.n_points)

    def at(self, points: Ints) -> JoinedSource:
        """See :meth:`BankSource.at`."""
        return JoinedSource(tuple(part.at(points) for part in self.parts))

    def _parts(self, kernels: slice) -> Iterator[tuple[BankSource, slice, slice]]:
        first = 0
        for part in self.parts:
            start, stop = max(kernels.start, first), min(kernels.stop, first + part.n_kernels)
            if start < stop:
                place = slice(start - kernels.start, stop - kernels.start)
                yield part, slice(start - first, stop - first), place
            first += part.n_kernels


@dataclass(frozen=True, eq=False)
class SelectedSource(_PartsOfSources):
    """Some kernels of a source."""

    whole: BankSource
    index: Ints  # (S,); those that follow each other in the source are computed together

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

    def at(self, points: Ints) -> SelectedSource:
        """See :meth:`BankSource.at`."""
        return replace(self, whole=self.whole.at(points))

    def _parts(self, kernels: slice) -> Iterator[tuple[BankSource, slice, slice]]:
        asked = self.index[kernels]
        ends = [*(np.flatnonzero(np.diff(asked) != 1) + 1).tolist(), len(asked)]
        first = 0
        for end in ends:
            start = int(asked[first])
            yield self.whole, slice(start, start + end - first), slice(first, end)
            first = end


def zero_tiles(present: Bools, tiles: slice, layout: TileLayout, out: Floating) -> None:
    """Set tiles to zero in the rows and columns of points that a kernel does not have.

    `present` (k, n): points that each kernel has. `out` (k, t, b, b): their values, changed in
    place.
    """
    padded = np.zeros((len(present), layout.side * layout.tile), dtype=bool)
    padded[:, : layout.n_points] = present
    by_tile = padded.reshape(len(present), -1, layout.tile)
    rows, cols = (index[tiles] for index in layout.coordinates)
    for m in np.flatnonzero(~present.all(axis=1)).tolist():
        out[m] *= by_tile[m, rows, :, None] & by_tile[m, cols, None, :]


def compute(
    source: BankSource, kernels: slice, entries: slice, layout: TileLayout, out: Floating
) -> None:
    """Write entries, of whole tiles, of some kernels to `out` (k, e), contiguous.

    Raise GramError, which names the kernel, if they are not finite.
    """
    tiles = slice(entries.start // layout.tile_entries, entries.stop // layout.tile_entries)
    source.fill(kernels, tiles, layout, out.reshape(len(out), -1, layout.tile, layout.tile))
    check_finite(out, kernels.start, source)


def computed(source: BankSource, kernels: slice, layout: TileLayout, dtype: str) -> Floating:
    """Return all entries of some kernels, (k, E), computed some kernels at a time."""
    values = np.empty((kernels.stop - kernels.start, layout.n_entries), dtype)
    for some in kernel_groups(*values.shape):
        own = slice(kernels.start + some.start, kernels.start + some.stop)
        compute(source, own, slice(0, layout.n_entries), layout, values[some])
    return values


def check_finite(values: Floating, first: int, source: BankSource) -> None:
    """Raise GramError if a kernel has `values` (k, e) that are not finite."""
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


def finite_answers(found: Floats, kernels: Ints, source: BankSource) -> Floats:
    """Return what some kernels gave, (S, ...); raise GramError if it is not finite."""
    for kernel, of_kernel in zip(kernels.tolist(), found, strict=True):
        check_finite(of_kernel.reshape(1, -1), kernel, source)
    return found


def passes_of(source: BankSource) -> Any:
    """Return the :attr:`FeatureSource.passes` of a source on a device; None if it has none."""
    if isinstance(source, SelectedSource):
        whole = passes_of(source.whole)
        return None if whole is None else whole.select(source.index)
    return source.passes if isinstance(source, FeatureSource) else None
