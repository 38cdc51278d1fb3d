"""Computing and storing the blocks that a bank lacks, and opening a bank in a worker's memory."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Self

import numpy as np

from mkldist.bank.bank import Bank, MemoryBank
from mkldist.bank.cache import NodeCache
from mkldist.bank.factor_bank import factorised
from mkldist.bank.readers import (
    BankBuffer,
    StreamedBank,
    block_buffer,
    fitted,
    load_entries,
    read_block,
    retried,
)
from mkldist.bank.sources import BankSource, compute
from mkldist.bank.store import BankStore, Block, BuildTime, Stopwatch
from mkldist.core.arrays import Floating
from mkldist.core.memory import bank_bytes, row_cache_bytes
from mkldist.errors import OutputError, StoreError
from mkldist.optim.pivoted_cholesky import PIECE, Piece


@dataclass(frozen=True)
class BuildReceipt:
    """Count of the blocks that were computed and stored."""

    blocks: int = 0
    bytes: int = 0


class BlockBuilder:
    """Context manager that computes, stores and counts the blocks that a store lacks.

    When a bank is loaded, a thread stores its new blocks while the bank is used already.  Leaving
    the context waits for that thread.
    """

    def __init__(self, source: BankSource, store: BankStore) -> None:
        n_kernels, n_points = store.shape.n_kernels, store.shape.layout.n_points
        if (source.n_kernels, source.n_points) != (n_kernels, n_points):
            raise ValueError(
                f"found a source of {source.n_kernels} kernels on {source.n_points} points; "
                f"expected {n_kernels} on {n_points}"
            )
        self._source, self._store = source, store
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mkldist-blocks")
        self._storing: Future[None] | None = None
        self._n_blocks = self._n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait until all blocks are stored."""
        self._writer.shutdown()
        if self._storing is not None and kind is None:
            self._storing.result()

    @property
    def receipt(self) -> BuildReceipt:
        """Count of the blocks stored so far."""
        return BuildReceipt(self._n_blocks, self._n_bytes)

    def wait(self) -> None:
        """Wait until the blocks of a loaded bank are stored, or could not be."""
        if self._storing is not None:
            wait([self._storing])

    def build(self, numbers: Iterable[int]) -> None:
        """Compute and store the incomplete ones among the blocks of these numbers."""
        # Fresh pages are slower to touch than kernels to compute: one buffer for all blocks.
        buffer = block_buffer(self._store)
        for number in numbers:
            if not self._store.holds(number):
                block, watch = self._store.shape.blocks[number], Stopwatch()
                values, layout = fitted(buffer, block), self._store.shape.layout
                compute(self._source, block.kernels, block.entries, layout, values)
                self._write(block, values, watch.spent())

    def load(self, buffer: BankBuffer) -> Floating:
        """Return all entries of the bank, (M, E).

        Complete blocks are read; the others are computed.  The caller must not change the entries
        before the context ends, because a thread stores them meanwhile.
        """
        computed: list[tuple[Block, BuildTime]] = []

        def read(store: BankStore, block: Block, out: Floating) -> None:
            if store.holds(block.index):
                read_block(store, block, out)
            else:
                watch = Stopwatch()
                compute(self._source, block.kernels, block.entries, store.shape.layout, out)
                computed.append((block, watch.spent()))

        values = load_entries(self._store, buffer, read)
        self._storing = self._writer.submit(self._write_all, computed, values)
        return values

    def _write_all(self, blocks: Iterable[tuple[Block, BuildTime]], values: Floating) -> None:
        for block, spent in blocks:
            self._write(block, values[block.kernels, block.entries], spent)

    def _write(self, block: Block, values: Floating, spent: BuildTime) -> None:
        self._store.write(block.index, values, spent=spent)
        self._n_blocks += 1
        self._n_bytes += self._store.shape.chunk_bytes


def build_blocks(source: BankSource, store: BankStore, numbers: Iterable[int]) -> BuildReceipt:
    """Compute and store the incomplete ones among the blocks of these numbers."""
    with BlockBuilder(source, store) as builder:
        builder.build(numbers)
    return builder.receipt


@dataclass(eq=False)
class StoredPieces:
    """Pieces of the factor of one kernel in a store, which counts those that it takes.

    A piece depends on the kernel, the seed and the pieces before it alone.  Two processes that make
    it write the same, up to the rounding of their linear algebra libraries.  A factor that is to be
    longer goes on from the pieces that are there.  A block has the columns of a piece, one a row,
    then their pivots, -1 where there is none.
    """

    store: BankStore
    kernel: int
    n_blocks: int = 0
    n_bytes: int = 0
    _watch: Stopwatch = field(default_factory=Stopwatch)

    def get(self, index: int) -> Piece | None:
        """Return a piece, None if it is missing or damaged."""
        columns, pivots = self._empty()
        try:
            retried(lambda: self.store.read(self._number(index), columns, pivots))
        except StoreError:
            return None
        finally:
            self._watch = Stopwatch()
        count = int(np.count_nonzero(pivots >= 0))
        return Piece(columns[:count], pivots[:count].astype(np.intp))

    def put(self, index: int, piece: Piece) -> None:
        """Store a piece, and the time since the last one was read or stored."""
        columns, pivots = self._empty()
        columns[: len(piece.columns)] = piece.columns
        pivots[: len(piece.columns)] = piece.pivots
        self.store.write(self._number(index), columns, pivots, spent=self._watch.spent())
        self.n_blocks += 1
        self.n_bytes += self.store.shape.chunk_bytes
        self._watch = Stopwatch()

    def _number(self, index: int) -> int:
        return self.kernel * self.store.shape.grid[1] + index

    def _empty(self) -> tuple[Floating, Floating]:
        columns = np.zeros((PIECE, self.store.shape.layout.n_points), self.store.dtype)
        return columns, np.full(PIECE, -1, self.store.dtype)


def build_factors(
    source: BankSource, store: BankStore, seed: int, numbers: Iterable[int]
) -> BuildReceipt:
    """Make and store the missing ones among the pieces of these numbers, and those before them."""
    n_blocks = n_bytes = 0
    for number in numbers:
        kernel, piece = divmod(number, store.shape.grid[1])
        pieces, rank = StoredPieces(store, kernel), (piece + 1) * PIECE
        factorised(source, kernel, rank=rank, seed=seed, kept=pieces, dtype=store.shape.dtype)
        n_blocks, n_bytes = n_blocks + pieces.n_blocks, n_bytes + pieces.n_bytes
    return BuildReceipt(n_blocks, n_bytes)


Backend = Literal["memory", "mmap", "stream"]


def open_bank(
    store: BankStore,
    backend: Backend,
    memory_limit: int | None = None,
    cache: NodeCache | None = None,
    builder: BlockBuilder | None = None,
    buffer: BankBuffer | None = None,
) -> Bank:
    """Return the bank of a store.

    `memory_limit`: bytes that this process may take.  A mapped bank larger than half of it gives
    pages back while it is read; a streamed one keeps single kernels in a quarter of it. `cache`:
    node cache for ``"mmap"``; by default that of the user.
    """
    if backend == "memory":
        load = builder.load if builder else partial(load_entries, store)
        return MemoryBank(load(buffer or BankBuffer()), store.shape.layout)
    if builder is not None:
        builder.build(store.missing())
    if backend == "mmap":
        with suppress(OutputError):
            limit = None if memory_limit is None else bank_bytes(memory_limit)
            mapped = (cache or NodeCache()).open(store, resident_limit=limit)
            if mapped is not None:
                return mapped
    return StreamedBank(store, row_cache_bytes(memory_limit))
