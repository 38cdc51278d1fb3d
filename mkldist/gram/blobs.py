"""Whole files under a folder or behind a URL, put so that a reader never sees half of one.

The two kinds are :mod:`mkldist.gram.local_blobs` and :mod:`mkldist.gram.remote_blobs`;
:mod:`mkldist.gram.blob_places` tells which one a place needs.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mkldist.errors import OutputError, UnreadableError

Buffer = bytes | memoryview

_CAUSES = {
    errno.ENOSPC: ("no space is left on the device", "Free some space"),
    errno.EDQUOT: ("the disk quota is used up", "Free some space"),
    errno.EROFS: ("the file system is read-only", "Make it writable"),
    errno.EACCES: ("permission to write is denied", "Change its permissions"),
    errno.EPERM: ("permission to write is denied", "Change its permissions"),
    errno.ENOTDIR: ("a part of the path is a file", "Move that file away"),
    errno.EEXIST: ("a file stands where a folder is needed", "Move that file away"),
}


def output_error(where: str, error: OSError) -> OutputError:
    """Return what a user can do about a failed write.

    Parameters
    ----------
    where : str
        The file or folder that could not be written.
    error : OSError
        Why.
    """
    code = error.errno if error.errno is not None else 0
    found, remedy = _CAUSES.get(code, (f"cannot write: {error.strerror or error}", "Repair it"))
    return OutputError(
        where,
        found,
        "a writable folder with enough space",
        f"{remedy} or choose another folder, then repeat the command: "
        "what is finished is kept and not done again",
    )


class Blobs(Protocol):
    """Named files of bytes; names are relative paths with ``/``."""

    @property
    def location(self) -> str:
        """The folder or URL, for messages."""

    def put(self, name: str, parts: Sequence[Buffer], *, durable: bool = True) -> None:
        """Write the concatenated `parts` under `name`, replacing what is there.

        Raises
        ------
        OutputError
            When the medium is full, read-only or refuses.
        """

    def get(self, name: str) -> bytes | None:
        """Return the content, None if there is none; UnreadableError if it cannot be read."""

    def read_into(self, name: str, parts: Sequence[memoryview]) -> int | None:
        """Fill `parts` one after the other, and return the size of the file in bytes.

        None means that there is no such file.  When the size is not the sum of the parts' sizes
        their content is undefined.
        """

    def names(self, folder: str) -> list[str]:
        """Return the names of all files below `folder`."""

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""

    def clear(self) -> None:
        """Remove everything; an interrupted removal never leaves something that looks whole."""

    def discard_abandoned(self) -> None:
        """Remove what killed writers left behind."""


@contextmanager
def readable(where: str | Path) -> Iterator[None]:
    """Turn what a failed read raises, which a client library may choose, into UnreadableError."""
    try:
        yield
    except OSError as error:
        found = f"cannot read: {error.strerror or error}"
        raise UnreadableError(str(where), found, "a readable file") from error
    except Exception as error:
        found = f"cannot read: {type(error).__name__}: {error}"
        raise UnreadableError(str(where), found, "a readable file") from error
