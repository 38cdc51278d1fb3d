"""The workers of a cluster that a sweep uses, and how those on other machines reach its data.

Whoever joins is probed once, in a thread of its own beside the sweep: its versions of packages, and
what it shares with this process.  A worker that does not answer holds up no other.  A sweep uses
the workers that it can; each other one is named in one line.

Workers that share no folder with this process fetch data from the store of banks or through the
scheduler; if they share no folder of banks, each machine builds its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.bank.byte_store import SNAPSHOTS, open_bytes
from mkldist.core.devices import CPU, device_named
from mkldist.data.snapshot import HEADER, snapshot_header
from mkldist.errors import ClusterError, MkldistError, UnfitClusterError
from mkldist.kernel_functions.custom import CustomFunction, search_first
from mkldist.planning.checks import code_of
from mkldist.run.bank_refs import BankRef, published_name
from mkldist.run.cluster import no_worker
from mkldist.run.probe import check_storage, compared_workers
from mkldist.run.record_queue import queue_name, reaching
from mkldist.run.sweep_setup import NO_WORKERS_NOTE_SECONDS, BankKey, WallTime
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.1
SILENCE_NOTE_SECONDS = 30.0
GRACE_SECONDS = 3.0  # for the other workers, once some were probed
OUTPUT, BANKS = "results", "banks"


@dataclass(frozen=True)
class Needs:
    """What workers of a sweep need."""

    output: str  # folder of the sweep's output
    banks: str = ""  # folder or URL of its banks; empty if none is stored
    code: str = ""  # folder of the user's kernel functions; empty if the sweep has none
    functions: tuple[str, ...] = ()  # names of these functions
    # Names of the devices on which kernels are computed, without the processor
    devices: tuple[str, ...] = ()

    @property
    def storage(self) -> dict[str, str]:
        """Folders and URLs by what they hold."""
        return {OUTPUT: self.output} | ({BANKS: self.banks} if self.banks else {})


@dataclass(frozen=True)
class Sharing:
    """What the workers of a sweep share with its process."""

    # True if all see the output folder.  Otherwise they fetch data from elsewhere
    output: bool = True
    # True if all reach the folder or store of banks, or see the output folder if none is stored.
    # Otherwise each machine keeps its own
    banks: bool = True


@dataclass(frozen=True)
class Probed:
    """A worker that was probed."""

    wrong: str = ""  # why it cannot be used; empty if nothing is wrong
    sharing: Sharing = field(default_factory=Sharing)  # what it shares


class SnapshotPublisher:
    """Publisher of the data that workers fetch which do not see the output folder."""

    def __init__(self, client: Client, output: Path) -> None:
        self._client: Any = client
        self._prefix = queue_name(output)
        self._published: set[str] = set()

    def publish(self, snapshot: Path, banks: str) -> str:
        """Let workers fetch a snapshot; return where they find it."""
        blobs = open_bytes(banks, f"{SNAPSHOTS}/{snapshot.name}") if "://" in banks else None
        for file in sorted({HEADER, *snapshot_header(snapshot)["files"].values()}):
            content = (snapshot / file).read_bytes()
            if blobs is not None:
                if blobs.get(file) != content:
                    blobs.put(file, [content])
                continue
            name = published_name(self._prefix, snapshot.name, file)
            if name not in self._published:
                with reaching(self._client):
                    self._client.publish_dataset(content, name=name, override=True)
                self._published.add(name)
        return self._prefix if blobs is None else banks

    def close(self) -> None:
        """Take back what was published."""
        with suppress(Exception):  # a scheduler that is gone keeps nothing
            for name in self._published:
                self._client.unpublish_dataset(name)


class WorkerPool:
    """The workers of a cluster that a sweep may use."""

    def __init__(self, client: Client, needs: Needs) -> None:
        self._client, self._needs = client, needs
        self._probed: dict[str, Probed] = {}
        self._probing: dict[str, Future[Probed | None]] = {}
        self._probed_at: dict[str, float] = {}
        self._sharing: Sharing | None = None
        self._noted: set[str] = set()
        self._noted_silent: set[str] = set()
        self._publisher = SnapshotPublisher(client, Path(needs.output))

    def wait(self, wall_time: WallTime) -> Iterator[str]:
        """Wait for workers that can be used; yield lines on others meanwhile.

        One is enough when the others do not reply for some seconds.  What those that replied
        share holds for all: see :attr:`sharing`.
        """
        since = None
        noted = seen = time.monotonic()
        while True:
            with reaching(self._client):
                there: dict[str, int] = self._client.nthreads()
            usable = self._usable(there)
            all_replied = all(one in self._probed for one in there)
            if usable and all_replied:
                break
            wrong = {self._probed[one].wrong: one for one in there if one in self._probed}
            if not usable and not (wrong and all_replied):
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since > GRACE_SECONDS:
                if usable:
                    break
                [(found, worker), *_] = wrong.items()
                hint = "'mkldist cluster check' says what each worker lacks"
                raise UnfitClusterError(f"worker {worker}", found, "a worker to use", hint)
            yield from self.messages()
            if not there and time.monotonic() - noted > NO_WORKERS_NOTE_SECONDS:
                yield no_worker("waiting for workers: none has joined")
                noted = time.monotonic()
            seen = time.monotonic() if there else seen
            wall_time.check()
            wall_time.check_workers(time.monotonic() - seen)
            time.sleep(POLL_SECONDS)
        shared = [self._probed[worker].sharing for worker in usable]
        self._sharing = Sharing(all(one.output for one in shared), all(one.banks for one in shared))
        yield from self.messages()

    @property
    def sharing(self) -> Sharing:
        """What all workers share that the sweep uses."""
        return self._sharing or Sharing()

    def usable(self, there: Mapping[str, int]) -> dict[str, int]:
        """Return those of some workers, and their threads, that the sweep may use now."""
        return {worker: there[worker] for worker in self._usable(there)}

    def admitted(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the sweep may use, of those that ever came."""
        return tuple(one for one in list(self._probed) if self._is_usable(one))

    def messages(self) -> Iterator[str]:
        """Yield a line on each worker that was left out, or fell silent, since the last call."""
        for worker, at in self._probed_at.items():
            silent = worker not in self._probed and worker not in self._noted_silent
            if silent and time.monotonic() - at > SILENCE_NOTE_SECONDS:
                self._noted_silent.add(worker)
                yield f"worker {worker} does not answer"
        for worker in sorted(set(self._probed) - self._noted):
            if why := self._why_left_out(worker):
                self._noted.add(worker)
                yield f"worker {worker} is left out: {why}"

    def reached(self, banks: Mapping[BankKey, BankRef]) -> dict[BankKey, BankRef]:
        """Return banks as workers find them; let workers fetch the data that they do not see."""
        found, origins = dict[BankKey, BankRef](), dict[tuple[str, str], str]()
        for key, ref in banks.items():
            root, snapshot = ref.root if self.sharing.banks else "", ref.snapshot
            if not self.sharing.output and (snapshot, root) not in origins:
                origins[snapshot, root] = self._publisher.publish(Path(snapshot), root)
            origin = origins.get((snapshot, root), "")
            found[key] = replace(ref, root=root, fetched_from=origin)
        return found

    def close(self) -> None:
        """Take back the data that were published."""
        self._publisher.close()

    def _usable(self, there: Collection[str]) -> list[str]:
        """Return the workers that may be used; have new ones probed."""
        for worker, probe in list(self._probing.items()):
            if probe.done():
                del self._probing[worker]
                if (found := self._result(probe)) is not None:
                    self._probed[worker] = found
        for worker in list(self._probed_at):
            if worker not in there:
                del self._probed_at[worker]
        for worker in there:
            if worker not in self._probed and worker not in self._probing:
                self._probed_at.setdefault(worker, time.monotonic())
                self._probing[worker] = self._begin_probe(worker)
        return [worker for worker in there if self._is_usable(worker)]

    def _result(self, probe: Future[Probed | None]) -> Probed | None:
        """Return what a probe found; None if the worker is to be probed again."""
        try:
            with reaching(self._client):
                return probe.result()
        except ClusterError:
            raise
        except MkldistError:  # a medium that fails for a while ends no sweep that has begun
            if self._sharing is None:
                raise
            return None
        except Exception as error:
            return Probed(_unexamined(error))

    def _begin_probe(self, worker: str) -> Future[Probed | None]:
        """Probe a worker in a thread that no exit of the process waits for."""
        probe: Future[Probed | None] = Future()

        def run() -> None:
            try:
                probe.set_result(self._probe(worker))
            except BaseException as error:
                probe.set_exception(error)

        threading.Thread(target=run, name=f"mkldist-pool-{worker}", daemon=True).start()
        return probe

    def _is_usable(self, worker: str) -> bool:
        """Return True if a worker was probed and has what the sweep needs."""
        return worker in self._probed and not self._why_left_out(worker)

    def _why_left_out(self, worker: str) -> str:
        """Return why a worker that was probed is not used; empty if it may be."""
        one, wanted = self._probed[worker], self._sharing
        if one.wrong or wanted is None:
            return one.wrong
        if wanted.output and not one.sharing.output:
            return f"it does not share {self._needs.output}"
        if wanted.banks and not one.sharing.banks:
            return f"it does not share {self._needs.banks}"
        return ""

    def _probe(self, worker: str) -> Probed | None:
        """Return what is found of a worker; None if it did not answer."""
        compared = compared_workers(self._client, [worker])
        for one in compared.unequal:
            return Probed(str(one))
        return self._checked(worker) if worker in compared.equal else None

    def _checked(self, worker: str) -> Probed | None:
        """Have a worker try the storage that it needs, and import functions."""
        tried = check_storage(self._client, self._needs.storage, [worker])
        for refused in tried.refused.values():
            raise refused
        if worker in tried.failed:
            return Probed(_unexamined(tried.failed[worker]))
        if worker not in tried.found:
            return None
        output = tried.is_shared(OUTPUT, worker)
        banks = tried.is_shared(BANKS, worker) if self._needs.banks else output
        wrong = self._missing(worker)
        if not wrong and "://" in self._needs.banks and not banks:
            wrong = f"{self._needs.banks}: {tried.wrong[BANKS][worker]}"
        return Probed(wrong, Sharing(output, banks))

    def _missing(self, worker: str) -> str:
        """Return why a worker lacks the user's functions or a device; empty if it has them."""
        needs = self._needs
        if not (needs.functions or needs.devices):
            return ""
        replies = self._client.run(
            try_functions, needs.code, needs.functions, needs.devices, workers=[worker],
            on_error="return",
        )  # fmt: skip
        reply: str | BaseException = replies.get(worker, "")
        return _unexamined(reply) if isinstance(reply, BaseException) else reply


def _unexamined(error: BaseException) -> str:
    """Return what to say of a worker whose reply was an error."""
    return f"it cannot be examined ({type(error).__name__}: {error})"


def try_functions(code: str, functions: tuple[str, ...], devices: tuple[str, ...] = ()) -> str:
    """Return what hinders the user's functions or devices here; empty if nothing does."""
    try:
        if functions:
            search_first(code)
        for function in functions:
            CustomFunction.named(function, "kernel function")
        for device in devices:
            device_named(device, "device")
    except MkldistError as error:
        return error.found
    return ""


def needs_of(spec: SweepSpec, output: Path, banks: str, code: str) -> Needs:
    """Return what workers of a sweep need."""
    functions = dict.fromkeys(function for _, function in code_of(spec)) if code else ()
    devices = dict.fromkeys(bank.device for bank in spec.banks if bank.device != CPU)
    return Needs(str(output.absolute()), banks, code, tuple(functions), tuple(devices))


@contextmanager
def worker_pool(
    client: Client, needs: Needs, note: Callable[[str], None], wall_time: WallTime
) -> Iterator[WorkerPool]:
    """Wait for a worker that a sweep can use, and find out what it shares with this process."""
    pool = WorkerPool(client, needs)
    for line in pool.wait(wall_time):
        note(line)
    note(sharing_line(pool.sharing, needs))
    try:
        yield pool
    finally:
        pool.close()


def sharing_line(sharing: Sharing, needs: Needs) -> str:
    """Return a line on what workers share with this process, and what is done instead."""
    if sharing.output:
        words = f"workers read data from {needs.output}"
    else:
        where = needs.banks if "://" in needs.banks else "the scheduler"
        words = f"workers do not share {needs.output}: they fetch the data from {where}"
    if needs.banks and not sharing.banks:
        words += f"; they do not share {needs.banks}: each machine builds banks for itself"
    return words
