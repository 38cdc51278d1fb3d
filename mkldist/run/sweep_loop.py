"""Doing the open work of a sweep on a cluster: the loop between work queue, window and storage."""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mkldist.durable import as_output_error, writing
from mkldist.errors import DataError, GramError, SpecError
from mkldist.gram.build import BuildReceipt
from mkldist.gram.loading import retried
from mkldist.plan.model import BatchPlan
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState
from mkldist.run.bank_refs import BankKey
from mkldist.run.consolidate import Consolidator
from mkldist.run.in_flight import Outcome, TasksInFlight
from mkldist.run.progress import Counts, Progress
from mkldist.run.work_queue import BatchItem, BuildItem, GivenUp, WorkQueue
from mkldist.worker.bank_inputs import BankRef
from mkldist.worker.batch import BatchSettings
from mkldist.worker.scoring import failed_record
from mkldist.worker.tasks import BatchReceipt, BatchTask, BuildTask, build, solve_batch

if TYPE_CHECKING:
    from distributed import Client

WAIT_SECONDS = 0.25
NO_WORKERS_NOTE_SECONDS = 30.0


@dataclass(frozen=True)
class Work:
    """What a loop is about.

    Parameters
    ----------
    banks : mapping of (str, str, str) to BankRef
        Banks by id, label and data set: banks that differ in normalisation alone share one store,
        and so do those of data sets that differ in their splits alone.
    batches : tuple of BatchPlan
        Batches, holding only the runs that are to be done; without any, banks are built only.
    settings : BatchSettings
        How runs are done.
    keep_banks : bool
        Whether Gram matrices stay after their runs are recorded.
    own_banks : bool
        Whether no other sweep uses the folder of the banks.  Otherwise those that were complete
        before stay there in any case.
    expected_threads : int
        Workers' threads that will be there sooner or later, as far as is known.
    """

    banks: Mapping[BankKey, BankRef]
    batches: tuple[BatchPlan, ...]
    settings: BatchSettings
    keep_banks: bool = True
    own_banks: bool = False
    expected_threads: int = 0

    @cached_property
    def stored(self) -> dict[str, BankRef]:
        """One of the banks of each id."""
        return {bank: ref for (bank, *_), ref in self.banks.items()}


class SweepLoop:
    """Work on its way.

    Parameters
    ----------
    client : Client
        The cluster.
    work : Work
        What is to be done.
    store : RecordStore
        Where outcomes are recorded.
    consolidator : Consolidator
        What carries records into the tree of results.
    progress : Progress
        What is told how far it is.
    """

    def __init__(
        self,
        client: Client,
        work: Work,
        store: RecordStore,
        consolidator: Consolidator,
        progress: Progress,
    ) -> None:
        self._client, self._work, self._store = client, work, store
        self._consolidator, self._progress = consolidator, progress
        self._tasks = TasksInFlight(client)
        self._announced: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
        self._states: dict[str, str] = {}
        self._built: set[str] = set()
        self._unbuilt: Counter[str] = Counter()  # bytes of banks
        self._build_errors: dict[str, BaseException] = {}
        self._noted_streaming = False
        self.counts = Counts(runs=sum(len(batch.runs) for batch in work.batches))
        self._queue = WorkQueue(
            list(work.stored),
            work.batches,
            self._missing_blocks,
            self._is_recorded,
            self._threads,
            self._of_backends("memory", "mmap"),
            self._of_backends("memory"),
        )
        self._noted = time.monotonic()

    def work(self) -> None:
        """Do all the work; returns when every run is recorded.

        Raises
        ------
        mkldist.errors.OutputError
            When records, banks or results cannot be written.
        mkldist.errors.UnreadableError
            When the medium of banks or records does not answer.
        mkldist.errors.ClusterError
            When the scheduler is lost.
        """
        topic = self._work.settings.topic
        if topic:
            self._client.subscribe_topic(topic, lambda event: self._announced.put(event[1]))
        try:
            while self._submit() or len(self._tasks):
                outcome = self._tasks.wait(WAIT_SECONDS)
                if outcome is not None:
                    self._settle(outcome)
                self._housekeep()
        finally:
            self._tasks.cancel()
            if topic:
                self._client.unsubscribe_topic(topic)
            self._take_announcements()

    @property
    def refused_banks(self) -> dict[str, BaseException]:
        """The banks that could not be built, and why."""
        return {bank: self._build_errors[bank] for bank in self._queue.given_up_banks}

    def _of_backends(self, *backends: str) -> set[str]:
        """Return the banks that are opened in one of some ways."""
        return {bank for bank, ref in self._work.stored.items() if ref.plan.backend in backends}

    def _threads(self) -> int:
        """Return the threads among which to divide work, 0 if nobody knows."""
        return max(self._tasks.known_threads, self._work.expected_threads)

    def _at_once(self) -> int:
        """Return how many batches may be done at the same time on one machine."""
        batches = max(1, self._queue.unfinished_batches)
        return min(self._tasks.threads_of_a_machine or self._threads() or batches, batches)

    def _submit(self) -> bool:
        """Fill the window; return whether anything was submitted."""
        submitted = False
        while self._tasks.has_room and (item := self._queue.next()) is not None:
            if isinstance(item, BuildItem):
                ref = self._work.stored[item.bank]
                self._tasks.submit(item, build, BuildTask(ref, item.blocks))
            else:
                first = item.runs[0]
                ref = self._work.banks[item.bank, first.bank_label, first.dataset]
                settings = self._work.settings
                task = BatchTask(ref, item.runs, settings, self._at_once(), item.builds)
                self._tasks.submit(item, solve_batch, task)
            submitted = True
        return submitted

    def _settle(self, outcome: Outcome) -> None:
        """Draw the consequences of a task's end."""
        error = outcome.error
        if error is not None:
            refused = as_output_error(error, self._work.settings.records)
            if refused is not None:
                raise refused from error
        if isinstance(outcome.item, BuildItem):
            self._settle_build(outcome.item, outcome.receipt, error)
        else:
            self._settle_batch(outcome.item, outcome.receipt, error)
        for bank in self._queue.finished_banks():
            self.counts.bytes -= self._unbuilt.pop(bank, 0)  # who died may have built it
            ours = self._work.own_banks or bank in self._built
            if ours and not self._work.keep_banks and self._work.stored[bank].plan.stored:
                self._work.stored[bank].store().delete()

    def _settle_build(
        self, item: BuildItem, receipt: BuildReceipt, error: BaseException | None
    ) -> None:
        if error is None:
            self._count(item.bank, receipt)
            self._queue.built(item)
            return
        self._build_errors[item.bank] = error
        final = is_final(error)
        if not final:
            self._progress.note(f"{len(item.blocks)} blocks are not built yet: {describe(error)}")
        self._record_all(self._queue.build_failed(item, describe(error), final=final))

    def _count(self, bank: str, receipt: BuildReceipt) -> None:
        """Note what was built of a bank."""
        self.counts.blocks_done += receipt.blocks
        self.counts.bytes_done += receipt.bytes
        self._unbuilt[bank] -= receipt.bytes
        self._built.add(bank)

    def _settle_batch(
        self, item: BatchItem, receipt: BatchReceipt, error: BaseException | None
    ) -> None:
        if item.builds and error is None:
            self._count(item.bank, receipt.built)
        if error is not None:
            final = item.builds and is_final(error)
            if final:
                self._build_errors[item.bank] = error
            else:
                words = f"a task of {len(item.runs)} runs ended early: {describe(error)}"
                self._progress.note(words)
            self._record_all(self._queue.batch_failed(item, describe(error), final=final))
        elif receipt.damaged:
            self._progress.note(f"building again: {receipt.damaged}")
            self._record_all(self._queue.bank_damaged(item, receipt.damaged))
        else:
            self._note_streaming(receipt)
            self._queue.batch_done(item)
            self._note_recorded(run.id for run in item.runs)
            return
        self._note_recorded(run.id for run in item.runs if self._is_recorded(run.id))

    def _note_recorded(self, run_ids: Iterable[str]) -> None:
        """Count runs as done; what became of each is announced."""
        for run_id in run_ids:
            self._states.setdefault(run_id, "")
            self._consolidator.add([run_id])

    def _note_streaming(self, receipt: BatchReceipt) -> None:
        if receipt.streamed and not self._noted_streaming:
            self._noted_streaming = True
            self._progress.note(
                "a node cache has no room or cannot be written, so every pass reads the bank from "
                "its store; MKLDIST_CACHE names another folder"
            )

    def _record_all(self, given_up: Iterable[GivenUp]) -> None:
        """Record runs as failed that no worker could do."""
        for one in given_up:
            n_kernels = self._work.stored[one.run.bank].plan.n_kernels
            with writing(self._work.settings.records):
                self._store.write(failed_record(one.run, one.error, n_kernels))
            self._states[one.run.id] = str(RunState.FAILED)
            self._consolidator.add([one.run.id])

    def _housekeep(self) -> None:
        """Take announcements, carry records into the results, show progress."""
        self._take_announcements()
        self._consolidator.flush_if_due()
        self.counts.runs_done = len(self._states)
        self.counts.runs_failed = sum(state == RunState.FAILED for state in self._states.values())
        self._progress.show(self.counts)
        now = time.monotonic()
        if self._tasks.has_workers:
            self._noted = now
        elif now - self._noted > NO_WORKERS_NOTE_SECONDS:
            self._progress.note("waiting for workers: none has joined, or all have left")
            self._noted = now

    def _take_announcements(self) -> None:
        """Take what workers said of finished runs, whose records are durable then."""
        while not self._announced.empty():
            event = self._announced.get()
            self._states[event["run"]] = event["state"]
            self._consolidator.add([event["run"]])

    def _missing_blocks(self, bank: str) -> list[int]:
        if not self._work.stored[bank].plan.stored:
            return []
        store = retried(self._work.stored[bank].store)
        missing = retried(store.missing)
        n_bytes = sum(block.shape[0] * block.shape[1] * store.dtype.itemsize for block in missing)
        self.counts.bytes += n_bytes
        self._unbuilt[bank] += n_bytes
        return [block.index for block in missing]

    def _is_recorded(self, run_id: str) -> bool:
        """Return whether storage has a run's record; what was announced may be lost since."""
        return retried(lambda: self._store.read(run_id)) is not None


def is_final(error: BaseException) -> bool:
    """Return whether an error is due to data or kernels; whatever a medium did may pass."""
    return isinstance(error, DataError | GramError | SpecError)


def describe(error: BaseException) -> str:
    """Return an error in one line, in words for what Dask calls a killed worker."""
    if type(error).__name__ == "KilledWorker":
        return (
            "the worker process died again and again while it did this, "
            "for example for want of memory"
        )
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
