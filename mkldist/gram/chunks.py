"""Blocks of a bank and the chunk files that hold them.

A chunk file has the format of zarr's ``bytes`` and ``crc32c`` codecs: the values, zeros up to the
full chunk shape, and the checksum of both.  Files are encoded and decoded here, in place, for two
reasons.  A sweep over a large bank waits for reading, and the codecs of an array library take three
times as long; and only so can a chunk be flushed before it is renamed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floating
from mkldist.checksums import CHECKSUM_BYTES, crc32c
from mkldist.gram.metadata import BankShape

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Block:
    """A few kernels × a few tiles: the unit of building, writing, checking and reading.

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


def seconds_name(block: Block, shape: BankShape) -> str:
    """Return the name of the file that holds the times to build a block."""
    return f"seconds/c/{_key(block, shape)}/0"


def chunk_bytes(shape: BankShape) -> int:
    """Return the size of every chunk file, checksum included."""
    kernels, tiles = shape.chunk
    size = kernels * tiles * shape.layout.tile_entries * np.dtype(shape.dtype).itemsize
    return size + CHECKSUM_BYTES


class ChunkParts:
    """Three parts of a chunk file: the values of a block, not copied; padding; and a checksum.

    Parameters
    ----------
    values : (k, t·b²) float array
        Contiguous values of the store's dtype.
    shape : BankShape
        Shape of the bank.
    """

    def __init__(self, values: Floating, shape: BankShape) -> None:
        self.body: Bytes = values.reshape(-1).view(np.uint8)
        self.padding = np.zeros(chunk_bytes(shape) - CHECKSUM_BYTES - self.body.nbytes, np.uint8)
        self.checksum = np.zeros(CHECKSUM_BYTES, np.uint8)

    @property
    def views(self) -> list[memoryview]:
        """Parts of the file in their order, as buffers to write or to read into."""
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
