"""The cache of a machine, files of banks and folders that tasks share, and the locks of both.

A file holds the (M, E) entries of a bank and a footer with their checksum.  It is written whole or
not at all, and never changes afterwards.  Nothing depends on the cache: a file that is missing,
damaged or deleted is made again from the store, and a bank too large for it is read from the store.

Whoever uses a folder of banks shares its lock with other users; whoever removes banks holds it
alone.  The system releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.bank.byte_store import open_bytes
from mkldist.bank.readers import MappedBank, block_buffer, fitted, load_blocks, read_block
from mkldist.bank.store import BankStore, Block
from mkldist.core.checksums import Footer, content_id
from mkldist.core.durable import make_folder, output_error, remove_temporaries, replacing
from mkldist.errors import OutputError, StoreError

if TYPE_CHECKING:
    from filelock import ReadWriteLock


LOCK = ".in-use"
TURN = ".removing"
"""Who wants to be alone holds its lock first: an attempt gives up the use for a moment."""


class BankUse:
    """The use of a folder of banks by this process."""

    def __init__(self, turn: Path | None = None, lock: ReadWriteLock | None = None) -> None:
        self._turn, self._lock = turn, lock

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield True, and keep others from using the folder meanwhile, if nobody else uses it.

        Where nothing can be locked, nobody else is known, and the answer is True.
        """
        if self._turn is None or self._lock is None:
            yield True
            return
        with ExitStack() as held:
            try:
                held.enter_context(held_lock(self._turn))
                self._lock.release()
                held.callback(self._lock.acquire_read)
                self._lock.acquire_write(blocking=False)
                held.callback(self._lock.release)
                alone = True
            except OSError:
                alone = False
            yield alone


@contextmanager
def using_banks(root: str | None) -> Iterator[BankUse]:
    """Keep the banks below a folder from being removed while the context lasts.

    A URL has no locks, and a folder that cannot be written needs none.

    `root`: folder of banks, made if it is missing; None if nothing is stored.
    """
    with ExitStack() as held:
        use = BankUse()
        if root is not None and "://" not in root:
            with suppress(OSError):
                make_folder(Path(root))
                shared = held.enter_context(held_lock(Path(root) / LOCK, shared=True, wait=True))
                use = BankUse(Path(root) / TURN, shared)
        yield use


@contextmanager
def removing_banks(root: Path) -> Iterator[None]:
    """Keep others from using the banks below a folder while the context lasts."""
    with ExitStack() as held:
        try:
            make_folder(root)
            for name in (TURN, LOCK):
                held.enter_context(held_lock(root / name))
        except BlockingIOError:
            raise OutputError(
                str(root),
                "banks that a sweep at work uses",
                "a folder of banks that nobody uses",
                "Wait until the sweep ends; 'mkldist status' shows whether it is at work",
            ) from None
        except OSError as error:
            raise output_error(str(root), error) from error
        yield


@contextmanager
def held_lock(path: Path, *, shared: bool = False, wait: bool = False) -> Iterator[ReadWriteLock]:
    """Hold a file's lock, perhaps `shared` with others, while the context lasts."""
    from filelock import ReadWriteLock, Timeout

    lock = ReadWriteLock(path, is_singleton=False)
    try:
        (lock.acquire_read if shared else lock.acquire_write)(blocking=wait)
    except Timeout as error:
        lock.close()
        raise BlockingIOError(errno.EAGAIN, "in use", str(path)) from error
    except sqlite3.Error as error:  # of its file
        lock.close()
        of_system = isinstance(error, sqlite3.OperationalError)
        number = errno.ENOLCK if of_system else errno.EBADMSG
        raise OSError(number, str(error), str(path)) from error
    try:
        yield lock
    finally:
        lock.close()


DIRECTORY_VARIABLE = "MKLDIST_CACHE"
DEFAULT_BUDGET = 32 * 2**30
SUFFIX = ".bank"
FOOTER = Footer(b"mkldist bank 2\0\0")
CHECKED_AT_ONCE = 2**24


def default_directory() -> Path:
    """Return ``$MKLDIST_CACHE``, or the user's cache folder of this platform."""
    given = os.environ.get(DIRECTORY_VARIABLE)
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("mkldist")) / "banks"


@dataclass
class NodeCache:
    """Memory-mapped files of banks below one folder of this machine.

    `directory`: the folder, made when needed. `budget_bytes`: bytes that all files may take
    together.  The least recently used files are deleted to make room.  A process that has mapped a
    deleted file can read it until it closes the bank.
    """

    directory: Path = field(default_factory=default_directory)
    budget_bytes: int = DEFAULT_BUDGET

    def path_of(self, store: BankStore) -> Path:
        """Return the path of the file of a bank, whether it exists or not."""
        name = store.location.rstrip("/").rsplit("/", 1)[-1]
        identity = content_id(name=name, shape=str(store.shape), attrs=dict(store.attrs))
        return self.directory / f"{identity}{SUFFIX}"

    def remove(self, store: BankStore) -> None:
        """Remove the file of a bank, if there is one; processes that have mapped it keep it."""
        self.path_of(store).unlink(missing_ok=True)

    def open(self, store: BankStore, resident_limit: int | None = None) -> MappedBank | None:
        """Map the file of a store's bank, made first if it is missing, and return the bank.

        If several processes need the file, one makes it and the others wait.

        Returns None if the bank is larger than the budget or the disk has no room for it.
        """
        path, n_bytes = self.path_of(store), store.shape.n_kernels * store.shape.kernel_bytes
        if n_bytes + FOOTER.n_bytes > self.budget_bytes:
            return None
        if not _is_whole(path, n_bytes):
            try:
                make_folder(self.directory, durable=False)
            except OSError as error:
                raise output_error(str(self.directory), error) from error
            with locked(path.with_suffix(".lock")):
                if not _is_whole(path, n_bytes) and not self._built(path, store, n_bytes):
                    return None
        with suppress(OSError):  # it belongs to another user
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        try:
            return MappedBank(path, store.shape, resident_limit)
        except OSError:  # another process has made room
            return None

    def _built(self, path: Path, store: BankStore, n_bytes: int) -> bool:
        """Write the file of a bank, and return False if the disk has no room for it."""
        remove_temporaries(self.directory)
        used = []
        for other in self.directory.glob(f"*{SUFFIX}"):
            with suppress(OSError):
                used.append((other.stat().st_atime, other.stat().st_size, other))
        others = [one for one in used if one[2] != path]
        _evict(others, n_bytes + FOOTER.n_bytes, self.budget_bytes, Path.unlink)
        try:
            with replacing(path, durable=False) as temporary:  # the footer tells damage
                _write_bank(temporary, store, path.stem)
        except OSError:
            return False
        return True


def _evict(
    used: list[tuple[float, int, Path]],
    n_bytes: int,
    budget_bytes: int,
    remove: Callable[[Path], object],
) -> None:
    """Remove what was used longest ago, as far as it can be, until `n_bytes` more fit a budget."""
    left = sum(size for _, size, _ in used) + n_bytes
    for _, size, path in sorted(used):
        if left <= budget_bytes:
            return
        with suppress(OSError, OutputError):
            remove(path)
            left -= size


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it while the context lasts."""
    with ExitStack() as held:
        try:
            held.enter_context(held_lock(path, wait=True))
        except OSError as error:
            raise output_error(str(path), error) from error
        yield


def _write_bank(path: Path, store: BankStore, identity: str) -> None:
    """Write all entries of a store and the footer to a file, which will be named by `identity`."""
    row_bytes, buffer = store.shape.kernel_bytes, block_buffer(store)
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
        n_bytes = store.shape.n_kernels * row_bytes
        footer = FOOTER.of(_pieces(path, n_bytes, identity))
        file.seek(n_bytes)
        file.write(footer)


def _is_whole(path: Path, n_bytes: int) -> bool:
    """Return True if a file has so many bytes of entries and the footer fits them."""
    try:
        status = path.stat()
        version = status.st_ino, status.st_mtime_ns
        return status.st_size == n_bytes + FOOTER.n_bytes and _is_sound(path, n_bytes, version)
    except OSError:
        return False


@lru_cache
def _is_sound(path: Path, n_bytes: int, version: tuple[int, int]) -> bool:
    """Return True if the footer of a file fits its entries; each version is read once."""
    with path.open("rb") as file:
        file.seek(n_bytes)
        footer = file.read()
    return footer == FOOTER.of(_pieces(path, n_bytes, path.stem))


def _pieces(path: Path, n_bytes: int, identity: str) -> Iterator[bytes]:
    """Yield whose file it is, so that two do not change places, and its first bytes in pieces.

    Pages of a memory map would count as memory of this process.
    """
    yield identity.encode()
    left = n_bytes
    with path.open("rb", buffering=0) as file:
        while left and (piece := file.read(min(left, CHECKED_AT_ONCE))):
            left -= len(piece)
            yield piece


@dataclass(frozen=True)
class NodeFolders:
    """Folders of one kind, beside the files of the node cache."""

    kind: str  # what they hold, the name of the folder that they lie in
    budget_bytes: int = DEFAULT_BUDGET  # of all of them, unless tasks use more at once

    @property
    def root(self) -> Path:
        """The folder that they lie in."""
        return default_directory() / self.kind

    @contextmanager
    def used(self, name: str) -> Iterator[Path]:
        """Yield a folder that stays while the context lasts, marked as used now."""
        with ExitStack() as held:
            folder = self.root / name
            try:
                make_folder(self.root, durable=False)
                held.enter_context(held_lock(self._lock(name), shared=True, wait=True))
                make_folder(folder, durable=False)
                os.utime(folder)
            except OSError as error:
                raise output_error(str(folder), error) from error
            yield folder

    @contextmanager
    def alone(self, name: str) -> Iterator[Path]:
        """Yield a folder as :meth:`used` does, which no other process has taken by this method."""
        with self.used(name) as folder, locked(self.root / f".{name}.lock"):
            yield folder

    def make_room(self, n_bytes: int, keep: str) -> None:
        """Remove the folders used longest ago until `n_bytes` more fit the budget.

        A folder that somebody uses stays.  If those in use leave too little room, the budget is
        exceeded.
        """
        used = []
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            if folder.is_dir() and folder.name != keep and not folder.name.startswith("."):
                with suppress(OSError):  # another process removes it
                    used.append((folder.stat().st_mtime, _size(folder), folder))
        _evict(used, n_bytes, self.budget_bytes, self._remove)

    def _remove(self, folder: Path) -> None:
        """Remove a folder that nobody uses."""
        with held_lock(self._lock(folder.name)):
            open_bytes(self.root, folder.name).clear()

    def _lock(self, name: str) -> Path:
        """Return the file whose lock the users of a folder share."""
        return self.root / f".{name}.in-use"


def _size(folder: Path) -> int:
    """Return the bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def remove_stored(root: Path, bank_id: str) -> None:
    """Remove a bank below a folder, damaged or not, and its copy in the node cache."""
    try:
        remove_bank(BankStore.open(root, bank_id))
    except StoreError:
        open_bytes(root, bank_id).clear()


def remove_bank(store: BankStore) -> None:
    """Remove a bank and its copy in the node cache of this machine."""
    NodeCache().remove(store)
    store.delete()
