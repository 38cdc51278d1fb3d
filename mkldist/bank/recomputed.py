"""Banks that are not stored: their kernels, or products of them, are computed from the source.

:class:`RecomputedBank` computes every kernel again in every pass.  :class:`PointBank` computes
products of kernels with vectors by a device or by the loops of :mod:`mkldist.kernels.loops`,
and never has a matrix, for solvers that begin near their solution.  Such a solver changes few dual
variables from one product to the next.  The products of each kernel with its last vector are
therefore cached, and a product with another vector takes the kernel values of those entries alone
in which the two differ.  How the work is cut into parts does not depend on the number of threads,
so that neither do the bits of the results.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mkldist.bank.bank import (
    SLAB_ENTRIES,
    Answer,
    CachedRowsBank,
    Chunk,
    DiagonalPart,
    PassCounter,
    TileLayout,
    kernel_groups,
    slabs,
)
from mkldist.bank.requests import Combine, Matvec, Quadratic, Request
from mkldist.bank.sources import (
    ArraySource,
    BankSource,
    FeatureSource,
    SelectedSource,
    check_finite,
    compute,
    finite_answers,
    passes_of,
)
from mkldist.core.arrays import Floating, Floats, Ints, may_overflow
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import (
    BASE_OF,
    INNER,
    expansion_sums,
    kernel_forms,
    kernel_products,
    takes,
    weighted_values,
)
from mkldist.optim.factored_matrix import SymmetricOperator

if TYPE_CHECKING:
    from mkldist.bank.device import DevicePasses

CHUNK_KERNELS = 48
CHUNK_ENTRIES = CHUNK_KERNELS * SLAB_ENTRIES  # chunks of large tiles cover fewer kernels
# More threads would wait: a chunk is used in a fifth of the time that a thread computes it in.
MOST_THREADS = 8


class RecomputedBank(CachedRowsBank):
    """Kernels that are computed tile by tile on request, and never stored.

    Memory holds a few chunks, whose number does not depend on M, and the kernels used last.  Where
    the source has a device, the device answers what it can.

    `row_cache_bytes`: memory for single kernels; at least one is kept. `threads`: threads that
    compute chunks while the last one is used; at most 8 are started.
    """

    def __init__(self, source: BankSource, row_cache_bytes: int = 0, threads: int = 1) -> None:
        layout = TileLayout.for_points(source.n_points)
        super().__init__(source.n_kernels, layout, np.dtype(np.float64), row_cache_bytes)
        self._source, self.threads = source, min(max(1, threads), MOST_THREADS)
        self._apart = source if isinstance(source, ArraySource) else passes_of(source)

    def own_answer(self, request: Request) -> Answer | None:
        """Answer a request on the device of the source, or by given matrices as they lie.

        An answer that is not finite is left to the loops, which name the kernel.
        """
        if self._apart is None:
            return None
        answer = self._apart.answer(request)
        if answer is None or not np.isfinite(answer).all():
            return None
        computed = self.n_kernels
        match request:
            case Combine(weights):
                computed = int(np.count_nonzero(np.atleast_2d(weights).any(axis=0)))
                self.counter.combines += len(np.atleast_2d(weights))
            case Matvec(kernels) | Quadratic(_, np.ndarray() as kernels):
                computed = len(kernels)
                self.counter.matvecs += computed
            case _:
                self.counter.passes += 1
        self.counter.bytes_computed += computed * self.layout.n_entries * self.dtype.itemsize
        return answer

    def chunks(self) -> Iterator[Chunk]:
        """Compute the bank, as many chunks ahead of their use as there are threads."""
        largest = max(s.stop - s.start for s in slabs(self.layout))
        step = max(1, min(CHUNK_KERNELS, CHUNK_ENTRIES // largest))
        parts = (
            (slice(first, min(first + step, self.n_kernels)), entries)
            for entries in slabs(self.layout)
            for first in range(0, self.n_kernels, step)
        )
        buffers = deque(np.empty(step * largest) for _ in range(self.threads + 1))
        with ThreadPoolExecutor(self.threads, thread_name_prefix="mkldist-kernels") as pool:
            ahead: deque[Future[tuple[Chunk, float]]] = deque()
            for kernels, entries in parts:
                ahead.append(pool.submit(self._timed, kernels, entries, buffers[0]))
                buffers.rotate(-1)
                if len(ahead) > self.threads:
                    yield self._counted(*ahead.popleft().result())
            while ahead:
                yield self._counted(*ahead.popleft().result())

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Compute the diagonals and nothing else."""
        for kernels in kernel_groups(self.n_kernels, self.n_points):
            values = self._source.diagonals(kernels)
            check_finite(values, kernels.start, self._source)
            self.counter.bytes_computed += values.nbytes
            yield DiagonalPart(kernels, slice(0, self.n_points), values)

    def _timed(self, kernels: slice, entries: slice, buffer: Floating) -> tuple[Chunk, float]:
        """Return a chunk, and the processor time that it took this thread."""
        begun = time.thread_time()
        chunk = self._computed(kernels, entries, buffer)
        return chunk, time.thread_time() - begun

    def _counted(self, chunk: Chunk, cpu_seconds: float) -> Chunk:
        """Return a chunk whose bytes and time are counted."""
        self.counter.bytes_computed += chunk.values.nbytes
        self.counter.threads_cpu_seconds += cpu_seconds
        return chunk

    def _computed(self, kernels: slice, entries: slice, buffer: Floating) -> Chunk:
        """Return a chunk, its values in `buffer`."""
        shape = (kernels.stop - kernels.start, entries.stop - entries.start)
        values = buffer[: shape[0] * shape[1]].reshape(shape)
        compute(self._source, kernels, entries, self.layout, values)
        return Chunk(kernels, entries, values)

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        whole = slice(0, self.layout.n_entries)
        for kernel, row in zip(kernels, rows, strict=True):
            chunk = self._computed(slice(kernel, kernel + 1), whole, row)
            self.counter.bytes_computed += chunk.values.nbytes


ROWS = 500  # of a part
PARTS = 64  # of the lower triangle of a form


@dataclass(frozen=True, eq=False)
class PointProducts:
    """Products of the kernels of a source with vectors, whose rows of zeros cost nothing."""

    source: BankSource
    passes: DevicePasses | _Loops  # whose errors name a kernel that is not finite
    counter: PassCounter

    def products(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``K_m V`` of some kernels, (S, n, R)."""
        used = np.flatnonzero(vectors.any(axis=1))
        with self._counted(len(kernels) * len(vectors) * len(used)):
            found = self.passes.products(kernels, used, vectors[used])
        return finite_answers(found, kernels, self.source)

    def forms(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``v'K_m v`` of some kernels, (S, R)."""
        used = np.flatnonzero(vectors.any(axis=1))
        with self._counted(len(kernels) * len(used) * (len(used) + 1) // 2):
            found = self.passes.forms(vectors[used], kernels, used)
        return finite_answers(found, kernels, self.source)

    def expansion(self, kernels: Ints, weights: Floats, vectors: Floats, rows: Ints) -> Floats:
        """Return some rows of ``sum_s w_s K_s V``, (r, R)."""
        used = np.flatnonzero(vectors.any(axis=1))
        with self._counted(len(kernels) * len(rows) * len(used)):
            found = self.passes.expansion(kernels, weights, used, vectors[used], rows)
        if not np.isfinite(found).all():
            self.products(kernels, vectors)  # raises the error of a kernel
        return found

    def block(self, kernels: Ints, weights: Floats, points: Ints) -> Floats:
        """Return ``sum_s w_s K_s`` of some kernels between some points, (q, q)."""
        with self._counted(len(kernels) * len(points) ** 2 // 2):
            [found] = self.passes.sums(weights[None], kernels, points=points)
        if not np.isfinite(found).all():
            self.products(kernels, np.ones((self.source.n_points, 1)))  # raises that of a kernel
        return np.asarray(found)

    @contextmanager
    def _counted(self, n_values: int) -> Iterator[None]:
        """Count the work of a context, in which values may overflow."""
        self.counter.bytes_computed += 8 * n_values
        with may_overflow():
            yield
        if isinstance(self.passes, _Loops):
            self.counter.threads_cpu_seconds += self.passes.seconds.pop()


def point_products(
    source: BankSource, counter: PassCounter, threads: int = 1
) -> PointProducts | None:
    """Return products of the kernels of a source, by its device or loops; None if none has all."""
    passes: DevicePasses | _Loops | None = passes_of(source)
    if passes is None and (known := _known(source)) is not None:
        passes = _Loops(*known, threads)
    return None if passes is None else PointProducts(source, passes, counter)


def has_point_products(source: BankSource) -> bool:
    """Return True if :func:`point_products` has those of a source."""
    return passes_of(source) is not None or _known(source) is not None


@dataclass(frozen=True, eq=False)
class _Loops:
    """Kernels on points (n, d) by compiled loops, as :class:`DevicePasses` has them by a device.

    Ascending kernels take least.  The processor time of a call is added to `seconds`.
    """

    points: Floats
    kernels: KernelList
    threads: int
    seconds: list[float] = field(default_factory=list)

    def products(self, kernels: Ints, columns: Ints, vectors: Floats) -> Floats:
        """Return ``K V`` of some kernels between all points and some, (S, n, R)."""
        chosen, own = self.kernels.select(kernels), self.points[columns]
        found = np.zeros((len(kernels), len(self.points), vectors.shape[1]))

        def work(rows: slice) -> None:
            found[:, rows] = kernel_products(chosen, own, vectors, self.points[rows])

        self._run(work, _cut(len(self.points)))
        return found

    def forms(self, vectors: Floats, kernels: Ints, points: Ints) -> Floats:
        """Return ``v'K v`` of some points, (S, R)."""
        chosen, own = self.kernels.select(kernels), self.points[points]
        # Parts of the triangle have about equal numbers of values.
        ends = (np.sqrt(np.linspace(0.0, 1.0, PARTS + 1)) * len(own)).astype(int).tolist()
        parts = [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]
        of_parts = np.zeros((len(parts), len(kernels), vectors.shape[1]))

        def work(rows: slice) -> None:
            of_parts[parts.index(rows)] = kernel_forms(chosen, own, vectors, rows)

        self._run(work, parts)
        return np.asarray(sum(of_parts, np.zeros(of_parts.shape[1:])))

    def expansion(
        self, kernels: Ints, weights: Floats, columns: Ints, vectors: Floats, rows: Ints
    ) -> Floats:
        """Return ``sum_s w_s K_s V`` of some kernels between some points and others, (r, R)."""
        chosen, own = self.kernels.select(kernels), self.points[columns]
        found = np.empty((len(rows), vectors.shape[1]))

        def work(part: slice) -> None:
            found[part] = expansion_sums(chosen, own, weights, vectors, self.points[rows[part]])

        self._run(work, _cut(len(rows)))
        return found

    def sums(self, weights: Floats, kernels: Ints, points: Ints) -> Floats:
        """Return ``sum_m w_m K_m`` of one weight vector between some points, (1, q, q)."""
        q = len(points)
        chosen, own, found = self.kernels.select(kernels), self.points[points], np.empty((q, q))

        def work(rows: slice) -> None:
            below = own[: rows.stop]
            found[rows, : rows.stop] = weighted_values(chosen, weights[0], below, own[rows])
            found[: rows.start, rows] = found[rows, : rows.start].T

        self._run(work, _cut(q))
        return found[None]

    def _run(self, work: Callable[[slice], None], parts: Iterable[slice]) -> None:
        """Do all parts, as many at once as there are threads."""

        def timed(part: slice) -> float:
            begun = time.thread_time()
            work(part)
            return time.thread_time() - begun

        with ThreadPoolExecutor(self.threads, "mkldist-products") as pool:
            self.seconds.append(sum(pool.map(timed, parts)))


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


ULPS = 8.0  # units of rounding by which entries of a vector may differ and count as equal
EPS = float(np.finfo(np.float64).eps)


class _Steps(NamedTuple):
    """Vectors that were added up since the last whole one, and the products of kernels with them.

    They are the kernels, the sum, the sum of absolute values, and the products (S, n).
    """

    kernels: Ints
    change: Floats
    sizes: Floats
    products: Floats


@dataclass(eq=False)
class ProductCache:
    """Products ``K_m v`` of some kernels, each with the last vector v that was asked for."""

    of: PointProducts
    _known: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)  # v and K_m v
    _steps: _Steps | None = None

    def product(self, kernels: Ints, weights: Floats, vector: Floats) -> Floats:
        """Return ``sum_m w_m K_m v``, (n,).

        A vector of few entries is taken for a step from the last vector.  The caller may change the
        vector afterwards.

        `kernels` (S,): the kernels, ascending. `weights` (S,): their weights. `vector` (n,): the
        vector v.
        """
        if self._is_step(kernels, vector):
            found = self._computed(kernels, vector)
            self._add_step(kernels, vector, found)
            return np.asarray(weights @ found)
        self._take(kernels, vector)
        total = np.zeros(len(vector))
        for weight, kernel in zip(weights.tolist(), kernels.tolist(), strict=True):
            total += weight * self._known[kernel][1]
        return total

    def form(self, kernel: int, vector: Floats) -> float | None:
        """Return ``v'K_m v`` of a kernel whose last vector is this one, or None."""
        known = self._known.get(kernel)
        if known is None or not np.array_equal(known[0], vector):
            return None
        return float(vector @ known[1])

    def _is_step(self, kernels: Ints, vector: Floats) -> bool:
        """Return True if a vector has fewer entries than differ from those of each last vector."""
        if not all(kernel in self._known for kernel in kernels.tolist()):
            return False
        entries = np.count_nonzero(vector)
        last = (self._known[kernel][0] for kernel in kernels.tolist())
        return all(entries < np.count_nonzero(one != vector) for one in last)

    def _add_step(self, kernels: Ints, vector: Floats, found: Floats) -> None:
        """Add a step to those since the last whole vector."""
        steps = self._steps
        if steps is None or not np.array_equal(steps.kernels, kernels):
            self._steps = _Steps(kernels, vector.copy(), np.abs(vector), found)
            return
        self._steps = _Steps(
            kernels, steps.change + vector, steps.sizes + np.abs(vector), steps.products + found
        )

    def _take(self, kernels: Ints, vector: Floats) -> None:
        """Bring the products of kernels to another vector; those of one last vector together."""
        groups: dict[int, tuple[Floats, list[int]]] = {}
        for kernel in kernels.tolist():
            last = self._known[kernel][0] if kernel in self._known else np.zeros(0)
            groups.setdefault(id(last) if len(last) else 0, (last, []))[1].append(kernel)
        own = vector.copy()
        for last, members in groups.values():
            change = vector - last if len(last) else vector.copy()
            found = self._changed(np.array(members), change, vector)
            for kernel, product in zip(members, found, strict=True):
                before = self._known[kernel][1] if kernel in self._known else 0.0
                self._known[kernel] = own, before + product
        self._steps = None

    def _changed(self, kernels: Ints, change: Floats, vector: Floats) -> Floats:
        """Return the products of kernels with a change, by the steps if these are parts of it."""
        steps = self._steps
        if steps is None or not np.isin(kernels, steps.kernels).all():
            return self._computed(kernels, change)
        rest = change - steps.change
        rest[np.abs(rest) <= ULPS * EPS * (np.abs(vector) + steps.sizes)] = 0.0
        if np.count_nonzero(rest) >= np.count_nonzero(change):
            return self._computed(kernels, change)
        known = steps.products[np.searchsorted(steps.kernels, kernels)]
        return known + self._computed(kernels, rest) if rest.any() else known

    def _computed(self, kernels: Ints, vector: Floats) -> Floats:
        """Return ``K_m v`` of some kernels, (S, n)."""
        return self.of.products(kernels, vector[:, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class KernelSum(SymmetricOperator):
    """The operator ``K = sum_s w_s K_s`` by its kernels."""

    kept: ProductCache
    kernels: Ints  # (S,), ascending
    weights: Floats  # (S,)
    diagonals: Floats  # (S, n)

    @property
    def diagonal(self) -> Floats:
        """Diagonal of K, (n,)."""
        return np.asarray(self.weights @ self.diagonals)

    def __matmul__(self, vector: Floats) -> Floats:
        """Return ``K v`` of a vector (n,)."""
        return self.kept.product(self.kernels, self.weights, vector)

    def block(self, points: Ints) -> Floats:
        """Return the rows and columns of K of some points, (q, q)."""
        return self.kept.of.block(self.kernels, self.weights, points)


class PointBank(RecomputedBank):
    """Kernels by their products with vectors; sums of them are operators, or `dense` matrices."""

    def __init__(self, source: BankSource, threads: int = 1, *, dense: bool = False) -> None:
        super().__init__(source, 0, threads)
        products = point_products(source, self.counter, threads)
        if products is None:
            raise ValueError(
                "source: found kernels that neither a loop nor a device knows; expected others"
            )
        self._products, self._last, self._dense = products, ProductCache(products), dense

    def own_answer(self, request: Request) -> Answer | None:
        """Answer a request by products; return None for one that needs entries."""
        match request:
            case Combine(weights, kernels, _, thin) if weights.ndim == 1 and (thin or self._dense):
                self.counter.combines += 1
                return self._sum(weights, kernels)
            case Quadratic(vectors, None):
                self.counter.passes += 1
                return self._forms(vectors, np.arange(self.n_kernels))
            case Quadratic(vectors, np.ndarray() as kernels):
                self.counter.matvecs += len(kernels)
                return self._forms(vectors, kernels)
            case _:
                return super().own_answer(request)

    def _sum(self, weights: Floats, kernels: Ints | None) -> KernelSum | Floats:
        """Return the operator or matrix of a combination, of its kernels of non-zero weight."""
        used = np.flatnonzero(weights)
        chosen = used if kernels is None else kernels[used]
        order = np.argsort(chosen)
        if self._dense:
            everyone = np.arange(self.n_points)
            return self._products.block(chosen[order], weights[used][order], everyone)
        sources = [self._source.diagonals(slice(m, m + 1))[0] for m in chosen[order].tolist()]
        diagonals = np.array(sources).reshape(len(order), self.n_points)
        return KernelSum(self._last, chosen[order], weights[used][order], diagonals)

    def _forms(self, vectors: Floats, kernels: Ints) -> Floats:
        """Return forms of some kernels, (S,) or (S, R), of which products may be known."""
        columns = vectors.reshape(len(vectors), -1)
        found = np.full((len(kernels), columns.shape[1]), np.nan)
        if columns.shape[1] == 1:
            known = (self._last.form(kernel, columns[:, 0]) for kernel in kernels.tolist())
            found[:, 0] = [np.nan if form is None else form for form in known]
        unknown = np.flatnonzero(np.isnan(found[:, 0]))
        if len(unknown):
            order = unknown[np.argsort(kernels[unknown])]
            found[order] = self._products.forms(kernels[order], columns)
        return found.reshape(len(kernels), *vectors.shape[1:])
