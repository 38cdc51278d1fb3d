"""What is sent to workers: small tasks of ids, paths and words, and the functions that do them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from mkldist.blas_threads import single_threaded
from mkldist.durable import writing
from mkldist.gram.bank import Bank
from mkldist.gram.buffer import BankBuffer
from mkldist.gram.build import BlockBuilder, BuildReceipt, build_blocks
from mkldist.gram.loading import DamagedBlocksError, block_buffer, fitted, read_block
from mkldist.gram.open import Backend, open_bank
from mkldist.gram.recomputed import RecomputedBank
from mkldist.gram.store import Block, GramStore
from mkldist.gram.streamed import StreamedBank
from mkldist.memory import bank_bytes, row_cache_bytes
from mkldist.plan.model import BankPlan, RunPlan
from mkldist.worker.bank_inputs import BankRef, bank_inputs
from mkldist.worker.batch import BatchSettings, report_to, solve_runs
from mkldist.worker.telemetry import peak_memory
from mkldist.worker.warm_up import warm_up

_of_thread = threading.local()


@dataclass(frozen=True)
class BuildTask:
    """Compute and store some blocks of a bank.

    Parameters
    ----------
    ref : BankRef
        The bank.
    blocks : tuple of int
        Indices of the blocks.
    """

    ref: BankRef
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class BatchTask:
    """Do some runs on a bank.

    Parameters
    ----------
    ref : BankRef
        The bank.
    runs : tuple of RunPlan
        The runs; those that are recorded already are left out.
    settings : BatchSettings
        How to do them.
    at_once : int
        Batches that may be done at the same time on the worker's machine, this one included.
    builds : bool
        Whether to build the blocks that the bank lacks; otherwise it is complete.
    """

    ref: BankRef
    runs: tuple[RunPlan, ...]
    settings: BatchSettings
    at_once: int = 1
    builds: bool = False


@dataclass(frozen=True)
class BatchReceipt:
    """What a batch did.

    Parameters
    ----------
    recorded : tuple of str
        Ids of the runs whose records it wrote.
    damaged : str
        What was wrong with the bank, or empty.  The marks of damaged blocks are gone then, and
        runs that are not recorded are still to be done.
    streamed : bool
        Whether the bank was read from its store because the node cache could not keep it.
    passes, bytes_read : int
        Passes over the bank and bytes read from it.
    peak_memory : int
        Largest resident size of the worker process so far, in bytes.
    built : BuildReceipt
        What it built.
    """

    recorded: tuple[str, ...] = ()
    damaged: str = ""
    streamed: bool = False
    passes: int = 0
    bytes_read: int = 0
    peak_memory: int = 0
    built: BuildReceipt = field(default_factory=BuildReceipt)


def build(task: BuildTask) -> BuildReceipt:
    """Compute and store blocks; those that are complete already cost nothing.

    Raises
    ------
    mkldist.errors.GramError
        When a kernel has values that cannot be stored.
    mkldist.errors.OutputError
        When the medium is full or cannot be written.
    """
    with single_threaded():
        store = task.ref.store()
        source = bank_inputs(task.ref).source()
        with writing(store.location):
            return build_blocks(source, store, [store.blocks[i] for i in task.blocks])


def solve_batch(task: BatchTask) -> BatchReceipt:
    """Do runs, committing each one's record as it ends.

    Raises
    ------
    mkldist.errors.GramError
        When a block that it is to build has values that cannot be stored.
    mkldist.errors.OutputError
        When a record or such a block cannot be written.
    mkldist.errors.UnreadableError
        When the medium of the bank, the data or the records does not answer.
    """
    recorded: list[str] = []
    limit = memory_share(task.settings.memory_limit)
    settings = replace(task.settings, memory_limit=limit)
    with single_threaded():
        warm_up(task.runs)
        try:
            with (
                _opened(task, limit) as (bank, builder),
                writing(settings.records),
                report_to(settings.topic) as report,
            ):

                def done(run_id: str, state: str) -> None:
                    recorded.append(run_id)
                    report(run_id, state)

                solve_runs(bank, task.ref, task.runs, settings, done)
        except DamagedBlocksError as error:
            _drop_damaged(task.ref.store(), error)
            return BatchReceipt(tuple(recorded), damaged=str(error))
    return BatchReceipt(
        recorded=tuple(recorded),
        streamed=task.ref.plan.backend == "mmap" and isinstance(bank, StreamedBank),
        passes=bank.counter.passes,
        bytes_read=bank.counter.bytes_read,
        peak_memory=peak_memory(),
        built=builder.receipt if builder else BuildReceipt(),
    )


def memory_share(memory_limit: int | None) -> int | None:
    """Return the bytes that a task may take: what its worker may, divided by its threads.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that the sweep allows a worker; the worker may have a limit of its own, beyond which
        Dask stops it.
    """
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # no worker, but a process that does the task itself
        return memory_limit
    own = worker.memory_manager.memory_limit
    limits = [limit for limit in (memory_limit, own) if limit]
    return min(limits) // max(1, worker.state.nthreads) if limits else None


def kernel_threads(task: BatchTask) -> int:
    """Return the threads that compute kernels in the passes of a batch.

    They are the batch's share of the processors, which is more than one where batches are few;
    isolated runs have one, so that their times do not depend on what else is done.
    """
    from dask.system import CPU_COUNT

    if task.settings.execution == "isolated":
        return 1
    return max(1, CPU_COUNT // task.at_once)


@contextmanager
def _opened(task: BatchTask, limit: int | None) -> Iterator[tuple[Bank, BlockBuilder | None]]:
    """Yield the bank for a task that may take so many bytes, and what builds it meanwhile."""
    with ExitStack() as stack:
        bank, builder = _bank(task, limit, stack)
        stack.callback(bank.close)
        yield bank, builder


def _bank(task: BatchTask, limit: int | None, stack: ExitStack) -> tuple[Bank, BlockBuilder | None]:
    ref, backend = task.ref, _backend(task.ref.plan, limit)
    buffer = _buffer_of_thread() if task.settings.own_workers else BankBuffer()
    if backend != "memory":
        buffer.clear()
    if not ref.plan.stored:
        source = bank_inputs(ref).source()
        return RecomputedBank(source, row_cache_bytes(limit), kernel_threads(task)), None
    store, builder = ref.store(), None
    if task.builds:
        stack.enter_context(writing(store.location))
        builder = stack.enter_context(BlockBuilder(bank_inputs(ref).source(), store))
    return open_bank(store, backend, limit, builder=builder, buffer=buffer), builder


def _buffer_of_thread() -> BankBuffer:
    """Return the memory of this thread for banks, one task's after the other's."""
    if not hasattr(_of_thread, "buffer"):
        _of_thread.buffer = BankBuffer()
    buffer: BankBuffer = _of_thread.buffer
    return buffer


def _backend(plan: BankPlan, memory_limit: int | None) -> Backend:
    """Return how to open a bank: as planned, unless this worker has less memory than planned."""
    if plan.backend == "memory" and plan.spec.backend == "auto" and memory_limit is not None:
        return "memory" if plan.n_bytes <= bank_bytes(memory_limit) else "stream"
    return cast(Backend, plan.backend)


def _drop_damaged(store: GramStore, error: DamagedBlocksError) -> None:
    """Take the marks of damaged blocks away, so that they count as missing.

    Several tasks may have met the same damage: a block that was built again meanwhile is sound.
    """
    store.invalidate(block for i in error.blocks if _is_damaged(store, block := store.blocks[i]))


def _is_damaged(store: GramStore, block: Block) -> bool:
    try:
        read_block(store, block, fitted(block_buffer(store), block))
    except DamagedBlocksError:
        return True
    return False
