"""The Gram store: a bank of Gram matrices on disk or behind a URL, block by block.

A block is a few kernels × a few tiles, about 8 MiB, one chunk of a zarr array.  It is written
whole with its checksum, flushed to the device, and only then marked complete.  A block that is not
marked, is cut short or has a flipped bit is never returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floating
from mkldist.errors import StoreError, UnreadableError
from mkldist.gram import metadata
from mkldist.gram.array_documents import GROUP, described
from mkldist.gram.blob_places import LAPLACIANS, SNAPSHOTS, list_folders, open_blobs
from mkldist.gram.blobs import Blobs
from mkldist.gram.build_time import N_BYTES, NO_TIME, BuildTime, Stopwatch
from mkldist.gram.chunks import (
    Block,
    ChunkParts,
    blocks_of,
    chunk_bytes,
    chunk_name,
    mark_name,
    seconds_name,
)
from mkldist.gram.layout import TileLayout
from mkldist.gram.metadata import BankShape

__all__ = ["Block", "GramStore", "list_banks"]

MARK = b"\x01"


@dataclass(frozen=True, eq=False)
class GramStore:
    """One bank of Gram matrices; make it by :meth:`create` or :meth:`open`.

    Parameters
    ----------
    blobs : Blobs
        Its files.
    shape : BankShape
        Kernels, layout and dtype.
    attrs : mapping
        Further facts recorded at creation, such as the fingerprint of the kernels.
    """

    blobs: Blobs
    shape: BankShape
    attrs: Mapping[str, Any]
    _marked: set[int] = field(default_factory=set, repr=False)

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
        """Return the store of a bank, made if it is missing.

        Any number of processes may create it at once: all write the same description, and the
        `attrs` of the last one stay.  An existing store keeps its `attrs` and its blocks.  If its
        description is damaged in one of three documents, it is written again; every block has its
        own checksum.

        Parameters
        ----------
        root : str or Path
            Folder or fsspec URL of all banks.
        bank_id : str
            Name of this bank below `root`.
        n_kernels : int
            Number M of kernels.
        layout : TileLayout
            Points and tiles.
        dtype : dtype-like
            float32 or float64.
        attrs : mapping, optional
            JSON-serialisable facts to keep.

        Raises
        ------
        StoreError
            If another bank or something else has this name.
        OutputError
            If `root` cannot be written.
        """
        blobs = open_blobs(root, bank_id)
        wanted = BankShape(n_kernels, layout, np.dtype(dtype).name)
        if wanted.dtype not in metadata.DTYPES or n_kernels < 1 or layout.n_points < 1:
            raise ValueError(f"a bank of {wanted}; expected kernels and points of float32 or 64")
        documents = metadata.documents(wanted, attrs or {})

        def is_mostly() -> bool:
            return metadata.is_mostly({name: blobs.get(name) for name in documents}, wanted)

        store = described(blobs, documents, lambda: cls.open(root, bank_id), is_mostly)
        if store.shape != wanted:
            raise StoreError(
                store.location,
                f"a bank of {store.shape}",
                f"{wanted}",
                "Delete it or choose another folder of banks",
            )
        return store

    @classmethod
    def open(cls, root: str | Path, bank_id: str) -> GramStore:
        """Return the store of an existing bank.

        Raises
        ------
        StoreError
            If it is missing, cut short or of another layout.
        """
        blobs = open_blobs(root, bank_id)
        names = (GROUP, metadata.GRAM, metadata.COMPLETE)
        content = {name: blobs.get(name) for name in names}
        shape, attrs = metadata.parsed(blobs.location, content)
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
    def n_points(self) -> int:
        """Number n of points."""
        return self.shape.layout.n_points

    @property
    def layout(self) -> TileLayout:
        """Points and tiles."""
        return self.shape.layout

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64, little-endian as stored."""
        return np.dtype(self.shape.dtype).newbyteorder("<")

    @property
    def n_bytes(self) -> int:
        """Bytes of all blocks on disk."""
        return len(self.blocks) * chunk_bytes(self.shape)

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks, those of the same kernels adjacent."""
        return blocks_of(self.shape)

    def missing(self) -> list[Block]:
        """Return the blocks that are not marked complete, as the medium has them now."""
        self._look_at_marks()
        return [block for block in self.blocks if block.index not in self._marked]

    def holds(self, block: Block) -> bool:
        """Return True if a block is marked complete."""
        if block.index not in self._marked:
            if self.blobs.get(mark_name(block, self.shape)) != MARK:
                return False
            self._marked.add(block.index)
        return True

    def build_time(self) -> BuildTime | None:
        """Return the time to build all blocks; None while some are missing or theirs is unknown."""
        contents = [self.blobs.get(seconds_name(block, self.shape)) for block in self.blocks]
        times = [BuildTime.decoded(content) for content in contents]
        known = [time for time in times if time is not None]
        return sum(known, NO_TIME) if len(known) == len(times) else None

    def write(self, block: Block, values: Floating, spent: BuildTime = NO_TIME) -> None:
        """Write a block, make it durable, then mark it complete.

        Parameters
        ----------
        block : Block
            One of :attr:`blocks`.  If several processes write it at once, one whole block stays.
        values : (k, t·b²) float array
            Its values, converted to the store's dtype.
        spent : BuildTime
            Time to compute the values; that to write them is added.

        Raises
        ------
        OutputError
            If the medium is full, read-only or refuses.  The block then stays as it was.
        """
        if values.shape != block.shape:
            raise ValueError(f"found values {values.shape}; expected {block.shape}")
        watch = Stopwatch()
        parts = ChunkParts(np.ascontiguousarray(values, dtype=self.dtype), self.shape)
        parts.seal()
        self.blobs.put(chunk_name(block, self.shape), parts.views)
        # Times and mark need no flush: without the mark the block is only built once more.
        self._put_seconds(block, spent + watch.spent())
        self.blobs.put(mark_name(block, self.shape), [MARK], durable=False)
        self._marked.add(block.index)

    def read(self, block: Block, out: Floating | None = None) -> Floating:
        """Return the values of a complete block.

        Parameters
        ----------
        block : Block
            One of :attr:`blocks`.
        out : (k, t·b²) float array, optional
            Array to read into, without a copy if it is contiguous and of the store's dtype.  Its
            content is undefined after an error.

        Returns
        -------
        (k, t·b²) float32 or float64

        Raises
        ------
        StoreError
            Naming the block, if it is incomplete, missing, cut short, or fails its checksum.
        """
        if out is not None and out.shape != block.shape:
            raise ValueError(f"found an output array {out.shape}; expected {block.shape}")
        direct = out is not None and out.dtype == self.dtype and out.flags.c_contiguous
        body = out if out is not None and direct else np.empty(block.shape, dtype=self.dtype)
        problem = self._read_into(block, body)
        if problem:
            raise self._damaged(block, problem)
        if out is None or direct:
            return body
        np.copyto(out, body, casting="same_kind")
        return out

    def verify(self) -> list[Block]:
        """Read every block that is marked complete, and return the damaged ones.

        A block whose mark is there and does not fit, or cannot be read, is one of them.
        """
        buffer = np.empty(self.blocks[0].shape, dtype=self.dtype)
        bad = self._look_at_marks(read=self._mark_or_nothing)
        for block in self.blocks:
            if block.index not in self._marked:
                continue
            try:
                self.read(block, out=buffer[: block.shape[0]])
            except StoreError:
                bad.append(block)
        return sorted(bad, key=lambda block: block.index)

    def damaged_times(self) -> list[str]:
        """Return the names of damaged files of build times; missing ones count as none."""
        described = [metadata.seconds_document(self.shape, checked=c) for c in (True, False)]
        document = self.blobs.get(metadata.SECONDS)
        bad = [metadata.SECONDS] if document not in (None, *described) else []
        for block in self.blocks:
            name = seconds_name(block, self.shape)
            content = self.blobs.get(name)
            if content is not None and BuildTime.decoded(content) is None:
                bad.append(name)
        return bad

    def remove_damaged_times(self) -> int:
        """Remove damaged build times, which are then unknown, and return the number of files.

        What describes them is written again.
        """
        bad = self.damaged_times()
        for name in bad:
            self.blobs.remove(name)
        if metadata.SECONDS in bad:
            times = (self.blobs.get(seconds_name(block, self.shape)) for block in self.blocks)
            checked = all(content is None or len(content) > N_BYTES for content in times)
            document = metadata.seconds_document(self.shape, checked=checked)
            self.blobs.put(metadata.SECONDS, [document], durable=False)
        return len(bad)

    def invalidate(self, blocks: Iterable[Block]) -> None:
        """Drop the marks of `blocks`, so that they are missing and will be built again."""
        for block in blocks:
            self.blobs.remove(mark_name(block, self.shape))
            self._marked.discard(block.index)

    def drop_damaged(self) -> list[int]:
        """Drop the marks of damaged blocks; return their indices."""
        bad = self.verify()
        self.invalidate(bad)
        return [block.index for block in bad]

    def delete(self) -> None:
        """Remove the bank; even an interrupted removal leaves nothing that opens as a store."""
        self._marked.clear()
        self.blobs.clear()

    def _mark_or_nothing(self, name: str) -> bytes | None:
        """Return the content of a mark, empty if it cannot be read."""
        try:
            return self.blobs.get(name)
        except UnreadableError:
            return b""

    def _look_at_marks(self, read: Callable[[str], bytes | None] | None = None) -> list[Block]:
        """Note which blocks the medium has marked now; return those with a mark that does not fit.

        A mark that has vanished meanwhile counts as none.
        """
        read = read or self.blobs.get
        self._marked.clear()
        by_name = {mark_name(block, self.shape): block for block in self.blocks}
        unfit = []
        for name in self.blobs.names("complete"):
            if name not in by_name:
                continue
            content = read(name)
            if content == MARK:
                self._marked.add(by_name[name].index)
            elif content is not None:
                unfit.append(by_name[name])
        return unfit

    def _read_into(self, block: Block, body: Floating) -> str:
        """Read a block into a contiguous array, and return its damage in words, or ``""``."""
        if not self.holds(block):
            return "is not complete"
        parts = ChunkParts(body, self.shape)
        expected = chunk_bytes(self.shape)
        size = self.blobs.read_into(chunk_name(block, self.shape), parts.views)
        if size is None:
            return "is marked complete but has no file"
        if size != expected:
            return f"has {size} bytes instead of {expected}"
        return "" if parts.is_sound else "fails its checksum"

    def _put_seconds(self, block: Block, spent: BuildTime) -> None:
        """Write the times to build a block, and before those of the first what describes them."""
        found = self.blobs.get(metadata.SECONDS)
        plain = found == metadata.seconds_document(self.shape, checked=False)
        if not plain and (block.index == 0 or found is None):
            document = metadata.seconds_document(self.shape)
            self.blobs.put(metadata.SECONDS, [document], durable=False)
        # The times of an old bank stay as they are described.
        content = spent.encoded[:N_BYTES] if plain else spent.encoded
        self.blobs.put(seconds_name(block, self.shape), [content], durable=False)

    def _damaged(self, block: Block, problem: str) -> StoreError:
        return StoreError(
            f"{self.location}/{chunk_name(block, self.shape)}",
            f"block {block.index}, which {problem}",
            "a complete block",
            "Repeat the sweep or run 'mkldist bank build' to compute it again",
        )


def list_banks(root: str | Path) -> list[str]:
    """Return the ids of the banks below a folder or URL, sorted, damaged ones included."""
    return [name for name in list_folders(root) if name not in (LAPLACIANS, SNAPSHOTS)]
