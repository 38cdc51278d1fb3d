"""Products of kernels with vectors, computed from the points; nothing is kept of the kernels.

The device of a source computes them, or the compiled loops of
:mod:`mkldist.kernels.product_sums`, for kernels on features that these loops know.  Rows of zeros
of the vectors cost nothing.  Parts of the loops' work do not depend on the number of threads, so
that neither do the bits of the results.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from mkldist.bank.bank import PassCounter
from mkldist.bank.device_passes import DevicePasses
from mkldist.bank.device_source import device_of, passes_of
from mkldist.bank.sources import BankSource, FeatureSource, SelectedSource, finite_answers
from mkldist.core.arrays import Floats, Ints, may_overflow
from mkldist.kernels.expansion_sums import expansion_sums, takes
from mkldist.kernels.gram_tiles import BASE_OF, INNER
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.product_sums import kernel_forms, kernel_products, weighted_values


@dataclass(frozen=True, eq=False)
class DeviceProducts:
    """Products of the kernels of a source on a device; rows of zeros of vectors cost nothing.

    Parameters, shapes and errors of the methods are those of
    :class:`mkldist.bank.point_products.PointProducts`.

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


ROWS = 500  # of a part
PARTS = 64  # of the lower triangle of a form

Part = TypeVar("Part")


class PointProducts(Protocol):
    """Products of the kernels of a source, by whatever knows all of them."""

    @property
    def counter(self) -> PassCounter:
        """Work done."""

    def products(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``K_m V`` of some kernels, (S, n, R)."""

    def forms(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``v'K_m v`` of some kernels, (S, R)."""

    def expansion(self, kernels: Ints, weights: Floats, vectors: Floats, rows: Ints) -> Floats:
        """Return some rows of ``sum_s w_s K_s V``, (r, R)."""

    def block(self, kernels: Ints, weights: Floats, points: Ints) -> Floats:
        """Return ``sum_s w_s K_s`` of some kernels between some points, (q, q)."""


def point_products(
    source: BankSource, counter: PassCounter, threads: int = 1
) -> PointProducts | None:
    """Return products of the kernels of a source, by its device if it has one.

    Parameters
    ----------
    source : BankSource
        The source.
    counter : PassCounter
        Work done, to which that of the products is added.
    threads : int
        Parts that the processor computes at the same time.

    Returns
    -------
    PointProducts or None
        None if neither a device nor the loops know all kernels.
    """
    passes = passes_of(source)
    if passes is not None:
        return DeviceProducts(source, passes, counter)
    known = _known(source)
    return None if known is None else LoopedProducts(source, *known, counter, threads)


def has_point_products(source: BankSource) -> bool:
    """Return True if :func:`point_products` has those of a source."""
    return device_of(source) is not None or _known(source) is not None


@dataclass(frozen=True, eq=False)
class LoopedProducts:
    """Kernels of a source that the loops know.

    Parameters
    ----------
    source : BankSource
        The source.
    points : (n, d) float64
        Its points.
    kernels : KernelList
        Its kernels.
    counter : PassCounter
        Work done.
    threads : int
        Parts that are computed at the same time.
    """

    source: BankSource
    points: Floats
    kernels: KernelList
    counter: PassCounter
    threads: int = 1

    def products(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``K_m V`` of some kernels, (S, n, R).

        Parameters
        ----------
        kernels : (S,) intp
            The kernels; ascending ones take least.
        vectors : (n, R) float64
            V.

        Raises
        ------
        mkldist.errors.GramError
            If a kernel has values that are not finite.
        """
        chosen, own, of_used = self._used(kernels, vectors)
        n = len(self.points)
        found = np.zeros((len(kernels), n, vectors.shape[1]))

        def work(rows: slice) -> None:
            found[:, rows] = kernel_products(chosen, own, of_used, self.points[rows])

        self._run(work, _cut(n), len(kernels) * n * len(own))
        return finite_answers(found, kernels, self.source)

    def forms(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``v'K_m v`` of some kernels, (S, R).

        Parameters, errors
            As for :meth:`products`.
        """
        chosen, own, of_used = self._used(kernels, vectors)
        # Parts of the triangle have about equal numbers of values.
        ends = (np.sqrt(np.linspace(0.0, 1.0, PARTS + 1)) * len(own)).astype(int).tolist()
        parts = [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]
        n_values = len(kernels) * len(own) * (len(own) + 1) // 2
        done = self._run(lambda rows: kernel_forms(chosen, own, of_used, rows), parts, n_values)
        return finite_answers(
            sum(done, np.zeros((len(kernels), vectors.shape[1]))), kernels, self.source
        )

    def expansion(self, kernels: Ints, weights: Floats, vectors: Floats, rows: Ints) -> Floats:
        """Return some rows of ``sum_s w_s K_s V``, (r, R).

        Parameters
        ----------
        kernels : (S,) intp
            The kernels; ascending ones take least.
        weights : (S,) float64
            Their weights.
        vectors : (n, R) float64
            V.
        rows : (r,) intp
            The rows.

        Raises
        ------
        mkldist.errors.GramError
            If the sum has values that are not finite.
        """
        chosen, own, of_used = self._used(kernels, vectors)
        found = np.empty((len(rows), vectors.shape[1]))

        def work(part: slice) -> None:
            found[part] = expansion_sums(chosen, own, weights, of_used, self.points[rows[part]])

        self._run(work, _cut(len(rows)), len(kernels) * len(rows) * len(own))
        if not np.isfinite(found).all():
            self.products(kernels, vectors)  # raises the error of a kernel
        return found

    def block(self, kernels: Ints, weights: Floats, points: Ints) -> Floats:
        """Return ``sum_s w_s K_s`` of some kernels between some points, (q, q).

        Parameters
        ----------
        kernels : (S,) intp
            The kernels; ascending ones take least.
        weights : (S,) float64
            Their weights.
        points : (q,) intp
            The points.
        """
        q = len(points)
        chosen, own, found = self.kernels.select(kernels), self.points[points], np.empty((q, q))

        def work(rows: slice) -> None:
            below = own[: rows.stop]
            found[rows, : rows.stop] = weighted_values(chosen, weights, below, own[rows])
            found[: rows.start, rows] = found[rows, : rows.start].T

        self._run(work, _cut(q), len(kernels) * q * q // 2)
        return found

    def _used(self, kernels: Ints, vectors: Floats) -> tuple[KernelList, Floats, Floats]:
        """Return some kernels, and the points and rows of vectors that are not zero."""
        used = np.flatnonzero(vectors.any(axis=1))
        return self.kernels.select(kernels), self.points[used], vectors[used]

    def _run(
        self, work: Callable[[slice], Part], parts: Iterable[slice], n_values: int
    ) -> list[Part]:
        """Do all parts, as many at once as there are threads, and count the work."""

        def timed(part: slice) -> tuple[Part, float]:
            begun = time.thread_time()
            return work(part), time.thread_time() - begun

        with ThreadPoolExecutor(self.threads, "mkldist-products") as pool:
            done = list(pool.map(timed, parts))
        self.counter.bytes_computed += 8 * n_values
        self.counter.threads_cpu_seconds += sum(seconds for _, seconds in done)
        return [part for part, _ in done]


def _known(source: BankSource) -> tuple[Floats, KernelList] | None:
    """Return the points and kernels of a source if the loops know all of these."""
    if isinstance(source, SelectedSource):
        whole = _known(source.whole)
        return None if whole is None else (whole[0], whole[1].select(source.index))
    if type(source) is not FeatureSource or source.presence is not None:
        return None
    divided = source.cosine and bool((BASE_OF[source.kernels.function] == INNER).any())
    return None if divided or not takes(source.kernels) else (source.points, source.kernels)


def _cut(n_rows: int) -> Iterable[slice]:
    """Cut rows into parts."""
    return (slice(start, min(start + ROWS, n_rows)) for start in range(0, n_rows, ROWS))
