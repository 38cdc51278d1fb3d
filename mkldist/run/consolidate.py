"""Carrying records into the tree of results while the sweep runs."""

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

FLUSH_SECONDS = 3.0
FLUSH_SHARE = 0.03  # of the time, that writing may take from a sweep that runs
FLUSH_RUNS = 2000


class Consolidator:
    """Collects finished runs and writes them to the tree some at a time.

    A region of the tree costs some thirty milliseconds however many runs it holds, so runs wait
    for company, the longer the dearer it was to write the last ones; who is killed meanwhile
    finds them in the records.

    Parameters
    ----------
    path : Path
        The tree, made already.
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
        """Take runs whose records are durable; those that were written already are known."""
        self._waiting.update((i, None) for i in run_ids if i not in self._written)

    def flush_if_due(self) -> None:
        """Begin to write if runs have waited for a while or are many, and do not wait for it.

        Raises
        ------
        mkldist.errors.OutputError
            When the disk has refused what was begun before.
        """
        if self._writing is not None:
            if not self._writing.done():
                return
            self._take_written()
        due = time.monotonic() - self._flushed > self._wait
        if due or len(self._waiting) >= FLUSH_RUNS:
            self.begin()

    def begin(self) -> None:
        """Begin to write all runs that wait, unless others are being written."""
        if self._writing is None and self._waiting:
            self._started = time.monotonic()
            self._writing = self._writer.submit(self._write, list(self._waiting))

    def flush(self) -> None:
        """Write all runs that wait and whose records can be read; the others wait on.

        Raises
        ------
        mkldist.errors.OutputError
            When the disk refuses it.
        """
        self._take_written()
        self.begin()
        self._take_written()

    def _take_written(self) -> None:
        """Wait for what is being written; raise what went wrong with it."""
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
        records = [self._read(run_id) for run_id in run_ids]
        found = [record for record in records if record is not None]
        with writing(self._path):
            self._opened.write(found)
        return [record.id for record in found]

    def _read(self, run_id: str) -> RunRecord | None:
        """Return a record, or None if it cannot be read now; another machine wrote it, perhaps."""
        try:
            return self._store.read(run_id)
        except UnreadableError:
            return None
