"""Blocks of a bank and the chunk files that hold them.

A chunk file is what zarr's ``bytes`` and ``crc32c`` codecs make of a chunk: the values, zeros up
to the full chunk shape, and the checksum of both.  Encoding and decoding happen in place, because
reading is what a sweep over a large bank waits for: a third of the cost of going through an array
library's codec pipeline, and the only way to flush a chunk before it is renamed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floating
from mkldist.durable import CHECKSUM_BYTES, crc32c
from mkldist.gram.metadata import BankShape

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Block:
    """A few kernels × a few tiles: the unit that is built, written, checked and read.

    Parameters
    ----------
    index : int
        Position in :attr:`GramStore.blocks`.
    kernels : slice
        k of the M kernels.
    tiles : slice
        t of the T tiles.
    entries : slice
        The t·b² entries of those tiles.
    """

    index: int
    kernels: slice = field(hash=False)
    tiles: slice = field(hash=False)
    entries: slice = field(hash=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Kernels and entries (k, t·b²)."""
        kernels, entries = self.kernels, self.entries
        return kernels.stop - kernels.start, entries.stop - entries.start


def blocks_of(shape: BankShape) -> list[Block]:
    """Return all blocks of a bank, those of the same kernels adjacent."""
    (k, t), entries = shape.chunk, shape.layout.tile_entries
    blocks: list[Block] = []
    for start in range(0, shape.n_kernels, k):
        kernels = slice(start, min(start + k, shape.n_kernels))
        for tile in range(0, shape.layout.n_tiles, t):
            tiles = slice(tile, tile + t)
            where = slice(tile * entries, (tile + t) * entries)
            blocks.append(Block(len(blocks), kernels, tiles, where))
    return blocks


def chunk_name(block: Block, shape: BankShape) -> str:
    """Return the name of a block's chunk file."""
    return f"gram/c/{_key(block, shape)}"


def mark_name(block: Block, shape: BankShape) -> str:
    """Return the name of the file that marks a block complete."""
    return f"complete/c/{_key(block, shape)}"


def chunk_bytes(shape: BankShape) -> int:
    """Return the size of every chunk file, checksum included."""
    kernels, tiles = shape.chunk
    size = kernels * tiles * shape.layout.tile_entries * np.dtype(shape.dtype).itemsize
    return size + CHECKSUM_BYTES


class ChunkParts:
    """The three parts of a chunk file around a block's values, which are not copied.

    Parameters
    ----------
    values : (k, t·b²) float array
        Contiguous, of the store's dtype.
    shape : BankShape
        The bank.
    """

    def __init__(self, values: Floating, shape: BankShape) -> None:
        self.body: Bytes = values.reshape(-1).view(np.uint8)
        self.padding = np.zeros(chunk_bytes(shape) - CHECKSUM_BYTES - self.body.nbytes, np.uint8)
        self.checksum = np.zeros(CHECKSUM_BYTES, np.uint8)

    @property
    def views(self) -> list[memoryview]:
        """The parts in the order of the file, to be written or read into."""
        return [self.body.data, self.padding.data, self.checksum.data]

    def seal(self) -> None:
        """Set the checksum to that of the values."""
        self.checksum[:] = np.frombuffer(crc32c([self.body, self.padding]), np.uint8)

    @property
    def is_sound(self) -> bool:
        """True if the checksum fits the values."""
        return self.checksum.tobytes() == crc32c([self.body, self.padding])


def _key(block: Block, shape: BankShape) -> str:
    """Return the position of a block in the chunk grid, as zarr spells it."""
    row, column = divmod(block.index, shape.grid[1])
    return f"{row}/{column}"
