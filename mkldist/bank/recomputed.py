"""A bank that is not stored: every pass computes the kernels again from their source."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mkldist.bank.bank import (
    SLAB_ENTRIES,
    Answer,
    Bank,
    Chunk,
    DiagonalPart,
    Rows,
    kernel_groups,
    slabs,
)
from mkldist.bank.device_source import passes_of
from mkldist.bank.kept_rows import KeptRows, MemoryBudget
from mkldist.bank.layout import TileLayout
from mkldist.bank.requests import Combine, Matvec, Quadratic, Request
from mkldist.bank.sources import BankSource, check_finite
from mkldist.core.arrays import Floating, Ints

CHUNK_KERNELS = 48
CHUNK_ENTRIES = CHUNK_KERNELS * SLAB_ENTRIES  # chunks of large tiles cover fewer kernels
# More threads would wait: a chunk is used in a fifth of the time that a thread computes it in.
MOST_THREADS = 8


class RecomputedBank(Bank):
    """Kernels that are computed tile by tile on request, and never stored.

    Memory holds a few chunks, whose number does not depend on M, and the kernels used last.  Where
    the source has a device, the device answers what it can.

    Parameters
    ----------
    source : BankSource
        Source of the values.
    row_cache_bytes : int
        Memory for single kernels; at least one is kept.
    threads : int
        Threads that compute chunks while the last one is used; at most 8 are started.
    """

    def __init__(self, source: BankSource, row_cache_bytes: int = 0, threads: int = 1) -> None:
        layout = TileLayout.for_points(source.n_points)
        super().__init__(source.n_kernels, layout, np.dtype(np.float64))
        self._source, self.threads = source, min(max(1, threads), MOST_THREADS)
        self._kept = KeptRows(layout.n_entries, self.dtype, MemoryBudget(row_cache_bytes))
        self._on_device = passes_of(source)

    def own_answer(self, request: Request) -> Answer | None:
        """Answer a request on the device of the source, if it has one.

        An answer that is not finite is left to the loops, which name the kernel.
        """
        if self._on_device is None:
            return None
        answer = self._on_device.answer(request)
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

    @property
    def sparse_limit(self) -> int:
        """Largest number of kernels that cost less one by one than by a pass."""
        return min(super().sparse_limit, self._kept.capacity)

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

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Return some kernels, computed unless they are kept."""
        yield from self._kept.rows(kernels, self._fetch)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Compute the diagonals and nothing else."""
        for kernels in kernel_groups(self.n_kernels, self.n_points):
            values = self._source.diagonals(kernels)
            check_finite(values, kernels.start, self._source)
            self.counter.bytes_computed += values.nbytes
            yield DiagonalPart(kernels, slice(0, self.n_points), values)

    def close(self) -> None:
        """Give back the memory of kept kernels."""
        self._kept.clear()

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
        size, edge = self.layout.tile_entries, self.layout.tile
        tiles = slice(entries.start // size, entries.stop // size)
        self._source.fill(kernels, tiles, self.layout, values.reshape(shape[0], -1, edge, edge))
        check_finite(values, kernels.start, self._source)
        return Chunk(kernels, entries, values)

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        whole = slice(0, self.layout.n_entries)
        for kernel, row in zip(kernels, rows, strict=True):
            chunk = self._computed(slice(kernel, kernel + 1), whole, row)
            self.counter.bytes_computed += chunk.values.nbytes
