"""The workers of a cluster that a sweep uses, and why it leaves others out.

Whoever joins is examined once, in a thread of its own beside the sweep: its versions of packages,
and what it shares with this process.  A worker that does not answer holds up no other.  A sweep
uses the sound ones; each other one is named in one line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mkldist.devices import device_named
from mkldist.errors import MkldistError, UnfitClusterError
from mkldist.kernel_functions.custom import CustomFunction, search_first
from mkldist.run.scheduler_address import lost_scheduler
from mkldist.run.shared_places import try_places
from mkldist.run.wall_time import WallTime
from mkldist.run.worker_versions import compared_workers

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.1
NO_WORKERS_NOTE_SECONDS = 30.0
SILENCE_NOTE_SECONDS = 30.0
GRACE_SECONDS = 3.0  # for the other workers, once some were examined
OUTPUT, BANKS = "results", "banks"


@dataclass(frozen=True)
class Needs:
    """What workers of a sweep need.

    Parameters
    ----------
    output : str
        Folder of the sweep's output.
    banks : str
        Folder or URL of its banks; empty if none is stored.
    code : str
        Folder of the user's kernel functions; empty if the sweep has none.
    functions : tuple of str
        Names of these functions.
    devices : tuple of str
        Names of the devices on which kernels are computed, without the processor.
    """

    output: str
    banks: str = ""
    code: str = ""
    functions: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    @property
    def places(self) -> dict[str, str]:
        """Folders and URLs by what they hold."""
        return {OUTPUT: self.output} | ({BANKS: self.banks} if self.banks else {})


@dataclass(frozen=True)
class Sharing:
    """What the workers of a sweep share with its process.

    Parameters
    ----------
    output : bool
        True if all see the output folder.  Otherwise they fetch data from elsewhere.
    banks : bool
        True if all reach the folder or store of banks, or see the output folder if none is stored.
        Otherwise each machine keeps its own.
    """

    output: bool = True
    banks: bool = True


@dataclass(frozen=True)
class Examined:
    """A worker that was examined.

    Parameters
    ----------
    wrong : str
        Why it cannot be used; empty if nothing is wrong.
    sharing : Sharing
        What it shares.
    """

    wrong: str = ""
    sharing: Sharing = field(default_factory=Sharing)


class Roster:
    """The workers of a cluster that a sweep may use.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.
    needs : Needs
        What workers need.
    """

    def __init__(self, client: Client, needs: Needs) -> None:
        self._client, self._needs = client, needs
        self._examined: dict[str, Examined] = {}
        self._examining: dict[str, Future[Examined | None]] = {}
        self._asked_at: dict[str, float] = {}
        self._sharing: Sharing | None = None
        self._told: set[str] = set()
        self._told_silent: set[str] = set()

    def first(self, wall_time: WallTime) -> Iterator[str]:
        """Wait for workers that can be used; yield lines on others meanwhile.

        One is enough when the others do not answer for some seconds.  What those that answered
        share holds for all: see :attr:`sharing`.

        Parameters
        ----------
        wall_time : WallTime
            Time at whose end the waiting ends.

        Raises
        ------
        mkldist.errors.UnfitClusterError
            If workers are there, and for some seconds none of them can be used.
        mkldist.errors.OutOfTimeError
            At the end of the time.
        """
        since, told = None, time.monotonic()
        while True:
            sound = self._sound(there := self._there())
            all_answered = all(one in self._examined for one in there)
            if sound and all_answered:
                break
            wrong = {self._examined[one].wrong: one for one in there if one in self._examined}
            if not sound and not (wrong and all_answered):
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since > GRACE_SECONDS:
                if sound:
                    break
                [(said, worker), *_] = wrong.items()
                hint = "'mkldist cluster check' says what each worker lacks"
                raise UnfitClusterError(f"worker {worker}", said, "a worker to use", hint)
            yield from self.lines()
            if not there and time.monotonic() - told > NO_WORKERS_NOTE_SECONDS:
                yield "waiting for workers: none has joined"
                told = time.monotonic()
            wall_time.check()
            time.sleep(POLL_SECONDS)
        shared = [self._examined[worker].sharing for worker in sound]
        self._sharing = Sharing(all(one.output for one in shared), all(one.banks for one in shared))
        yield from self.lines()

    @property
    def sharing(self) -> Sharing:
        """What all workers share that the sweep uses."""
        return self._sharing or Sharing()

    def sound(self, there: Mapping[str, int]) -> dict[str, int]:
        """Return those of some workers, and their threads, that the sweep may use now.

        Parameters
        ----------
        there : mapping of str to int
            Threads of the workers that are there; those that are new are examined meanwhile.
        """
        return {worker: there[worker] for worker in self._sound(there)}

    def admitted(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the sweep may use, of those that ever came."""
        return tuple(one for one in list(self._examined) if self._is_sound(one))

    def lines(self) -> Iterator[str]:
        """Yield a line on each worker that was left out, or fell silent, since the last call."""
        for worker, at in self._asked_at.items():
            silent = worker not in self._examined and worker not in self._told_silent
            if silent and time.monotonic() - at > SILENCE_NOTE_SECONDS:
                self._told_silent.add(worker)
                yield f"worker {worker} does not answer"
        for worker in sorted(set(self._examined) - self._told):
            if said := self._why_left_out(worker):
                self._told.add(worker)
                yield f"worker {worker} is left out: {said}"

    def _there(self) -> dict[str, int]:
        """Return the threads of the workers that are there."""
        try:
            there: dict[str, int] = self._client.nthreads()
        except OSError as error:
            raise lost_scheduler() from error
        return there

    def _sound(self, there: Collection[str]) -> list[str]:
        """Return the workers that may be used; have new ones examined."""
        for worker, examination in list(self._examining.items()):
            if examination.done():
                del self._examining[worker]
                if (found := self._result(examination)) is not None:
                    self._examined[worker] = found
        for worker in list(self._asked_at):
            if worker not in there:
                del self._asked_at[worker]
        for worker in there:
            if worker not in self._examined and worker not in self._examining:
                self._asked_at.setdefault(worker, time.monotonic())
                self._examining[worker] = self._begin_examination(worker)
        return [worker for worker in there if self._is_sound(worker)]

    def _result(self, examination: Future[Examined | None]) -> Examined | None:
        """Return what an examination found; None if the worker is to be asked again."""
        try:
            return examination.result()
        except OSError as error:
            raise lost_scheduler() from error
        except MkldistError:  # a medium that fails for a while ends no sweep that has begun
            if self._sharing is None:
                raise
            return None
        except Exception as error:
            return Examined(_unexamined(error))

    def _begin_examination(self, worker: str) -> Future[Examined | None]:
        """Examine a worker in a thread that no exit of the process waits for."""
        examination: Future[Examined | None] = Future()

        def examine() -> None:
            try:
                examination.set_result(self._examine(worker))
            except BaseException as error:
                examination.set_exception(error)

        threading.Thread(target=examine, name=f"mkldist-roster-{worker}", daemon=True).start()
        return examination

    def _is_sound(self, worker: str) -> bool:
        """Return True if a worker was examined and has what the sweep needs."""
        return worker in self._examined and not self._why_left_out(worker)

    def _why_left_out(self, worker: str) -> str:
        """Return why a worker that was examined is not used; empty if it may be."""
        one, wanted = self._examined[worker], self._sharing
        if one.wrong or wanted is None:
            return one.wrong
        if wanted.output and not one.sharing.output:
            return f"it does not share {self._needs.output}"
        if wanted.banks and not one.sharing.banks:
            return f"it does not share {self._needs.banks}"
        return ""

    def _examine(self, worker: str) -> Examined | None:
        """Return what is found of a worker; None if it did not answer."""
        compared = compared_workers(self._client, [worker])
        for one in compared.unequal:
            return Examined(str(one))
        return self._places(worker) if worker in compared.equal else None

    def _places(self, worker: str) -> Examined | None:
        """Have a worker try the places that it needs, and import functions."""
        tried = try_places(self._client, self._needs.places, [worker])
        for refused in tried.refused.values():
            raise refused
        if worker in tried.failed:
            return Examined(_unexamined(tried.failed[worker]))
        if worker not in tried.found:
            return None
        output = tried.is_shared(OUTPUT, worker)
        banks = tried.is_shared(BANKS, worker) if self._needs.banks else output
        said = self._lacks(worker)
        if not said and "://" in self._needs.banks and not banks:
            said = f"{self._needs.banks}: {tried.wrong[BANKS][worker]}"
        return Examined(said, Sharing(output, banks))

    def _lacks(self, worker: str) -> str:
        """Return why a worker lacks the user's functions or a device; empty if it has them."""
        needs = self._needs
        if not (needs.functions or needs.devices):
            return ""
        told = self._client.run(
            try_functions, needs.code, needs.functions, needs.devices, workers=[worker],
            on_error="return",
        )  # fmt: skip
        return _said(told.get(worker, ""))


def _said(answer: str | BaseException) -> str:
    """Return what a worker says is wrong, or that its answer was an error."""
    return _unexamined(answer) if isinstance(answer, BaseException) else answer


def _unexamined(error: BaseException) -> str:
    """Return what to say of a worker whose answer was an error."""
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
