"""Tasks as Dask sends them to workers, and the functions that do them.

A task holds ids, paths and settings, and no arrays.  The banks that it builds are in storage before
it returns; records go to the coordinator, see :mod:`mkldist.run.record_queue`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from filelock import BaseFileLock, FileLock, Timeout

from mkldist.bank.bank import Bank, MemoryBank
from mkldist.bank.build import (
    Backend,
    BlockBuilder,
    BuildReceipt,
    build_blocks,
    build_factors,
    open_bank,
)
from mkldist.bank.cache import default_directory
from mkldist.bank.factored_kernels import FactoredKernels, begin_factors
from mkldist.bank.readers import (
    BankBuffer,
    DamagedBlocksError,
    StreamedBank,
    block_buffer,
    fitted,
    read_block,
)
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.sources import BankSource, computed
from mkldist.bank.store import BankStore, BuildTime
from mkldist.core.durable import machine_id, make_folder
from mkldist.core.memory import bank_bytes, row_cache_bytes
from mkldist.core.threads import n_processors, single_threaded
from mkldist.errors import UnreadableError
from mkldist.fit.engine import fit
from mkldist.fit.score import Scorer
from mkldist.planning.model import BankPlan, RunPlan
from mkldist.planning.planner import factors_bytes
from mkldist.results.journal import RunRecord
from mkldist.run.bank_refs import OWN_BANKS, BankRef, bank_inputs, laplacian
from mkldist.run.probe import memory_share, this_worker
from mkldist.run.record_queue import MessageQueue, RecordSender, build_key
from mkldist.run.shards import SHARDS, open_sharded
from mkldist.run.warm_up import specimens, warm_up, warm_up_source


def machine_lock_file() -> Path:
    """Return the file whose lock is the turn on this machine."""
    return default_directory() / "turns" / f"{machine_id()}.lock"


@contextmanager
def exclusive_machine_lock(on_wait: Callable[[], object]) -> Iterator[bool]:
    """Have the turn on this machine while the context lasts; wait for it first."""
    lock = FileLock(machine_lock_file())
    has_turn = _locked(lock, 0.0)
    if has_turn is False:
        on_wait()
        has_turn = _locked(lock, -1.0)
    try:
        yield has_turn is True
    finally:
        lock.release()


def _locked(lock: BaseFileLock, seconds: float) -> bool | None:
    """Return whether a lock is held within some seconds, -1 for any; None if it cannot be."""
    try:
        make_folder(Path(lock.lock_file).parent, durable=False)
        lock.acquire(timeout=seconds)
    except Timeout:
        return False
    except (OSError, NotImplementedError):
        return None
    return True


_this_thread = threading.local()


@dataclass(frozen=True)
class BatchSettings:
    """Settings of all batches of a sweep."""

    # ``"shared"``: all solvers in lockstep; ``"path"``: all paths in lockstep; ``"isolated"``: one
    # solver after the other
    execution: str = "shared"
    seed: int = 0  # seed of the sweep, for provenance
    memory_limit: int | None = None  # bytes that a worker may take
    predictions: bool = False  # True if records hold decision values of test and unlabelled points
    # True if records hold the rows that coefficients belong to, and the coefficients of each kernel
    # where these differ
    coefficients: bool = False
    # True if workers end with the sweep, so that they may keep memory for their next batch
    own_workers: bool = False
    # Queue by which tasks that last send records, and tell what they do
    queue: MessageQueue | None = None


@dataclass(frozen=True)
class BuildTask:
    """Compute and store some blocks of a bank."""

    ref: BankRef
    blocks: tuple[int, ...]  # indices of the blocks
    settings: BatchSettings = field(default_factory=BatchSettings)  # settings of the sweep

    @property
    def key(self) -> str:
        """Name of the task among those in flight."""
        return build_key(self.ref.plan.id, self.blocks)


@dataclass(frozen=True)
class BatchTask:
    """Do some runs on a bank."""

    ref: BankRef
    runs: tuple[RunPlan, ...]
    settings: BatchSettings  # settings of the sweep
    # Batches that may be done at the same time on the worker's machine, this one included
    n_at_once: int = 1
    # True to build the blocks that the bank lacks; otherwise the bank is complete
    builds: bool = False
    # Recorded runs of the same paths, solved again for the states that the others start from
    before: tuple[RunPlan, ...] = ()
    # Addresses of the workers that may hold shards of a bank; None for all
    admitted: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        """Name of the batch among those in flight: no two of them have a run in common."""
        return self.runs[0].id


class Stage(Enum):
    """Stage of a task: the work that it does or waits for."""

    WAITING = "waiting for another isolated run on its machine"
    READING = "reading banks"
    BUILDING = "building banks"
    COMPILING = "compiling"
    SOLVING = "solving"


@dataclass(frozen=True)
class BatchReceipt:
    """Summary of a batch that ended."""

    # Records that it has not sent, each as :func:`mkldist.run.record_queue.packed` bytes
    records: tuple[bytes, ...] = ()
    n_sent: int = 0  # records that it has sent, those included that a worker sent which has gone
    # Damage that it found in the bank, or empty.  The bank then counts the damaged blocks as
    # missing, and the runs without a record are still to be done
    damaged: str = ""
    # True if the bank was read from its store because the node cache could not keep it
    streamed: bool = False
    passes: int = 0  # passes over the bank
    built: BuildReceipt = field(default_factory=BuildReceipt)  # blocks that it built
    # True if another isolated sweep may have been at work on the machine, as the cache could not be
    # locked
    unlocked: bool = False


def build(task: BuildTask) -> BuildReceipt:
    """Compute and store blocks; those that are complete already cost nothing."""
    with (
        RecordSender(task.settings.queue, task.key) as sender,
        _turn(task, sender),
        single_threaded(),
        task.ref.in_use(),
    ):
        source, plan = _source(task.ref), task.ref.plan
        if plan.is_factored:
            return build_factors(source, task.ref.store(), plan.seed, task.blocks)
        return build_blocks(source, task.ref.store(), task.blocks)


def solve_batch(task: BatchTask) -> BatchReceipt:
    """Do runs; return their records, or send those of a batch that lasts as they end."""
    limit = memory_share(task.settings.memory_limit)
    settings = replace(task.settings, memory_limit=limit)
    with (
        RecordSender(settings.queue, task.key) as sender,
        _turn(task, sender) as is_alone,
        single_threaded(),
        task.ref.in_use(),
    ):
        sent = sender.already_sent()
        runs = [run for run in task.runs if run.id not in sent]
        try:
            sender.begin(Stage.COMPILING.value)
            _compile(task)
            builds = task.builds or task.ref.plan.sharded
            sender.begin((Stage.BUILDING if builds else Stage.READING).value)
            with _opened(task, limit) as opened:
                bank, builder, _ = opened
                if builder is not None and settings.execution == "isolated":
                    builder.wait()  # no bank is built while the clock of a run goes
                sender.begin(Stage.SOLVING.value)
                time_of = partial(_build_time, task.ref, builder)
                if runs:
                    before = [*task.before, *(r for r in task.runs if r.on_path and r.id in sent)]
                    solve_runs(opened, task.ref, runs, settings, sender.add, time_of, before)
        except DamagedBlocksError as error:
            _remove_damaged(task.ref.store(), error)
            return BatchReceipt(sender.rest(), sender.n_sent, damaged=str(error))
        return BatchReceipt(
            records=sender.rest(),
            n_sent=sender.n_sent,
            streamed=task.ref.plan.backend == "mmap" and isinstance(bank, StreamedBank),
            passes=bank.counter.passes,
            built=builder.receipt if builder else BuildReceipt(),
            unlocked=not is_alone,
        )


@contextmanager
def _turn(task: BuildTask | BatchTask, sender: RecordSender) -> Iterator[bool]:
    """Have this machine for a task of an isolated sweep; yield False if others may have it, too.

    A batch on a sharded bank takes no turn: it waits for work of the other workers, which may wait
    for a turn themselves.
    """
    if task.settings.execution != "isolated" or task.ref.plan.sharded:
        yield True
        return
    with exclusive_machine_lock(lambda: sender.begin(Stage.WAITING.value)) as is_alone:
        if isinstance(task, BuildTask):
            sender.begin(Stage.BUILDING.value)  # a batch tells its further stages itself
        yield is_alone


def _compile(task: BatchTask) -> None:
    """Compile what computes kernels and what the runs call, or load it."""
    plan = task.ref.plan
    needs_source = task.builds or plan.needs_source
    source = bank_inputs(task.ref).source() if needs_source else None
    if source is not None:
        warm_up_source(source, plan.dtype, is_factored=plan.is_factored)
    warm_up(specimens(task.runs, plan))


def kernel_threads(task: BatchTask) -> int:
    """Return the number of threads that compute kernels in the passes of a batch.

    It is the batch's share of the processors, more than one where batches are few.  Isolated runs
    get one thread, so that their times do not depend on other batches.
    """
    if task.settings.execution == "isolated":
        return 1
    return max(1, n_processors() // task.n_at_once)


class _Opened(NamedTuple):
    """A bank, its builder if it has one, and the kernels that it stands for if it is of factors."""

    bank: Bank
    builder: BlockBuilder | None = None
    factored: FactoredKernels | None = None


def solve_runs(
    opened: _Opened,
    ref: BankRef,
    runs: Sequence[RunPlan],
    settings: BatchSettings,
    on_record: Callable[[RunRecord], None],
    build_time: Callable[[], BuildTime | None] = lambda: None,
    before: Sequence[RunPlan] = (),
) -> None:
    """Solve runs, those `before` them too, and hand on the record of each of the others."""
    inputs = bank_inputs(ref)
    scorer = Scorer(
        inputs,
        ref.data_fingerprint,
        ref.plan.id,
        settings.seed,
        settings.predictions,
        settings.coefficients,
        build_time,
    )
    ids = {run.id for run in runs}
    fit(
        opened.factored or opened.bank,
        inputs,
        [*before, *runs],
        lambda ended: on_record(scorer.record(ended)) if ended.run.id in ids else None,
        laplacian=partial(laplacian, ref),
        memory_limit=settings.memory_limit,
        isolated=settings.execution == "isolated",
    )


@contextmanager
def _opened(task: BatchTask, limit: int | None) -> Iterator[_Opened]:
    """Open the bank for a task that may take `limit` bytes."""
    with ExitStack() as stack:
        opened = _bank(task, limit, stack)
        stack.callback(opened.bank.close)
        yield opened


def _bank(task: BatchTask, limit: int | None, stack: ExitStack) -> _Opened:
    """Return the bank of a task, and its builder, which the stack finishes after the bank."""
    ref, backend = task.ref, _backend(task.ref.plan, limit)
    buffer = _buffer_of_thread() if task.settings.own_workers else BankBuffer()
    if backend != "memory":
        buffer.clear()  # this task needs the memory for other things
    is_alone = ref.plan.sharded and this_worker() is None
    if ref.plan.sharded and not is_alone:
        of_worker, forgets = task.settings.memory_limit, not task.settings.own_workers
        sharded = open_sharded(ref, of_worker, stack, task.admitted, forgets=forgets)
        return _Opened(sharded)
    SHARDS.clear()  # as above
    if ref.plan.is_factored:
        if not ref.root:
            OWN_BANKS.make_room(ref.plan.n_bytes, keep=ref.plan.id)
        factored = _factors_of(ref, _source(ref), limit, kernel_threads(task))
        return _Opened(factored.factors, factored=factored)
    if is_alone and ref.plan.n_bytes <= bank_bytes(limit):
        shape, kernels = ref.plan.shape, slice(0, ref.plan.n_kernels)
        entries = computed(_source(ref), kernels, shape.layout, shape.dtype)
        return _Opened(MemoryBank(entries, shape.layout))
    if ref.plan.recomputed or is_alone:
        return _Opened(RecomputedBank(_source(ref), row_cache_bytes(limit), kernel_threads(task)))
    store, builder = ref.store(), None
    if task.builds:
        builder = stack.enter_context(BlockBuilder(_source(ref), store))
        if not ref.root:
            with OWN_BANKS.alone(ref.plan.id):
                OWN_BANKS.make_room(ref.plan.n_bytes, keep=ref.plan.id)
                if backend != "memory":  # one process of this machine builds it
                    builder.build(store.missing())
    return _Opened(open_bank(store, backend, limit, builder=builder, buffer=buffer), builder)


def _factors_of(
    ref: BankRef, source: BankSource, memory_limit: int | None, threads: int
) -> FactoredKernels:
    """Return the kernels of a bank beside factors of few columns, which the bank's store keeps.

    Factors may take half of `memory_limit` bytes; the others lie in a file of the node cache.
    Without a limit memory holds all first factors.  `threads` kernels are factorised at the same
    time.
    """
    plan = ref.plan
    limits = replace(plan.limits, n_bytes=factors_bytes(plan, memory_limit))
    store, folder = ref.store(), default_directory()
    return begin_factors(source, limits, plan.seed, threads, store, folder, plan.dtype)


def _source(ref: BankRef) -> BankSource:
    """Return the source of a bank, whose functions are compiled."""
    source = bank_inputs(ref).source()
    warm_up_source(source, ref.plan.dtype, is_factored=ref.plan.is_factored)
    return source


def _buffer_of_thread() -> BankBuffer:
    """Return this thread's memory for banks, which one task after the other uses.

    Fresh memory for every bank would cost a page fault for each of its pages.
    """
    if not hasattr(_this_thread, "buffer"):
        _this_thread.buffer = BankBuffer()
    buffer: BankBuffer = _this_thread.buffer
    return buffer


def _backend(plan: BankPlan, memory_limit: int | None) -> Backend:
    """Return how to open a bank: as planned, or streamed if this worker has too little memory.

    A backend that the sweep file names is kept in any case.
    """
    if plan.backend == "memory" and plan.spec.backend == "auto" and memory_limit is not None:
        return "memory" if plan.n_bytes <= bank_bytes(memory_limit) else "stream"
    return cast(Backend, plan.backend)


def _build_time(ref: BankRef, builder: BlockBuilder | None) -> BuildTime | None:
    """Return the time that took a bank to build; None if that is unknown or it is not stored."""
    if builder is not None:
        builder.wait()
    with suppress(UnreadableError):
        return ref.store().build_time() if ref.plan.stored else None
    return None


def _remove_damaged(store: BankStore, error: DamagedBlocksError) -> None:
    """Remove damaged blocks, which are missing then.

    Several tasks may have met the same damage.  So each block is read again first: one that was
    rebuilt meanwhile is sound and stays.
    """
    buffer = block_buffer(store)
    for block in (store.shape.blocks[i] for i in error.blocks):
        try:
            read_block(store, block, fitted(buffer, block))
        except DamagedBlocksError:
            store.remove([block.index])
