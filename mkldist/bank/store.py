"""Banks on disk or behind a URL, block by block, each an array of the zarr library.

A chunk of the array holds a block: its values, padding, and four whole numbers, its tag, that say
whose and which block it is.  zarr's crc32c codec guards all of them, so a block of another bank or
place is as damaged as one with a flipped bit.  Values are not compressed: codecs save a sixth of a
Gram matrix and cost most of the reading speed.

Beside the array, ``complete`` has a small file, a mark, for each block that is whole: the wall and
the processor time that it took to build, and their checksum.  It is written after the block.

Files are renamed into place, so that readers see all or nothing, but not flushed to the device:
what a power cut takes of them fails its checksum, and is built again.

The values of a block of Gram matrices are k kernels × t·b² entries in the layout of
:mod:`mkldist.bank.bank`.  Those of a piece of a factor are its columns, one a row, then their
pivots, -1 where there is none.
"""

from __future__ import annotations

import abc
import math
import os
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import LAYOUT_VERSION, TileLayout
from mkldist.bank.byte_store import (
    LAPLACIANS,
    NO_FILE,
    SNAPSHOTS,
    TEMPORARY,
    ByteStore,
    list_folders,
    open_bytes,
    readable,
)
from mkldist.core.arrays import Floating
from mkldist.core.checksums import CHECKSUM_BYTES, crc32c
from mkldist.core.durable import write_file
from mkldist.core.identity import content_id
from mkldist.errors import StoreError
from mkldist.optim.pivoted_cholesky import PIECE, Piece

if TYPE_CHECKING:
    import zarr


CHUNK_BYTES = 8 * 2**20
KERNELS_PER_CHUNK = 16
TAG = 4  # whole numbers below 2**24, which float32 holds, that end a block
FACTORS_VERSION = 3  # raised when the same kernels and seed would give other pieces


@dataclass(frozen=True)
class Block:
    """A few kernels × a few tiles: the unit of building, writing, checking and reading.

    `entries`: the t·b² entries of those tiles.
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

    `index`: number of the piece among the most pieces that all factors have. `kernel`, `piece`: the
    kernel, and the piece of its factor. `shape` (int, int): columns and points.
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


COMPLETE, DESCRIBED, DOCUMENT = "complete", "bank", "zarr.json"
ATTEMPTS = 3  # to describe a bank that other processes describe too
# What zarr raises for a document that is missing, cut short or altered, or for a damaged chunk.
_DAMAGE = (*NO_FILE, ValueError, LookupError, TypeError, AttributeError, RecursionError)

Shape = TypeVar("Shape", BankShape, FactorShape)
OneBlock = TypeVar("OneBlock", Block, FactorBlock)


class DamagedDescriptionError(StoreError):
    """The description of a bank is missing, cut short or altered, and can be written again."""


@dataclass(frozen=True)
class BuildTime:
    """Time to compute and store Gram matrices, of all tasks together."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: BuildTime) -> BuildTime:
        """Return the time of both."""
        return BuildTime(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


NO_TIME = BuildTime()


class Stopwatch:
    """Wall time, and processor time of this thread, since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.thread_time()

    def spent(self) -> BuildTime:
        """Return the time since the start."""
        return BuildTime(time.perf_counter() - self._wall, time.thread_time() - self._cpu)


@dataclass(frozen=True, eq=False)
class StoredBank(Generic[Shape, OneBlock]):
    """What the stores of Gram matrices and of factors have in common.

    `attrs`: further facts recorded at creation, such as the name of the data set.
    """

    blobs: ByteStore
    shape: Shape
    attrs: Mapping[str, Any]
    _complete: set[int] = field(default_factory=set, repr=False)

    _of: ClassVar[type[BankShape] | type[FactorShape]]

    @classmethod
    def described(
        cls, root: str | Path, bank_id: str, shape: Shape, attrs: Mapping[str, Any] | None
    ) -> Self:
        """Return the store of a bank, made if it is missing; it keeps its blocks and `attrs`.

        Any number of processes may do so at once.  A damaged description is written again: every
        block says by itself whose it is.
        """
        blobs = open_bytes(root, bank_id)
        blobs.discard_abandoned()
        for attempt in range(ATTEMPTS):
            try:
                store = cls.open(root, bank_id)
                break
            except DamagedDescriptionError:
                # Another process may have written it since; only what is still damaged is removed.
                if attempt > 0:
                    blobs.remove(DOCUMENT)
                if not blobs.holds(DOCUMENT):
                    _describe(blobs, shape, attrs or {})
        else:
            store = cls.open(root, bank_id)
        if store.shape != shape:
            raise StoreError(
                store.location,
                f"a bank of {store.shape}",
                f"{shape}",
                "Delete it or choose another folder of banks",
            )
        return store

    @classmethod
    def open(cls, root: str | Path, bank_id: str) -> Self:
        """Return the store of an existing bank."""
        blobs = open_bytes(root, bank_id)
        with _reading(blobs):
            facts, attrs, array = _opened(blobs)
            if facts["kind"] != cls._of.kind:
                raise StoreError(blobs.location, f"a bank of kind {facts['kind']}", cls._of.kind)
            shape = cast(Shape, cls._of.of(facts))
            if shape.facts != facts:  # as those of another version
                raise ValueError(f"a bank of {facts}")
            wanted = _metadata(shape.grid, shape.chunk_entries, shape.dtype)
            if array.metadata != replace(wanted, attributes=dict(array.attrs)):
                raise ValueError("another array than that of the bank")
        return cls(blobs, shape, attrs)

    @property
    def location(self) -> str:
        """Folder or URL."""
        return self.blobs.location

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        return self.shape.n_kernels

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64, little-endian as stored."""
        return np.dtype(self.shape.dtype).newbyteorder("<")

    @property
    def blocks(self) -> list[OneBlock]:
        """The blocks that the bank must have, and further ones that it has."""
        raise NotImplementedError

    def numbered(self, index: int) -> OneBlock:
        """Return the block of a number, stored or not."""
        raise NotImplementedError

    def missing(self) -> list[OneBlock]:
        """Return the blocks that the bank must have and has not, as the medium has them now."""
        complete = self.stored()
        return [block for block in self.blocks if block.index not in complete]

    def stored(self) -> set[int]:
        """Return the numbers of the complete blocks, as the medium has them now."""
        self._complete.clear()
        for name in self.blobs.names(COMPLETE):
            row, _, column = name.removeprefix(f"{COMPLETE}/").partition("/")
            if row.isdigit() and column.isdigit():
                self._complete.add(int(row) * self.shape.grid[1] + int(column))
        return set(self._complete)

    def holds(self, block: OneBlock) -> bool:
        """Return True if a block is complete."""
        if block.index not in self._complete and self.blobs.has(self._mark(block)):
            self._complete.add(block.index)
        return block.index in self._complete

    def build_time(self) -> BuildTime | None:
        """Return the time to build all blocks; None while some are missing or theirs is damaged."""
        if self.missing():
            return None
        try:
            return sum((self._time(self.numbered(index)) for index in self._complete), NO_TIME)
        except StoreError:
            return None

    def verify(self) -> list[OneBlock]:
        """Read every complete block, and return the damaged ones."""
        bad, whole = [], np.empty(self.shape.block_entries, self.dtype)
        for block in (self.numbered(index) for index in sorted(self.stored())):
            try:
                self._time(block)
                self._get(block, [whole])
            except StoreError:
                bad.append(block)
        return bad

    def invalidate(self, blocks: Iterable[OneBlock]) -> None:
        """Make blocks count as missing, so that they will be built again."""
        for block in blocks:
            self.blobs.remove(self._mark(block))
            self._complete.discard(block.index)

    def drop_damaged(self) -> list[int]:
        """Make damaged blocks count as missing; return their numbers."""
        bad = self.verify()
        self.invalidate(bad)
        return [block.index for block in bad]

    def delete(self) -> None:
        """Remove the bank; even an interrupted removal leaves nothing that opens as a store."""
        self._complete.clear()
        self.blobs.clear()

    def _put(self, block: OneBlock, parts: Sequence[Floating], spent: BuildTime) -> None:
        """Write the values of a block, given in parts, then mark it complete."""
        watch = Stopwatch()
        flat = np.zeros(self.shape.chunk_entries, self.dtype)
        np.concatenate([part.reshape(-1) for part in parts], out=flat[: sum(map(np.size, parts))])
        flat[-TAG:] = self._tag(block)
        (row, column), name = self._place(block), self._chunk(block)
        with self.blobs.writable(name):
            # As a slice it is the chunk itself, of which zarr makes no copy.
            self._array[row : row + 1, column : column + 1] = flat.reshape(1, 1, -1)
        spent += watch.spent()
        numbers = struct.pack("<dd", spent.seconds, spent.cpu_seconds)
        self.blobs.put(self._mark(block), [numbers, crc32c([self._whose(block), numbers])])
        self._complete.add(block.index)

    def _get(self, block: OneBlock, parts: Sequence[Floating]) -> None:
        """Read the values of a block into contiguous arrays of the store's dtype."""
        tag = np.empty(TAG, self.dtype)
        whole = [*parts, self._padding(parts), tag]
        name = self._chunk(block)
        if self.blobs.is_local:
            problem = _read_chunk(Path(self.location) / name, whole)
        else:
            problem = _read_array(self._array, self._place(block), whole, name)
        if not problem and not np.array_equal(tag, self._tag(block)):
            problem = "is that of another bank or place" if tag.any() else "is not complete"
        if problem:
            raise self._damaged(name, block, problem)

    def _damaged(self, name: str, block: OneBlock, problem: str) -> StoreError:
        return StoreError(
            f"{self.location}/{name}",
            f"block {block.index}, which {problem}",
            "a complete block",
            "Repeat the sweep or run 'mkldist bank build' to compute it again",
        )

    def _time(self, block: OneBlock) -> BuildTime:
        """Return the time that a complete block took; raise StoreError if its mark is damaged."""
        mark = self.blobs.get(self._mark(block)) or b""
        numbers, checksum = mark[:-CHECKSUM_BYTES], mark[-CHECKSUM_BYTES:]
        if checksum != crc32c([self._whose(block), numbers]):
            raise self._damaged(self._mark(block), block, "has a damaged mark")
        return BuildTime(*struct.unpack("<dd", numbers))

    def _place(self, block: OneBlock) -> tuple[int, int]:
        return divmod(block.index, self.shape.grid[1])

    def _chunk(self, block: OneBlock) -> str:
        """Return the name of a block's chunk, which the specification of zarr determines."""
        row, column = self._place(block)
        return f"c/{row}/{column}/0"

    def _mark(self, block: OneBlock) -> str:
        """Return the name of the file that marks a block complete."""
        row, column = self._place(block)
        return f"{COMPLETE}/{row}/{column}"

    def _padding(self, parts: Sequence[Floating]) -> Floating:
        """Return zeros up to the numbers that every block has."""
        return np.zeros(self.shape.block_entries - sum(part.size for part in parts), self.dtype)

    def _whose(self, block: OneBlock) -> bytes:
        return f"{self.blobs.folder} {self.shape.facts} {block.index}".encode()

    def _tag(self, block: OneBlock) -> npt.NDArray[np.float64]:
        """Return the numbers that tell a block from those of other banks and places, (TAG,)."""
        digest = blake2b(self._whose(block), digest_size=3 * TAG).digest()
        numbers = np.frombuffer(digest, np.uint8).reshape(TAG, 3)
        tag: npt.NDArray[np.float64] = numbers @ np.array([1.0, 2.0**8, 2.0**16])
        return tag

    def __getstate__(self) -> dict[str, Any]:
        """Leave the array of zarr behind, which another process opens by itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_array"}

    @cached_property
    def _array(self) -> zarr.Array[Any]:
        with _reading(self.blobs):
            return _opened(self.blobs)[2]


@dataclass(frozen=True, eq=False)
class GramStore(StoredBank[BankShape, Block]):
    """A bank of Gram matrices; make it by :meth:`create` or :meth:`open`."""

    _of = BankShape

    @classmethod
    def create(
        cls,
        root: str | Path,
        bank_id: str,
        n_kernels: int,
        layout: TileLayout,
        dtype: npt.DTypeLike,
        attrs: Mapping[str, Any] | None = None,
    ) -> GramStore:
        """Return the store of a bank, made if it is missing, see :meth:`described`."""
        shape = BankShape(n_kernels, layout, np.dtype(dtype).name)
        return cls.described(root, bank_id, shape, attrs)

    @property
    def layout(self) -> TileLayout:
        """Points and tiles."""
        return self.shape.layout

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return self.shape.layout.n_points

    @property
    def n_bytes(self) -> int:
        """Bytes of all blocks."""
        return len(self.blocks) * self.shape.chunk_bytes

    @property
    def blocks(self) -> list[Block]:
        """All blocks, those of the same kernels adjacent."""
        return self.shape.blocks

    def numbered(self, index: int) -> Block:
        """Return the block of a number."""
        return self.shape.blocks[index]

    def write(self, block: Block, values: Floating, spent: BuildTime = NO_TIME) -> None:
        """Write a block, then mark it complete.

        `values` (k, t·b²): its values, converted to the store's dtype.
        """
        if values.shape != block.shape:
            raise ValueError(f"found values {values.shape}; expected {block.shape}")
        self._put(block, [values.astype(self.dtype, copy=False)], spent)

    def read(self, block: Block, out: Floating | None = None) -> Floating:
        """Return the values of a complete block.

        `out` (k, t·b²): array to read into, without a copy if it is contiguous and of the store's
        dtype.  Its content is undefined after an error. The result is (k, t·b²).
        """
        if out is not None and out.shape != block.shape:
            raise ValueError(f"found an output array {out.shape}; expected {block.shape}")
        direct = out is not None and out.dtype == self.dtype and out.flags.c_contiguous
        values = out if direct and out is not None else np.empty(block.shape, dtype=self.dtype)
        self._get(block, [values])
        if out is None or direct:
            return values
        out[...] = values
        return out


@dataclass(frozen=True, eq=False)
class FactorStore(StoredBank[FactorShape, FactorBlock]):
    """A bank of thin factors; make it by :meth:`create` or :meth:`open`.

    A piece depends on the kernel, the seed and the pieces before it alone.  Two processes that make
    it write the same, up to the rounding of their linear algebra libraries.  A factor that is to be
    longer goes on from the pieces that are there.
    """

    _of = FactorShape

    @classmethod
    def create(
        cls,
        root: str | Path,
        bank_id: str,
        shape: FactorShape,
        attrs: Mapping[str, Any] | None = None,
    ) -> FactorStore:
        """Return the store of a bank, made if it is missing, see :meth:`described`."""
        return cls.described(root, bank_id, shape, attrs)

    @property
    def n_points(self) -> int:
        """Number n of points."""
        return self.shape.n_points

    @property
    def n_bytes(self) -> int:
        """Bytes of all pieces that are stored."""
        return len(self.stored()) * self.shape.chunk_bytes

    @property
    def blocks(self) -> list[FactorBlock]:
        """The first piece of every kernel, and all further ones that are stored."""
        firsts = (self.block(kernel, 0).index for kernel in range(self.n_kernels))
        return [self.numbered(index) for index in sorted({*firsts, *self.stored()})]

    def block(self, kernel: int, piece: int) -> FactorBlock:
        """Return a piece of the factor of a kernel, stored or not."""
        return self.shape.block(kernel, piece)

    def numbered(self, index: int) -> FactorBlock:
        """Return the piece of a number, stored or not."""
        return self.block(*divmod(index, self.shape.grid[1]))

    def write(self, block: FactorBlock, piece: Piece, spent: BuildTime = NO_TIME) -> None:
        """Write a piece, converted to the store's dtype; see :meth:`GramStore.write`."""
        columns = np.zeros(block.shape, self.dtype)
        columns[: len(piece.columns)] = piece.columns
        pivots = np.full(PIECE, -1, self.dtype)
        pivots[: len(piece.columns)] = piece.pivots
        self._put(block, [columns, pivots], spent)

    def read(self, block: FactorBlock) -> Piece:
        """Return a piece that is stored; errors are those of :meth:`GramStore.read`."""
        columns, pivots = np.empty(block.shape, self.dtype), np.empty(PIECE, self.dtype)
        self._get(block, [columns, pivots])
        count = int(np.count_nonzero(pivots >= 0))
        return Piece(columns[:count], pivots[:count].astype(np.intp))


BankStore: TypeAlias = GramStore | FactorStore


def open_store(root: str | Path, bank_id: str) -> BankStore:
    """Return the store of an existing bank, of Gram matrices or of factors."""
    blobs = open_bytes(root, bank_id)
    with _reading(blobs):
        kind = _opened(blobs)[0]["kind"]
    return (FactorStore if kind == FactorShape.kind else GramStore).open(root, bank_id)


def list_banks(root: str | Path) -> list[str]:
    """Return the ids of the banks below a folder or URL, sorted, damaged ones included."""
    return [name for name in list_folders(root) if name not in (LAPLACIANS, SNAPSHOTS)]


# Description


def _describe(blobs: ByteStore, shape: BankShape | FactorShape, attrs: Mapping[str, Any]) -> None:
    """Write the document of a bank that has none."""
    import zarr
    from zarr.errors import ContainsArrayError

    facts = {**shape.facts, "id": blobs.folder}
    checksum = content_id(facts=facts, attributes=dict(attrs))
    attributes = {**attrs, DESCRIBED: {**facts, "checksum": checksum}}
    with blobs.writable(DOCUMENT), suppress(ContainsArrayError):
        spec = _spec(shape.grid, shape.chunk_entries, shape.dtype)
        zarr.create_array(_zarr_store(blobs), **spec, attributes=attributes)


def _opened(blobs: ByteStore) -> tuple[dict[str, Any], dict[str, Any], zarr.Array[Any]]:
    """Return the facts of a bank's shape, its further attributes, and its array."""
    if blobs.is_local and not blobs.has(DOCUMENT):  # told without the import of zarr
        raise FileNotFoundError(blobs.location)
    import zarr

    array = zarr.open_array(
        _zarr_store(blobs), mode="r+", zarr_format=3, config={"write_empty_chunks": True}
    )
    attrs = dict(array.attrs)
    facts = dict(cast("dict[str, Any]", attrs.pop(DESCRIBED)))
    if facts.pop("checksum") != content_id(facts=facts, attributes=attrs):
        raise ValueError("attributes that fail their checksum")
    if facts.pop("id") != blobs.folder:
        raise ValueError("the description of another bank")
    return facts, attrs, array


def _spec(grid: tuple[int, int], n_entries: int, dtype: str) -> dict[str, Any]:
    """Return the arguments of ``zarr.create_array`` for a bank."""
    return {
        "shape": (*grid, n_entries),
        "chunks": (1, 1, n_entries),
        "dtype": dtype,
        "fill_value": 0.0,
        "filters": None,
        "serializer": {"name": "bytes", "configuration": {"endian": "little"}},
        "compressors": [{"name": "crc32c"}],
        "dimension_names": ["row", "column", "number"],
    }


@lru_cache(maxsize=64)
def _metadata(grid: tuple[int, int], n_entries: int, dtype: str) -> Any:
    """Return what zarr makes of the description of an array without attributes."""
    import zarr
    from zarr.storage import MemoryStore

    return zarr.create_array(MemoryStore(), **_spec(grid, n_entries, dtype)).metadata


@contextmanager
def _reading(blobs: ByteStore) -> Iterator[None]:
    """Turn errors of zarr into those of a damaged or missing document, or of a medium."""
    where = f"{blobs.location}/{DOCUMENT}"
    with readable(where):
        try:
            yield
        except StoreError:
            raise
        except _DAMAGE as error:
            found = str(error) or type(error).__name__
            found = "no such file" if isinstance(error, NO_FILE) else found
            hint = f"Repeat the sweep, which mends it, or delete {blobs.location} to build it again"
            raise DamagedDescriptionError(
                where, found, "the description of a bank", hint
            ) from error


def _zarr_store(blobs: ByteStore) -> Any:
    """Return the store of zarr for a folder or URL."""
    from zarr.storage import FsspecStore

    if blobs.is_local:
        return _local_store()(blobs.location)
    blobs.file_system()  # which names what is wrong with the URL
    return FsspecStore.from_url(blobs.location)


@cache
def _local_store() -> Any:
    """Return zarr's store of a folder, whose temporary files name the process that writes them."""
    import asyncio

    from zarr.storage import LocalStore

    class LocalFiles(LocalStore):
        async def set(self, key: str, value: Any) -> None:
            parts, through = [memoryview(value.as_numpy_array())], self.root.parent / TEMPORARY
            await asyncio.to_thread(
                write_file, self.root / key, parts, through=through, durable=False
            )

    return LocalFiles


# Chunks


def _read_array(
    array: zarr.Array[Any], place: tuple[int, int], parts: Sequence[Floating], name: str
) -> str:
    """Read a chunk by zarr into arrays, and return its damage in words, or ``""``."""
    with readable(f"{array.store}/{name}"):
        try:
            flat = np.asarray(array[place])
        except _DAMAGE:
            return "fails its checksum"
    start = 0
    for part in parts:
        part.reshape(-1)[:] = flat[start : start + part.size]
        start += part.size
    return ""


def _read_chunk(path: Path, parts: Sequence[Floating]) -> str:
    """Read the chunk of a local file into arrays, and return its damage in words, or ``""``.

    The values of a chunk that is not compressed begin its file, and their crc32c ends it.  zarr
    would copy them thrice: a pass over a bank takes it more than twice as long.
    """
    views = [part.reshape(-1).view(np.uint8) for part in parts]
    views.append(np.zeros(CHECKSUM_BYTES, np.uint8))
    expected = sum(view.nbytes for view in views)
    with readable(path):
        try:
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                if size != expected or not all(_fill(file, view) for view in views):
                    return f"has {size} bytes instead of {expected}"
        except NO_FILE:
            return "is not complete"
    return "" if views.pop().tobytes() == crc32c(views) else "fails its checksum"


def _fill(file: FileIO, view: npt.NDArray[np.uint8]) -> bool:
    """Read until an array is full; return False if the file ends before."""
    start = 0
    while start < len(view) and (count := file.readinto(view[start:].data)):
        start += count
    return start == len(view)
