"""The coordinator's end of the way of records, see :mod:`mkldist.run.record_sender`."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.core.durable import machine_id
from mkldist.core.identity import content_id
from mkldist.run.record_sender import MOST_WAITING, Message, MessageQueue
from mkldist.run.scheduler_address import lost_scheduler

if TYPE_CHECKING:
    from distributed import Client

    from mkldist.run.thread_worker import ThreadWorker


def queue_name(output: Path) -> str:
    """Return the name of the queue of a sweep, that of its output folder on this machine."""
    return f"mkldist-{content_id(output=str(output.absolute()), machine=machine_id())}"


class RecordReceiver:
    """Taker of the messages of tasks.

    Parameters
    ----------
    client : Client or ThreadWorker
        Client of the workers.
    output : Path
        Output folder of the sweep.  Who resumes a sweep takes the records that workers sent to a
        coordinator which was killed.

    Attributes
    ----------
    queue : str or SimpleQueue
        The queue, as tasks name it.
    """

    def __init__(self, client: Client | ThreadWorker, output: Path) -> None:
        self._client: Any = client
        self._here: queue.SimpleQueue[Message] | None = getattr(client, "messages", None)
        self.queue: MessageQueue = queue_name(output) if self._here is None else self._here
        if self._here is None:
            self._open()

    def _open(self) -> None:
        """Have the scheduler make the queue, or find that of a coordinator which was killed."""
        from distributed import Queue

        with reaching():
            # A record that a killed coordinator took and did not write is to be computed again.
            self._client.set_metadata([self.queue], {})
            self._dask_queue = Queue(self.queue, client=self._client, maxsize=MOST_WAITING)

    def take(self) -> Iterator[Message]:
        """Yield the messages that have come since the last call.

        Raises
        ------
        mkldist.errors.ClusterError
            If the scheduler is gone.
        """
        if self._here is None:
            with reaching():
                messages = self._dask_queue.get(batch=True)
            yield from messages
            return
        with suppress(queue.Empty):
            while True:
                yield self._here.get_nowait()

    def forget(self, tasks: Iterable[str]) -> None:
        """Have the scheduler forget which records tasks have sent that have ended."""
        for task in tasks if self._here is None else ():
            with reaching():
                self._client.set_metadata([self.queue, task], {})

    def close(self) -> None:
        """End the queue."""
        if self._here is None:
            with suppress(Exception):  # a scheduler that is gone keeps nothing
                self._client.set_metadata([self.queue], {})
                self._dask_queue.close()


@contextmanager
def reaching() -> Iterator[None]:
    """Turn the error of a connection that breaks into that of a lost scheduler."""
    try:
        yield
    except OSError as error:
        raise lost_scheduler() from error
