"""Files under a folder or behind a URL of fsspec, of which a reader sees all or nothing."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkldist.core.durable import (
    Buffer,
    make_folder,
    output_error,
    remove_temporaries,
    temporary_path,
    write_file,
)
from mkldist.errors import OutputError, StoreError, UnreadableError

LAPLACIANS = "laplacians"
"""Folder of graph Laplacians, beside the banks."""
SNAPSHOTS = "snapshots"
"""Folder of the data in an object store, beside the banks, or in the cache of a machine."""
TEMPORARY = ".partial"
"""Folder of the files that are being written to a file system."""
BUCKETS = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci"))
"""Protocols of object stores, whose files lie in buckets that their owners make."""
NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class ByteStore:
    """Named files of bytes below a folder; names are relative paths with ``/``.

    fsspec finds the credentials of object stores.  What is written is not flushed to the device:
    its readers know it by checksums, and it can be made again.
    """

    root: str
    folder: str  # below it

    @property
    def location(self) -> str:
        """The folder or URL."""
        return f"{self.root.rstrip('/')}/{self.folder}"

    @property
    def is_local(self) -> bool:
        """True for a folder, False for a URL."""
        return "://" not in self.root

    @property
    def temporaries(self) -> Path:
        """Where files on a file system are written before they take their names."""
        return Path(self.root) / TEMPORARY

    def put(self, name: str, parts: Sequence[Buffer]) -> None:
        """Write the concatenated `parts` under `name`, replacing what is there."""
        with self.writable(name):
            if self.is_local:
                path = Path(self.location) / name
                write_file(path, parts, through=self.temporaries, durable=False)
                return
            filesystem, base = self.file_system()
            if _has_folders(filesystem):
                parent = f"{base}/{name}".rpartition("/")[0]
                filesystem.makedirs(parent, exist_ok=True)
            filesystem.pipe_file(f"{base}/{name}", b"".join(parts))

    def get(self, name: str, last: int | None = None) -> bytes | None:
        """Return the content of a file, or its last bytes; None if there is no such file."""
        filesystem, base = self.file_system()
        with readable(f"{self.location}/{name}"):
            try:
                start = None if last is None else -last
                return bytes(filesystem.cat_file(f"{base}/{name}", start=start))
            except NO_FILE:
                return None

    def has(self, name: str) -> bool:
        """Return True if there is such a file."""
        with readable(f"{self.location}/{name}"):
            if self.is_local:
                return (Path(self.location) / name).is_file()
            filesystem, base = self.file_system()
            return bool(filesystem.isfile(f"{base}/{name}"))

    def holds(self, name: str) -> bool:
        """Return True if there is such a file, or a folder in its place."""
        if self.is_local:
            return os.path.lexists(Path(self.location) / name)
        return self.has(name)

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all files below `folder`."""
        filesystem, base = self.file_system()
        with readable(f"{self.location}/{folder}"):
            filesystem.invalidate_cache()
            try:
                found = filesystem.find(f"{base}/{folder}".rstrip("/"))
            except NO_FILE:
                return []
        return [name[len(base) + 1 :] for name in found]

    def remove(self, name: str) -> None:
        """Remove a file, or a folder in its place, if it is there."""
        filesystem, base = self.file_system()
        with self.writable(name), suppress(*NO_FILE):
            path = f"{base}/{name}"
            if self.is_local and Path(path).is_dir():
                filesystem.rm(path, recursive=True)
            else:
                filesystem.rm_file(path)

    def clear(self) -> None:
        """Remove all files; of a URL those at the top first, as no bank opens without them."""
        self.discard_abandoned()
        if self.is_local:
            with self.writable(""), suppress(*NO_FILE):
                if os.path.lexists(self.location):
                    make_folder(self.temporaries, durable=False)
                    shutil.rmtree(Path(self.location).rename(temporary_path(self.temporaries)))
            return
        for name in self.names():
            if "/" not in name:
                self.remove(name)
        filesystem, base = self.file_system()
        with self.writable(""), suppress(*NO_FILE):
            filesystem.rm(glob.escape(base), recursive=True)

    def discard_abandoned(self) -> None:
        """Remove the temporary files of killed writers; an object store keeps no part of a file."""
        if self.is_local:
            remove_temporaries(self.temporaries)

    @contextmanager
    def writable(self, name: str) -> Iterator[None]:
        """Turn any error of a write into OutputError; client libraries raise errors of any type."""
        place = f"{self.location}/{name}"
        try:
            yield
        except OutputError:
            raise
        except FileNotFoundError as error:
            if self.is_local:
                raise output_error(place, error) from error
            bucket = self.root.partition("://")[2].partition("/")[0]
            raise OutputError(
                self.root,
                f"no bucket '{bucket}'",
                "a bucket that exists",
                "Correct its name or create it, then repeat the command: mkldist makes no buckets",
            ) from error
        except OSError as error:
            raise output_error(place, error) from error
        except Exception as error:
            raise OutputError(
                place, f"a write that failed: {type(error).__name__}: {error}"
            ) from error

    def file_system(self) -> tuple[Any, str]:
        """Return the file system of fsspec, and the path of the folder in it."""
        return _file_system(self.location)


def open_bytes(root: str | Path, folder: str) -> ByteStore:
    """Return the blobs in a folder below a path or below a URL that fsspec understands."""
    return ByteStore(str(root).removeprefix("file://"), folder)


def list_folders(root: str | Path) -> list[str]:
    """Return the sorted names of the folders right below a path or URL, without hidden ones."""
    place = str(root).removeprefix("file://")
    with readable(root):
        try:
            if "://" not in place:  # without the import of fsspec
                names = [path.name for path in Path(place).iterdir() if path.is_dir()]
            else:
                filesystem, base = _file_system(place)
                filesystem.invalidate_cache()
                found = filesystem.ls(base, detail=True)
                folders = [entry["name"] for entry in found if entry["type"] == "directory"]
                names = [str(folder).rstrip("/").rpartition("/")[2] for folder in folders]
        except NO_FILE:
            return []
    return sorted(name for name in names if not name.startswith("."))


@contextmanager
def readable(where: str | Path) -> Iterator[None]:
    """Turn any error of a read into UnreadableError; client libraries raise errors of any type."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        found = f"a read that failed: {error.strerror or error}"
        raise UnreadableError(str(where), found, "a readable file") from error
    except Exception as error:
        found = f"a read that failed: {type(error).__name__}: {error}"
        raise UnreadableError(str(where), found, "a readable file") from error


def _has_folders(filesystem: Any) -> bool:
    """Return False for an object store: to make a folder at its top would make a bucket."""
    protocols = filesystem.protocol
    return BUCKETS.isdisjoint([protocols] if isinstance(protocols, str) else protocols)


def _file_system(place: str) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it."""
    import fsspec

    if "://" not in place:
        return fsspec.filesystem("file"), str(Path(place).absolute())
    try:
        filesystem, base = fsspec.core.url_to_fs(place)
    except (ValueError, ImportError, OSError) as error:
        raise StoreError(place, f"a failure: {error}", "a URL that fsspec can open") from error
    return filesystem, str(base).rstrip("/")
