"""Computing and storing the blocks that a bank lacks, and opening a bank in a worker's memory."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache as memoised
from functools import partial
from pathlib import Path
from typing import Literal, Self

from mkldist.bank.bank import Bank, MemoryBank
from mkldist.bank.cache import NodeCache, default_directory
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
from mkldist.bank.store import Block, BuildTime, FactorBlock, FactorStore, GramStore, Stopwatch
from mkldist.core.arrays import Floating
from mkldist.core.memory import bank_bytes, row_cache_bytes
from mkldist.errors import OutputError, StoreError
from mkldist.optim.pivoted_cholesky import PIECE, Piece


@dataclass(frozen=True)
class BuildReceipt:
    """Count of the blocks that were built.

    `blocks`: blocks computed and stored, without those that were complete before.
    """

    blocks: int = 0
    bytes: int = 0


class BlockBuilder:
    """Context manager that computes, stores and counts the blocks that a store lacks.

    When a bank is loaded, a thread stores its new blocks while the bank is used already.  Leaving
    the context waits for that thread.
    """

    def __init__(self, source: BankSource, store: GramStore) -> None:
        n_kernels, n_points = store.n_kernels, store.layout.n_points
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

    def build(self, blocks: Iterable[Block]) -> None:
        """Compute and store the incomplete ones among the given blocks."""
        # Fresh pages are slower to touch than kernels to compute: one buffer for all blocks.
        buffer = block_buffer(self._store)
        for block in blocks:
            if not self._store.holds(block):
                watch, values = Stopwatch(), fitted(buffer, block)
                compute(self._source, block.kernels, block.entries, self._store.layout, values)
                self._write(block, values, watch.spent())

    def load(self, buffer: BankBuffer) -> Floating:
        """Return all entries of the bank, (M, E).

        Complete blocks are read; the others are computed.  The caller must not change the entries
        before the context ends, because a thread stores them meanwhile.
        """
        computed: list[tuple[Block, BuildTime]] = []

        def read(store: GramStore, block: Block, out: Floating) -> None:
            if store.holds(block):
                read_block(store, block, out)
            else:
                watch = Stopwatch()
                compute(self._source, block.kernels, block.entries, store.layout, out)
                computed.append((block, watch.spent()))

        values = load_entries(self._store, buffer, read)
        self._storing = self._writer.submit(self._write_all, computed, values)
        return values

    def _write_all(self, blocks: Iterable[tuple[Block, BuildTime]], values: Floating) -> None:
        for block, spent in blocks:
            self._write(block, values[block.kernels, block.entries], spent)

    def _write(self, block: Block, values: Floating, spent: BuildTime) -> None:
        self._store.write(block, values, spent)
        self._n_blocks += 1
        self._n_bytes += values.nbytes


def build_blocks(source: BankSource, store: GramStore, blocks: Iterable[Block]) -> BuildReceipt:
    """Compute and store the incomplete ones among the given blocks."""
    with BlockBuilder(source, store) as builder:
        builder.build(blocks)
    return builder.receipt


@dataclass(eq=False)
class StoredPieces:
    """Pieces of the factor of one kernel in a store, which counts those that it takes."""

    store: FactorStore
    kernel: int
    n_blocks: int = 0
    n_bytes: int = 0
    _watch: Stopwatch = field(default_factory=Stopwatch)

    def get(self, index: int) -> Piece | None:
        """Return a piece, None if it is missing or damaged."""
        block = self.store.block(self.kernel, index)
        try:
            return retried(lambda: self.store.read(block))
        except StoreError:
            return None
        finally:
            self._watch = Stopwatch()

    def put(self, index: int, piece: Piece) -> None:
        """Store a piece, and the time since the last one was read or stored."""
        self.store.write(self.store.block(self.kernel, index), piece, self._watch.spent())
        self.n_blocks += 1
        self.n_bytes += self.store.shape.chunk_bytes
        self._watch = Stopwatch()


def build_factors(
    source: BankSource, store: FactorStore, seed: int, blocks: Iterable[FactorBlock]
) -> BuildReceipt:
    """Make and store the missing ones among the given pieces, and those that precede them."""
    n_blocks = n_bytes = 0
    for block in blocks:
        pieces = StoredPieces(store, block.kernel)
        rank = (block.piece + 1) * PIECE
        factorised(source, block.kernel, rank=rank, seed=seed, kept=pieces, dtype=store.shape.dtype)
        n_blocks, n_bytes = n_blocks + pieces.n_blocks, n_bytes + pieces.n_bytes
    return BuildReceipt(n_blocks, n_bytes)


Backend = Literal["memory", "mmap", "stream"]


def open_bank(
    store: GramStore,
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
        return MemoryBank(load(buffer or BankBuffer()), store.layout)
    if builder is not None:
        builder.build(store.missing())
    return _large(store, backend, memory_limit, cache)


def _large(
    store: GramStore, backend: Backend, memory_limit: int | None, cache: NodeCache | None
) -> Bank:
    """Return a bank that is not loaded into this process."""
    if backend == "mmap":
        with suppress(OutputError):
            limit = None if memory_limit is None else bank_bytes(memory_limit)
            mapped = (cache or _node_cache(default_directory())).open(store, resident_limit=limit)
            if mapped is not None:
                return mapped
    return StreamedBank(store, row_cache_bytes(memory_limit))


@memoised
def _node_cache(directory: Path) -> NodeCache:
    """Return the node cache of a folder, one for a process, so that each file is checked once."""
    return NodeCache(directory)
