"""Worker that is a thread of this process, for sweeps that end before processes would start.

:class:`ThreadWorker` has the part of Dask's client that the loop of a sweep uses.  The thread ends
with the process: an interrupt does not wait for its task.  There is one thread, because several
would wait for each other in the interpreter while the clocks of their runs go on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mkldist.run.record_sender import Message


class ThreadTask:
    """A task of the thread, as Dask's futures are.

    Parameters
    ----------
    key : str
        Its name.
    work : callable
        What it does.

    Attributes
    ----------
    status : str
        ``"pending"``, then ``"finished"``, ``"error"`` or ``"cancelled"``.
    """

    def __init__(self, key: str, work: Callable[[], Any]) -> None:
        self.key, self.status = key, "pending"
        self._work: Callable[[], Any] | None = work
        self._outcome: Any = None
        self._error: BaseException | None = None
        self._tell: Callable[[ThreadTask], object] | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        """Do the work in this thread, unless it was cancelled."""
        work, self._work = self._work, None
        if work is None:
            return
        status = "finished"
        try:
            self._outcome = work()
        except BaseException as error:  # the coordinator decides what an error means
            self._error, status = error, "error"
        with self._lock:
            self.status, tell = status, self._tell
        if tell is not None:
            tell(self)

    def cancel(self) -> None:
        """Do not begin the work; what has begun goes on."""
        if self._work is not None:
            self._work, self.status = None, "cancelled"

    def add_done_callback(self, tell: Callable[[ThreadTask], object]) -> None:
        """Have `tell` called with the task when it has ended."""
        with self._lock:
            self._tell = tell
            ended = self.status in ("finished", "error")
        if ended:
            tell(self)

    def result(self, timeout: float | None = None) -> Any:
        """Return what the work returned."""
        return self._outcome

    def exception(self) -> BaseException | None:
        """Return what the work raised."""
        return self._error

    def release(self) -> None:
        """Forget the outcome."""
        self._outcome = self._error = None


class ThreadWorker:
    """Thread of this process that does tasks in the order in which they are submitted.

    Attributes
    ----------
    status : str
        ``"running"`` until :meth:`close`.
    messages : SimpleQueue
        What tasks tell the coordinator.
    """

    dashboard_link = ""

    def __init__(self) -> None:
        self.status = "running"
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._tasks: queue.SimpleQueue[ThreadTask | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="mkldist-worker", daemon=True)
        self._thread.start()

    def nthreads(self) -> dict[str, int]:
        """Return the number of threads by the address of their worker."""
        return {"inproc://here": 1}

    def submit(
        self, function: Callable[[Any], Any], task: Any, *, key: str, pure: bool
    ) -> ThreadTask:
        """Have the thread call ``function(task)``."""
        submitted = ThreadTask(key, lambda: function(task))
        self._tasks.put(submitted)
        return submitted

    def cancel(self, tasks: Sequence[ThreadTask], *, force: bool) -> None:
        """Cancel those of some tasks that have not begun."""
        for task in tasks:
            task.cancel()

    def close(self, *, wait: bool) -> None:
        """End the thread after its task; wait for that if asked to."""
        self.status = "closed"
        self._tasks.put(None)
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        """Do tasks until the end."""
        while (task := self._tasks.get()) is not None:
            task.run()


@contextmanager
def thread_worker() -> Iterator[ThreadWorker]:
    """Start the thread, yield its client, and end it."""
    worker = ThreadWorker()
    try:
        yield worker
    except BaseException:
        worker.close(wait=False)
        raise
    worker.close(wait=True)
