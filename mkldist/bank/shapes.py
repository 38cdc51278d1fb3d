"""What is stored of a bank, in which blocks: the shapes of Gram matrices and of thin factors."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mkldist.bank.layout import LAYOUT_VERSION, TileLayout
from mkldist.core.checksums import CHECKSUM_BYTES
from mkldist.optim.pivoted_cholesky import PIECE

CHUNK_BYTES = 8 * 2**20
KERNELS_PER_CHUNK = 16
TAG = 4  # whole numbers below 2**24, which float32 holds, that end a block
FACTORS_VERSION = 3  # raised when the same kernels and seed would give other pieces


@dataclass(frozen=True)
class Block:
    """A few kernels × a few tiles: the unit of building, writing, checking and reading.

    Parameters
    ----------
    index : int
        Position in :attr:`BankShape.blocks`.
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


@dataclass(frozen=True)
class FactorBlock:
    """A piece of the factor of one kernel.

    Parameters
    ----------
    index : int
        Number of the piece among the most pieces that all factors have.
    kernel, piece : int
        The kernel, and the piece of its factor.
    shape : (int, int)
        Columns and points.
    """

    index: int
    kernel: int
    piece: int
    shape: tuple[int, int]


class _StoredShape(abc.ABC):
    """What a block takes where it is stored, of Gram matrices or of factors."""

    dtype: str

    @property
    @abc.abstractmethod
    def block_entries(self) -> int:
        """Numbers of a block, without its tag."""

    @property
    def chunk_entries(self) -> int:
        """Numbers of a block as it is stored, with its tag."""
        return self.block_entries + TAG

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a block as it is stored."""
        return self.chunk_entries * np.dtype(self.dtype).itemsize + CHECKSUM_BYTES


@dataclass(frozen=True)
class BankShape(_StoredShape):
    """Facts that determine the place of every entry of a bank of Gram matrices."""

    n_kernels: int
    layout: TileLayout
    dtype: str
    kind: ClassVar[str] = "gram"
    version: ClassVar[int] = LAYOUT_VERSION

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> BankShape:
        """Return the shape of which these are the facts."""
        layout = TileLayout(facts["n_points"], facts["tile"])
        return cls(facts["n_kernels"], layout, facts["dtype"])

    @property
    def facts(self) -> dict[str, Any]:
        """The shape as JSON has it."""
        return {
            "kind": self.kind,
            "version": self.version,
            "n_kernels": self.n_kernels,
            "n_points": self.layout.n_points,
            "tile": self.layout.tile,
            "dtype": self.dtype,
        }

    @cached_property
    def chunk(self) -> tuple[int, int]:
        """Kernels and tiles of one block, of about 8 MiB.

        At least 16 kernels share a block if there are so many, because kernels are evaluated and
        combined side by side.  The number of tiles divides evenly, so only kernels need padding.
        """
        tile_bytes = self.layout.tile_entries * np.dtype(self.dtype).itemsize
        at_least = min(KERNELS_PER_CHUNK, max(self.n_kernels, 1))
        wanted = max(1, CHUNK_BYTES // (at_least * tile_bytes))
        n_tiles = self.layout.n_tiles
        tiles = max(t for t in range(1, min(wanted, n_tiles) + 1) if n_tiles % t == 0)
        most = max(at_least, CHUNK_BYTES // (tiles * tile_bytes))
        kernels = math.ceil(self.n_kernels / math.ceil(self.n_kernels / most))
        return kernels, tiles

    @property
    def grid(self) -> tuple[int, int]:
        """Number of blocks along the kernels and along the tiles."""
        kernels, tiles = self.chunk
        return math.ceil(self.n_kernels / kernels), self.layout.n_tiles // tiles

    @property
    def block_entries(self) -> int:
        """Numbers of a block, its padding included."""
        kernels, tiles = self.chunk
        return kernels * tiles * self.layout.tile_entries

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks, those of the same kernels adjacent."""
        (k, t), entries = self.chunk, self.layout.tile_entries
        blocks: list[Block] = []
        for start in range(0, self.n_kernels, k):
            kernels = slice(start, min(start + k, self.n_kernels))
            for tile in range(0, self.layout.n_tiles, t):
                where = slice(tile * entries, (tile + t) * entries)
                blocks.append(Block(len(blocks), kernels, slice(tile, tile + t), where))
        return blocks


@dataclass(frozen=True)
class FactorShape(_StoredShape):
    """Facts that determine the place of every column of a bank of factors."""

    n_kernels: int
    n_points: int
    dtype: str
    kind: ClassVar[str] = "factors"
    version: ClassVar[int] = FACTORS_VERSION

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> FactorShape:
        """Return the shape of which these are the facts."""
        return cls(facts["n_kernels"], facts["n_points"], facts["dtype"])

    @property
    def facts(self) -> dict[str, Any]:
        """The shape as JSON has it."""
        return {
            "kind": self.kind,
            "version": self.version,
            "piece": PIECE,
            "n_kernels": self.n_kernels,
            "n_points": self.n_points,
            "dtype": self.dtype,
        }

    @property
    def grid(self) -> tuple[int, int]:
        """Number of kernels, and most pieces of a factor."""
        return self.n_kernels, -(-self.n_points // PIECE)

    @property
    def block_entries(self) -> int:
        """Numbers of a piece: its columns and their pivots."""
        return PIECE * (self.n_points + 1)

    def block(self, kernel: int, piece: int) -> FactorBlock:
        """Return a piece of the factor of a kernel."""
        index = kernel * self.grid[1] + piece
        return FactorBlock(index, kernel, piece, (PIECE, self.n_points))
