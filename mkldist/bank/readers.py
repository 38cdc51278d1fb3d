"""Reading of Gram stores: a block, all blocks, a mapped file of them, or one pass after another.

Errors name the blocks to build again.
"""

from __future__ import annotations

import itertools
import math
import mmap
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from mkldist.bank.bank import (
    ArrayBank,
    CachedRowsBank,
    Chunk,
    DiagonalPart,
    Rows,
    block_kernels,
    diagonal_part,
    kernel_groups,
)
from mkldist.bank.store import BankShape, BankStore, Block
from mkldist.core.arrays import Floating, Ints
from mkldist.errors import StoreError, UnreadableError


class BankBuffer:
    """Memory for the entries of one bank, reused for the next bank.

    Pages that a process has not touched yet are slower to fill than kernels are to compute.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.uint8)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Floating:
        """Return an array with undefined content, which overwrites the array returned before."""
        n_bytes = math.prod(shape) * dtype.itemsize
        if not n_bytes <= self._memory.nbytes <= 2 * n_bytes:
            self.clear()
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        return self._memory[:n_bytes].view(dtype).reshape(shape)

    def clear(self) -> None:
        """Drop the memory, which is freed with the last array in it."""
        self._memory = np.empty(0, dtype=np.uint8)


Read = TypeVar("Read")
ReadBlock = Callable[[BankStore, Block, Floating], object]

PAUSES = (0.2, 1.0, 5.0)


class DamagedBlocksError(StoreError):
    """Blocks that cannot be read: missing, cut short or changed on the medium."""

    def __init__(
        self,
        where: str,
        found: str,
        expected: str = "",
        hint: str = "",
        blocks: tuple[int, ...] = (),
    ) -> None:
        super().__init__(where, found, expected, hint)
        self.blocks = blocks

    def __reduce__(self) -> tuple[type[DamagedBlocksError], tuple[str, str, str, str]]:
        """Pickle by all fields; the blocks travel with the four of every error."""
        fields = (self.where, self.found, self.expected, self.hint, self.blocks)
        return type(self), cast(tuple[str, str, str, str], fields)


def read_block(store: BankStore, block: Block, out: Floating) -> Floating:
    """Read one block into `out`, (k, t·b²) contiguous."""
    try:
        retried(lambda: store.read(block.index, out))
    except UnreadableError as error:
        hint = (
            "Repeat the command, which does what is left; if the error stays, remove "
            f"{store.location}, and the command computes it again"
        )
        raise UnreadableError(error.where, error.found, error.expected, hint) from error
    except StoreError as error:
        raise DamagedBlocksError(
            error.where, error.found, error.expected, error.hint, (block.index,)
        ) from error
    return out


def retried(read: Callable[[], Read]) -> Read:
    """Return ``read()``, called again for some seconds while the medium does not answer."""
    for pause in PAUSES:
        try:
            return read()
        except UnreadableError:
            time.sleep(pause)
    return read()


def load_blocks(store: BankStore, load: Callable[[Block], object]) -> None:
    """Call ``load(block)``, which reads it, for every block of a store."""
    damaged: list[DamagedBlocksError] = []
    for block in store.shape.blocks:
        try:
            load(block)
        except DamagedBlocksError as error:
            damaged.append(error)
    if not damaged:
        return
    first, indices = damaged[0], tuple(index for error in damaged for index in error.blocks)
    found = first.found
    if len(indices) > 1:
        found = f"{len(indices)} damaged blocks of {len(store.shape.blocks)}: {first.found}"
    raise DamagedBlocksError(first.where, found, first.expected, first.hint, indices) from first


def load_entries(store: BankStore, buffer: BankBuffer, read: ReadBlock = read_block) -> Floating:
    """Return all entries of a store, (M, E) in its dtype."""
    values = buffer.take((store.shape.n_kernels, store.shape.layout.n_entries), store.dtype)
    of_one = block_buffer(store)

    def load(block: Block) -> None:
        place = values[block.kernels, block.entries]
        if place.flags.c_contiguous:
            read(store, block, place)
        else:
            part = fitted(of_one, block)
            read(store, block, part)
            place[...] = part

    load_blocks(store, load)
    return values


def block_buffer(store: BankStore) -> Floating:
    """Return a flat array as large as the largest block of a store."""
    largest = max(k * e for k, e in (block.shape for block in store.shape.blocks))
    return np.empty(largest, dtype=store.dtype)


def fitted(buffer: Floating, block: Block) -> Floating:
    """Return the first entries of a flat buffer in the shape of a block."""
    k, e = block.shape
    return buffer[: k * e].reshape(k, e)


def blocks_by_entries(store: BankStore) -> Iterator[Block]:
    """Yield the blocks in the order of their entries, those of the same entries by kernels."""
    yield from sorted(
        store.shape.blocks, key=lambda block: (block.entries.start, block.kernels.start)
    )


SHARE_OF_TRAVERSAL = 4  # a traversal may keep one part in 4 of the limit mapped in


class MappedBank(ArrayBank):
    """A bank whose (M, E) entries begin a file.

    Pages of a memory map count as memory of every process that touched them.  A bank larger than
    `resident_limit` therefore gives its pages back while it is traversed.  They stay in the page
    cache as long as the machine has memory for them.

    `path`: the file, which begins with M·E entries.  It may be deleted while it is mapped.
    `resident_limit`: bytes of the bank that may stay mapped in; all by default.
    """

    def __init__(self, path: Path, shape: BankShape, resident_limit: int | None = None) -> None:
        n_kernels, n_bytes = shape.n_kernels, shape.n_kernels * shape.kernel_bytes
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_READ)
        values = np.frombuffer(self._map, np.dtype(shape.dtype).newbyteorder("<"))
        super().__init__(values.reshape(n_kernels, -1), shape.layout)
        self._row_bytes = shape.kernel_bytes
        self._gives_back = resident_limit is not None and n_bytes > resident_limit
        # The rest of the limit is left to the active kernels of solvers, read by `rows`.
        self._may_stay = (resident_limit or 0) // SHARE_OF_TRAVERSAL
        self._mapped_in = 0

    def chunks(self) -> Iterator[Chunk]:
        """Traverse the file, in groups of adjacent kernels if pages are given back."""
        if not self._gives_back:
            yield from super().chunks()
            return
        block = block_kernels(self.layout)
        step = max(1, self._may_stay // (self._row_bytes * block)) * block
        for first in range(0, self.n_kernels, step):
            kernels = slice(first, min(first + step, self.n_kernels))
            for chunk in self.slabs_of(kernels):
                yield chunk
                self._traversed(chunk.values.nbytes)

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read some kernels; pages are given back on the way if these are many."""
        if not self._gives_back or len(kernels) <= self.sparse_limit:
            yield from super().rows(kernels)
            return
        for group in kernel_groups(len(kernels), self.layout.n_entries):
            for rows in super().rows(kernels[group]):
                yield replace(rows, positions=rows.positions + group.start)
            self._traversed((group.stop - group.start) * self._row_bytes)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Read the diagonals, and give back the pages of the kernels that hold them."""
        for part in super().diagonals():
            yield part
            if self._gives_back:
                self._traversed(len(part.values) * self._row_bytes)

    def _traversed(self, n_bytes: int) -> None:
        """Count bytes as mapped in, and give pages back if the next step would exceed the limit."""
        self._mapped_in += n_bytes
        if self._mapped_in + n_bytes > self._may_stay:
            self.give_back()

    def give_back(self) -> None:
        """Unmap all pages; the next read maps them again, from the page cache."""
        if hasattr(self._map, "madvise"):  # elsewhere the system takes them back when it must
            self._map.madvise(mmap.MADV_DONTNEED)
        self._mapped_in = 0


class StreamedBank(CachedRowsBank):
    """A bank read from a Gram store, out of core.

    In a pass a thread reads one block ahead, into two buffers in turn.  Single kernels are kept in
    memory, because solvers come back to their active kernels.

    `row_cache_bytes`: memory for single kernels; at least one is kept.
    """

    def __init__(self, store: BankStore, row_cache_bytes: int) -> None:
        super().__init__(store.shape.n_kernels, store.shape.layout, store.dtype, row_cache_bytes)
        self._store = store
        self._buffers = (block_buffer(store), block_buffer(store))
        self._row_buffer = block_buffer(store)
        self._by_kernel: dict[int, list[Block]] = defaultdict(list)
        for block in store.shape.blocks:
            self._by_kernel[block.kernels.start].append(block)
        self._starts = np.array(sorted(self._by_kernel))

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

    def _read(self, block: Block, turn: int) -> tuple[Floating, float]:
        """Return the values of a block, and the processor time that it took this thread."""
        begun = time.thread_time()
        values = read_block(self._store, block, fitted(self._buffers[turn % 2], block))
        return values, time.thread_time() - begun

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        """Read kernels, those of the same blocks together."""
        homes = self._starts[np.searchsorted(self._starts, kernels, side="right") - 1].tolist()
        for home, members in itertools.groupby(
            zip(homes, kernels, rows, strict=True), itemgetter(0)
        ):
            wanted = list(members)
            for block in self._by_kernel[home]:
                values = read_block(self._store, block, fitted(self._row_buffer, block))
                self.counter.bytes_read += values.nbytes
                for _, kernel, row in wanted:
                    row[block.entries] = values[kernel - home]
