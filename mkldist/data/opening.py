"""Open a user's file, plain or gzipped, and turn each failure into one error message."""

from __future__ import annotations

import errno
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mkldist.errors import DataError, nearest

GZIP_MAGIC = b"\x1f\x8b"
REWRITE = "Write or copy the file again"


@contextmanager
def opened(path: Path, where: str) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; unpack gzipped files, which their first bytes tell.

    Raises
    ------
    DataError
        If the file is absent, empty, unreadable or damaged.  The same errors inside the ``with``
        block, and text there that is not UTF-8, raise it too.
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


def check_file(path: Path, where: str) -> None:
    """Raise unless `path` is a file with content.

    Raises
    ------
    DataError
        If it is absent, a directory or empty.  The message about an absent file suggests the one of
        its folder with the most similar name.
    """
    if not exists(path):
        near = sorted(p.name for p in path.parent.iterdir()) if exists(path.parent) else []
        hint = nearest(path.name, near) or "Give the path relative to the sweep file"
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
