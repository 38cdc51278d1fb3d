"""The workers of a cluster that a sweep uses, and why it leaves others out.

Whoever joins is examined once, in a thread beside the sweep: its versions of packages, and what it
shares with this process.  A sweep uses the sound ones; each other one is named in one line.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mkldist.errors import MkldistError, UnfitClusterError
from mkldist.kernel_functions.custom import CustomFunction, search_first
from mkldist.run.scheduler_address import lost_scheduler
from mkldist.run.shared_places import try_places
from mkldist.run.wall_time import WallTime
from mkldist.run.worker_versions import differences

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.1
NO_WORKERS_NOTE_SECONDS = 30.0
GRACE_SECONDS = 3.0  # for a sound worker, once others are there
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
    """

    output: str
    banks: str = ""
    code: str = ""
    functions: tuple[str, ...] = ()

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
        True if all see the output folder.  Otherwise records and data go through the scheduler.
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
        self._examiner = ThreadPoolExecutor(1, thread_name_prefix="mkldist-roster")
        self._examining: Future[None] | None = None
        self._sharing: Sharing | None = None
        self._told: set[str] = set()

    def first(self, wall_time: WallTime) -> Iterator[str]:
        """Wait for a worker that can be used; yield lines on others meanwhile.

        What it shares holds for all: see :attr:`sharing`.

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
        while not (sound := self._sound(there := self._there())):
            wrong = {self._examined[one].wrong: one for one in there if one in self._examined}
            if not wrong or not all(one in self._examined for one in there):
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since > GRACE_SECONDS:
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

    def left_out(self) -> tuple[str, ...]:
        """Return the addresses of the workers that the sweep does not use."""
        return tuple(one for one in list(self._examined) if not self._is_sound(one))

    def lines(self) -> Iterator[str]:
        """Yield a line on each worker that has been left out since the last call."""
        for worker in sorted(set(self._examined) - self._told):
            if said := self._why_left_out(worker):
                self._told.add(worker)
                yield f"worker {worker} is left out: {said}"

    def close(self) -> None:
        """Examine nobody any more."""
        self._examiner.shutdown(wait=False, cancel_futures=True)

    def _there(self) -> dict[str, int]:
        """Return the threads of the workers that are there."""
        try:
            there: dict[str, int] = self._client.nthreads()
        except OSError as error:
            raise lost_scheduler() from error
        return there

    def _sound(self, there: Collection[str]) -> list[str]:
        """Return the workers that may be used; have new ones examined."""
        if self._examining is not None and self._examining.done():
            done, self._examining = self._examining, None
            try:
                done.result()
            except OSError as error:
                raise lost_scheduler() from error
            except MkldistError:  # a medium that fails for a while ends no sweep that has begun
                if self._sharing is None:
                    raise
        new = [worker for worker in there if worker not in self._examined]
        if new and self._examining is None:
            self._examining = self._examiner.submit(self._examine, new)
        return [worker for worker in there if self._is_sound(worker)]

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

    def _examine(self, workers: list[str]) -> None:
        """Examine workers; those that do not answer are asked again."""
        compared = differences(self._client, workers)
        unequal = [one for one in compared.unequal if one.process in workers]
        found = {one.process: Examined(str(one)) for one in reversed(unequal)}
        if compared.equal:
            found |= self._places(compared.equal)
        self._examined.update(found)

    def _places(self, workers: Collection[str]) -> dict[str, Examined]:
        """Have workers try the places that they need, and import functions."""
        tried = try_places(self._client, self._needs.places, workers)
        for error in tried.refused.values():
            raise error
        found = dict[str, Examined]()
        wrong = self._imports(tried.found.keys())
        is_url = "://" in self._needs.banks
        for worker in tried.found:
            output = tried.is_shared(OUTPUT, worker)
            banks = tried.is_shared(BANKS, worker) if self._needs.banks else output
            said = wrong.get(worker, "")
            if is_url and not banks:
                said = said or f"{self._needs.banks}: {tried.wrong[BANKS][worker]}"
            found[worker] = Examined(said, Sharing(output, banks))
        return found

    def _imports(self, workers: Collection[str]) -> dict[str, str]:
        """Return the workers that cannot import the user's functions, and why."""
        if not self._needs.functions:
            return {}
        told = self._client.run(
            import_functions, self._needs.code, self._needs.functions, workers=list(workers),
            on_error="return",
        )  # fmt: skip
        return {worker: str(said) for worker, said in told.items() if said}


def import_functions(code: str, functions: tuple[str, ...]) -> str:
    """Import kernel functions of the user; return what is wrong, empty if nothing is.

    Parameters
    ----------
    code : str
        Folder that is searched first.
    functions : tuple of str
        Names of the functions.
    """
    search_first(code)
    try:
        for function in functions:
            CustomFunction.named(function, "kernel function")
    except MkldistError as error:
        return error.found
    return ""
