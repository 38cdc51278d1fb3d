"""What a process of a cluster has: versions of packages, memory, disks, and what it shares.

Ids, numbers, and what Dask sends depend on versions, so that no task begins where one differs.  A
worker that joins late may have others.

The coordinator puts a probe into a folder or store.  A worker that reads it there puts a reply
beside it, which the coordinator reads.  Another folder under the same path holds neither.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock, Timeout

from mkldist.bank.byte_store import ByteStore, open_bytes
from mkldist.bank.cache import default_directory
from mkldist.core.durable import remove_temporaries, temporary_path
from mkldist.core.memory import available_memory
from mkldist.core.threads import n_processors
from mkldist.errors import MkldistError, UnfitClusterError

if TYPE_CHECKING:
    from distributed import Client


def this_worker() -> Any:
    """Return the worker of Dask whose task this thread does; None in any other thread."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:  # this process is no worker: it does the task itself
        return None


def worker_memory(memory_limit: int | None) -> int | None:
    """Return the bytes that this process may take; None without a limit."""
    worker = this_worker()
    own = None if worker is None else worker.memory_manager.memory_limit
    limits = [limit for limit in (memory_limit, own) if limit]
    return min(limits) if limits else None


def memory_share(memory_limit: int | None) -> int | None:
    """Return the bytes that a task may take: its worker's limit divided among its threads."""
    worker, limit = this_worker(), worker_memory(memory_limit)
    if worker is None:
        return memory_limit
    return None if limit is None else limit // max(1, worker.state.nthreads)


Task = TypeVar("Task")
Receipt = TypeVar("Receipt")
Answer = TypeVar("Answer")

PYTHON = "Python"
SCHEDULER = "scheduler"

PACKAGES = ("mkldist", "numpy", "scipy", "numba", "distributed")
"""Packages of which all processes of a sweep need one version."""
ADVICE = "Install the same versions for the scheduler and every worker, and restart them"
LOOK_SECONDS = 1.0


def asking(packages: tuple[str, ...] = PACKAGES) -> Callable[[], dict[str, str]]:
    """Return a function that tells the versions of packages wherever it runs.

    Dask sends a nested function by its code, so that it runs where mkldist is missing too.
    """

    def versions() -> dict[str, str]:
        from contextlib import suppress
        from importlib import metadata, util

        found = {}
        for package in packages:
            found[package] = "no installation"
            with suppress(ImportError):
                if util.find_spec(package) is not None:
                    found[package] = "an unknown version"
                    found[package] = f"version {metadata.version(package)}"
        return found

    return versions


@cache
def versions_here() -> Mapping[str, str]:
    """Return the version of each package in this process."""
    return asking()()


def unfit_worker(worker: str, package: str, there: str, here: str) -> UnfitClusterError:
    """Return the error for a process of the cluster whose package is not the coordinator's."""
    return UnfitClusterError(worker, f"{there} of {package}", f"{here} as in this process", ADVICE)


def do_where_equal(
    wanted: Mapping[str, str], function: Callable[[Task], Receipt], task: Task
) -> Receipt:
    """Return ``function(task)``, if this process has the versions of the coordinator."""
    if getattr(this_worker(), "nanny", None):
        end_when_no_thread_can_start()
    check_equal(wanted)
    return function(task)


@cache
def end_when_no_thread_can_start() -> None:
    """End this process once a new thread lacks the memory to begin (CPython issue 140746).

    Who starts the thread would wait for ever, and the scheduler would hear that the worker lives.
    The hook needs no memory: it keeps what Python reports, which a thread begun before looks at.
    """
    reported: deque[Any] = deque()

    def look() -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            while reported:
                one = reported.popleft()
                if issubclass(one.exc_type, MemoryError):
                    os._exit(1)
                sys.__unraisablehook__(one)

    sys.unraisablehook = reported.append
    threading.Thread(target=look, name="mkldist-memory", daemon=True).start()


def check_equal(wanted: Mapping[str, str]) -> None:
    """Raise UnfitClusterError if a package has another version in this process."""
    there = versions_here()
    for package, version in wanted.items():
        if there[package] != version:
            worker = this_worker()
            name = "worker" if worker is None else f"worker {worker.address}"
            raise unfit_worker(name, package, there[package], version)


@dataclass(frozen=True)
class Difference:
    """A package whose version in a process of the cluster is not the one here."""

    process: str  # ``"scheduler"``, or the address of a worker
    package: str  # name of the package, or ``"Python"``
    there: str  # what there is, such as ``"version 1.26.4"`` or ``"no installation"``
    here: str

    def __str__(self) -> str:
        return f"{self.there} of {self.package}; {self.here} here"


def check_scheduler(client: Client) -> None:
    """Refuse a scheduler whose packages differ from those of this process."""
    for one in _of_scheduler(client):
        raise unfit_worker(one.process, one.package, one.there, one.here)


@dataclass(frozen=True)
class Compared:
    """What some processes of a cluster have."""

    unequal: tuple[Difference, ...]
    # Addresses of workers in which nothing does.  Those that did not answer are in neither
    equal: tuple[str, ...]


def differences(client: Client) -> Compared:
    """Compare the packages of the scheduler and of all workers with those here."""
    workers = compared_workers(client, sorted(client.nthreads()))
    return replace(workers, unequal=(*_of_scheduler(client), *workers.unequal))


def compared_workers(client: Client, workers: Collection[str]) -> Compared:
    """Compare the packages of workers with those here."""
    pythons = _answers(client, platform.python_version_tuple, workers)
    unequal = [one for where, there in pythons.items() for one in _of_python(where, there)]
    alike = sorted(pythons.keys() - {one.process for one in unequal})
    there = _answers(client, asking(), alike)  # code of another Python cannot run there
    unequal += [one for where in there for one in _compared(where, there[where], versions_here())]
    strange = {one.process for one in unequal}
    return Compared(tuple(unequal), tuple(w for w in alike if w in there and w not in strange))


def _of_scheduler(client: Client) -> list[Difference]:
    """Return what differs in the scheduler."""
    found = [*_of_python(SCHEDULER, client.run_on_scheduler(platform.python_version_tuple))]
    if found:
        return found  # code of another Python cannot run there, not even to ask for more
    return [*_compared(SCHEDULER, client.run_on_scheduler(asking()), versions_here())]


def all_versions_here() -> dict[str, str]:
    """Return the versions that all processes need: of Python and of packages, by name."""
    return {**_python(platform.python_version_tuple()), **versions_here()}


def _python(version: tuple[str, str, str]) -> dict[str, str]:
    return {PYTHON: f"version {'.'.join(version[:2])}"}


def _answers(
    client: Client, function: Callable[[], Answer], workers: Collection[str]
) -> dict[str, Answer]:
    """Return what a function returns in each of some workers, without those that do not answer."""
    if not workers:
        return {}
    replies = client.run(function, workers=list(workers), on_error="return")
    return {
        where: message
        for where, message in replies.items()
        if not isinstance(message, BaseException)
    }


def _of_python(process: str, version: tuple[str, str, str]) -> Iterator[Difference]:
    """Yield the Python of a process if it differs."""
    return _compared(process, _python(version), _python(platform.python_version_tuple()))


def _compared(
    process: str, there: Mapping[str, str], here: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield what differs in a process."""
    for package, version in here.items():
        if there[package] != version:
            yield Difference(process, package, there[package], version)


PROBE = "probe"
NOT_SEEN = "it does not see what the coordinator wrote"
NOT_READ_BACK = "the coordinator does not see what it wrote"
NO_LOCK = "its locks do not exclude other machines"
NETWORK = ("nfs", "lustre", "cifs", "smb", "beegfs", "gpfs", "ceph", "glusterfs", "afs", "9p")
"""Beginnings of the types of file systems that lie on other machines."""
MEMORY_LIMITS = ("target", "spill", "pause", "terminate")


@dataclass(frozen=True)
class SharedStorage:
    """A folder or store, and a folder in it for one probe and its replies."""

    root: str  # absolute path of an existing folder, or URL
    # Name of this probe among all that there ever are, that of a temporary folder
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
        """Put the probe for as long as the context lasts, and hold its lock."""
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
    """What one worker finds."""

    host: str  # name of its machine
    processors: int  # processors that it may use
    memory: int  # bytes that processes of its machine can get
    cache: str  # folder of the node cache
    cache_bytes: int  # bytes that are free there; -1 if it cannot be written
    cache_is_remote: bool  # True if it lies on a file system of other machines
    limits: tuple[str, ...]  # limits on memory by which Dask would spill, pause or end this worker
    # What is wrong with each shared place, by its root; empty if nothing is
    wrong: Mapping[str, str]


def probe_environment(places: tuple[SharedStorage, ...], dask_worker: Any) -> Environment:
    """Return the environment of this worker, and reply to the probes in shared storage."""
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
    """Return the name under which a worker replies."""
    return re.sub(r"[:/]+", "-", address).strip("-")


def file_system(path: Path) -> str:
    """Return the type of the file system of a path, such as ``"ext4"``; ``""`` if it is unknown."""
    import psutil

    real = path.resolve()
    above = {Path(one.mountpoint): one.fstype for one in psutil.disk_partitions(all=True)}
    found = [(len(at.parts), kind) for at, kind in above.items() if real.is_relative_to(at)]
    return max(found, default=(0, ""))[1]


def _limits(dask_worker: Any) -> tuple[str, ...]:
    """Return the limits on memory that Dask would keep this worker to."""
    import dask

    if not dask_worker.memory_manager.memory_limit:
        return ()
    return tuple(n for n in MEMORY_LIMITS if dask.config.get(f"distributed.worker.memory.{n}"))


@dataclass(frozen=True)
class SharedStorageCheck:
    """What workers find where they run."""

    found: Mapping[str, Environment]  # what each worker that answered finds
    # What is wrong with each place for each of these workers, by the names of both; empty texts
    # where nothing is
    wrong: Mapping[str, Mapping[str, str]]
    # Places in which this process cannot write, by name; workers were not asked about them
    refused: Mapping[str, MkldistError]
    # Errors of the workers that answered with one
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
        replies = client.run(probe_environment, probed, workers=sorted(workers), on_error="return")
        found = {worker: one for worker, one in replies.items() if isinstance(one, Environment)}
        failed = {worker: one for worker, one in replies.items() if isinstance(one, BaseException)}
        wrong = {
            name: {worker: one.wrong[place.root] for worker, one in found.items()}
            for name, place in shared.items()
        }
        for name, place in shared.items():
            for worker, message in wrong[name].items():
                if not message and not place.has_reply(reply_name(worker)):
                    wrong[name][worker] = NOT_READ_BACK
    return SharedStorageCheck(found, wrong, refused, failed)
