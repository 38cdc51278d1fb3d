"""Carry records into the tree of results while the sweep runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.durable import writing
from mkldist.errors import UnreadableError
from mkldist.results.records import RecordStore, RunRecord

if TYPE_CHECKING:
    from mkldist.results.writer import TreeWriter

FLUSH_SECONDS = 3.0  # least time between two flushes
FLUSH_SHARE = 0.03  # share of a sweep's time that writing may take while few runs wait
FLUSH_RUNS, FLUSH_GROWTH = 1000, 0.05  # runs that wait at most, or this share of those written


class Consolidator:
    """Collect finished runs and write them to the tree together, in a thread of its own.

    To write a region of the tree takes some thirty milliseconds, however many runs it holds.  Runs
    therefore wait for others, and wait longer if the last ones took long to write.  An interrupted
    sweep loses none of them: the next call finds them in the records.

    Parameters
    ----------
    path : Path
        The tree, which exists.
    store : RecordStore
        The records.
    """

    def __init__(self, path: Path, store: RecordStore) -> None:
        self._path, self._store = path, store
        self._waiting: dict[str, None] = {}
        self._written: set[str] = set()
        self._flushed, self._wait = time.monotonic(), FLUSH_SECONDS
        self._opened: TreeWriter | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mkldist-results")
        self._writing: Future[list[str]] | None = None
        self._started = self._flushed

    def add(self, run_ids: Iterable[str]) -> None:
        """Take runs whose records are durable; those in the tree already are left out."""
        self._waiting.update((i, None) for i in run_ids if i not in self._written)

    def flush_if_due(self) -> None:
        """Begin to write if runs have waited long enough or are many; return at once.

        Whoever asks for the state of the sweep reads the records of all runs that wait.

        Raises
        ------
        mkldist.errors.OutputError
            When the disk has refused the runs before.
        """
        if self._writing is not None:
            if not self._writing.done():
                return
            self._take_written()
        due = time.monotonic() - self._flushed > self._wait
        if due or len(self._waiting) >= max(FLUSH_RUNS, FLUSH_GROWTH * len(self._written)):
            self.begin()

    def begin(self) -> None:
        """Begin to write all runs that wait, unless others are being written; return at once."""
        if self._writing is None and self._waiting:
            self._started = time.monotonic()
            self._writing = self._writer.submit(self._write, list(self._waiting))

    def flush(self) -> None:
        """Write all runs that wait and whose records can be read; keep the others waiting.

        Raises
        ------
        mkldist.errors.OutputError
            When the disk refuses them.
        """
        self._take_written()
        self.begin()
        self._take_written()

    def _take_written(self) -> None:
        """Wait for the runs that are being written; raise the error if writing failed."""
        begun, self._writing = self._writing, None
        if begun is None:
            return
        for run_id in begun.result():
            del self._waiting[run_id]
            self._written.add(run_id)
        self._flushed = time.monotonic()
        self._wait = max(FLUSH_SECONDS, (self._flushed - self._started) / FLUSH_SHARE)

    def _write(self, run_ids: Iterable[str]) -> list[str]:
        """Write runs whose records can be read; return their ids."""
        if self._opened is None:
            from mkldist.results.writer import TreeWriter

            self._opened = TreeWriter(self._path)
        with writing(self._path):
            return self._opened.write_all(run_ids, self._read)

    def _read(self, run_id: str) -> RunRecord | None:
        """Return a record; None if it cannot be read yet, since another machine wrote it."""
        try:
            return self._store.read(run_id)
        except UnreadableError:
            return None
