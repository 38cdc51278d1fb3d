"""Products of kernels with vectors on a device, from values that never leave it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats, Ints, may_overflow
from mkldist.gram.bank import PassCounter
from mkldist.gram.device_passes import DevicePasses
from mkldist.gram.sources import BankSource, finite_answers


@dataclass(frozen=True, eq=False)
class DeviceProducts:
    """Products of the kernels of a source on a device; rows of zeros of vectors cost nothing.

    Parameters, shapes and errors of the methods are those of
    :class:`mkldist.gram.point_products.PointProducts`.

    Parameters
    ----------
    source : BankSource
        The source.
    passes : DevicePasses
        Its kernels on the device.
    counter : PassCounter
        Work done.
    """

    source: BankSource
    passes: DevicePasses
    counter: PassCounter

    def products(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``K_m V`` of some kernels, (S, n, R)."""
        used = np.flatnonzero(vectors.any(axis=1))
        self._count(len(kernels) * len(vectors) * len(used))
        with may_overflow():
            found = self.passes.products(kernels, used, vectors[used])
        return finite_answers(found, kernels, self.source)

    def forms(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``v'K_m v`` of some kernels, (S, R)."""
        used = np.flatnonzero(vectors.any(axis=1))
        self._count(len(kernels) * len(used) * (len(used) + 1) // 2)
        with may_overflow():
            found = self.passes.forms(vectors[used], kernels, used)
        return finite_answers(found, kernels, self.source)

    def expansion(self, kernels: Ints, weights: Floats, vectors: Floats, rows: Ints) -> Floats:
        """Return some rows of ``sum_s w_s K_s V``, (r, R)."""
        used = np.flatnonzero(vectors.any(axis=1))
        self._count(len(kernels) * len(rows) * len(used))
        with may_overflow():
            found = self.passes.expansion(kernels, weights, used, vectors[used], rows)
        if not np.isfinite(found).all():
            self.products(kernels, vectors)  # raises the error of a kernel
        return found

    def block(self, kernels: Ints, weights: Floats, points: Ints) -> Floats:
        """Return ``sum_s w_s K_s`` of some kernels between some points, (q, q)."""
        self._count(len(kernels) * len(points) ** 2 // 2)
        with may_overflow():
            sums = self.passes.sums(weights[None], kernels, points=points)
        return np.asarray(sums[0])

    def _count(self, n_values: int) -> None:
        self.counter.bytes_computed += 8 * n_values
