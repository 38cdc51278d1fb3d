"""Carrying records into the tree of results while the sweep runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.errors import UnreadableError
from mkldist.results.output import writing
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

    def add(self, run_ids: Iterable[str]) -> None:
        """Take runs whose records are durable; those that were written already are known."""
        self._waiting.update((i, None) for i in run_ids if i not in self._written)

    def flush_if_due(self) -> None:
        """Write if runs have waited for a while or are many."""
        started = time.monotonic()
        due = started - self._flushed > self._wait
        if self._waiting and (due or len(self._waiting) >= FLUSH_RUNS):
            self.flush()
            self._wait = max(FLUSH_SECONDS, (self._flushed - started) / FLUSH_SHARE)

    def flush(self) -> None:
        """Write all runs that wait and whose records can be read; the others wait on.

        Raises
        ------
        mkldist.errors.OutputError
            When the disk refuses it.
        """
        if self._waiting:
            if self._opened is None:
                from mkldist.results.writer import TreeWriter

                self._opened = TreeWriter(self._path)
            records = [self._read(run_id) for run_id in self._waiting]
            found = [record for record in records if record is not None]
            with writing(self._path):
                self._opened.write(found)
            for record in found:
                del self._waiting[record.id]
                self._written.add(record.id)
        self._flushed = time.monotonic()

    def _read(self, run_id: str) -> RunRecord | None:
        """Return a record, or None if it cannot be read now; another machine wrote it, perhaps."""
        try:
            return self._store.read(run_id)
        except UnreadableError:
            return None
