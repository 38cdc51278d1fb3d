"""Work queue of a sweep: blocks of banks, then batches of runs, and the consequences of failures.

This is bookkeeping without Dask or storage.  Three rules keep a sweep going when tasks fail:

1. A batch that killed its worker, or failed outside its solvers, is taken apart.  Each of its runs
   without a record is tried alone, so that one bad run does not fail the others; at first each of
   its paths, whose runs start from each other.
2. A run that fails alone, or a bank that cannot be built, is abandoned after a few attempts, and
   the runs concerned are recorded as failed.
3. A bank with a damaged block is built again before its batches continue, a few times at most.
   Batches that began before the last repair may still report damage; it counts as that repair's.

A bank that a single batch loads is built by this batch, which then has the values in memory.  This
holds only while there are enough such banks to keep all threads busy; otherwise the threads share
the blocks of one bank.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mkldist.planning.model import BankPlan, BatchPlan, RunPlan
from mkldist.planning.planner import divided, shares_of
from mkldist.run.record_queue import build_key
from mkldist.spec.banks import FACTORS


@dataclass(frozen=True)
class BuildItem:
    """Some blocks of one bank, to be built."""

    bank: str  # id of the bank
    blocks: tuple[int, ...]  # indices of the blocks
    attempt: int = 1  # number of this attempt, from 1

    @property
    def key(self) -> str:
        """Name of the task among those in flight, that of its ``BuildTask``."""
        return build_key(self.bank, self.blocks)


@dataclass(frozen=True)
class BatchItem:
    """Some runs on one bank, to be done together."""

    bank: str  # id of the bank
    runs: tuple[RunPlan, ...]
    attempt: int = 1  # number of this attempt, from 1; runs that are tried alone begin with 2
    repairs: int = 0  # repairs that the bank has had when the batch begins
    # True for a share of one of the last batches, which is not divided further
    is_share: bool = False
    builds: bool = False  # True if the batch builds the blocks that the bank lacks

    @property
    def key(self) -> str:
        """Name of the batch among those in flight, see ``BatchTask.key``."""
        return self.runs[0].id


Item = BuildItem | BatchItem


@dataclass(frozen=True)
class AbandonedRun:
    """A run that is recorded as failed although no solver has returned an error."""

    run: RunPlan
    error: str  # error of the last task that was to do it


MAX_ATTEMPTS = 3
MAX_BLOCKS_PER_TASK = 8
MANY_THREADS = 1000
DIVISIBLE = ("memory", "mmap", FACTORS)
"""Backends of banks whose last batches are divided: each share reads the bank cheaply."""
SHARES_PER_THREAD = 2  # of the last batches: a thread that becomes idle late then takes fewer


@dataclass
class _BankState:
    """Progress of a bank."""

    waiting: list[BatchItem]  # until the bank is complete
    blocks_left: set[int] = field(default_factory=set)  # that are being built
    unfinished: int = 0  # batches, waiting or not
    repairs: int = 0  # times that damaged blocks were built again
    suspect: bool = False  # damage was reported while it was being built
    error: str = ""  # why the bank was abandoned


def backends_of(banks: Iterable[BankPlan]) -> dict[str, str]:
    """Return the backend of each bank by its id; of several with one id that of a stored one."""
    banks = list(banks)
    stored = {bank.id: bank.backend for bank in banks if bank.stored}
    return {bank.id: bank.backend for bank in banks} | stored


class WorkQueue:
    """Work of a sweep, in the order in which to do it.

    Batches of complete banks go first, then the blocks of the next bank.  So results come early,
    and few banks are on disk at the same time.  The last batches are divided among the threads
    that would otherwise be idle.
    """

    def __init__(
        self,
        backends: Mapping[str, str],  # by bank, in the order of the banks
        batches: Iterable[BatchPlan],
        missing_blocks: Callable[[str], Sequence[int]],
        is_recorded: Callable[[str], bool],
        n_threads: Callable[[], int],
        unshared: Container[str] = (),  # banks that each machine builds for itself
    ) -> None:
        self._backends, self._unshared = backends, unshared
        self._missing_blocks, self._is_recorded = missing_blocks, is_recorded
        self._n_threads = n_threads
        self._in_flight: list[str] = []  # bank of each item that has not ended
        self._banks: dict[str, _BankState] = {bank: _BankState(waiting=[]) for bank in backends}
        for batch in batches:
            state = self._banks[batch.bank]
            state.waiting.append(BatchItem(batch.bank, batch.runs))
            state.unfinished += 1
        self._to_prepare = deque(self._banks)
        self._builds: deque[BuildItem] = deque()
        self._ready: deque[BatchItem] = deque()
        self._finished: list[str] = []

    def next(self) -> Item | None:
        """Return the item to submit next, or None if nothing can begin before a task ends."""
        while not self._ready and not self._builds and self._to_prepare:
            self._prepare(self._to_prepare.popleft())
        if self._waits_for_memory():
            return None
        item: Item
        if self._ready:
            batch = self._first_share(self._ready.popleft())
            item = replace(batch, repairs=self._banks[batch.bank].repairs)
        elif self._builds:
            item = self._builds.popleft()
        else:
            return None
        self._in_flight.append(item.bank)
        return item

    def _waits_for_memory(self) -> bool:
        """Return True if a sharded bank fills all workers, or the next batch needs all of them."""
        next_is_sharded = bool(self._ready) and self._backends[self._ready[0].bank] == "sharded"
        fills = bool(self._in_flight) and self._backends[self._in_flight[0]] == "sharded"
        return fills or (bool(self._in_flight) and next_is_sharded)

    def _first_share(self, item: BatchItem) -> BatchItem:
        """Return a batch, or its first share if too few batches are left for all threads.

        The other shares come next.  Only batches of one split are divided: those of several splits
        were divided among the threads when their bank was complete.
        """
        n_left = 1 + len(self._ready)
        more = self._to_prepare or any(state.blocks_left for state in self._banks.values())
        whole = item.attempt == 1 and len({run.split for run in item.runs}) == 1
        if more or not whole or item.is_share or self._backends[item.bank] not in DIVISIBLE:
            return item
        threads = -(-self._n_threads() // n_left)
        shares = shares_of(item.runs, SHARES_PER_THREAD * threads if threads > 1 else 1)
        items = [replace(item, runs=runs, is_share=True) for runs in shares]
        self._ready.extendleft(reversed(items[1:]))
        self._banks[item.bank].unfinished += len(items) - 1
        return items[0]

    def finished_banks(self) -> list[str]:
        """Return the banks whose last batch has ended since the last call."""
        finished, self._finished = self._finished, []
        return finished

    @property
    def unfinished_batches(self) -> int:
        """Number of batches that have not ended, as they are divided now."""
        return sum(state.unfinished for state in self._banks.values())

    def built(self, item: BuildItem) -> None:
        """Note that blocks are complete."""
        self._in_flight.remove(item.bank)
        state = self._banks[item.bank]
        state.blocks_left -= set(item.blocks)
        if state.blocks_left or state.error:
            return
        if state.suspect:
            state.suspect = False
            self._prepare(item.bank)
        else:
            self._release(state)

    def build_failed(
        self, item: BuildItem, error: str, *, final: bool = False
    ) -> list[AbandonedRun]:
        """Note that building blocks failed; return the runs that are abandoned with their bank."""
        self._in_flight.remove(item.bank)
        state = self._banks[item.bank]
        if state.error:
            return []
        if item.attempt < MAX_ATTEMPTS and not final:
            self._builds.append(replace(item, attempt=item.attempt + 1))
            return []
        return self._abandon(item.bank, error)

    def batch_done(self, item: BatchItem) -> None:
        """Note that every run of a batch is recorded."""
        self._in_flight.remove(item.bank)
        self._end_batch(item.bank)

    def batch_failed(
        self, item: BatchItem, error: str, *, final: bool = False
    ) -> list[AbandonedRun]:
        """Note that a batch ended early; return the runs that are abandoned."""
        self._in_flight.remove(item.bank)
        state = self._banks[item.bank]
        if final:
            state.waiting.append(item)
            return self._abandon(item.bank, error)
        left = tuple(run for run in item.runs if not self._is_recorded(run.id))
        abandoned = []
        if len(left) == 1 and item.attempt >= MAX_ATTEMPTS:
            abandoned = [AbandonedRun(left[0], error)]
            left = ()
        # A run that was alone already has one attempt more behind it; any other begins its own.
        attempt = item.attempt + 1 if len(item.runs) == 1 else 2
        parts = shares_of(left, len(left)) if item.attempt == 1 else [(run,) for run in left]
        alone = [replace(item, runs=runs, attempt=attempt) for runs in parts]
        state.unfinished += len(alone)
        self._ready.extend(alone)
        self._end_batch(item.bank)
        return abandoned

    def bank_damaged(self, item: BatchItem, error: str) -> list[AbandonedRun]:
        """Note that a batch found damaged blocks; return the runs that are abandoned.

        The caller has removed the marks of all blocks that are still damaged: the bank counts them
        as missing.
        """
        self._in_flight.remove(item.bank)
        state = self._banks[item.bank]
        left = tuple(run for run in item.runs if not self._is_recorded(run.id))
        if left:
            state.waiting.append(replace(item, runs=left))
        else:
            self._end_batch(item.bank)
        state.waiting.extend(ready for ready in self._ready if ready.bank == item.bank)
        self._ready = deque(ready for ready in self._ready if ready.bank != item.bank)
        if state.error:
            return self._abandon(item.bank, state.error)
        if state.blocks_left:
            state.suspect = True
            return []
        if item.repairs == state.repairs:
            state.repairs += 1
        if state.repairs >= MAX_ATTEMPTS:
            return self._abandon(item.bank, error)
        self._prepare(item.bank)
        return []

    def _possible_threads(self) -> int:
        """Return the number of threads to divide work for; if it is unknown, there may be many."""
        return self._n_threads() or MANY_THREADS

    def _prepare(self, bank: str) -> None:
        """Divide the missing blocks of a bank into tasks, or release its batches."""
        state = self._banks[bank]
        if bank in self._unshared:
            self._release(state, builds=True)
            return
        missing = list(self._missing_blocks(bank))
        if missing and self._is_built_by_its_batch(bank, state):
            self._release(state, builds=True)
            return
        state.blocks_left = set(missing)
        per_task = min(MAX_BLOCKS_PER_TASK, -(-len(missing) // self._possible_threads()) or 1)
        for start in range(0, len(missing), per_task):
            self._builds.append(BuildItem(bank, tuple(missing[start : start + per_task])))
        if not missing:
            self._release(state)

    def _is_built_by_its_batch(self, bank: str, state: _BankState) -> bool:
        """Return True if one batch loads a bank, and all other threads have banks to build too."""
        runs = [run for item in state.waiting for run in item.runs]
        one_batch = len(divided(runs, self._possible_threads())) == 1
        enough = 1 + len(self._to_prepare) >= self._possible_threads()
        return self._backends[bank] == "memory" and one_batch and enough and not state.repairs

    def _release(self, state: _BankState, *, builds: bool = False) -> None:
        """Make the batches of a bank ready, divided for the workers that are there."""
        whole = [item for item in state.waiting if item.attempt == 1]
        self._ready.extend(item for item in state.waiting if item.attempt > 1)
        parts = [item.runs for item in whole]
        if whole and self._backends[whole[0].bank] != "sharded":
            runs = (run for item in whole for run in item.runs)
            parts = divided(runs, self._possible_threads())
        self._ready.extend(BatchItem(whole[0].bank, runs, builds=builds) for runs in parts)
        state.unfinished += len(parts) - len(whole)
        state.waiting = []

    def _abandon(self, bank: str, error: str) -> list[AbandonedRun]:
        """Drop the work of a bank; return the runs that waited for it and are not recorded."""
        state = self._banks[bank]
        state.error = error
        state.blocks_left.clear()
        self._builds = deque(build for build in self._builds if build.bank != bank)
        items, state.waiting = state.waiting, []
        abandoned = [
            AbandonedRun(run, error)
            for item in items
            for run in item.runs
            if not self._is_recorded(run.id)
        ]
        for _ in items:
            self._end_batch(bank)
        return abandoned

    def _end_batch(self, bank: str) -> None:
        """Count one batch of a bank as ended."""
        state = self._banks[bank]
        state.unfinished -= 1
        if not state.unfinished:
            self._finished.append(bank)
