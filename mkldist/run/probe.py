"""Probe of workers: what each finds where it runs, and which folders and stores it shares.

The coordinator puts a probe into a folder or store.  A worker that reads it there puts a reply
beside it, which the coordinator reads.  Another folder under the same path holds neither.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from mkldist.bank.byte_store import ByteStore, open_bytes
from mkldist.bank.cache import default_directory
from mkldist.core.durable import remove_temporaries, temporary_path
from mkldist.core.memory import available_memory
from mkldist.core.processors import n_processors
from mkldist.errors import MkldistError

if TYPE_CHECKING:
    from distributed import Client

PROBE = "probe"
NOT_SEEN = "it does not see what the coordinator wrote"
NOT_READ_BACK = "the coordinator does not see what it wrote"
NO_LOCK = "its locks do not exclude other machines"
NETWORK = ("nfs", "lustre", "cifs", "smb", "beegfs", "gpfs", "ceph", "glusterfs", "afs", "9p")
"""Beginnings of the types of file systems that lie on other machines."""
MEMORY_LIMITS = ("target", "spill", "pause", "terminate")


@dataclass(frozen=True)
class SharedStorage:
    """A folder or store, and a folder in it for one probe and its replies.

    Parameters
    ----------
    root : str
        Absolute path of an existing folder, or URL.
    token : str
        Name of this probe among all that there ever are, that of a temporary folder.
    """

    root: str
    token: str = field(default_factory=lambda: temporary_path(Path()).name)

    @staticmethod
    def of(root: str) -> SharedStorage:
        """Return the storage of a path or URL, of the nearest folder above if it is missing."""
        text = root.removeprefix("file://")
        if "://" in text:
            return SharedStorage(text)
        folder = Path(text).absolute()
        return SharedStorage(str(next(one for one in (folder, *folder.parents) if one.is_dir())))

    @contextmanager
    def probing(self) -> Iterator[None]:
        """Put the probe for as long as the context lasts, and hold its lock.

        Raises
        ------
        mkldist.errors.MkldistError
            If this process cannot write there.
        """
        blobs = self._blobs
        if self._is_folder:
            remove_temporaries(Path(self.root))  # of a process that was killed meanwhile
        try:
            blobs.put(PROBE, [self.token.encode()])
            with FileLock(self._lock) if self._is_folder else nullcontext():
                yield
        finally:
            with suppress(MkldistError):
                blobs.clear()
            if self._is_folder:
                shutil.rmtree(self._own, ignore_errors=True)

    def reply(self, who: str) -> str:
        """Read the probe and put a reply; return what is wrong, empty if nothing is."""
        try:
            if self._blobs.get(PROBE) != self.token.encode():
                return NOT_SEEN
            self._blobs.put(who, [who.encode()])
        except MkldistError as error:
            return error.found
        return NO_LOCK if self._is_folder and self._can_lock() else ""

    def has_reply(self, who: str) -> bool:
        """Return True if the coordinator reads the reply of a process."""
        return self._blobs.get(who) == who.encode()

    @property
    def _blobs(self) -> ByteStore:
        return open_bytes(self._own, "replies")

    @property
    def _own(self) -> str:
        """Folder or URL of this probe alone."""
        return f"{self.root.rstrip('/')}/{self.token}"

    @property
    def _is_folder(self) -> bool:
        return "://" not in self.root

    @property
    def _lock(self) -> Path:
        return Path(self._own) / "lock"

    def _can_lock(self) -> bool:
        """Return True if this process gets the lock that the coordinator holds."""
        try:
            with FileLock(self._lock).acquire(timeout=0):
                return True
        except (Timeout, OSError, NotImplementedError):
            return False


@dataclass(frozen=True)
class Environment:
    """What one worker finds.

    Parameters
    ----------
    host : str
        Name of its machine.
    processors : int
        Processors that it may use.
    memory : int
        Bytes that processes of its machine can get.
    cache : str
        Folder of the node cache.
    cache_bytes : int
        Bytes that are free there; -1 if it cannot be written.
    cache_is_remote : bool
        True if it lies on a file system of other machines.
    limits : tuple of str
        Limits on memory by which Dask would spill, pause or end this worker.
    wrong : mapping of str to str
        What is wrong with each shared place, by its root; empty if nothing is.
    """

    host: str
    processors: int
    memory: int
    cache: str
    cache_bytes: int
    cache_is_remote: bool
    limits: tuple[str, ...]
    wrong: Mapping[str, str]


def probe_environment(places: tuple[SharedStorage, ...], dask_worker: Any) -> Environment:
    """Return the environment of this worker, and reply to the probes in shared storage.

    Parameters
    ----------
    places : tuple of SharedStorage
        Folders and stores in which the coordinator has put its probes.
    dask_worker : distributed.Worker
        This worker, as ``Client.run`` passes it.
    """
    folder = default_directory()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free if os.access(there, os.W_OK) else -1
    who = reply_name(dask_worker.address)
    return Environment(
        host=socket.gethostname(),
        processors=n_processors(),
        memory=available_memory(),
        cache=str(folder),
        cache_bytes=free,
        cache_is_remote=file_system(there).startswith(NETWORK),
        limits=_limits(dask_worker),
        wrong={place.root: place.reply(who) for place in places},
    )


def reply_name(address: str) -> str:
    """Return the name under which a worker replies.

    Examples
    --------
    >>> reply_name("tcp://10.0.0.1:4000")
    'tcp-10.0.0.1-4000'
    """
    return "-".join(part for part in address.replace("/", ":").split(":") if part)


def file_system(path: Path) -> str:
    """Return the type of the file system of a path, such as ``"ext4"``; ``""`` if it is unknown.

    Parameters
    ----------
    path : Path
        An existing file or folder.
    """
    import psutil

    real = path.resolve()
    above = {Path(one.mountpoint): one.fstype for one in psutil.disk_partitions(all=True)}
    found = [(len(mount.parts), kind) for mount, kind in above.items() if _below(real, mount)]
    return max(found, default=(0, ""))[1]


def _below(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _limits(dask_worker: Any) -> tuple[str, ...]:
    """Return the limits on memory that Dask would keep this worker to."""
    import dask

    if not dask_worker.memory_manager.memory_limit:
        return ()
    return tuple(n for n in MEMORY_LIMITS if dask.config.get(f"distributed.worker.memory.{n}"))


@dataclass(frozen=True)
class SharedStorageCheck:
    """What workers find where they run.

    Parameters
    ----------
    found : mapping of str to Environment
        What each worker that answered finds.
    wrong : mapping of str to mapping of str to str
        What is wrong with each place for each of these workers, by the names of both; empty texts
        where nothing is.
    refused : mapping of str to MkldistError
        Places in which this process cannot write, by name; workers were not asked about them.
    failed : mapping of str to BaseException
        Errors of the workers that answered with one.
    """

    found: Mapping[str, Environment]
    wrong: Mapping[str, Mapping[str, str]]
    refused: Mapping[str, MkldistError]
    failed: Mapping[str, BaseException] = field(default_factory=dict)

    def is_shared(self, place: str, worker: str) -> bool:
        """Return True if a worker can use a place; locks are for coordinators alone."""
        return place in self.wrong and self.wrong[place][worker] in ("", NO_LOCK)


def check_storage(
    client: Client, places: Mapping[str, str], workers: Collection[str]
) -> SharedStorageCheck:
    """Probe workers with the same packages, and storage from both sides."""
    shared, refused = dict[str, SharedStorage](), dict[str, MkldistError]()
    with ExitStack() as stack:
        for name, root in places.items():
            try:
                place = SharedStorage.of(root)
                stack.enter_context(place.probing())
            except MkldistError as error:
                refused[name] = error
            else:
                shared[name] = place
        probed = tuple(shared.values())
        told = client.run(probe_environment, probed, workers=sorted(workers), on_error="return")
        found = {worker: one for worker, one in told.items() if isinstance(one, Environment)}
        failed = {worker: one for worker, one in told.items() if isinstance(one, BaseException)}
        wrong = {name: _wrong(place, found) for name, place in shared.items()}
    return SharedStorageCheck(found, wrong, refused, failed)


def _wrong(place: SharedStorage, found: Mapping[str, Environment]) -> dict[str, str]:
    """Return what is wrong with a place for each worker; empty where nothing is."""
    wrong = {worker: one.wrong[place.root] for worker, one in found.items()}
    for worker, said in wrong.items():
        if not said and not place.has_reply(reply_name(worker)):
            wrong[worker] = NOT_READ_BACK
    return wrong
