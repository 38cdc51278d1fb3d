"""A bank that stays in its store and is read block by block in bounded memory."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from mkldist.bank.bank import Bank, Chunk, DiagonalPart, Rows, diagonal_part
from mkldist.bank.kept_rows import KeptRows, MemoryBudget
from mkldist.bank.loading import block_buffer, blocks_by_entries, fitted, read_block
from mkldist.bank.shapes import Block
from mkldist.bank.store import GramStore
from mkldist.core.arrays import Floating, Ints


class StreamedBank(Bank):
    """A bank read from a Gram store, out of core.

    In a pass a thread reads one block ahead, into two buffers in turn.  Single kernels are kept in
    memory, because solvers come back to their active kernels.

    Parameters
    ----------
    store : GramStore
        A complete store.
    row_cache_bytes : int
        Memory for single kernels; at least one is kept.
    """

    def __init__(self, store: GramStore, row_cache_bytes: int) -> None:
        super().__init__(store.n_kernels, store.layout, store.dtype)
        self._store = store
        budget = MemoryBudget(row_cache_bytes)
        self._kept = KeptRows(self.layout.n_entries, self.dtype, budget, self.n_kernels)
        self._buffers = (block_buffer(store), block_buffer(store))
        self._row_buffer = block_buffer(store)
        self._by_kernel: dict[int, list[Block]] = defaultdict(list)
        for block in store.blocks:
            self._by_kernel[block.kernels.start].append(block)
        self._starts = np.array(sorted(self._by_kernel))

    @property
    def sparse_limit(self) -> int:
        """Largest number of kernels that cost less one by one than by a pass."""
        return min(super().sparse_limit, self._kept.capacity)

    @property
    def shares_rows(self) -> bool:
        """True, because one kernel costs the reading of whole blocks."""
        return True

    def chunks(self) -> Iterator[Chunk]:
        """Traverse the store, reading ahead."""
        yield from self._read_ahead(list(blocks_by_entries(self._store)))

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read only the blocks that hold tiles on the diagonal."""
        rows, cols = self.layout.coordinates
        on_diagonal = rows == cols
        blocks = blocks_by_entries(self._store)
        for chunk in self._read_ahead([b for b in blocks if on_diagonal[b.tiles].any()]):
            yield diagonal_part(self.layout, chunk)

    def _read_ahead(self, blocks: list[Block]) -> Iterator[Chunk]:
        """Read some blocks, each while the block before it is used."""
        with ThreadPoolExecutor(1, thread_name_prefix="mkldist-read") as reader:
            ahead = reader.submit(self._read, blocks[0], 0)
            for turn, block in enumerate(blocks):
                values, cpu_seconds = ahead.result()
                self.counter.threads_cpu_seconds += cpu_seconds
                self.counter.bytes_read += values.nbytes
                if turn + 1 < len(blocks):
                    ahead = reader.submit(self._read, blocks[turn + 1], turn + 1)
                yield Chunk(block.kernels, block.entries, values)

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels, those of the same blocks together."""
        homes = np.searchsorted(self._starts, kernels, side="right") - 1
        for home in np.unique(homes):
            positions = np.flatnonzero(homes == home)
            fetch = partial(self._fetch, int(self._starts[home]))
            for rows in self._kept.rows(kernels[positions], fetch):
                yield Rows(positions[rows.positions], rows.lines, rows.values)

    def close(self) -> None:
        """Give back the memory of kept kernels."""
        self._kept.clear()

    def _read(self, block: Block, turn: int) -> tuple[Floating, float]:
        """Return the values of a block, and the processor time that it took this thread."""
        begun = time.thread_time()
        values = read_block(self._store, block, fitted(self._buffers[turn % 2], block))
        return values, time.thread_time() - begun

    def _fetch(self, home: int, kernels: list[int], rows: list[Floating]) -> None:
        """Read kernels, all in the same blocks, from the store."""
        for block in self._by_kernel[home]:
            values = read_block(self._store, block, fitted(self._row_buffer, block))
            self.counter.bytes_read += values.nbytes
            for kernel, row in zip(kernels, rows, strict=True):
                row[block.entries] = values[kernel - home]
