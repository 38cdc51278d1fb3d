"""Open a user's file, plain, gzipped or of HDF5, and turn each failure into one error message."""

from __future__ import annotations

import errno
import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from mkldist.core.arrays import Array
from mkldist.core.memory import readable_bytes
from mkldist.data.checks import check_fits
from mkldist.errors import DataError, MkldistError, nearest

SPOOLED = 2**26  # bytes of an unpacked file that memory holds; larger ones go to a temporary file
GZIP_MAGIC = b"\x1f\x8b"
MOST_PACKED = 100
SMALL = 2**28  # bytes that any file may unpack to
REWRITE = "Write or copy the file again"
FEWER = "Write fewer rows or columns, or use a machine with more memory"
PATHS = "Check its spelling: paths in a sweep file start at its folder, others at this one"


@contextmanager
def opened(path: Path, where: str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; unpack gzipped files, which their first bytes tell."""
    check_file(path, where)
    try:
        with path.open("rb") as plain:
            is_zipped = plain.read(2) == GZIP_MAGIC
            plain.seek(0)
            if is_zipped:
                packed = path.stat().st_size
                with gzip.GzipFile(fileobj=plain) as zipped, SpooledTemporaryFile(SPOOLED) as copy:
                    while block := zipped.read(2**20):
                        check_unpacked(zipped.tell(), packed, where, "a gzip file", "gunzip")
                        copy.write(block)
                    copy.seek(0)
                    yield cast("BinaryIO", copy)
            else:
                yield plain
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        found = f"a gzip file that is cut short or damaged ({error})"
        hint = "Copy or download it again, and check it by 'gzip -t'"
        raise DataError(where, found, "a complete file", hint) from error
    except UnicodeError as error:
        found = f"bytes that are no text ({error})"
        if isinstance(error, UnicodeDecodeError):
            byte = error.object[error.start]
            found = f"bytes that are not {error.encoding.upper()} text (such as 0x{byte:02x})"
        expected = "a text file in UTF-8, or encoding = its own"
        hint = 'Set encoding, such as "latin-1", or save it as UTF-8: iconv -f latin1 -t utf-8'
        raise DataError(where, found, expected, hint) from error
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror or error})"
        expected = "a readable file"
        raise DataError(where, found, expected, "Check its permissions and the disk") from error


@contextmanager
def imports(package: str, extra: str, where: str) -> Iterator[None]:
    """Refuse a file inside the ``with`` block where the package that reads it is not installed."""
    try:
        yield
    except ImportError as error:
        found, expected = f"no package {package}", f"{package}, to read such files"
        hint = f"Run: pip install 'mkldist[{extra}]'"
        raise DataError(where, found, expected, hint) from error


def check_unpacked(size: int, packed: int, where: str, kind: str, unpacker: str) -> None:
    """Raise if packed data unpack to far more than any table does."""
    limit = max(SMALL, MOST_PACKED * packed)
    if size > limit:
        raise DataError(
            where,
            f"{kind} of {readable_bytes(packed)} that unpacks to more than {readable_bytes(limit)}",
            f"at most {MOST_PACKED} times its size",
            f"If it is right, unpack it by {unpacker}",
        )


def check_file(path: Path, where: str) -> None:
    """Raise unless `path` is a file with content."""
    if not exists(path):
        near = sorted(p.name for p in path.parent.iterdir()) if exists(path.parent) else []
        hint = nearest(path.name, near) or PATHS
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


MARKS = ("zarr.json", ".zarray", ".zgroup")


def is_zarr(path: Path) -> bool:
    """Return True for a folder that is an array or a group of zarr."""
    return exists(path) and any((path / mark).is_file() for mark in MARKS)


_DAMAGE = (
    OSError, KeyError, ValueError, TypeError, RuntimeError, IndexError, AttributeError, EOFError,
    MemoryError, OverflowError,
)  # fmt: skip


@contextmanager
def opened_hdf5(path: Path, where: str) -> Iterator[Any]:
    """Open a file of HDF5; one that is damaged is refused, also inside the ``with`` block."""
    check_file(path, where)
    with imports("h5py", "formats", where):
        import h5py
    try:
        with h5py.File(path, "r") as file:
            yield file
    except MkldistError:
        raise
    except _DAMAGE as error:
        found = f"a file of HDF5 that is damaged or of another kind ({error})"
        raise DataError(where, found, f"a complete {path.suffix} file", REWRITE) from error


def whole(item: Any, where: str) -> Array:
    """Return an array of a file; refuse one that memory does not hold."""
    place = f"{where}, array {item.name!r}"
    n_bytes = item.size * item.dtype.itemsize
    check_fits(n_bytes, place, FEWER)
    chunk = math.prod(item.chunks) * item.dtype.itemsize if item.chunks else 0
    stored = item.id.get_storage_size()
    check_unpacked(max(n_bytes, chunk), stored, place, "an array", "h5repack")
    strings = item.dtype.kind == "O" and item.dtype.metadata and "vlen" in item.dtype.metadata
    found: Array = (item.asstr() if strings else item)[()]
    return found
