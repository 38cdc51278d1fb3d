"""Open a user's file, plain or gzipped, and turn each failure into one error message."""

from __future__ import annotations

import errno
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from mkldist.core.memory import readable_bytes
from mkldist.errors import DataError, nearest

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER = 2**16
GZIP_MAGIC = b"\x1f\x8b"
MOST_PACKED = 100
SMALL = 2**28  # bytes that any file may unpack to
REWRITE = "Write or copy the file again"
PATHS = "Check its spelling: paths in a sweep file start at its folder, others at this one"


@contextmanager
def opened(path: Path, where: str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; unpack gzipped files, which their first bytes tell."""
    check_file(path, where)
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == GZIP_MAGIC
            plain.seek(0)
            if zipped:
                packed = path.stat().st_size
                if _size_at_end(plain) > most_unpacked(packed):
                    _read_through(plain, packed, where)
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    limited = _Unpacked(unpacked, packed, where)
                    yield io.BufferedReader(limited, BUFFER)
            else:
                yield plain
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            where,
            f"a gzip file that is cut short or damaged ({error})",
            "a complete file",
            "Copy or download it again, and check it by 'gzip -t'",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            where,
            f"bytes that are not UTF-8 text (such as 0x{error.object[error.start]:02x})",
            "a text file in UTF-8",
            "Save it as UTF-8, for example with 'iconv -f latin1 -t utf-8'",
        ) from error
    except OSError as error:
        raise DataError(
            where,
            f"a file that cannot be read ({error.strerror or error})",
            "a readable file",
            "Check its permissions and the disk",
        ) from error


def most_unpacked(packed: int) -> int:
    """Return the most bytes to which `packed` bytes of a table may unpack."""
    return max(SMALL, MOST_PACKED * packed)


def check_unpacked(size: int, packed: int, where: str, kind: str, unpacker: str) -> None:
    """Raise if packed data unpack to far more than any table does."""
    limit = most_unpacked(packed)
    if size > limit:
        raise DataError(
            where,
            f"{kind} of {readable_bytes(packed)} that unpacks to more than {readable_bytes(limit)}",
            f"at most {MOST_PACKED} times its size",
            f"If it is right, unpack it by {unpacker}",
        )


def _size_at_end(file: BinaryIO) -> int:
    """Return the number that a gzip file ends with: its size, modulo 4 GiB, unless it is cut."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - 4))
    size = int.from_bytes(file.read(), "little")
    file.seek(0)
    return size


def _read_through(file: BinaryIO, packed: int, where: str) -> None:
    """Unpack a gzip file, which is faster than to parse it, up to the size that is refused."""
    with gzip.GzipFile(fileobj=file) as unpacked:
        limited = _Unpacked(unpacked, packed, where)
        while limited.read(2**20):
            pass
    file.seek(0)


class _Unpacked(io.RawIOBase):
    """Content of a gzip file, refused where it is far larger than any table packs to."""

    def __init__(self, file: gzip.GzipFile, packed: int, where: str) -> None:
        self._file, self._packed, self._where = file, packed, where

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read the next bytes; raise a DataError if more was unpacked than the limit."""
        size = self._file.readinto(cast("bytearray", buffer))
        check_unpacked(self._file.tell(), self._packed, self._where, "a gzip file", "gunzip")
        return size

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place; the way there is unpacked, and counts."""
        if whence == io.SEEK_END:
            while self.read(BUFFER):
                pass
        base = 0 if whence == io.SEEK_SET else self._file.tell()
        return self._file.seek(min(base + offset, most_unpacked(self._packed) + 1))

    def tell(self) -> int:
        return self._file.tell()


def check_file(path: Path, where: str, advice: str = PATHS) -> None:
    """Raise unless `path` is a file with content."""
    if not exists(path):
        near = sorted(p.name for p in path.parent.iterdir()) if exists(path.parent) else []
        hint = nearest(path.name, near) or _same_name(path, near) or advice
        raise DataError(where, "no such file", "an existing file", hint)
    if path.is_dir():
        raise DataError(
            where, "a directory", "a file", "Name a file in it, or give it as --data-dir"
        )
    if not path.is_file():
        raise DataError(
            where, "neither a file nor a directory", "a regular file", "Copy it to a file"
        )
    if path.stat().st_size == 0:
        raise DataError(where, "an empty file", "a file of data", REWRITE)


def exists(path: Path) -> bool:
    """Return True if there is such a file or folder; False too if no path can be so long."""
    try:
        return path.exists()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def _same_name(path: Path, near: list[str]) -> str:
    """Return a hint at the file whose name without endings is nearest; empty if none is near."""
    stems = {name.partition(".")[0]: name for name in reversed(near) if name.partition(".")[0]}
    close = get_close_matches(path.name.partition(".")[0], stems, n=1, cutoff=0.8)
    return f"Did you mean {stems[close[0]]!r}?" if close else ""
