"""The store of factors: pieces of the thin factors of a bank's kernels, on disk or behind a URL.

A piece is some successive columns of the factor of one kernel, one chunk of a zarr array.  It is
written whole with its checksum, flushed to the device, and only then marked by its pivots.  A piece
that is written again loses its mark first.  A piece that is not marked, is cut short or has a
flipped bit is never returned.

A piece depends on the kernel, the seed and the pieces before it alone.  Two processes that make it
write the same, up to the rounding of their linear algebra libraries.  A factor that is to be longer
goes on from the pieces that are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.checksums import CHECKSUM_BYTES, crc32c
from mkldist.errors import StoreError
from mkldist.gram import factor_documents
from mkldist.gram.array_documents import GROUP, described
from mkldist.gram.blob_places import open_blobs
from mkldist.gram.blobs import Blobs
from mkldist.gram.build_time import NO_TIME, BuildTime, Stopwatch
from mkldist.gram.factor_documents import FactorShape
from mkldist.optim.pivoted_cholesky import PIECE, Piece

ENOUGH = 2  # of four documents that are whole: the others are damaged, and not those of others

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class FactorBlock:
    """A piece of the factor of one kernel: the unit of making, writing, checking and reading.

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


@dataclass(frozen=True, eq=False)
class FactorStore:
    """One bank of factors; make it by :meth:`create` or :meth:`open`.

    Parameters
    ----------
    blobs : Blobs
        Its files.
    shape : FactorShape
        Kernels, points and dtype.
    attrs : mapping
        Further facts recorded at creation.
    """

    blobs: Blobs
    shape: FactorShape
    attrs: Mapping[str, Any]

    @classmethod
    def create(
        cls,
        root: str | Path,
        bank_id: str,
        shape: FactorShape,
        attrs: Mapping[str, Any] | None = None,
    ) -> FactorStore:
        """Return the store of a bank, made if it is missing; it keeps its pieces and `attrs`.

        Any number of processes may create it at once.  A damaged description is written again,
        because every piece has its own checksum.

        Parameters
        ----------
        root : str or Path
            Folder or fsspec URL of all banks.
        bank_id : str
            Name of this bank below `root`.
        shape : FactorShape
            Kernels, points and dtype.
        attrs : mapping, optional
            JSON-serialisable facts to keep.

        Raises
        ------
        StoreError
            If another bank or something else has this name.
        OutputError
            If `root` cannot be written.
        """
        blobs, documents = open_blobs(root, bank_id), factor_documents.documents(shape, attrs or {})

        def is_mostly() -> bool:
            return sum(blobs.get(name) == whole for name, whole in documents.items()) >= ENOUGH

        store = described(blobs, documents, lambda: cls.open(root, bank_id), is_mostly)
        if store.shape != shape:
            raise StoreError(
                store.location,
                f"factors of {store.shape}",
                f"{shape}",
                "Delete it or choose another folder of banks",
            )
        return store

    @classmethod
    def open(cls, root: str | Path, bank_id: str) -> FactorStore:
        """Return the store of an existing bank.

        Raises
        ------
        StoreError
            If it is missing, cut short or of another layout.
        """
        blobs = open_blobs(root, bank_id)
        names = (GROUP, factor_documents.FACTORS, factor_documents.PIVOTS, factor_documents.SECONDS)
        content = {name: blobs.get(name) for name in names}
        shape, attrs = factor_documents.parsed(blobs.location, content)
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
        return self.shape.n_points

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float32 or float64, little-endian as stored."""
        return np.dtype(self.shape.dtype).newbyteorder("<")

    @property
    def n_bytes(self) -> int:
        """Bytes of the columns of all pieces that are stored."""
        return len(self._stored()) * self.shape.piece_bytes

    @property
    def blocks(self) -> list[FactorBlock]:
        """The first piece of every kernel, and all further ones that are stored."""
        firsts = (self.block(kernel, 0).index for kernel in range(self.n_kernels))
        return [self.numbered(index) for index in sorted({*firsts, *self._stored()})]

    def block(self, kernel: int, piece: int) -> FactorBlock:
        """Return a piece of the factor of a kernel, stored or not."""
        index = kernel * self.shape.n_pieces + piece
        return FactorBlock(index, kernel, piece, (PIECE, self.n_points))

    def numbered(self, index: int) -> FactorBlock:
        """Return the piece of a number, stored or not."""
        return self.block(*divmod(index, self.shape.n_pieces))

    def missing(self) -> list[FactorBlock]:
        """Return the first pieces that are not stored, as the medium has them now."""
        stored = self._stored()
        firsts = (self.block(kernel, 0) for kernel in range(self.n_kernels))
        return [block for block in firsts if block.index not in stored]

    def build_time(self) -> BuildTime | None:
        """Return the time to make all pieces that are stored; None if some time is unknown."""
        times = [self._seconds(self.numbered(index)) for index in self._stored()]
        known = [time for time in times if time is not None]
        return sum(known, NO_TIME) if known and len(known) == len(times) else None

    def write(self, block: FactorBlock, piece: Piece, spent: BuildTime = NO_TIME) -> None:
        """Write a piece, make it durable, then mark it by its pivots.

        Parameters
        ----------
        block : FactorBlock
            Its place.
        piece : Piece
            The columns, converted to the store's dtype, and their pivots.
        spent : BuildTime
            Time to make the piece; that to write it is added.

        Raises
        ------
        OutputError
            If the medium is full, read-only or refuses.  The piece then counts as missing, or stays
            as it was.
        """
        watch = Stopwatch()
        columns = np.ascontiguousarray(piece.columns, dtype=self.dtype)
        padding = np.zeros((PIECE - len(columns)) * columns.itemsize * self.n_points, np.uint8)
        self.blobs.remove(_mark(block))  # other columns may be rounded, and pivoted, differently
        self._put(_name("factors", block), [_bytes(columns), padding], durable=True)
        self.blobs.put(_name("seconds", block), [(spent + watch.spent()).encoded], durable=False)
        pivots = np.full(PIECE, -1, dtype="<i8")
        pivots[: len(columns)] = piece.pivots
        self._put(_mark(block), [_bytes(pivots)], durable=False)

    def read(self, block: FactorBlock) -> Piece:
        """Return a piece that is stored.

        Raises
        ------
        StoreError
            If it is missing, cut short, or fails its checksum.
        mkldist.errors.UnreadableError
            If the medium does not answer.
        """
        pivots = np.empty(PIECE, dtype="<i8")
        self._read_into(_mark(block), block, _bytes(pivots))
        columns = np.empty((PIECE, self.n_points), dtype=self.dtype)
        self._read_into(_name("factors", block), block, _bytes(columns))
        count = int(np.count_nonzero(pivots >= 0))
        return Piece(columns[:count], pivots[:count].astype(np.intp))

    def verify(self) -> list[FactorBlock]:
        """Read every piece that is stored, and return the damaged ones."""
        bad = []
        for index in sorted(self._stored()):
            block = self.numbered(index)
            try:
                self.read(block)
            except StoreError:
                bad.append(block)
        return bad

    def damaged_times(self) -> list[str]:
        """Return the names of damaged files of build times; missing ones count as none."""
        blocks = (self.numbered(index) for index in sorted(self._stored()))
        files = ((name := _name("seconds", block), self.blobs.get(name)) for block in blocks)
        return [name for name, content in files
                if content is not None and BuildTime.decoded(content) is None]  # fmt: skip

    def remove_damaged_times(self) -> int:
        """Remove damaged build times, which are then unknown, and return the number of files."""
        bad = self.damaged_times()
        for name in bad:
            self.blobs.remove(name)
        return len(bad)

    def drop_damaged(self) -> list[int]:
        """Drop the marks of damaged pieces, which will be made again; return their numbers."""
        bad = self.verify()
        for block in bad:
            self.blobs.remove(_mark(block))
        return [block.index for block in bad]

    def delete(self) -> None:
        """Remove the bank; even an interrupted removal leaves nothing that opens as a store."""
        self.blobs.clear()

    def _stored(self) -> set[int]:
        """Return the numbers of the pieces that have a mark."""
        parts = (name.split("/") for name in self.blobs.names("pivots"))
        keys = (part[-2:] for part in parts if len(part) == 4)
        return {self.block(int(kernel), int(piece)).index for kernel, piece in keys}

    def _seconds(self, block: FactorBlock) -> BuildTime | None:
        return BuildTime.decoded(self.blobs.get(_name("seconds", block)))

    def _put(self, name: str, parts: list[Bytes], *, durable: bool) -> None:
        """Write parts of a file and their checksum."""
        self.blobs.put(name, [*(part.data for part in parts), crc32c(parts)], durable=durable)

    def _read_into(self, name: str, block: FactorBlock, body: Bytes) -> None:
        """Read a file into a body, and check it."""
        checksum = np.zeros(CHECKSUM_BYTES, np.uint8)
        size = self.blobs.read_into(name, [body.data, checksum.data])
        problem = ""
        if size is None:
            problem = "is not stored"
        elif size != body.nbytes + CHECKSUM_BYTES:
            problem = f"has {size} bytes instead of {body.nbytes + CHECKSUM_BYTES}"
        elif checksum.tobytes() != crc32c([body]):
            problem = "fails its checksum"
        if problem:
            raise StoreError(
                f"{self.location}/{name}",
                f"piece {block.piece} of the factor of kernel {block.kernel}, which {problem}",
                "a whole piece",
                "Repeat the sweep or run 'mkldist bank build' to make it again",
            )


def _name(array: str, block: FactorBlock) -> str:
    """Return the name of the chunk of a piece in an array of three dimensions."""
    return f"{array}/c/{block.kernel}/{block.piece}/0"


def _mark(block: FactorBlock) -> str:
    """Return the name of the file that has the pivots of a piece."""
    return f"pivots/c/{block.kernel}/{block.piece}"


def _bytes(values: npt.NDArray[Any]) -> Bytes:
    return values.reshape(-1).view(np.uint8)
