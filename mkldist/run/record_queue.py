"""Way of records from a task to the coordinator, which alone writes them.

A task returns the records of its runs.  One that lasts sends those that it has, and says what it is
doing, at short intervals through a queue: a ``distributed.Queue``, or one of this process if the
task is done by a thread of the coordinator.  The queue is bounded, so that a slow coordinator holds
its workers back.

Dask may repeat a task whose worker has gone.  So the scheduler remembers, as metadata under the
names of queue and task, which runs a task has sent records of.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from mkldist.core.checksums import content_id
from mkldist.core.durable import machine_id
from mkldist.errors import ClusterError
from mkldist.results.journal import RunRecord

SEND_SECONDS = 0.25
SEND_BYTES = 4 * 2**20
MOST_WAITING = 32  # messages that the scheduler holds
PUT_SECONDS = 120.0  # for a coordinator that takes none

Message = Mapping[str, Any]
"""``"task"``, its name; ``"stage"``, or empty; ``"records"``, :func:`packed`, by run."""


class DaskQueue(NamedTuple):
    """A ``distributed.Queue`` by name, and the coordinator that takes from it."""

    name: str
    owner: str


MessageQueue = DaskQueue | SimpleQueue[Message]
OWNER = "owner"  # in the scheduler's metadata of a queue, beside the tasks


def packed(record: RunRecord) -> bytes:
    """Return a record as bytes for a process with the same packages."""
    return pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(content: bytes) -> RunRecord:
    """Return the record of :func:`packed` bytes."""
    record: RunRecord = pickle.loads(content)  # from a task, whose results Dask unpickles too
    return record


def build_key(bank: str, blocks: Sequence[int]) -> str:
    """Return the name of a task that builds blocks.

    No two tasks in flight have a block in common, so that the first one will do.
    """
    return f"{bank} from block {blocks[0]}"


class RecordSender:
    """The end of a task: a context, at whose end nothing is on its way any more."""

    def __init__(self, queue: MessageQueue | None, task: str) -> None:
        self.n_sent = 0
        self._queue, self._task = queue, task
        self._client: Any = None
        self._dask_queue: Any = None
        self._changed = threading.Condition()
        self._stage = ""
        self._records: dict[str, bytes] = {}
        self._n_bytes = 0
        self._error: BaseException | None = None
        self._has_ended = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send the records of a task that ends in an error, and end."""
        self._stop()
        if kind is not None and self._records:
            with suppress(Exception):  # the task has an error already
                self._send(self._taken())
        if self._dask_queue is not None:
            self._dask_queue.close()

    def already_sent(self) -> set[str]:
        """Return the runs whose records this task has sent, from workers that have gone."""
        self._reach_scheduler()
        if not isinstance(self._queue, DaskQueue):
            return set()
        sent = self._client.get_metadata([self._queue.name, self._task], default={})
        runs = {run_id for ids in sent.values() for run_id in ids}
        self.n_sent += len(runs)
        return runs

    def begin(self, stage: str) -> None:
        """Say what the task is doing from now on."""
        with self._changed:
            self._stage = stage
            self._start()

    def add(self, record: RunRecord) -> None:
        """Take the record of a run that has ended; wait while too much is unsent."""
        content = packed(record)
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._raise_error()
            self._records[record.id] = content
            self._n_bytes += len(content)
            self._start()
            self._changed.notify_all()

    def rest(self) -> tuple[bytes, ...]:
        """Send nothing more, and return the records that were not sent."""
        self._stop()
        self._raise_error()
        return tuple(self._taken()["records"].values())

    def _has_room(self) -> bool:
        """Return True if records may be added; all may without a queue."""
        return self._queue is None or self._n_bytes < SEND_BYTES or self._error is not None

    def _raise_error(self) -> None:
        """Raise the error of sending, if there was one."""
        if self._error is not None:
            raise self._error

    def _start(self) -> None:
        """Start the thread that sends, unless it is there."""
        if self._thread is None and self._queue is not None and not self._has_ended:
            self._reach_scheduler()
            self._thread = threading.Thread(target=self._serve, name="mkldist-records", daemon=True)
            self._thread.start()

    def _reach_scheduler(self) -> None:
        """Have the worker's client, which only the thread of the task is given."""
        if self._client is None and isinstance(self._queue, DaskQueue):
            from distributed import get_client

            self._client = get_client()

    def _stop(self) -> None:
        """End the thread that sends after its message."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        """Send what there is, at intervals or when it is much, until the end."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(
                        lambda: self._has_ended or self._n_bytes >= SEND_BYTES, SEND_SECONDS
                    )
                    if self._has_ended:
                        return
                    message = self._taken()
                    self._changed.notify_all()
                if message["stage"] or message["records"]:
                    self._send(message)
        except BaseException as error:  # raised in the thread of the task
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _taken(self) -> Message:
        """Return what is unsent as a message, and forget it."""
        message = {"task": self._task, "stage": self._stage, "records": self._records}
        self._stage, self._records, self._n_bytes = "", {}, 0
        return message

    def _send(self, message: Message) -> None:
        """Put a message into the queue, and have the scheduler remember its runs."""
        if isinstance(self._queue, DaskQueue):
            self._put(message, *self._queue)
        elif self._queue is not None:
            self._queue.put(message)
        self.n_sent += len(message["records"])

    def _put(self, message: Message, name: str, owner: str) -> None:
        """Put a message into a queue of Dask; refuse if another coordinator has taken over."""
        expected = "the process that began the sweep"
        try:
            if self._dask_queue is None:
                from distributed import Queue

                self._dask_queue = Queue(name, client=self._client, maxsize=MOST_WAITING)
            self._dask_queue.put(message, timeout=PUT_SECONDS)
            if runs := list(message["records"]):
                self._client.set_metadata([name, self._task, runs[0]], runs)
            now = self._client.get_metadata([name, OWNER], default=owner)
        except (OSError, TimeoutError) as error:
            found = f"no coordinator that takes records ({type(error).__name__})"
            raise ClusterError("scheduler", found, expected) from error
        if now != owner:
            raise ClusterError("scheduler", "a process that has resumed the sweep", expected)


def lost_scheduler() -> ClusterError:
    """Return the error for a scheduler that no longer answers."""
    return ClusterError(
        "scheduler",
        "a lost connection",
        "a scheduler that outlives the sweep",
        "Repeat the command: it keeps recorded runs and computes the others",
    )


def queue_name(output: Path) -> str:
    """Return the name of the queue of a sweep, that of its output folder on this machine."""
    return f"mkldist-{content_id(output=str(output.absolute()), machine=machine_id())}"


class RecordReceiver:
    """Taker of the messages of tasks, those included that a killed coordinator has not taken."""

    def __init__(self, client: Any, output: Path) -> None:
        self._client: Any = client
        self._here: SimpleQueue[Message] | None = getattr(client, "messages", None)
        self._name = queue_name(output)
        self.queue: MessageQueue = self._here or DaskQueue(self._name, uuid.uuid4().hex)
        if isinstance(self.queue, DaskQueue):
            from distributed import Queue

            with reaching(client):  # the queue may be there, of a coordinator that was killed
                # A record that that one took and did not write is to be computed again.
                client.set_metadata([self._name], {OWNER: self.queue.owner})
                self._dask_queue = Queue(self._name, client=client, maxsize=MOST_WAITING)

    def take(self) -> Iterator[Message]:
        """Yield the messages that have come since the last call."""
        if self._here is None:
            with reaching(self._client):
                messages = self._dask_queue.get(batch=True)
            yield from messages
            return
        while not self._here.empty():
            yield self._here.get()

    def forget(self, tasks: Iterable[str]) -> None:
        """Have the scheduler forget which records tasks have sent that have ended."""
        for task in tasks if self._here is None else ():
            with reaching(self._client):
                self._client.set_metadata([self._name, task], {})

    def close(self) -> None:
        """End the queue."""
        if self._here is None:
            with suppress(Exception):  # a scheduler that is gone keeps nothing
                self._client.set_metadata([self._name], {})
                self._dask_queue.close()


@contextmanager
def reaching(client: Any) -> Iterator[None]:
    """Turn the error of a connection that breaks, or has ended, into that of a lost scheduler."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or client.status != "running":
            raise lost_scheduler() from error
        raise
