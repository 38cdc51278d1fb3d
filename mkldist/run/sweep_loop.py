"""Loop that does the work of a sweep on a cluster, between work queue, workers and storage.

It submits what the queue has ready, one task for every thread of the workers, waits for tasks to
end, records the runs whose records have come, and tells the queue the outcomes.  A task returns a
small receipt, which is taken at once.  When a worker is lost, only the tasks that it was doing are
lost with it, since no worker holds results of earlier ones.

Where a pool admits workers, Dask may give a task to those alone that the pool had when it was
submitted.  When the last of them has gone, it is submitted again, for those there are then.  The
same holds for tasks that a machine is to do one at a time: one of its workers has them, since a
second one would wait with a task that another machine could do.
"""

from __future__ import annotations

import queue
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mkldist.bank.build import BuildReceipt
from mkldist.bank.cache import remove_bank
from mkldist.bank.readers import retried
from mkldist.core.durable import refused_write, writing
from mkldist.core.wording import pluralize
from mkldist.errors import (
    ClusterError,
    DataError,
    GramError,
    MkldistError,
    SpecError,
    UnfitClusterError,
    UnreadableError,
    WorkerError,
)
from mkldist.fit.score import failed_record
from mkldist.planning.model import RunPlan
from mkldist.results.folder import AtWork, put_together, remove_work_note, write_work_note
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.schema import RunState
from mkldist.run.cluster import no_worker
from mkldist.run.local_workers import ThreadTask, ThreadWorker
from mkldist.run.probe import do_where_equal, versions_here
from mkldist.run.progress import Counts, Progress
from mkldist.run.record_queue import RecordReceiver, lost_scheduler, reaching, unpacked
from mkldist.run.sweep_setup import NO_WORKERS_NOTE_SECONDS, BankKey, Work
from mkldist.run.tasks import BatchReceipt, BatchTask, BuildTask, Stage, build, solve_batch
from mkldist.run.work_queue import AbandonedRun, BatchItem, BuildItem, Item, WorkQueue, backends_of

if TYPE_CHECKING:
    from distributed import Client, Future

    from mkldist.run.worker_pool import WorkerPool

REFRESH_SECONDS = 2.0
RECEIPT_SECONDS = 10.0
MOST_LOST = 3  # times that a task is submitted again
LOST_RECEIPT = "its worker was lost before the coordinator had its receipt"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task: a receipt or an exception."""

    item: Item  # the work of the task
    receipt: Any = None  # return value of a task that ended well
    error: BaseException | None = None  # exception of a task that failed


@dataclass(frozen=True)
class _Pending:
    """A task that has not ended."""

    item: Item
    function: Callable[[Any], Any]
    task: Any
    at: float  # first submitted, in Unix time
    workers: frozenset[str] = frozenset()  # that may do it; empty for all
    future: Future[Any] | ThreadTask | None = None  # None while no worker may do it
    n_lost: int = 0  # times that all workers that might do it have gone, or one proved unfit


class PendingTasks:
    """Tasks that are submitted and have not ended."""

    def __init__(
        self,
        client: Client | ThreadWorker,
        pool: WorkerPool | None = None,
        *,
        one_a_machine: bool = False,
    ) -> None:
        self._client: Any = client
        self._pool, self._one_a_machine = pool, one_a_machine
        self._ended: queue.SimpleQueue[Future[Any] | ThreadTask] = queue.SimpleQueue()
        self._pending: dict[str, _Pending] = {}
        self._threads: dict[str, int] = {}
        self._some_may_not = pool is not None  # of the workers that are there
        self._refreshed = float("-inf")
        self._error: ClusterError | None = None

    @property
    def n_threads(self) -> int:
        """Number of threads of all workers that are there and may do tasks; 0 without any."""
        return sum(self._by_worker().values())

    @property
    def threads_of_a_machine(self) -> int:
        """Number of threads of all workers of the machine that has most of them now."""
        machines: Counter[str] = Counter()
        for address, threads in self._by_worker().items():
            machines[urlsplit(address).hostname or ""] += threads
        return max(machines.values(), default=0)

    def _by_worker(self) -> dict[str, int]:
        """Return the number of threads of each worker by its address; asked for at intervals."""
        now = time.monotonic()
        if now - self._refreshed > REFRESH_SECONDS and self._client.status == "running":
            with reaching(self._client):
                there = self._client.nthreads()
                usable = there if self._pool is None else self._pool.usable(there)
            self._threads = self._one_each(usable) if self._one_a_machine else usable
            self._some_may_not = self._pool is not None or len(self._threads) < len(there)
            self._refreshed = now
            self._submit_again()
        return self._threads

    def _one_each(self, workers: Mapping[str, int]) -> dict[str, int]:
        """Return a worker of each machine as one thread, that of before where it is still there."""
        chosen: dict[str | None, str] = {}
        for address in sorted(workers, key=lambda one: one not in self._threads):
            chosen.setdefault(urlsplit(address).hostname, address)
        return dict.fromkeys(chosen.values(), 1)

    def _submit_again(self) -> None:
        """Submit the tasks that none of the workers may do, for those that are there now."""
        for key, one in list(self._pending.items()) if self._threads else ():
            if one.future is None:
                del self._pending[key]
                self._begin(one)
            elif one.workers and one.workers.isdisjoint(self._threads):
                if one.n_lost < MOST_LOST:
                    del self._pending[key]
                    self._begin(replace(one, n_lost=one.n_lost + 1))
                self._client.cancel([one.future], force=True)

    @property
    def has_room(self) -> bool:
        """True if another task may be taken: one for every thread or machine; one without any.

        Dask would give any further task to a busy worker, where it waits while others are idle.
        """
        return len(self._pending) < max(1, self.n_threads)

    @property
    def items(self) -> list[Item]:
        """The work of the tasks in flight."""
        return [one.item for one in self._pending.values()]

    @property
    def begun(self) -> list[tuple[Item, float]]:
        """The work of the tasks in flight, and when each was submitted, in Unix time."""
        return [(one.item, one.at) for one in self._pending.values()]

    def __len__(self) -> int:
        return len(self._pending)

    def submit(self, item: Item, function: Callable[[Any], Any], task: Any) -> None:
        """Submit ``function(task)``, the work of an item, for a worker with equal packages."""
        self._begin(_Pending(item, function, task, time.time()))

    def _begin(self, one: _Pending) -> None:
        """Submit a task for the workers that may do it, or keep it until there is one."""
        key = f"{one.function.__name__}-{uuid.uuid4().hex}"
        if self._pool is not None and not self._threads:
            self._pending[key] = one
            return
        chosen = frozenset(self._threads) if self._some_may_not else frozenset()
        limits = {"workers": sorted(chosen)} if chosen else {}
        work = partial(do_where_equal, versions_here(), one.function)
        future = self._client.submit(work, one.task, key=key, pure=False, **limits)
        self._pending[key] = replace(one, workers=chosen, future=future)
        future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of tasks that have ended, after some seconds at most."""
        outcomes = []
        if self._error is not None:
            raise self._error
        try:
            future = self._ended.get(timeout=seconds)
            while True:
                outcome = self._outcome(future)
                if outcome is not None:
                    outcomes.append(outcome)
                future = self._ended.get_nowait()
        except queue.Empty:
            if not outcomes and self._client.status in ("closed", "closing"):
                raise lost_scheduler() from None
            for one in self._pending.values():  # Dask tells by a thread, if it may start one
                if one.future is not None and one.future.status != "pending":
                    self._ended.put(one.future)
        except ClusterError as error:
            if not outcomes:
                raise
            self._error = error  # of the next call: these outcomes count
        return outcomes

    def _outcome(self, future: Future[Any] | ThreadTask) -> Outcome | None:
        """Return the outcome of a task that has ended; None if it was submitted again."""
        ended = self._pending.pop(str(future.key), None)
        if ended is None:
            return None
        item = ended.item
        try:
            if future.status == "finished":
                return self._taken(item, future)
            if future.status == "error":
                error = future.exception()
                if isinstance(error, UnfitClusterError) and self._pool is None:
                    raise error
                if isinstance(error, ClusterError) and ended.n_lost < MOST_LOST:
                    self._begin(replace(ended, n_lost=ended.n_lost + 1))  # no fault of its runs
                    return None
                return Outcome(item, error=error)
            if self._client.status != "running":
                raise lost_scheduler()
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
                raise lost_scheduler() from error
            return Outcome(item, error=RuntimeError(f"{LOST_RECEIPT} ({type(error).__name__})"))

    def cancel(self) -> None:
        """Cancel all tasks in flight that workers have not begun."""
        futures = [one.future for one in self._pending.values() if one.future is not None]
        self._pending.clear()
        if futures and self._client.status == "running":
            with suppress(OSError):  # without a scheduler there is nothing to cancel
                self._client.cancel(futures, force=True)


def is_final(error: BaseException) -> bool:
    """Return True for an error of data or kernels, which every attempt would meet again."""
    return isinstance(error, DataError | GramError | SpecError)


OF_MEDIUM = (UnreadableError, WorkerError)
"""Errors of disks, networks and libraries, which are no results: their runs stay to be done."""


def unread_error(errors: Sequence[MkldistError]) -> MkldistError:
    """Return the error of the runs that met one of `OF_MEDIUM`, one for each run."""
    last, runs = errors[-1], pluralize(len(errors), "run")
    hint = last.hint or "Repeat the command"
    return type(last)(last.where, f"{last.found}; {runs} left to do", last.expected, hint)


def error_line(error: BaseException) -> str:
    """Return an error in one line; Dask's error for a killed worker in words."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return (
            "the worker process died again and again while it did this, "
            "for example for lack of memory"
        )
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


EVERY_SECONDS = 1.0  # least time between two notes


class StatusWriter:
    """Writer of the note of what is being done."""

    def __init__(self, folder: Path, banks: Collection[BankKey]) -> None:
        self._folder = folder
        self._banks = {key.id: f"{key.dataset}/{key.label}" for key in banks}
        self._several = len({key.label for key in banks}) > 1
        self._written: list[AtWork] = []
        self._last = float("-inf")

    def write(
        self,
        begun: Iterable[tuple[Item, float]],
        stages: Mapping[str, str],
        recorded: Collection[str],
    ) -> None:
        """Write the note if it has changed and the last one is old enough."""
        now = time.monotonic()
        if now - self._last < EVERY_SECONDS:
            return
        self._last = now
        at_work = put_together(
            one for item, at in begun for one in self._of(item, at, stages, recorded)
        )
        if at_work != self._written:
            self._written = at_work
            write_work_note(self._folder, at_work)

    def end(self) -> None:
        """Remove the note."""
        remove_work_note(self._folder)

    def _of(
        self, item: Item, since: float, stages: Mapping[str, str], recorded: Collection[str]
    ) -> Iterator[AtWork]:
        """Yield what a task is at work on: a bank, or the runs that are left, method by method."""
        if isinstance(item, BuildItem):
            yield AtWork(self._banks.get(item.bank, item.bank), "building the bank", since)
            return
        by_method: dict[str, list[RunPlan]] = {}
        for run in item.runs:
            if run.id not in recorded:
                by_method.setdefault(run.key, []).append(run)
        for key, runs in by_method.items():
            bank = [runs[0].bank_label] if self._several else []
            place = "/".join([runs[0].dataset, *bank, key])
            yield AtWork(place, stages.get(item.key, "starting"), since, len(runs))


WAIT_SECONDS = 0.25
STREAMED = (
    "a node cache has no room or cannot be written, so every pass reads the bank from its store; "
    "MKLDIST_CACHE names another folder"
)
UNLOCKED = (
    "a node cache could not be locked, so other isolated runs may have been beside those of this "
    "sweep; MKLDIST_CACHE names another folder"
)
TAKE_SECONDS = 0.25  # between looks at what tasks in flight have sent


class SweepLoop:
    """Loop that does the work of a sweep on a cluster."""

    def __init__(
        self,
        client: Client | ThreadWorker,
        work: Work,
        store: Journal,
        progress: Progress,
        earlier: Counts | None = None,
        pool: WorkerPool | None = None,
    ) -> None:
        self._client: Any = client
        self._pool = pool
        self._work, self._store = work, store
        self._planned = {run.id for batch in work.batches for run in batch.runs}
        self._banks = work.banks_by_id
        self._progress = progress
        isolated = work.settings.execution == "isolated"
        self._tasks = PendingTasks(client, self._pool, one_a_machine=isolated)
        self._receiver = RecordReceiver(client, store.path.parent)
        self._settings = replace(work.settings, queue=self._receiver.queue)
        self._taken_at = float("-inf")
        self._stages: dict[str, Stage] = {}  # of tasks that have told one
        self._states: dict[str, str] = {}  # of recorded runs
        self._failed: set[str] = set()
        self._built = work.built
        self._unbuilt: Counter[str] = Counter()  # bytes by bank
        self._build_errors: dict[str, BaseException] = {}
        self._unread: list[MkldistError] = []  # for each run that waits for its medium
        self._noted: set[str] = set()  # lines that are told once
        self._status = StatusWriter(store.path.parent, work.banks)
        self._earlier = earlier or Counts(runs=sum(len(batch.runs) for batch in work.batches))
        n_banks = sum(ref.is_shared for ref in self._banks.values())
        self.counts = self._earlier.of_next_round(n_banks)
        self._queue = WorkQueue(
            backends_of(ref.plan for ref in self._banks.values()),
            work.batches,
            self._missing_blocks,
            self._is_recorded,
            self._threads,
            {i for i, ref in self._banks.items() if ref.plan.stored and not ref.is_shared},
        )
        self._workers_seen = self._workers_noted = time.monotonic()

    def work(self) -> None:
        """Do all the work; return when every run is recorded."""
        try:
            while self._submit() or len(self._tasks):
                outcomes = self._tasks.wait(WAIT_SECONDS)
                self._receive(outcomes)
                for outcome in outcomes:
                    self._settle(outcome)
                self._housekeep()
                self._work.wall_time.check()
            if self._unread:
                raise unread_error(self._unread)
        finally:
            with suppress(MkldistError):  # the user is told of the error that ended the loop
                self._receive(self._tasks.wait(0.0))
                self._record(self._sent())
            self._tasks.cancel()
            self._status.end()
            self._receiver.close()
            self._count_runs()

    def _threads(self) -> int:
        """Return the number of threads among which to divide work; 0 if it is unknown."""
        return max(self._tasks.n_threads, self._work.expected_threads)

    def _submit(self) -> bool:
        """Submit a task for every idle thread; return True if there was any."""
        submitted = False
        while self._tasks.has_room and (item := self._queue.next()) is not None:
            settings = self._settings
            if isinstance(item, BuildItem):
                ref = self._banks[item.bank]
                self._tasks.submit(item, build, BuildTask(ref, item.blocks, settings))
            else:
                ref = self._work.banks[BankKey.of(item.runs[0])]
                before = self._before(item.runs)
                batches = max(1, self._queue.unfinished_batches)
                threads = self._tasks.threads_of_a_machine or self._threads() or batches
                task = BatchTask(
                    ref, item.runs, settings, min(threads, batches), item.builds, before,
                    None if self._pool is None else self._pool.admitted(),
                )  # fmt: skip
                self._tasks.submit(item, solve_batch, task)
            submitted = True
        return submitted

    def _before(self, runs: Iterable[RunPlan]) -> tuple[RunPlan, ...]:
        """Return the recorded runs on whose solutions those of the same paths build."""
        last: dict[tuple[object, ...], float] = {}
        for run in runs:
            if run.on_path:
                last[run.chain] = max(run.order, last.get(run.chain, run.order))
        states = self._store.states() if last else {}
        return tuple(
            run
            for chain, order in last.items()
            for run in self._work.paths[chain]
            if run.order < order and states.get(run.id) == RunState.COMPLETE
        )

    def _settle(self, outcome: Outcome) -> None:
        """Tell the queue how a task ended, and delete banks that no run needs any more.

        A full or read-only disk ends the sweep: every other task would meet it too.
        """
        self._stages.pop(outcome.item.key, None)
        error = outcome.error
        if error is not None:
            refused = refused_write(error)
            if refused is not None:
                raise refused from error
        if isinstance(outcome.item, BuildItem):
            self._settle_build(outcome.item, outcome.receipt, error)
        else:
            self._settle_batch(outcome.item, outcome.receipt, error)
        for bank in self._queue.finished_banks():
            # A task that built blocks and then died has returned no receipt of them.
            self.counts.bytes -= self._unbuilt.pop(bank, 0)
            keep = self._work.keep_banks or bank in self._work.later_banks
            deletable = self._work.own_banks or bank in self._built
            if deletable and not keep and self._banks[bank].is_shared:
                with self._work.use.alone() as alone:
                    if alone:
                        remove_bank(self._banks[bank].store())

    def _settle_build(
        self, item: BuildItem, receipt: BuildReceipt, error: BaseException | None
    ) -> None:
        """Count the blocks of a task that ended well, or have the queue try them again."""
        if error is None:
            self._count(item.bank, receipt)
            self._queue.built(item)
            return
        self._build_errors[item.bank] = error
        final = is_final(error)
        if not final:
            self._progress.note(f"{len(item.blocks)} blocks are not built yet: {error_line(error)}")
        self._give_up(self._queue.build_failed(item, error_line(error), final=final), error)

    def _count(self, bank: str, receipt: BuildReceipt) -> None:
        """Count the blocks that a task built of a bank."""
        self.counts.blocks_done += receipt.blocks
        self.counts.bytes_done += receipt.bytes
        self._unbuilt[bank] -= receipt.bytes
        self.counts.note_bank(bank, complete=self._unbuilt[bank] <= 0)
        self._built.add(bank)

    def _settle_batch(
        self, item: BatchItem, receipt: BatchReceipt, error: BaseException | None
    ) -> None:
        """Have the queue try the runs of a batch again that it did not record."""
        if error is None and not receipt.damaged:
            lost = [run for run in item.runs if not self._is_recorded(run.id)]
            error = RuntimeError(f"{len(lost)} records were lost on their way") if lost else None
        if item.builds and receipt is not None:
            self._count(item.bank, receipt.built)
        if error is not None:
            final = item.builds and is_final(error)
            if final:
                self._build_errors[item.bank] = error
            else:
                text = f"a task of {len(item.runs)} runs ended early: {error_line(error)}"
                self._progress.note(text)
            self._give_up(self._queue.batch_failed(item, error_line(error), final=final), error)
        elif receipt.damaged:
            self._progress.note(f"building again: {receipt.damaged}")
            self._record_failed(self._queue.bank_damaged(item, receipt.damaged))
        else:
            self._note_cache(receipt)
            self._queue.batch_done(item)
            self.counts.runs_of_ended_batches += len(item.runs)

    def _note_cache(self, receipt: BatchReceipt) -> None:
        """Tell the user once that a bank could not be kept in the node cache, or a lock in it."""
        for line, is_so in ((STREAMED, receipt.streamed), (UNLOCKED, receipt.unlocked)):
            if is_so and line not in self._noted:
                self._noted.add(line)
                self._progress.note(line)

    def _give_up(self, abandoned: Iterable[AbandonedRun], error: BaseException) -> None:
        """Record abandoned runs as failed, unless the error was the medium's and not theirs."""
        if isinstance(error, OSError | ImportError):
            error = WorkerError.of(error)
        if isinstance(error, OF_MEDIUM):
            self._unread += [error for _ in abandoned]
        else:
            self._record_failed(abandoned)

    def _record_failed(self, abandoned: Iterable[AbandonedRun]) -> None:
        """Record abandoned runs as failed."""
        self._record(
            failed_record(one.run, one.error, self._banks[one.run.bank].plan.n_kernels)
            for one in abandoned
        )

    def _receive(self, outcomes: Sequence[Outcome]) -> None:
        """Record what ended tasks return and have sent, at intervals also what others have sent."""
        ended = [one for one in outcomes if isinstance(one.item, BatchItem)]
        sent = [one for one in ended if one.error is not None or one.receipt.n_sent]
        records: list[RunRecord] = []
        if sent or time.monotonic() - self._taken_at > TAKE_SECONDS:
            records = self._sent()
            self._receiver.forget(one.item.key for one in sent)
        for one in ended:
            records += map(unpacked, () if one.receipt is None else one.receipt.records)
        self._record(records)

    def _sent(self) -> list[RunRecord]:
        """Take what tasks have sent: note their stages, return records."""
        self._taken_at = time.monotonic()
        records: list[RunRecord] = []
        for message in self._receiver.take():
            if message["stage"]:
                self._take_stage(message["task"], Stage(message["stage"]))
            records += map(unpacked, message["records"].values())
        return records

    def _record(self, records: Iterable[RunRecord]) -> None:
        """Write records, and then count their runs as recorded.

        A record that comes twice is dropped.  One that was sent to a coordinator before this one
        may be of a run that is not asked for any more.
        """
        new: dict[str, RunRecord] = {}
        for record in records:
            earlier = new.get(record.id)
            state = str(earlier.state) if earlier else self._states.get(record.id, "")
            if not state and record.id not in self._planned:
                former = self._store.read(record.id)
                state = "" if former is None else str(former.state)
            if state and (state != RunState.FAILED or record.state is RunState.FAILED):
                continue
            new[record.id] = record
        if not new:
            return
        with writing(self._store.path):
            self._store.append(new.values())
        for record in new.values():
            if record.id in self._planned:
                self._states[record.id] = sys.intern(str(record.state))
                is_failed = record.state is RunState.FAILED
                (self._failed.add if is_failed else self._failed.discard)(record.id)

    def _housekeep(self) -> None:
        """Tell the user how far the work is."""
        for line in self._pool.messages() if self._pool is not None else ():
            self._progress.note(line)
        self._count_runs()
        self.counts.doing = self._doing()
        self._progress.show(self.counts)
        stages = {key: stage.value for key, stage in self._stages.items()}
        self._status.write(self._tasks.begun, stages, self._states)
        now = time.monotonic()
        if self._tasks.n_threads:
            self._workers_seen = self._workers_noted = now
        elif now - self._workers_noted > NO_WORKERS_NOTE_SECONDS:
            words = "waiting for workers: none has joined, or all have left"
            self._progress.note(no_worker(words))
            self._workers_noted = now  # the next note comes as long after this one
        self._work.wall_time.check_workers(now - self._workers_seen)

    def _count_runs(self) -> None:
        """Count the recorded runs of this round with those of earlier ones."""
        self.counts.runs_done = self._earlier.runs_done + len(self._states)
        self.counts.runs_failed = self._earlier.runs_failed + len(self._failed)

    def _take_stage(self, task: str, stage: Stage) -> None:
        """Note what a task is doing; a batch that builds its bank has built it when it solves."""
        self._stages[task] = stage
        if stage is Stage.SOLVING:
            for item in self._tasks.items:
                if isinstance(item, BatchItem) and item.key == task and item.builds:
                    self.counts.note_bank(item.bank, complete=True)

    def _doing(self) -> str:
        """Return what the tasks in flight are doing, for the progress."""
        if not self._tasks.n_threads:
            return "waiting for workers"
        stages = {
            self._stages.get(item.key, Stage.BUILDING if isinstance(item, BuildItem) else None)
            for item in self._tasks.items
        }
        return " and ".join(stage.value for stage in Stage if stage in stages)

    def _missing_blocks(self, bank: str) -> list[int]:
        """Make the store of a bank if needed; return and count the blocks that it lacks."""
        if not self._banks[bank].is_shared:
            return []
        store = retried(self._banks[bank].store)
        missing = retried(store.missing)
        n_bytes = len(missing) * store.shape.chunk_bytes
        self.counts.bytes += n_bytes
        self._unbuilt[bank] += n_bytes
        self.counts.note_bank(bank, complete=not missing)
        return missing

    def _is_recorded(self, run_id: str) -> bool:
        """Return True if a run's record is written."""
        return run_id in self._states
