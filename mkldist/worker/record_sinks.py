"""Where the records of a batch go: a folder that the worker shares, or the coordinator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mkldist.durable import writing
from mkldist.planning.model import RunPlan
from mkldist.results.record_format import encode
from mkldist.results.records import RecordStore, RunRecord
from mkldist.worker.post import Post


class RecordSink(Protocol):
    """Taker of the records of one batch."""

    def unrecorded(self, runs: Sequence[RunPlan]) -> list[RunPlan]:
        """Return those of the batch's runs that have no record yet."""

    def write(self, record: RunRecord) -> None:
        """Take a record, which then outlives this process.

        Raises
        ------
        mkldist.errors.OutputError
            If the disk refuses it.
        mkldist.errors.ClusterError
            If the coordinator takes none.
        """


class FolderSink:
    """Records in a folder that all workers and the coordinator see.

    Parameters
    ----------
    folder : str
        The folder.
    """

    def __init__(self, folder: str) -> None:
        self._store = RecordStore(Path(folder))

    def unrecorded(self, runs: Sequence[RunPlan]) -> list[RunPlan]:
        """See :meth:`RecordSink.unrecorded`."""
        return [run for run in runs if self._store.read(run.id) is None]

    def write(self, record: RunRecord) -> None:
        """See :meth:`RecordSink.write`: the record survives a loss of power."""
        with writing(self._store.directory):
            self._store.write(record)


class PostSink:
    """Records that are sent to the coordinator, which writes them.

    Parameters
    ----------
    post : Post
        Way to the coordinator.
    batch : str
        Name of the batch.
    """

    def __init__(self, post: Post, batch: str) -> None:
        self._post, self._batch = post, batch

    def unrecorded(self, runs: Sequence[RunPlan]) -> list[RunPlan]:
        """See :meth:`RecordSink.unrecorded`: a worker that died may have sent some."""
        sent = self._post.sent(self._batch)
        return [run for run in runs if run.id not in sent]

    def write(self, record: RunRecord) -> None:
        """See :meth:`RecordSink.write`: the scheduler has it until the coordinator takes it."""
        self._post.send_record(self._batch, record.id, encode(record))


@contextmanager
def record_sink(folder: str, post: str, batch: str) -> Iterator[RecordSink]:
    """Yield the sink of a batch.

    Parameters
    ----------
    folder : str
        Folder of the records.
    post : str
        Name of the post to a coordinator with which this worker shares no folder; empty if it
        shares that of the records.
    batch : str
        Name of the batch.
    """
    if not post:
        yield FolderSink(folder)
        return
    way = Post(post)
    try:
        yield PostSink(way, batch)
    finally:
        way.close()
