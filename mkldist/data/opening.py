"""Open a user's file, plain or gzipped, and say in one message what is wrong with it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mkldist.errors import DataError, nearest

GZIP_MAGIC = b"\x1f\x8b"
REWRITE = "Write or copy it again."


@contextmanager
def opened(path: Path, where: str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; what is gzipped is unpacked, whatever its name.

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, is empty, or is cut short or damaged; also
        for such errors inside the ``with`` block, and for text that is not UTF-8.
    """
    check_file(path, where)
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == GZIP_MAGIC
            plain.seek(0)
            if zipped:
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield cast("BinaryIO", unpacked)
            else:
                yield plain
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            where,
            f"a gzip file that is cut short or damaged ({error})",
            "a complete file",
            "Copy or download it again; 'gzip -t' tells whether it is whole.",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            where,
            f"bytes that are not UTF-8 text (such as 0x{error.object[error.start]:02x})",
            "a text file in UTF-8",
            "Save it as UTF-8, for example with 'iconv -f latin1 -t utf-8'.",
        ) from error
    except OSError as error:
        raise DataError(
            where,
            f"cannot be read ({error.strerror or error})",
            "a readable file",
            "Check its permissions and the disk.",
        ) from error


def check_file(path: Path, where: str) -> None:
    """Raise unless `path` is a file with something in it.

    Raises
    ------
    DataError
        If it is absent (naming the nearest file of its folder), a directory or empty.
    """
    if path.is_dir():
        raise DataError(
            where, "a directory", "a file", "Name a file in it, or give it as --data-dir."
        )
    if not path.exists():
        near = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
        hint = nearest(path.name, near) or "Paths are relative to the sweep file."
        raise DataError(where, "no such file", "an existing file", hint)
    if not path.is_file():
        raise DataError(
            where, "neither a file nor a directory", "a regular file", "Copy it to one."
        )
    if path.stat().st_size == 0:
        raise DataError(where, "an empty file", "a file of data", REWRITE)
