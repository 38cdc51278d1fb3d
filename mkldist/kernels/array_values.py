"""Values of kernels by the Python array API standard, for devices that run no compiled loop.

The formulas and the treatment of digits are those of :mod:`mkldist.kernels.loops`: squared
distances are sums of squared differences, and come from inner products of centred points where
there are many features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.devices import Device
from mkldist.kernel_functions.bases import VANISHES_AT
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
