"""Dask tasks in flight: one for every thread of the workers, each outcome taken when it ends.

A task stores what it computes and returns a small receipt.  When a worker is lost, only the tasks
that it was doing are lost with it, since no worker holds results of earlier ones.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mkldist.errors import ClusterError, UnfitClusterError
from mkldist.run.work_items import Item
from mkldist.worker.versions import do_where_equal, versions_here

if TYPE_CHECKING:
    from distributed import Client, Future

    from mkldist.run.thread_worker import ThreadTask, ThreadWorker

REFRESH_SECONDS = 2.0
RECEIPT_SECONDS = 10.0
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


class TasksInFlight:
    """Tasks that are submitted and have not ended.

    Parameters
    ----------
    client : Client or ThreadWorker
        Client of the workers.
    """

    def __init__(self, client: Client | ThreadWorker) -> None:
        self._client: Any = client
        self._ended: queue.SimpleQueue[Future[Any] | ThreadTask] = queue.SimpleQueue()
        self._in_flight: dict[str, tuple[Item, Future[Any] | ThreadTask, float]] = {}
        self._threads: dict[str, int] = {}
        self._refreshed = float("-inf")

    @property
    def n_threads(self) -> int:
        """Number of threads of all workers that are there now; 0 without workers."""
        return sum(self._by_worker().values())

    @property
    def threads_of_a_machine(self) -> int:
        """Number of threads of all workers of the machine that has most of them now."""
        machines: Counter[str] = Counter()
        for address, threads in self._by_worker().items():
            machines[urlsplit(address).hostname or ""] += threads
        return max(machines.values(), default=0)

    def _by_worker(self) -> dict[str, int]:
        """Return the number of threads of each worker by its address; asked for at intervals.

        Raises
        ------
        mkldist.errors.ClusterError
            When the scheduler is gone.
        """
        now = time.monotonic()
        if now - self._refreshed > REFRESH_SECONDS and self._client.status == "running":
            try:
                self._threads = self._client.nthreads()
            except OSError as error:  # a connection that breaks while its answer is awaited
                raise _lost() from error
            self._refreshed = now
        return self._threads

    @property
    def has_room(self) -> bool:
        """True if another task may be submitted: one for every thread, and one without workers.

        Dask would give any further task to a busy worker, where it waits while others are idle.
        """
        return len(self._in_flight) < max(1, self.n_threads)

    @property
    def items(self) -> list[Item]:
        """The work of the tasks in flight."""
        return [item for item, *_ in self._in_flight.values()]

    @property
    def begun(self) -> list[tuple[Item, float]]:
        """The work of the tasks in flight, and when each was submitted, in Unix time."""
        return [(item, at) for item, _, at in self._in_flight.values()]

    def __len__(self) -> int:
        return len(self._in_flight)

    def submit(self, item: Item, function: Callable[[Any], Any], task: Any) -> None:
        """Submit ``function(task)``, the work of an item, for a worker with equal packages."""
        key = f"{function.__name__}-{uuid.uuid4().hex}"
        work = partial(do_where_equal, versions_here(), function)
        future = self._client.submit(work, task, key=key, pure=False)
        self._in_flight[key] = (item, future, time.time())
        future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> Outcome | None:
        """Return the outcome of the next task that ends, or None if none does for some seconds.

        Raises
        ------
        mkldist.errors.UnfitClusterError
            When a worker that joined late has other versions of packages.
        mkldist.errors.ClusterError
            When the scheduler is gone.
        """
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            if self._client.status in ("closed", "closing"):
                raise _lost() from None
            return None
        item, *_ = self._in_flight.pop(str(future.key))
        try:
            if future.status == "finished":
                return self._taken(item, future)
            if future.status == "error":
                error = future.exception()
                if isinstance(error, UnfitClusterError):
                    raise error
                return Outcome(item, error=error)
            if self._client.status != "running":
                raise _lost()
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
                raise _lost() from error
            return Outcome(item, error=RuntimeError(f"{LOST_RECEIPT} ({type(error).__name__})"))

    def cancel(self) -> None:
        """Cancel all tasks in flight that workers have not begun."""
        futures = [future for _, future, _ in self._in_flight.values()]
        self._in_flight.clear()
        if futures and self._client.status == "running":
            with suppress(OSError):  # without a scheduler there is nothing to cancel
                self._client.cancel(futures, force=True)


def _lost() -> ClusterError:
    """Return the error for a scheduler that no longer answers."""
    return ClusterError(
        "scheduler",
        "a lost connection",
        "a scheduler that outlives the sweep",
        "Repeat the command: it keeps recorded runs and computes the others",
    )
