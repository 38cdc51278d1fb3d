"""Dask tasks in flight: one for every thread of the workers, each outcome taken when it ends.

A task returns a small receipt, which is taken at once.  When a worker is lost, only the tasks that
it was doing are lost with it, since no worker holds results of earlier ones.

Where a pool admits workers, Dask may give a task to those alone that the pool had when it was
submitted.  When the last of them has gone, it is submitted again, for those there are then.  The
same holds for tasks that a machine is to do one at a time: one of its workers has them, since a
second one would wait with a task that another machine could do.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mkldist.core.wording import pluralize
from mkldist.errors import (
    ClusterError,
    DataError,
    GramError,
    SpecError,
    UnfitClusterError,
    UnreadableError,
)
from mkldist.run.scheduler_address import lost_scheduler
from mkldist.run.versions import do_where_equal, versions_here
from mkldist.run.work_queue import Item

if TYPE_CHECKING:
    from distributed import Client, Future

    from mkldist.run.thread_worker import ThreadTask, ThreadWorker
    from mkldist.run.worker_pool import WorkerPool

REFRESH_SECONDS = 2.0
RECEIPT_SECONDS = 10.0
MOST_LOST = 3  # times that a task is submitted again
LOST_RECEIPT = "its worker was lost before the coordinator had its receipt"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task: a receipt or an exception.

    Parameters
    ----------
    item : BuildItem or BatchItem
        The work of the task.
    receipt : BuildReceipt or BatchReceipt, optional
        Return value of a task that ended well.
    error : BaseException, optional
        Exception of a task that failed.
    """

    item: Item
    receipt: Any = None
    error: BaseException | None = None


@dataclass(frozen=True)
class _Pending:
    """A task that has not ended."""

    item: Item
    function: Callable[[Any], Any]
    task: Any
    at: float  # first submitted, in Unix time
    workers: frozenset[str] = frozenset()  # that may do it; empty for all
    future: Future[Any] | ThreadTask | None = None  # None while no worker may do it
    n_lost: int = 0  # times that all workers that might do it have gone, or one proved unfit


class PendingTasks:
    """Tasks that are submitted and have not ended.

    Parameters
    ----------
    client : Client or ThreadWorker
        Client of the workers.
    pool : WorkerPool, optional
        Tells which workers of other machines may do tasks; by default all may.
    one_a_machine : bool
        True if each machine is to do one task at a time.
    """

    def __init__(
        self,
        client: Client | ThreadWorker,
        pool: WorkerPool | None = None,
        *,
        one_a_machine: bool = False,
    ) -> None:
        self._client: Any = client
        self._pool, self._one_a_machine = pool, one_a_machine
        self._ended: queue.SimpleQueue[Future[Any] | ThreadTask] = queue.SimpleQueue()
        self._pending: dict[str, _Pending] = {}
        self._threads: dict[str, int] = {}
        self._some_may_not = pool is not None  # of the workers that are there
        self._refreshed = float("-inf")
        self._error: ClusterError | None = None

    @property
    def n_threads(self) -> int:
        """Number of threads of all workers that are there and may do tasks; 0 without any."""
        return sum(self._by_worker().values())

    @property
    def threads_of_a_machine(self) -> int:
        """Number of threads of all workers of the machine that has most of them now."""
        machines: Counter[str] = Counter()
        for address, threads in self._by_worker().items():
            machines[urlsplit(address).hostname or ""] += threads
        return max(machines.values(), default=0)

    def _by_worker(self) -> dict[str, int]:
        """Return the number of threads of each worker by its address; asked for at intervals."""
        now = time.monotonic()
        if now - self._refreshed > REFRESH_SECONDS and self._client.status == "running":
            try:
                there = self._client.nthreads()
                usable = there if self._pool is None else self._pool.usable(there)
            except OSError as error:  # a connection that breaks while its answer is awaited
                raise lost_scheduler() from error
            self._threads = self._one_each(usable) if self._one_a_machine else usable
            self._some_may_not = self._pool is not None or len(self._threads) < len(there)
            self._refreshed = now
            self._submit_again()
        return self._threads

    def _one_each(self, workers: Mapping[str, int]) -> dict[str, int]:
        """Return a worker of each machine as one thread, that of before where it is still there."""
        chosen: dict[str | None, str] = {}
        for address in sorted(workers, key=lambda one: one not in self._threads):
            chosen.setdefault(urlsplit(address).hostname, address)
        return dict.fromkeys(chosen.values(), 1)

    def _submit_again(self) -> None:
        """Submit the tasks that none of the workers may do, for those that are there now."""
        for key, one in list(self._pending.items()) if self._threads else ():
            if one.future is None:
                del self._pending[key]
                self._begin(one)
            elif one.workers and one.workers.isdisjoint(self._threads):
                if one.n_lost < MOST_LOST:
                    del self._pending[key]
                    self._begin(replace(one, n_lost=one.n_lost + 1))
                self._client.cancel([one.future], force=True)

    @property
    def has_room(self) -> bool:
        """True if another task may be taken: one for every thread or machine; one without any.

        Dask would give any further task to a busy worker, where it waits while others are idle.
        """
        return len(self._pending) < max(1, self.n_threads)

    @property
    def items(self) -> list[Item]:
        """The work of the tasks in flight."""
        return [one.item for one in self._pending.values()]

    @property
    def begun(self) -> list[tuple[Item, float]]:
        """The work of the tasks in flight, and when each was submitted, in Unix time."""
        return [(one.item, one.at) for one in self._pending.values()]

    def __len__(self) -> int:
        return len(self._pending)

    def submit(self, item: Item, function: Callable[[Any], Any], task: Any) -> None:
        """Submit ``function(task)``, the work of an item, for a worker with equal packages."""
        self._begin(_Pending(item, function, task, time.time()))

    def _begin(self, one: _Pending) -> None:
        """Submit a task for the workers that may do it, or keep it until there is one."""
        key = f"{one.function.__name__}-{uuid.uuid4().hex}"
        if self._pool is not None and not self._threads:
            self._pending[key] = one
            return
        chosen = frozenset(self._threads) if self._some_may_not else frozenset()
        limits = {"workers": sorted(chosen)} if chosen else {}
        work = partial(do_where_equal, versions_here(), one.function)
        future = self._client.submit(work, one.task, key=key, pure=False, **limits)
        self._pending[key] = replace(one, workers=chosen, future=future)
        future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of tasks that have ended, after some seconds at most.

        Raises
        ------
        mkldist.errors.UnfitClusterError
            When a worker has other versions of packages, and no pool leaves it out.
        mkldist.errors.ClusterError
            When the scheduler is gone.
        """
        outcomes = []
        if self._error is not None:
            raise self._error
        try:
            future = self._ended.get(timeout=seconds)
            while True:
                outcome = self._outcome(future)
                if outcome is not None:
                    outcomes.append(outcome)
                future = self._ended.get_nowait()
        except queue.Empty:
            if not outcomes and self._client.status in ("closed", "closing"):
                raise lost_scheduler() from None
        except ClusterError as error:
            if not outcomes:
                raise
            self._error = error  # of the next call: these outcomes count
        return outcomes

    def _outcome(self, future: Future[Any] | ThreadTask) -> Outcome | None:
        """Return the outcome of a task that has ended; None if it was submitted again."""
        ended = self._pending.pop(str(future.key), None)
        if ended is None:
            return None
        item = ended.item
        try:
            if future.status == "finished":
                return self._taken(item, future)
            if future.status == "error":
                error = future.exception()
                if isinstance(error, UnfitClusterError):
                    if self._pool is None:
                        raise error
                    if ended.n_lost < MOST_LOST:
                        self._begin(replace(ended, n_lost=ended.n_lost + 1))
                        return None
                return Outcome(item, error=error)
            if self._client.status != "running":
                raise lost_scheduler()
            return Outcome(item, error=RuntimeError(LOST_RECEIPT))
        finally:
            future.release()

    def _taken(self, item: Item, future: Future[Any] | ThreadTask) -> Outcome:
        """Return the receipt of a task that ended well, or an error if it cannot be fetched."""
        try:
            return Outcome(item, receipt=future.result(timeout=RECEIPT_SECONDS))
        except Exception as error:
            # Dask repeats a task whose receipt was lost with its worker; that may fail.
            if self._client.status != "running":
                raise lost_scheduler() from error
            return Outcome(item, error=RuntimeError(f"{LOST_RECEIPT} ({type(error).__name__})"))

    def cancel(self) -> None:
        """Cancel all tasks in flight that workers have not begun."""
        futures = [one.future for one in self._pending.values() if one.future is not None]
        self._pending.clear()
        if futures and self._client.status == "running":
            with suppress(OSError):  # without a scheduler there is nothing to cancel
                self._client.cancel(futures, force=True)


def is_final(error: BaseException) -> bool:
    """Return True for an error of data or kernels, which every attempt would meet again."""
    return isinstance(error, DataError | GramError | SpecError)


def unread_error(errors: Sequence[UnreadableError]) -> UnreadableError:
    """Return the error of the runs whose bank or data could not be read, one for each run."""
    last, runs = errors[-1], pluralize(len(errors), "run")
    hint = last.hint or "Repeat the command"
    return UnreadableError(last.where, f"{last.found}; {runs} left to do", last.expected, hint)


def error_line(error: BaseException) -> str:
    """Return an error in one line; Dask's error for a killed worker in words."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return (
            "the worker process died again and again while it did this, "
            "for example for lack of memory"
        )
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
