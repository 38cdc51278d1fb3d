"""Reading of blocks of a Gram store, whose errors name the blocks to build again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import numpy as np

from mkldist.bank.shapes import Block
from mkldist.bank.store import GramStore
from mkldist.core.arrays import Floating
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
ReadBlock = Callable[[GramStore, Block, Floating], object]

PAUSES = (0.2, 1.0, 5.0)


class DamagedBlocksError(StoreError):
    """Blocks that cannot be read: missing, cut short or changed on the medium.

    Parameters
    ----------
    where, found, expected, hint : str
        See :class:`mkldist.errors.MkldistError`.
    blocks : tuple of int
        Indices of the blocks, for :meth:`GramStore.invalidate` and a rebuild.
    """

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


def read_block(store: GramStore, block: Block, out: Floating) -> Floating:
    """Read one block into `out`, (k, t·b²) contiguous.

    Raises
    ------
    DamagedBlocksError
        Naming the block.
    UnreadableError
        If the medium did not answer for some seconds; the block may be sound.
    """
    try:
        return retried(lambda: store.read(block, out=out))
    except UnreadableError as error:
        root = store.location.rpartition("/")[0]
        hint = (
            "Repeat the command, which does what is left; if the error stays, 'mkldist bank verify "
            f"{root}' marks the block as missing, and the command computes it again"
        )
        raise UnreadableError(error.where, error.found, error.expected, hint) from error
    except StoreError as error:
        raise DamagedBlocksError(
            error.where, error.found, error.expected, error.hint, (block.index,)
        ) from error


def retried(read: Callable[[], Read]) -> Read:
    """Return ``read()``, called again for some seconds while the medium does not answer.

    Raises
    ------
    UnreadableError
        If the last call failed too.
    """
    for pause in PAUSES:
        try:
            return read()
        except UnreadableError:
            time.sleep(pause)
    return read()


def load_blocks(store: GramStore, load: Callable[[Block], object]) -> None:
    """Call ``load(block)``, which reads it, for every block of a store.

    Raises
    ------
    DamagedBlocksError
        After all blocks were tried; it names all that cannot be read.
    """
    damaged: list[DamagedBlocksError] = []
    for block in store.blocks:
        try:
            load(block)
        except DamagedBlocksError as error:
            damaged.append(error)
    if not damaged:
        return
    first, indices = damaged[0], tuple(index for error in damaged for index in error.blocks)
    found = first.found
    if len(indices) > 1:
        found = f"{len(indices)} damaged blocks of {len(store.blocks)}: {first.found}"
    raise DamagedBlocksError(first.where, found, first.expected, first.hint, indices) from first


def load_entries(store: GramStore, buffer: BankBuffer, read: ReadBlock = read_block) -> Floating:
    """Return all entries of a store, (M, E) in its dtype.

    Parameters
    ----------
    store : GramStore
        A store.
    buffer : BankBuffer
        Memory for the entries.
    read : callable
        Function that is called as ``read(store, block, out)`` and writes a block to the contiguous
        array `out`.

    Raises
    ------
    DamagedBlocksError
        Naming all blocks that cannot be read.
    """
    values = buffer.take((store.n_kernels, store.layout.n_entries), store.dtype)
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


def block_buffer(store: GramStore) -> Floating:
    """Return a flat array as large as the largest block of a store."""
    largest = max(k * e for k, e in (block.shape for block in store.blocks))
    return np.empty(largest, dtype=store.dtype)


def fitted(buffer: Floating, block: Block) -> Floating:
    """Return the first entries of a flat buffer in the shape of a block."""
    k, e = block.shape
    return buffer[: k * e].reshape(k, e)


def blocks_by_entries(store: GramStore) -> Iterator[Block]:
    """Yield the blocks in the order of their entries, those of the same entries by kernels."""
    yield from sorted(store.blocks, key=lambda block: (block.entries.start, block.kernels.start))
