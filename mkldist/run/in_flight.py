"""A sliding window of Dask tasks: few in flight, each outcome taken and its future released.

Tasks commit what they compute to storage and return a small receipt, so nothing is lost with a
worker but what it was doing, and nothing has to be recomputed because a worker left that held a
result.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mkldist.errors import ClusterError
from mkldist.run.work_queue import Item

if TYPE_CHECKING:
    from distributed import Client, Future

REFRESH_SECONDS = 2.0
RECEIPT_SECONDS = 10.0
LEFT = "its worker left before its receipt was taken"


@dataclass(frozen=True)
class Outcome:
    """How a task ended: with a receipt or with an exception."""

    item: Item
    receipt: Any = None
    error: BaseException | None = None


class TasksInFlight:
    """Tasks in flight.

    Parameters
    ----------
    client : Client
        Where tasks are submitted.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._in_flight: dict[str, tuple[Item, Future[Any]]] = {}
        self._threads: dict[str, int] = {}
        self._refreshed = float("-inf")

    @property
    def n_threads(self) -> int:
        """Threads of all workers that are there now, at least 1."""
        return max(1, self.known_threads)

    @property
    def has_workers(self) -> bool:
        """Whether any worker is there now."""
        return self.known_threads > 0

    @property
    def known_threads(self) -> int:
        """Threads of all workers that are there now."""
        return sum(self._by_worker().values())

    @property
    def threads_of_a_machine(self) -> int:
        """Threads of all workers of the machine that has most of them now."""
        machines: Counter[str] = Counter()
        for address, threads in self._by_worker().items():
            machines[urlsplit(address).hostname or ""] += threads
        return max(machines.values(), default=0)

    def _by_worker(self) -> dict[str, int]:
        """Return the threads of each worker by its address."""
        now = time.monotonic()
        if now - self._refreshed > REFRESH_SECONDS and self._client.status == "running":
            self._threads = self._client.nthreads()
            self._refreshed = now
        return self._threads

    @property
    def has_room(self) -> bool:
        """Whether another task may be submitted: one for every thread.

        A task beyond these would be given to a busy worker, and wait there while others are idle.
        """
        return len(self._in_flight) < self.n_threads

    def __len__(self) -> int:
        return len(self._in_flight)

    def submit(self, item: Item, function: Callable[[Any], Any], task: Any) -> None:
        """Start ``function(task)`` for an item."""
        key = f"{function.__name__}-{uuid.uuid4().hex}"
        future = self._client.submit(function, task, key=key, pure=False)
        self._in_flight[key] = (item, future)
        future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> Outcome | None:
        """Return the outcome of a task that ended, or None after some seconds without one.

        Raises
        ------
        mkldist.errors.ClusterError
            When the scheduler is gone.
        """
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            if self._client.status in ("closed", "closing"):
                raise _lost() from None
            return None
        item, _ = self._in_flight.pop(str(future.key))
        try:
            if future.status == "finished":
                return self._taken(item, future)
            if future.status == "error":
                return Outcome(item, error=future.exception())
            if self._client.status != "running":
                raise _lost()
            return Outcome(item, error=RuntimeError(LEFT))
        finally:
            future.release()

    def _taken(self, item: Item, future: Future[Any]) -> Outcome:
        """Return the receipt of a task, or why it cannot be had although the task ended well."""
        try:
            return Outcome(item, receipt=future.result(timeout=RECEIPT_SECONDS))
        except Exception as error:
            # Dask does a task again whose receipt was lost with its worker, and that may fail.
            if self._client.status != "running":
                raise _lost() from error
            return Outcome(item, error=RuntimeError(f"{LEFT} ({type(error).__name__})"))

    def cancel(self) -> None:
        """Take back everything in flight, as far as workers have not begun it."""
        futures = [future for _, future in self._in_flight.values()]
        self._in_flight.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)


def _lost() -> ClusterError:
    return ClusterError(
        "scheduler",
        "the connection was lost",
        "a scheduler that outlives the sweep",
        "Repeat the command: what is recorded is kept and not computed again",
    )
