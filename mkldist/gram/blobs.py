"""Files under a folder or behind a URL, of which a reader sees all or nothing.

:mod:`mkldist.gram.local_blobs` and :mod:`mkldist.gram.remote_blobs` are the two kinds;
:mod:`mkldist.gram.blob_places` chooses between them by the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mkldist.durable import Buffer
from mkldist.errors import UnreadableError


class Blobs(Protocol):
    """Named files of bytes; names are relative paths with ``/``."""

    @property
    def location(self) -> str:
        """The folder or URL, for messages."""

    def put(self, name: str, parts: Sequence[Buffer], *, durable: bool = True) -> None:
        """Write the concatenated `parts` under `name`, replacing what is there.

        Parameters
        ----------
        name : str
            The file.
        parts : sequence of bytes or memoryview
            Its content.
        durable : bool
            Flush the file to the device before it takes its name.

        Raises
        ------
        OutputError
            If the medium is full, read-only or refuses.
        """

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is no such file.

        Raises
        ------
        UnreadableError
            If the medium does not answer.
        """

    def read_into(self, name: str, parts: Sequence[memoryview]) -> int | None:
        """Read a file into `parts`, one after the other, and return its size in bytes.

        The answer is None if there is no such file.  If the size differs from the sum of the
        parts' sizes, the content of the parts is undefined.
        """

    def names(self, folder: str) -> list[str]:
        """Return the names of all files below `folder`."""

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""

    def clear(self) -> None:
        """Remove all files; an interrupted removal never leaves a bank that looks whole."""

    def discard_abandoned(self) -> None:
        """Remove the temporary files of killed writers."""


@contextmanager
def readable(where: str | Path) -> Iterator[None]:
    """Turn any error of a read into UnreadableError; client libraries raise errors of any type."""
    try:
        yield
    except OSError as error:
        found = f"a read that failed: {error.strerror or error}"
        raise UnreadableError(str(where), found, "a readable file") from error
    except Exception as error:
        found = f"a read that failed: {type(error).__name__}: {error}"
        raise UnreadableError(str(where), found, "a readable file") from error
