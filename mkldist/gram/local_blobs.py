"""Files of a bank on a file system, each whole or absent after a kill or a power cut.

A folder under the name of a file counts as no file, and what is written there replaces it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from io import FileIO
from pathlib import Path

from mkldist.durable import (
    Buffer,
    make_folder,
    output_error,
    remove_temporaries,
    temporary_path,
    write_file,
)
from mkldist.gram.blobs import readable

TEMPORARY = ".partial"
_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class LocalBlobs:
    """Files below ``root / folder`` on a file system.

    Temporary files lie in ``root / .partial``, so that one look into one folder finds those that
    killed processes left.
    """

    root: Path
    folder: str

    @cached_property
    def path(self) -> Path:
        """The folder of the files."""
        return self.root / self.folder

    @property
    def location(self) -> str:
        """The folder, for messages."""
        return str(self.path)

    def put(self, name: str, parts: Sequence[Buffer], *, durable: bool = True) -> None:
        """See :meth:`Blobs.put`; with ``durable=False`` nothing is flushed to the device."""
        target = self.path / name
        try:
            try:
                write_file(target, parts, through=self._temporaries, durable=durable)
            except IsADirectoryError:
                self._discard(target)
                write_file(target, parts, through=self._temporaries, durable=durable)
        except OSError as error:
            raise output_error(str(target), error) from error

    def get(self, name: str) -> bytes | None:
        """See :meth:`Blobs.get`."""
        path = f"{self.path}/{name}"
        with readable(path):
            try:
                with open(path, "rb", buffering=0) as file:  # noqa: PTH123, thousands of them
                    return file.readall()
            except _NO_FILE:
                return None

    def read_into(self, name: str, parts: Sequence[memoryview]) -> int | None:
        """See :meth:`Blobs.read_into`."""
        path = self.path / name
        with readable(path):
            try:
                file = path.open("rb", buffering=0)
            except _NO_FILE:
                return None
            with file:
                size = os.fstat(file.fileno()).st_size
                if size != sum(part.nbytes for part in parts):
                    return size
                return sum(_fill(file, part) for part in parts)

    def names(self, folder: str) -> list[str]:
        """See :meth:`Blobs.names`."""
        found: list[str] = []
        with readable(self.path / folder):
            for parent, _, files in os.walk(self.path / folder, onerror=_raise_unless_missing):
                place = Path(parent).relative_to(self.path).as_posix()
                found.extend(f"{place}/{file}" for file in files)
        return found

    def remove(self, name: str) -> None:
        """See :meth:`Blobs.remove`."""
        path = self.path / name
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except IsADirectoryError:
            self._discard(path)
        except OSError as error:
            raise output_error(str(path), error) from error

    def clear(self) -> None:
        """See :meth:`Blobs.clear`: the folder is renamed away first."""
        self._discard(self.path)

    def discard_abandoned(self) -> None:
        """See :meth:`Blobs.discard_abandoned`, for all folders below the root."""
        remove_temporaries(self._temporaries)

    def _discard(self, folder: Path) -> None:
        """Remove a folder if it is there: it is renamed away first."""
        doomed = temporary_path(self._temporaries)
        try:
            make_folder(doomed.parent)
            with suppress(FileNotFoundError):
                folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        except OSError as error:
            raise output_error(str(folder), error) from error

    @property
    def _temporaries(self) -> Path:
        return self.root / TEMPORARY


def _fill(file: FileIO, view: memoryview) -> int:
    """Read until `view` is full or the file ends, and return the number of bytes read."""
    start = 0
    while start < len(view):
        count = file.readinto(view[start:])
        if not count:
            break
        start += count
    return start


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
