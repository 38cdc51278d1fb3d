"""Files on a file system that survive kills and power cuts whole or not at all.

A file is written under a temporary name, flushed to the device, renamed, and its folder flushed,
in that order.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from mkldist.gram.blobs import Buffer, output_error, readable

TEMPORARY = ".partial"
ABANDONED_AFTER_SECONDS = 3600.0


@dataclass(frozen=True)
class LocalBlobs:
    """Files below ``root / folder`` on a file system.

    Temporary files live in ``root / .partial``; those that a killed process left behind are
    removed by :meth:`discard_abandoned`.
    """

    root: Path
    folder: str

    @property
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
        temporary = self.root / TEMPORARY / f"{self.folder}.{uuid.uuid4().hex}"
        try:
            _make_folder(target.parent)
            _make_folder(temporary.parent)
            _write_file(temporary, parts, durable=durable)
            temporary.replace(target)
            if durable:
                _flush_folder(target.parent)
        except OSError as error:
            raise output_error(str(target), error) from error
        finally:
            with suppress(OSError):
                temporary.unlink()

    def get(self, name: str) -> bytes | None:
        """See :meth:`Blobs.get`."""
        path = self.path / name
        with readable(path):
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read_into(self, name: str, parts: Sequence[memoryview]) -> int | None:
        """See :meth:`Blobs.read_into`."""
        path = self.path / name
        with readable(path):
            try:
                file = path.open("rb", buffering=0)
            except (FileNotFoundError, NotADirectoryError):
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
        except OSError as error:
            raise output_error(str(path), error) from error

    def clear(self) -> None:
        """See :meth:`Blobs.clear`: the folder is renamed away first."""
        doomed = self.root / TEMPORARY / f"{self.folder}.{uuid.uuid4().hex}"
        try:
            _make_folder(doomed.parent)
            with suppress(FileNotFoundError):
                self.path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        except OSError as error:
            raise output_error(self.location, error) from error

    def discard_abandoned(self) -> None:
        """Remove temporary files of killed processes: those untouched for an hour."""
        oldest = time.time() - ABANDONED_AFTER_SECONDS
        for path in (self.root / TEMPORARY).glob(f"{self.folder}.*"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    if path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink()


def _make_folder(path: Path) -> None:
    """Make a folder and its parents, and flush the entry of each new one to the device."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    path.mkdir(exist_ok=True)
    _flush_folder(path.parent)


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_file(path: Path, parts: Sequence[Buffer], *, durable: bool) -> None:
    with path.open("xb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def _fill(file: FileIO, view: memoryview) -> int:
    """Read until `view` is full or the file ends, and return the bytes read."""
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
