"""What is to be done next: blocks of banks, then batches of runs; and what a failure leads to.

Pure bookkeeping without Dask or storage.  Three rules keep a sweep going whatever dies:

1. A batch that took its worker down, or failed outside its solvers, is taken apart: each of its
   runs that is not recorded is tried alone, so that one bad run cannot take others along.
2. A run that fails alone, or a bank that cannot be built, is given up after a few attempts and
   its runs are recorded as failed.
3. A bank with a damaged block is built again, a few times at most, before its batches go on.
   What batches report that began before the last repair counts for that repair.

A bank that one batch loads is built by that batch, which has the values in memory then, as long
as there are such banks for all threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mkldist.plan.batches import divided, shares_of
from mkldist.plan.model import BatchPlan, RunPlan

MAX_ATTEMPTS = 3
MAX_BLOCKS_PER_TASK = 8
MANY_THREADS = 1000
SHARES_PER_THREAD = 2  # of the last batches: who comes late takes fewer


@dataclass(frozen=True)
class BuildItem:
    """Some blocks of one bank."""

    bank: str
    blocks: tuple[int, ...]
    attempt: int = 1


@dataclass(frozen=True)
class BatchItem:
    """Some runs on one bank, which has been repaired so often when they begin.

    ``shared_out`` says that it is a part of one of the last batches, ``builds`` that it builds
    what the bank lacks.
    """

    bank: str
    runs: tuple[RunPlan, ...]
    attempt: int = 1
    repairs: int = 0
    shared_out: bool = False
    builds: bool = False


Item = BuildItem | BatchItem


@dataclass(frozen=True)
class GivenUp:
    """A run that is to be recorded as failed without having been solved."""

    run: RunPlan
    error: str


@dataclass
class _BankState:
    """A bank that is being built or used.

    ``suspect`` says that damage was reported while the bank was being built.
    """

    waiting: list[BatchItem]
    blocks_left: set[int] = field(default_factory=set)
    unfinished: int = 0
    repairs: int = 0
    suspect: bool = False
    given_up: str = ""


class WorkQueue:
    """The work of a sweep, in the order in which to do it.

    Batches of complete banks go first, then the blocks of the next bank: results come early, and
    few banks are on disk at the same time.  The last batches are shared out among the threads
    that would otherwise have nothing left to do.

    Parameters
    ----------
    banks : sequence of str
        Ids of the banks, in the order in which to build them; also those without batches.
    batches : iterable of BatchPlan
        Batches, holding only the runs that are to be done.  They are divided anew for the threads
        that are there when their bank is complete.
    missing_blocks : callable
        Given a bank's id, make its store if need be and return the blocks that it lacks.
    is_recorded : callable
        Given a run's id, return whether its outcome is in storage.
    n_threads : callable
        Return the threads of all workers, among which blocks and runs of one bank are divided;
        0 if nobody knows.
    divisible : container of str
        Banks of which several threads may hold one, so that the last batches may be shared out.
    loaded : container of str
        Banks that a task loads into its memory, so that a batch may build one.
    """

    def __init__(
        self,
        banks: Sequence[str],
        batches: Iterable[BatchPlan],
        missing_blocks: Callable[[str], Sequence[int]],
        is_recorded: Callable[[str], bool],
        n_threads: Callable[[], int],
        divisible: Container[str] = (),
        loaded: Container[str] = (),
    ) -> None:
        self._missing_blocks, self._is_recorded = missing_blocks, is_recorded
        self._n_threads, self._divisible, self._loaded = n_threads, divisible, loaded
        self._banks: dict[str, _BankState] = {bank: _BankState(waiting=[]) for bank in banks}
        for batch in batches:
            state = self._banks[batch.bank]
            state.waiting.append(BatchItem(batch.bank, batch.runs))
            state.unfinished += 1
        self._to_prepare = deque(self._banks)
        self._builds: deque[BuildItem] = deque()
        self._ready: deque[BatchItem] = deque()
        self._finished: list[str] = []

    def next(self) -> Item | None:
        """Return what to submit next, or None if there is nothing before something ends."""
        while not self._ready and not self._builds and self._to_prepare:
            self._prepare(self._to_prepare.popleft())
        if self._ready:
            item = self._shared_out(self._ready.popleft())
            return replace(item, repairs=self._banks[item.bank].repairs)
        return self._builds.popleft() if self._builds else None

    def _shared_out(self, item: BatchItem) -> BatchItem:
        """Return an item, or if too few are left for all threads a part; the others come next.

        Batches of several splits were divided among the threads when their bank was complete.
        """
        left = 1 + len(self._ready)
        more = self._to_prepare or any(state.blocks_left for state in self._banks.values())
        whole = item.attempt == 1 and len({run.split for run in item.runs}) == 1
        if more or not whole or item.shared_out or item.bank not in self._divisible:
            return item
        threads = -(-self._n_threads() // left)
        shares = shares_of(item.runs, SHARES_PER_THREAD * threads if threads > 1 else 1)
        parts = [replace(item, runs=runs, shared_out=True) for runs in shares]
        self._ready.extendleft(reversed(parts[1:]))
        self._banks[item.bank].unfinished += len(parts) - 1
        return parts[0]

    def finished_banks(self) -> list[str]:
        """Return the banks whose last batch has ended since the last call."""
        finished, self._finished = self._finished, []
        return finished

    @property
    def unfinished_batches(self) -> int:
        """Batches that have not ended, as they are divided now."""
        return sum(state.unfinished for state in self._banks.values())

    @property
    def given_up_banks(self) -> Mapping[str, str]:
        """The banks that could not be built, and why."""
        return {bank: state.given_up for bank, state in self._banks.items() if state.given_up}

    def built(self, item: BuildItem) -> None:
        """Note that blocks are complete."""
        state = self._banks[item.bank]
        state.blocks_left -= set(item.blocks)
        if state.blocks_left or state.given_up:
            return
        if state.suspect:
            state.suspect = False
            self._prepare(item.bank)
        else:
            self._release(state)

    def build_failed(self, item: BuildItem, error: str, *, final: bool = False) -> list[GivenUp]:
        """Note that blocks could not be built; return the runs that are given up for it."""
        state = self._banks[item.bank]
        if state.given_up:
            return []
        if item.attempt < MAX_ATTEMPTS and not final:
            self._builds.append(replace(item, attempt=item.attempt + 1))
            return []
        return self._give_up_bank(item.bank, state, error)

    def batch_done(self, item: BatchItem) -> None:
        """Note that every run of a batch is recorded."""
        self._end(item.bank, self._banks[item.bank])

    def batch_failed(self, item: BatchItem, error: str, *, final: bool = False) -> list[GivenUp]:
        """Note that a batch ended early; return the runs that are given up for it.

        It is final if the batch could not build its bank.
        """
        if final:
            self._banks[item.bank].waiting.append(item)
            return self._give_up_bank(item.bank, self._banks[item.bank], error)
        left = tuple(run for run in item.runs if not self._is_recorded(run.id))
        state = self._banks[item.bank]
        given_up = []
        if len(left) == 1 and item.attempt >= MAX_ATTEMPTS:
            given_up = [GivenUp(left[0], error)]
            left = ()
        # A run that was alone already is one attempt further; one that was not starts its own.
        attempt = item.attempt + 1 if len(item.runs) == 1 else 2
        alone = [replace(item, runs=(run,), attempt=attempt) for run in left]
        state.unfinished += len(alone)
        self._ready.extend(alone)
        self._end(item.bank, state)
        return given_up

    def bank_damaged(self, item: BatchItem, error: str) -> list[GivenUp]:
        """Note that a batch found damaged blocks; return the runs that are given up for it.

        Called when the marks of those blocks are gone that are damaged still.
        """
        state = self._banks[item.bank]
        left = tuple(run for run in item.runs if not self._is_recorded(run.id))
        if left:
            state.waiting.append(replace(item, runs=left))
        else:
            self._end(item.bank, state)
        still = [ready for ready in self._ready if ready.bank == item.bank]
        state.waiting.extend(still)
        self._ready = deque(ready for ready in self._ready if ready.bank != item.bank)
        if state.given_up:
            return self._give_up_bank(item.bank, state, state.given_up)
        if state.blocks_left:
            state.suspect = True
            return []
        if item.repairs == state.repairs:
            state.repairs += 1
        if state.repairs >= MAX_ATTEMPTS:
            return self._give_up_bank(item.bank, state, error)
        self._prepare(item.bank)
        return []

    def _possible_threads(self) -> int:
        """Return the threads among which to divide work; if nobody knows, there may be many."""
        return self._n_threads() or MANY_THREADS

    def _prepare(self, bank: str) -> None:
        """Divide the missing blocks of a bank into tasks, or release its batches."""
        state = self._banks[bank]
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
        """Return whether one batch loads a bank, and the other threads have others to build."""
        runs = [run for item in state.waiting for run in item.runs]
        one_batch = len(divided(runs, self._possible_threads())) == 1
        enough = 1 + len(self._to_prepare) >= self._possible_threads()
        return bank in self._loaded and one_batch and enough and not state.repairs

    def _release(self, state: _BankState, *, builds: bool = False) -> None:
        """Let the batches of a bank go, divided for the workers that are there."""
        whole = [item for item in state.waiting if item.attempt == 1]
        self._ready.extend(item for item in state.waiting if item.attempt > 1)
        parts = divided((run for item in whole for run in item.runs), self._possible_threads())
        self._ready.extend(BatchItem(whole[0].bank, runs, builds=builds) for runs in parts)
        state.unfinished += len(parts) - len(whole)
        state.waiting = []

    def _give_up_bank(self, bank: str, state: _BankState, error: str) -> list[GivenUp]:
        """Drop a bank's work and return its runs that are not recorded."""
        state.given_up = error
        state.blocks_left.clear()
        self._builds = deque(build for build in self._builds if build.bank != bank)
        items, state.waiting = state.waiting, []
        given_up = [
            GivenUp(run, error)
            for item in items
            for run in item.runs
            if not self._is_recorded(run.id)
        ]
        for _ in items:
            self._end(bank, state)
        return given_up

    def _end(self, bank: str, state: _BankState) -> None:
        """Count one batch of a bank as over."""
        state.unfinished -= 1
        if not state.unfinished:
            self._finished.append(bank)
