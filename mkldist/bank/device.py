"""Kernels on points whose passes, and whose values for factors, a device computes.

A tile of kernel values is computed, multiplied and forgotten: memory of the device holds the
points, the vectors and a few tiles.  All numbers are float64, and so are all sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine, Inner, Matvec, Quadratic, Request
from mkldist.bank.sources import BankSource, FeatureSource
from mkldist.core.arrays import Floats, Ints, may_overflow
from mkldist.core.devices import CPU, Device, device_named
from mkldist.errors import SpecError
from mkldist.kernel_functions.bases import inverse_lengths
from mkldist.kernels.array_values import TAKEN, ArrayValues, takes
from mkldist.kernels.evaluate import without_gaps
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import BASE_OF, INNER

EDGE = 2048  # points on each side of a tile: its 32 MiB keep an accelerator busy
PROCESSOR_EDGE = 256  # the same of a processor, in whose cache the tile stays


@dataclass(frozen=True, eq=False)
class DevicePasses:
    """Passes over kernels on a device."""

    values: ArrayValues

    @property
    def device(self) -> Device:
        """The device."""
        return self.values.device

    @property
    def edge(self) -> int:
        """Points on each side of a tile."""
        return PROCESSOR_EDGE if self.device.on_processor else EDGE

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return len(self.values.points)

    def answer(self, request: Request) -> Floats | None:
        """Return the answer to a request; None for one that the device does not answer."""
        with may_overflow():
            return self._answered(request)

    def _answered(self, request: Request) -> Floats | None:
        match request:
            case Quadratic(vectors, kernels):
                columns = vectors.reshape(self.n_points, -1)
                return self.forms(columns, kernels).reshape(-1, *vectors.shape[1:])
            case Matvec(kernels, vectors):
                columns = vectors.reshape(self.n_points, -1)
                return self._products_of_all(columns, kernels).reshape(-1, *vectors.shape)
            case Inner(matrices):
                return self._inner(matrices)
            case Combine(weights, kernels, memory, _):
                sums = self.sums(np.atleast_2d(weights), kernels, memory)
                return sums[0] if weights.ndim == 1 else sums
            case _:
                return None

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """Return the values of one kernel between some points and others, (r, c)."""
        places = np.arange(self.n_points)[columns]
        found = np.empty((len(rows), len(places)))
        step = self.edge**2 // max(1, len(rows)) + 1
        with may_overflow():
            for start in range(0, len(places), step):
                part = slice(start, start + step)
                [(_, values)] = self.values.tile(np.array([kernel]), rows, places[part])
                found[:, part] = self.device.host(values)
        return found

    def select(self, index: Ints) -> DevicePasses:
        """Return passes over the kernels at `index`, in that order."""
        return DevicePasses(self.values.select(index))

    def products(self, kernels: Ints, columns: Ints, vectors: Floats) -> Floats:
        """Return ``K V`` of some kernels between all points and some, (S, n, R).

        `kernels` (S,): the kernels. `columns` (c,): some points. `vectors` (c, R): V.
        """
        found = np.zeros((len(kernels), self.n_points, vectors.shape[1]))
        for rows, place, part in self._parts(kernels, None, columns, vectors):
            found[place, rows] += self.device.host(part)
        return found

    def expansion(
        self, kernels: Ints, weights: Floats, columns: Ints, vectors: Floats, rows: Ints
    ) -> Floats:
        """Return ``sum_s w_s K_s V`` of some kernels between some points and others, (r, R).

        `kernels`, `weights` (S,): the kernels and their weights. `rows` (r,): other points.
        """
        found = self.device.zeros((len(rows), vectors.shape[1]))
        for here, place, part in self._parts(kernels, rows, columns, vectors):
            found[here, :] = found[here, :] + float(weights[place]) * part
        return np.array(self.device.host(found))

    def _parts(
        self, kernels: Ints, rows: Ints | None, columns: Ints, vectors: Floats
    ) -> Iterator[tuple[slice, int, Any]]:
        """Yield some of the rows, the place of a kernel, and a part of its product with vectors."""
        own, n_rows = self.device.array(vectors), self.n_points if rows is None else len(rows)
        for left in range(0, len(columns), self.edge):
            some = slice(left, min(left + self.edge, len(columns)))
            height = self.edge**2 // max(some.stop - some.start, self.values.most_features) + 1
            for top in range(0, n_rows, height):
                here = slice(top, min(top + height, n_rows))
                points = here if rows is None else rows[here]
                for place, values in self.values.tile(kernels, points, columns[some]):
                    yield here, place, self.device.xp.matmul(values, own[some, :])

    def _tiles(
        self, kernels: Ints, points: Ints | None = None
    ) -> Iterator[tuple[slice, slice, float, int, Any]]:
        """Yield rows, columns, weight and values of upper tiles, with each kernel's place."""
        for rows, cols in self._places(points):
            for place, values in self._tile(kernels, rows, cols, points):
                yield rows, cols, 1.0 if rows == cols else 2.0, place, values

    def _tile(
        self, kernels: Ints, rows: slice, cols: slice, points: Ints | None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place and the values of each kernel, between all points or some."""
        sides = (rows, cols) if points is None else (points[rows], points[cols])
        yield from self.values.tile(kernels, *sides, diagonal=rows == cols)

    def _places(self, points: Ints | None = None) -> Iterator[tuple[slice, slice]]:
        """Yield the rows and columns of upper tiles between all points or some, row by row."""
        n, edge = self.n_points if points is None else len(points), self.edge
        sides = [slice(start, min(start + edge, n)) for start in range(0, n, edge)]
        yield from itertools.combinations_with_replacement(sides, 2)

    def _chosen(self, kernels: Ints | None) -> Ints:
        return np.arange(self.values.n_kernels) if kernels is None else kernels

    def forms(self, vectors: Floats, kernels: Ints | None, points: Ints | None = None) -> Floats:
        """Return ``v'K v`` of all points or some, (S, R)."""
        chosen, xp = self._chosen(kernels), self.device.xp
        found = [self.device.zeros((vectors.shape[1],)) for _ in chosen]
        own = self.device.array(vectors)
        for rows, cols, weight, place, values in self._tiles(chosen, points):
            forms = xp.sum(own[rows, :] * xp.matmul(values, own[cols, :]), axis=0)
            found[place] = found[place] + weight * forms
        forms = [self.device.host(one) for one in found]
        return np.array(forms).reshape(len(chosen), vectors.shape[1])

    def _products_of_all(self, vectors: Floats, kernels: Ints) -> Floats:
        """Return ``K V`` between all points, by upper tiles, (S, n, R)."""
        xp = self.device.xp
        found = np.zeros((len(kernels), *vectors.shape))
        own = self.device.array(vectors)
        for rows, cols, _, place, values in self._tiles(kernels):
            found[place, rows] += self.device.host(xp.matmul(values, own[cols, :]))
            if rows != cols:
                found[place, cols] += self.device.host(xp.matmul(values.T, own[rows, :]))
        return found

    def _inner(self, matrices: Floats) -> Floats:
        """Return ``<K, W>``, (M, R)."""
        chosen, xp = self._chosen(None), self.device.xp
        found = np.zeros((len(chosen), len(matrices)))
        for rows, cols, weight, place, values in self._tiles(chosen):
            for column, matrix in enumerate(matrices):
                part = self.device.array(matrix[rows, cols])
                found[place, column] += weight * float(xp.sum(values * part))
        return found

    def sums(
        self,
        weights: Floats,
        kernels: Ints | None,
        memory: Floats | None = None,
        points: Ints | None = None,
    ) -> Floats:
        """Return ``sum_m w_m K_m`` of R weight vectors between all points or some, (R, n, n)."""
        n, chosen = self.n_points if points is None else len(points), self._chosen(kernels)
        used = np.flatnonzero(weights.any(axis=0))
        fits = memory is not None and memory.shape == (n, n) and len(weights) == 1
        found = np.zeros((len(weights), n, n)) if not fits or memory is None else memory[None]
        for rows, cols in self._places(points):
            totals = [self.device.zeros((rows.stop - rows.start, cols.stop - cols.start))
                      for _ in weights]  # fmt: skip
            for place, values in self._tile(chosen[used], rows, cols, points):
                for r, row in enumerate(weights[:, used[place]].tolist()):
                    totals[r] = totals[r] + row * values
            for matrix, total in zip(found, totals, strict=True):
                matrix[rows, cols] = self.device.host(total)
                matrix[cols, rows] = matrix[rows, cols].T
        return found


@dataclass(frozen=True, eq=False)
class DeviceSource(FeatureSource):
    """Kernels on features, with a device for their passes."""

    device: Device | None = None

    @cached_property
    def passes(self) -> DevicePasses | None:
        """Passes over all kernels on the device."""
        if self.device is None:
            return None
        points = self.points if self.presence is None else without_gaps(self.points)
        return DevicePasses(ArrayValues(self.device, points, self.kernels, self._factors))

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`mkldist.bank.sources.BankSource.between`."""
        if self.passes is None:
            return super().between(kernel, rows, columns)
        return self.passes.between(kernel, rows, columns)

    @cached_property
    def _factors(self) -> Floats | None:
        """Factors of the rows and columns of each kernel, (M, n); None if all are 1."""
        of_products = BASE_OF[self.kernels.function] == INNER
        divided = self.cosine and bool(of_products.any())
        if not divided and self.presence is None:
            return None
        found = np.ones((self.n_kernels, self.n_points))
        if divided:
            plain = FeatureSource(self.points, self.kernels)
            lengths = inverse_lengths(plain.diagonals(slice(0, self.n_kernels)))
            found[of_products] = lengths[of_products]
        if self.presence is not None:
            found *= self.presence[slice(0, self.n_kernels)]
        return found


def on_device(source: BankSource, name: str, where: str) -> BankSource:
    """Return a source whose passes a device computes; the source itself for ``"cpu"``."""
    if name == CPU:
        return source
    if not isinstance(source, FeatureSource):
        raise _not_computed(name, where)
    device = device_for(source.kernels, name, where)
    return DeviceSource(source.points, source.kernels, source.cosine, device=device)


def device_for(kernels: KernelList | None, name: str, where: str) -> Device:
    """Return the device that computes some kernels; they are None if not of dense features."""
    device = device_named(name, where)
    if kernels is None or not takes(kernels):
        raise _not_computed(name, where)
    return device


def _not_computed(name: str, where: str) -> SpecError:
    """Return the error of a device for kernels that no device computes."""
    return SpecError(
        where,
        f'"{name}" for other kernels than devices compute',
        f"kernels of dense features with {', '.join(TAKEN)}",
        'Set device = "cpu", or give these kernels a bank of their own',
    )
