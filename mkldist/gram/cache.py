"""The node cache: complete banks as memory-mapped files, shared by all processes of a node.

A file is the (M, E) entries of a bank, then a footer with their checksum.  It is written under a
temporary name, checked, and renamed, so that a file of the right name is whole; it is never
changed afterwards.  The cache decides nothing: whatever is missing, damaged or deleted in it is
made again from the store, and a bank that finds no room in it is read from the store.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import google_crc32c
from filelock import FileLock

from mkldist.errors import OutputError
from mkldist.gram.blobs import output_error
from mkldist.gram.loading import block_buffer, fitted, load_blocks, read_block
from mkldist.gram.mapped import MappedBank
from mkldist.gram.store import Block, GramStore
from mkldist.identity import content_id

DIRECTORY_VARIABLE = "MKLDIST_CACHE"
DEFAULT_BUDGET = 32 * 2**30
SUFFIX = ".bank"
PARTIAL = ".partial"
ABANDONED_AFTER_SECONDS = 3600.0
MAGIC = b"mkldist bank 1\0\0"
FOOTER_BYTES = len(MAGIC) + 4
CHECKED_AT_ONCE = 2**24


def default_directory() -> Path:
    """Return ``$MKLDIST_CACHE``, or the user's cache folder of this platform."""
    given = os.environ.get(DIRECTORY_VARIABLE)
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("mkldist")) / "banks"


class NodeCache:
    """Memory-mapped files of banks below one folder of this machine.

    Parameters
    ----------
    directory : Path, optional
        The folder, made when needed; by default :func:`default_directory`.
    budget_bytes : int
        Bytes that the files may take together.  The least recently used ones are deleted to make
        room; processes that have them mapped keep them until they are done.
    """

    def __init__(self, directory: Path | None = None, budget_bytes: int = DEFAULT_BUDGET) -> None:
        self.directory = default_directory() if directory is None else directory
        self.budget_bytes = budget_bytes
        self._checked: set[tuple[str, int, int]] = set()

    def path_of(self, store: GramStore) -> Path:
        """Return where the file of a bank is, or would be."""
        name = store.location.rstrip("/").rsplit("/", 1)[-1]
        identity = content_id(name=name, shape=str(store.shape), attrs=dict(store.attrs))
        return self.directory / f"{identity}{SUFFIX}"

    def open(self, store: GramStore, resident_limit: int | None = None) -> MappedBank | None:
        """Return the bank of a store, mapped from its file, which is made if it is not there.

        Of several processes one makes the file and the others wait for it.

        Parameters
        ----------
        store : GramStore
            A complete store.
        resident_limit : int, optional
            See :class:`mkldist.gram.mapped.MappedBank`.

        Returns
        -------
        MappedBank or None
            None when the bank is larger than the budget or the disk has no room for it.

        Raises
        ------
        mkldist.gram.loading.DamagedBlocksError
            If blocks of the store cannot be read.
        mkldist.errors.OutputError
            If the folder cannot be written, or its file system has no locks.
        """
        if _file_bytes(store) > self.budget_bytes:
            return None
        path = self.path_of(store)
        bank = self._mapped(path, store, resident_limit)
        if bank is None:
            self._make_directory()
            with locked(path.with_suffix(".lock")):
                bank = self._mapped(path, store, resident_limit)
                if bank is None and self._built(path, store):
                    bank = self._mapped(path, store, resident_limit)
        return bank

    def clear(self) -> None:
        """Delete all files of the cache."""
        for path in [*self._files(f"*{SUFFIX}"), *self._files(f"*{PARTIAL}")]:
            path.unlink(missing_ok=True)

    def _mapped(self, path: Path, store: GramStore, limit: int | None) -> MappedBank | None:
        """Map a file, or return None if it is missing or damaged."""
        try:
            status = path.stat()
            if status.st_size != _file_bytes(store):
                return None
            version = (path.name, status.st_ino, status.st_mtime_ns)
            if version not in self._checked:
                if not _is_whole(path):
                    return None
                self._checked.add(version)
            bank = MappedBank(path, store.n_kernels, store.layout, store.dtype, limit)
            with suppress(OSError):
                os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        except OSError:
            return None
        return bank

    def _built(self, path: Path, store: GramStore) -> bool:
        """Write the file of a bank; return whether there was room."""
        # Machines that share the folder may not see each other's locks; processes of one do, so
        # that what others of this machine began is abandoned.
        host = socket.gethostname()
        partial = path.with_suffix(f".{host}-{os.getpid()}{PARTIAL}")
        for abandoned in self._files(f"{path.stem}.{host}-*{PARTIAL}"):
            with suppress(OSError):
                abandoned.unlink()
        self._make_room(_file_bytes(store), keep=path)
        try:
            _write_bank(partial, store)
            partial.replace(path)
        except OSError:
            return False
        finally:
            with suppress(OSError):
                partial.unlink()
        return True

    def _make_room(self, n_bytes: int, keep: Path) -> None:
        """Delete the least recently used files until `n_bytes` more fit the budget."""
        now = time.time()
        for path in self._files(f"*{PARTIAL}"):
            with suppress(OSError):
                if now - path.stat().st_mtime > ABANDONED_AFTER_SECONDS:
                    path.unlink()
        used: list[tuple[float, int, Path]] = []
        for path in self._files(f"*{SUFFIX}"):
            with suppress(OSError):
                status = path.stat()
                used.append((status.st_atime, status.st_size, path))
        total = sum(size for _, size, path in used if path != keep)
        for _, size, path in sorted(used):
            if path != keep and total + n_bytes > self.budget_bytes:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                    total -= size

    def _files(self, pattern: str) -> Iterable[Path]:
        return list(self.directory.glob(pattern))

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            writable = os.access(self.directory, os.W_OK)
        except OSError as error:
            raise output_error(str(self.directory), error) from error
        if not writable:
            raise OutputError(
                str(self.directory),
                "permission to write is denied",
                "a folder for the node cache",
                f"Set {DIRECTORY_VARIABLE} to a writable folder",
            )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file."""
    lock = FileLock(path)
    try:
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        cause = error if isinstance(error, OSError) else OSError(errno.ENOLCK, str(error))
        raise output_error(str(path), cause) from error
    try:
        yield
    finally:
        lock.release()


def _file_bytes(store: GramStore) -> int:
    entries = store.n_kernels * store.layout.n_entries
    return entries * store.dtype.itemsize + FOOTER_BYTES


def _write_bank(path: Path, store: GramStore) -> None:
    """Write all entries of a store and the footer to a file, and flush it to the device."""
    row_bytes = store.layout.n_entries * store.dtype.itemsize
    buffer = block_buffer(store)
    with path.open("wb") as file:

        def copy(block: Block) -> None:
            part = read_block(store, block, fitted(buffer, block))
            start = block.kernels.start * row_bytes + block.entries.start * store.dtype.itemsize
            rows = [part] if part.nbytes == len(part) * row_bytes else part
            for number, row in enumerate(rows):
                file.seek(start + number * row_bytes)
                file.write(row.data)

        load_blocks(store, copy)
        file.flush()
        checksum = _checksum(path, store.n_kernels * row_bytes)
        file.seek(store.n_kernels * row_bytes)
        file.write(MAGIC + checksum)
        file.flush()
        os.fsync(file.fileno())


def _is_whole(path: Path) -> bool:
    """Return whether the entries of a file have the checksum in its footer."""
    n_bytes = path.stat().st_size - FOOTER_BYTES
    with path.open("rb") as file:
        file.seek(n_bytes)
        footer = file.read()
    return footer == MAGIC + _checksum(path, n_bytes)


def _checksum(path: Path, n_bytes: int) -> bytes:
    """Return the CRC32C of the first bytes of a file, which is read piece by piece.

    Pages of a memory map would count as memory of this process.
    """
    crc, left = 0, n_bytes
    with path.open("rb", buffering=0) as file:
        while left:
            piece = file.read(min(left, CHECKED_AT_ONCE))
            if not piece:
                break
            crc, left = google_crc32c.extend(crc, piece), left - len(piece)
    return int(crc).to_bytes(4, "little")
