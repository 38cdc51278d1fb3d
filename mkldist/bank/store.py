"""Banks on disk or behind a URL, block by block, each an array of the zarr library.

A chunk of the array holds a block: its values, padding, the wall and the processor time that they
took, and four whole numbers, its tag, a hash of whose and which block and times these are.  zarr's
crc32c codec guards all of them, so a block of another bank or place is as damaged as one with a
flipped bit.  Values are not compressed: codecs save a sixth of a Gram matrix and cost most of the
reading speed.

A block is complete when its file is there.  Files are renamed into place, so that readers see all
or nothing, but not flushed to the device: what a power cut takes of them fails its checksum, and
is built again.

The values of a block of Gram matrices are k kernels × t·b² entries in the layout of
:mod:`mkldist.bank.bank`.  Those of a piece of a factor are its columns, one a row, then their
pivots, -1 where there is none.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import LAYOUT_VERSION, TileLayout, block_kernels
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
from mkldist.core.checksums import CHECKSUM_BYTES, content_id, crc32c
from mkldist.core.durable import write_file
from mkldist.errors import StoreError
from mkldist.optim.pivoted_cholesky import PIECE

if TYPE_CHECKING:
    import zarr


CHUNK_BYTES = 8 * 2**20
KERNELS_PER_CHUNK = 16
TIMES, TAG = 2, 4  # numbers that end a block; those of the tag are below 2**24, exact in float32
FACTORS_VERSION = 3  # raised when the same kernels and seed would give other pieces


@dataclass(frozen=True)
class Block:
    """A few kernels × a few tiles: the unit of building, writing, checking and reading."""

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
class BankShape:
    """Facts that determine the place of every number of a bank."""

    n_kernels: int
    layout: TileLayout  # points and, of Gram matrices, tiles
    dtype: str
    factored: bool = False
    """True for a bank of thin factors, of which each piece is a block; block ``m * grid[1] + i`` is
    piece i of the factor of kernel m."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> BankShape:
        """Return the shape of which these are the facts."""
        n_points, factored = facts["n_points"], facts["kind"] == "factors"
        layout = TileLayout.for_points(n_points) if factored else TileLayout(n_points, facts["cut"])
        return cls(facts["n_kernels"], layout, facts["dtype"], factored)

    @property
    def facts(self) -> dict[str, Any]:
        """The shape as JSON has it."""
        return {
            "kind": "factors" if self.factored else "gram",
            "version": FACTORS_VERSION if self.factored else LAYOUT_VERSION,
            "n_kernels": self.n_kernels,
            "n_points": self.layout.n_points,
            "cut": PIECE if self.factored else self.layout.tile,
            "dtype": self.dtype,
        }

    @cached_property
    def chunk(self) -> tuple[int, int]:
        """Kernels and tiles of one block of Gram matrices, of about 8 MiB.

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
        """Rows and columns of blocks: along the kernels, and along the tiles or the pieces."""
        if self.factored:
            return self.n_kernels, -(-self.layout.n_points // PIECE)
        kernels, tiles = self.chunk
        return math.ceil(self.n_kernels / kernels), self.layout.n_tiles // tiles

    @property
    def block_entries(self) -> int:
        """Numbers of a block, its padding included: entries, or columns and their pivots."""
        if self.factored:
            return PIECE * (self.layout.n_points + 1)
        kernels, tiles = self.chunk
        return kernels * tiles * self.layout.tile_entries

    @property
    def chunk_entries(self) -> int:
        """Numbers of a block as it is stored."""
        return self.block_entries + TIMES + TAG

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a block as it is stored."""
        return self.chunk_entries * np.dtype(self.dtype).itemsize + CHECKSUM_BYTES

    @property
    def needed(self) -> range:
        """Numbers of the blocks that the bank must have: all, or the first piece of each factor."""
        rows, columns = self.grid
        return range(0, rows * columns, columns if self.factored else 1)

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks of Gram matrices, those of the same kernels adjacent."""
        (k, t), entries = self.chunk, self.layout.tile_entries
        blocks: list[Block] = []
        for start in range(0, self.n_kernels, k):
            kernels = slice(start, min(start + k, self.n_kernels))
            for tile in range(0, self.layout.n_tiles, t):
                where = slice(tile * entries, (tile + t) * entries)
                blocks.append(Block(len(blocks), kernels, slice(tile, tile + t), where))
        return blocks

    @property
    def kernel_bytes(self) -> int:
        """Bytes of one Gram matrix in memory."""
        return self.layout.n_entries * np.dtype(self.dtype).itemsize

    @property
    def least_shard_bytes(self) -> int:
        """Bytes of the smallest shard: those of one block of a pass."""
        return min(block_kernels(self.layout), self.n_kernels) * self.kernel_bytes

    def shards(self, most_bytes: int, at_least: int = 1) -> tuple[slice, ...]:
        """Cut the kernels into shards of whole blocks of a pass, of about the same size.

        One block is a shard even if it is larger than `most_bytes`; there are `at_least` so many
        shards, such as one of each worker, where there are so many blocks.
        """
        size = block_kernels(self.layout)
        n_blocks = -(-self.n_kernels // size)
        blocks_of_each = max(1, most_bytes // (size * self.kernel_bytes))
        n_shards = max(-(-n_blocks // blocks_of_each), min(at_least, n_blocks))
        parts = np.array_split(np.arange(n_blocks), n_shards)
        return tuple(
            slice(int(part[0]) * size, min((int(part[-1]) + 1) * size, self.n_kernels))
            for part in parts
        )


DESCRIBED, DOCUMENT = "bank", "zarr.json"
ATTEMPTS = 3  # to describe a bank that other processes describe too
# What zarr raises for a document that is missing, cut short or altered, or for a damaged chunk.
_DAMAGE = (*NO_FILE, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class DamagedDescriptionError(StoreError):
    """The description of a bank is missing, cut short or altered, and can be written again."""


@dataclass(frozen=True)
class BuildTime:
    """Time to compute and store blocks, of all tasks together."""

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
class BankStore:
    """Numbered blocks of a bank; make it by :meth:`create` or :meth:`open`."""

    blobs: ByteStore
    shape: BankShape
    attrs: Mapping[str, Any]
    _complete: set[int] = field(default_factory=set, repr=False)

    @classmethod
    def create(
        cls,
        root: str | Path,
        bank_id: str,
        shape: BankShape,
        attrs: Mapping[str, Any] | None = None,
    ) -> BankStore:
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
    def open(cls, root: str | Path, bank_id: str) -> BankStore:
        """Return the store of an existing bank."""
        blobs = open_bytes(root, bank_id)
        with _reading(blobs):
            facts, attrs, array = _opened(blobs)
            shape = BankShape.of(facts)
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
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64, little-endian as stored."""
        return np.dtype(self.shape.dtype).newbyteorder("<")

    @property
    def numbers(self) -> list[int]:
        """Numbers of the blocks that the bank must have, and of further pieces that it has."""
        needed = self.shape.needed
        return sorted({*needed, *self.stored()}) if self.shape.factored else [*needed]

    @property
    def n_bytes(self) -> int:
        """Bytes of these blocks."""
        return len(self.numbers) * self.shape.chunk_bytes

    def missing(self) -> list[int]:
        """Return the blocks that the bank must have and has not, as the medium has them now."""
        complete = self.stored()
        return [index for index in self.shape.needed if index not in complete]

    def stored(self) -> set[int]:
        """Return the complete blocks, as the medium has them now."""
        self._complete.clear()
        for name in self.blobs.names("c"):
            if place := re.fullmatch(r"c/(\d+)/(\d+)/0", name):
                self._complete.add(int(place[1]) * self.shape.grid[1] + int(place[2]))
        return set(self._complete)

    def holds(self, index: int) -> bool:
        """Return True if a block is complete."""
        if index not in self._complete and self.blobs.has(self._chunk(index)):
            self._complete.add(index)
        return index in self._complete

    def build_time(self) -> BuildTime | None:
        """Return the time to build all blocks; None while some are missing or theirs is damaged."""
        if self.missing():
            return None
        n_bytes, total = (TIMES + TAG) * self.dtype.itemsize + CHECKSUM_BYTES, NO_TIME
        for index in self._complete:
            content = self.blobs.get(self._chunk(index), last=n_bytes) or b""
            if len(content) != n_bytes:
                return None
            end = np.frombuffer(content[:-CHECKSUM_BYTES], self.dtype)
            if not np.array_equal(end, self._end(index, end[:TIMES])):
                return None
            total += BuildTime(*end[:TIMES].tolist())
        return total

    def verify(self) -> list[int]:
        """Read every complete block, and return the damaged ones."""
        bad, whole = [], np.empty(self.shape.block_entries, self.dtype)
        for index in sorted(self.stored()):
            try:
                self.read(index, whole)
            except StoreError:
                bad.append(index)
        return bad

    def remove(self, indices: Iterable[int]) -> None:
        """Remove blocks, which are missing then and will be built again."""
        for index in indices:
            self.blobs.remove(self._chunk(index))
            self._complete.discard(index)

    def delete(self) -> None:
        """Remove the bank; even an interrupted removal leaves nothing that opens as a store."""
        self._complete.clear()
        self.blobs.clear()

    def write(self, index: int, *parts: Floating, spent: BuildTime = NO_TIME) -> None:
        """Write the values of a block, given in parts and converted to the store's dtype."""
        flat, size = np.zeros(self.shape.chunk_entries, self.dtype), sum(map(np.size, parts))
        np.concatenate([part.reshape(-1) for part in parts], out=flat[:size])
        flat[-TIMES - TAG :] = self._end(index, (spent.seconds, spent.cpu_seconds))
        (row, column), name = self._place(index), self._chunk(index)
        with self.blobs.writable(name):
            # As a slice it is the chunk itself, of which zarr makes no copy.
            self._array[row : row + 1, column : column + 1] = flat.reshape(1, 1, -1)
        self._complete.add(index)

    def read(self, index: int, *parts: Floating) -> None:
        """Read the first values of a complete block into contiguous arrays of the store's dtype.

        Their content is undefined after an error.
        """
        padding = self.shape.block_entries - sum(part.size for part in parts)
        end = np.empty(TIMES + TAG, self.dtype)
        whole, name = [*parts, np.empty(padding, self.dtype), end], self._chunk(index)
        if self.blobs.is_local:
            problem = _read_chunk(Path(self.location) / name, whole)
        else:
            problem = _read_array(self._array, self._place(index), whole, name)
        if not problem and not np.array_equal(end, self._end(index, end[:TIMES])):
            problem = "is that of another bank or place" if end.any() else "is not complete"
        if problem:
            raise StoreError(
                f"{self.location}/{name}",
                f"block {index}, which {problem}",
                "a complete block",
                "Repeat the sweep, which computes it again",
            )

    def _place(self, index: int) -> tuple[int, int]:
        return divmod(index, self.shape.grid[1])

    def _chunk(self, index: int) -> str:
        """Return the name of a block's chunk, which the specification of zarr determines."""
        row, column = self._place(index)
        return f"c/{row}/{column}/0"

    def _end(self, index: int, times: npt.ArrayLike) -> Floating:
        """Return the numbers that end a block: its times, and a hash of whose they are."""
        numbers = np.asarray(times, self.dtype)
        whose = f"{self.blobs.folder} {self.shape.facts} {index}".encode()
        digest = blake2b(whose + numbers.tobytes(), digest_size=3 * TAG).digest()
        tag = np.frombuffer(digest, np.uint8).reshape(TAG, 3) @ np.array([1.0, 2.0**8, 2.0**16])
        return np.concatenate([numbers, tag.astype(self.dtype)])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the array of zarr behind, which another process opens by itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_array"}

    @cached_property
    def _array(self) -> zarr.Array[Any]:
        with _reading(self.blobs):
            return _opened(self.blobs)[2]


def list_banks(root: str | Path) -> list[str]:
    """Return the ids of the banks below a folder or URL, sorted, damaged ones included."""
    return [name for name in list_folders(root) if name not in (LAPLACIANS, SNAPSHOTS)]


# Description


def _describe(blobs: ByteStore, shape: BankShape, attrs: Mapping[str, Any]) -> None:
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
