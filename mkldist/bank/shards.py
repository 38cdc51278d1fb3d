"""Shards of a bank: parts of its kernels, each small enough for the memory of one worker."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mkldist.bank.bank import block_kernels
from mkldist.bank.sources import BankSource, check_finite
from mkldist.bank.store import BankShape
from mkldist.core.arrays import Floating


def block_bytes(shape: BankShape) -> int:
    """Return the bytes of the smallest shard of a bank: those of one block of a pass."""
    return min(block_kernels(shape.layout), shape.n_kernels) * kernel_bytes(shape)


def kernel_bytes(shape: BankShape) -> int:
    """Return the bytes of one kernel."""
    return shape.layout.n_entries * np.dtype(shape.dtype).itemsize


def cut(shape: BankShape, most_bytes: int, at_least: int = 1) -> tuple[slice, ...]:
    """Cut the kernels of a bank into shards of about the same size.

    Each shard begins with a whole block, so that a pass multiplies the same parts of the bank as if
    all of it were in one memory.

    `most_bytes`: largest size of a shard; one block is a shard even if it is larger.
    """
    size = block_kernels(shape.layout)
    n_blocks = -(-shape.n_kernels // size)
    blocks_of_each = max(1, most_bytes // (size * kernel_bytes(shape)))
    n_shards = max(-(-n_blocks // blocks_of_each), min(at_least, n_blocks))
    parts = np.array_split(np.arange(n_blocks), n_shards)
    return tuple(
        slice(int(part[0]) * size, min((int(part[-1]) + 1) * size, shape.n_kernels))
        for part in parts
    )


def shard_entries(source: BankSource, shape: BankShape, kernels: slice) -> Floating:
    """Compute the entries of a shard, (k, E) in the dtype of the bank."""
    layout, size = shape.layout, shape.layout.tile_entries
    values = np.empty((kernels.stop - kernels.start, layout.n_entries), dtype=shape.dtype)
    for some, tiles in _parts(shape, kernels):
        k, t = some.stop - some.start, tiles.stop - tiles.start
        part = np.empty((k, t, layout.tile, layout.tile), dtype=shape.dtype)
        source.fill(some, tiles, layout, part)
        check_finite(part.reshape(k, -1), some.start, source)
        own = slice(some.start - kernels.start, some.stop - kernels.start)
        values[own, tiles.start * size : tiles.stop * size] = part.reshape(k, -1)
    return values


def _parts(shape: BankShape, kernels: slice) -> Iterator[tuple[slice, slice]]:
    """Cut some kernels and all tiles into parts of about the size of a stored block."""
    k_step, t_step = shape.chunk
    for first in range(kernels.start, kernels.stop, k_step):
        for tile in range(0, shape.layout.n_tiles, t_step):
            yield slice(first, min(first + k_step, kernels.stop)), slice(tile, tile + t_step)
