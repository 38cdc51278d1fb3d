"""Files in object stores and other places that fsspec can reach."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from mkldist.durable import Buffer, output_error
from mkldist.errors import OutputError, StoreError
from mkldist.gram.blobs import readable

BUCKETS = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci"))
"""Protocols of object stores, whose files lie in buckets that their owners make."""


@dataclass(frozen=True)
class RemoteBlobs:
    """Files below ``url/folder`` in any place that fsspec can reach.

    fsspec finds the credentials.
    """

    url: str
    folder: str

    @property
    def location(self) -> str:
        """The URL, for messages."""
        return f"{self.url.rstrip('/')}/{self.folder}"

    def put(self, name: str, parts: Sequence[Buffer], *, durable: bool = True) -> None:
        """See :meth:`Blobs.put`; the store itself decides when a file is durable."""
        filesystem, base = self._open()
        place, content = f"{base}/{name}", b"".join(parts)
        with self._writable(name):
            if _has_folders(filesystem):
                filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
                filesystem.pipe_file(place, content)
                return
            try:
                filesystem.pipe_file(place, content)
            except FileNotFoundError as error:
                raise _no_bucket(self.url, place.partition("/")[0]) from error

    def get(self, name: str) -> bytes | None:
        """See :meth:`Blobs.get`."""
        filesystem, base = self._open()
        with readable(f"{self.location}/{name}"):
            try:
                return bytes(filesystem.cat_file(f"{base}/{name}"))
            except FileNotFoundError:
                return None

    def read_into(self, name: str, parts: Sequence[memoryview]) -> int | None:
        """See :meth:`Blobs.read_into`."""
        content = self.get(name)
        if content is None:
            return None
        if len(content) == sum(part.nbytes for part in parts):
            start = 0
            for part in parts:
                part[:] = content[start : start + part.nbytes]
                start += part.nbytes
        return len(content)

    def names(self, folder: str) -> list[str]:
        """See :meth:`Blobs.names`."""
        filesystem, base = self._open()
        with readable(f"{self.location}/{folder}"):
            filesystem.invalidate_cache()
            try:
                found = filesystem.find(f"{base}/{folder}")
            except FileNotFoundError:
                return []
        return [name[len(base) + 1 :] for name in found]

    def remove(self, name: str) -> None:
        """See :meth:`Blobs.remove`."""
        filesystem, base = self._open()
        with self._writable(name), suppress(FileNotFoundError):
            filesystem.rm_file(f"{base}/{name}")

    def clear(self) -> None:
        """See :meth:`Blobs.clear`: the files at the top go first, as no bank opens without them."""
        filesystem, base = self._open()
        for name in [n for n in self.names("") if "/" not in n]:
            self.remove(name)
        with self._writable(""), suppress(FileNotFoundError):
            filesystem.rm(glob.escape(base), recursive=True)

    def discard_abandoned(self) -> None:
        """See :meth:`Blobs.discard_abandoned`: an object store never keeps part of a file."""

    def _open(self) -> tuple[Any, str]:
        """Return the file system and the path of the folder in it."""
        return _file_system(self.location)

    @contextmanager
    def _writable(self, name: str) -> Iterator[None]:
        """Turn any error of a write into OutputError; client libraries raise errors of any type."""
        place = f"{self.location}/{name}"
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            raise output_error(place, error) from error
        except Exception as error:
            raise OutputError(
                place, f"a write that failed: {type(error).__name__}: {error}"
            ) from error


def list_folders(url: str) -> list[str]:
    """Return the names of the folders right below a URL."""
    filesystem, base = _file_system(url)
    with readable(url):
        filesystem.invalidate_cache()
        try:
            found = filesystem.ls(base, detail=True)
        except FileNotFoundError:
            return []
    return [
        str(entry["name"]).rstrip("/").rpartition("/")[2]
        for entry in found
        if entry["type"] == "directory"
    ]


def _has_folders(filesystem: Any) -> bool:
    """Return False for an object store: to make a folder at its top would make a bucket."""
    protocols = filesystem.protocol
    return BUCKETS.isdisjoint([protocols] if isinstance(protocols, str) else protocols)


def _no_bucket(url: str, bucket: str) -> OutputError:
    return OutputError(
        url,
        f"no bucket '{bucket}'",
        "a bucket that exists",
        "Correct its name or create it, then repeat the command: mkldist makes no buckets",
    )


def _file_system(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path in it."""
    from fsspec.core import url_to_fs

    try:
        filesystem, base = url_to_fs(url)
    except (ValueError, ImportError, OSError) as error:
        raise StoreError(url, f"a failure: {error}", "a URL that fsspec can open") from error
    return filesystem, str(base).rstrip("/")
