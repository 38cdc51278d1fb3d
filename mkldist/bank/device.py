"""Kernels on points whose passes, and whose values for factors, a device computes.

A tile of kernel values is computed, multiplied and forgotten: memory of the device holds the
points, the vectors and a few tiles.  All numbers are float64, and so are all sums.

Values come by the Python array API standard, for devices that run no compiled loop.  The formulas
and the treatment of digits are those of :mod:`mkldist.kernels.loops`: squared distances are sums of
squared differences, and come from inner products of centred points where there are many features.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine, Inner, Matvec, Quadratic, Request
from mkldist.bank.sources import BankSource, FeatureSource
from mkldist.core.arrays import Floats, Ints, may_overflow
from mkldist.core.devices import CPU, Device, device_named
from mkldist.errors import SpecError
from mkldist.kernel_functions.bases import VANISHES_AT, inverse_lengths
from mkldist.kernels.evaluate import without_gaps
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import BASE_OF, CITY, COMPILED, INNER, SQUARED, WIDE

TAKEN = tuple(function.name for function in COMPILED)
"""Names of the kernel functions that devices compute."""


def takes(kernels: KernelList) -> bool:
    """Return True if devices compute all of these kernels."""
    return bool((kernels.function < len(COMPILED)).all())


def inner_products(device: Device, left: Any, right: Any) -> Any:
    """Return ``x'z`` of points (r, s) and (c, s), (r, c)."""
    return device.xp.matmul(left, right.T)


def squared_distances(device: Device, left: Any, right: Any) -> Any:
    """Return ``|x - z|²`` of points (r, s) and (c, s), (r, c).

    Points of many features are centred, so that ``|x|² + |z|² - 2 x'z`` loses few digits.
    """
    xp = device.xp
    if left.shape[1] > WIDE:
        squares = (xp.sum(points * points, axis=1) for points in (left, right))
        own, others = squares
        total = own[:, None] + others[None, :] - 2.0 * inner_products(device, left, right)
        return xp.where(total < 0.0, xp.zeros_like(total), total)  # NaN stays
    total = device.zeros((left.shape[0], right.shape[0]))
    for feature in range(left.shape[1]):
        difference = left[:, feature][:, None] - right[:, feature][None, :]
        total += difference * difference
    return total


def city_block_distances(device: Device, left: Any, right: Any) -> Any:
    """Return ``|x - z|₁`` of points (r, s) and (c, s), (r, c)."""
    total = device.zeros((left.shape[0], right.shape[0]))
    for feature in range(left.shape[1]):
        difference = left[:, feature][:, None] - right[:, feature][None, :]
        total += device.xp.abs(difference)
    return total


def powers(base: Any, degree: int) -> Any:
    """Return ``base^degree`` for a degree of at least 1, by squaring."""
    found = None
    while degree:
        if degree & 1:
            found = base if found is None else found * base
        degree >>= 1
        base = base * base if degree else base
    return found


@dataclass(eq=False)
class ArrayValues:
    """Kernels on points of a device."""

    device: Device
    points: Floats  # (n, d) on the host, without gaps
    kernels: KernelList  # M kernels, which :func:`takes` accepts
    factors: Floats | None = None
    """(M, n), factors of the rows and columns of each kernel: those of cosines, and zeros of points
    that lack a kernel."""
    index: Ints | None = None  # (S,), the kernels that are meant by 0 to S - 1; None for all
    _points: dict[tuple[int, bool], Any] = field(default_factory=dict)

    @property
    def n_kernels(self) -> int:
        """Number of kernels that are meant."""
        return len(self.kernels) if self.index is None else len(self.index)

    @cached_property
    def most_features(self) -> int:
        """Number of features of the largest subset."""
        return int(np.diff(self.kernels.subset_indptr).max(initial=1))

    def select(self, index: Ints) -> ArrayValues:
        """Return the kernels at `index`, in that order, with the same points on the device."""
        return replace(self, index=index if self.index is None else self.index[index])

    def tile(
        self, kernels: Ints, rows: slice | Ints, cols: slice | Ints, *, diagonal: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place of each kernel among those asked for, and its values (r, c).

        Neighbours among `kernels` (S,) on one feature subset share distances and products.  Where
        the points of both sides are the same, `diagonal`, distances on the diagonal are exactly 0.
        """
        last: tuple[int, int] | None = None
        base: Any = None
        chosen = kernels if self.index is None else self.index[kernels]
        for place, m in enumerate(chosen.tolist()):
            kind = int(BASE_OF[self.kernels.function[m]])
            if last != (int(self.kernels.subset[m]), kind):
                last = int(self.kernels.subset[m]), kind
                base = self._base(m, kind, rows, cols, diagonal=diagonal)
            yield place, self._scaled(m, self._values(m, kind, base), rows, cols)

    def _base(
        self, m: int, kind: int, rows: slice | Ints, cols: slice | Ints, *, diagonal: bool
    ) -> Any:
        """Return products or distances of a kernel's features between both sides, (r, c)."""
        compute = {INNER: inner_products, SQUARED: squared_distances, CITY: city_block_distances}[
            kind
        ]
        left, right = (self._side(m, some, centred=kind == SQUARED) for some in (rows, cols))
        found = compute(self.device, left, right)
        if diagonal and kind != INNER:
            xp = self.device.xp
            ones = xp.eye(found.shape[0], dtype=xp.float64, device=self.device.place)
            found = found * (1.0 - ones)
        return found

    def _values(self, m: int, kind: int, base: Any) -> Any:
        """Return the values of a kernel, given products or distances."""
        p = float(self.kernels.parameter[m])
        if kind == INNER:
            return powers(base + float(self.kernels.offset[m]), int(p))
        factor = -0.5 / (p * p) if kind == SQUARED else -1.0 / p
        arguments, xp = factor * base, self.device.xp
        return xp.where(arguments <= VANISHES_AT, xp.zeros_like(arguments), xp.exp(arguments))

    def _scaled(self, m: int, values: Any, rows: slice | Ints, cols: slice | Ints) -> Any:
        """Return values times the factors of their rows and columns."""
        if self.factors is None:
            return values
        left, right = (self.device.array(self.factors[m, some]) for some in (rows, cols))
        return values * (left[:, None] * right[None, :])

    def _side(self, m: int, some: slice | Ints, *, centred: bool) -> Any:
        """Return some points on the features of a kernel, kept on the device for the next tile."""
        columns = self.kernels.features_of(m)
        centred = centred and len(columns) > WIDE
        key = int(self.kernels.subset[m]), centred
        if key not in self._points:
            seen = self.points[:, columns]
            self._points[key] = self.device.array(seen - seen.mean(axis=0) if centred else seen)
        whole = self._points[key]
        if isinstance(some, slice):
            return whole[some, :]
        return self.device.xp.take(whole, self._index(some), axis=0)

    def _index(self, some: Ints) -> Any:
        xp = self.device.xp
        return xp.asarray(np.ascontiguousarray(some), dtype=xp.int64, device=self.device.place)


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
