"""What each task of a plan takes, by rates of a machine or by runs that are recorded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mkldist.forecast.rates import Rates
from mkldist.forecast.simulation import TaskCost
from mkldist.gram.cache import DEFAULT_BUDGET
from mkldist.gram.chunks import blocks_of
from mkldist.gram.layout import TileLayout
from mkldist.gram.metadata import BankShape
from mkldist.gram.shards import kernel_bytes
from mkldist.memory import FLOAT_BYTES
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import Settings, passes_of_runs
from mkldist.planning.facts import DatasetFacts
from mkldist.planning.model import BankPlan, Plan, RunPlan
from mkldist.planning.shard_traffic import shard_traffic
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState
from mkldist.run.small_work import certificate_bytes
from mkldist.run.work_items import BatchItem, BuildItem, Item

RECORDS_READ = 20  # of each method on each data set and bank

SolverKey = tuple[str, str, str]
"""Data set, label of the bank, and key of the method."""


@dataclass(frozen=True)
class SolverCost:
    """What a run takes, besides its share of the passes.

    Parameters
    ----------
    seconds : float
        Processor time of the code of its solvers.
    passes : float
        Passes over the bank of each solver.
    """

    seconds: float
    passes: float


def recorded_costs(plan: Plan, store: RecordStore) -> dict[SolverKey, SolverCost]:
    """Return the mean costs of runs of a plan that are recorded as complete.

    Parameters
    ----------
    plan : Plan
        The plan.
    store : RecordStore
        The records, of which only some are read.
    """
    found: dict[SolverKey, list[SolverCost]] = defaultdict(list)
    complete = {i for i, state in store.ids().items() if state is RunState.COMPLETE}
    for run in plan.runs:
        if run.id in complete and len(found[solver_key(run)]) < RECORDS_READ:
            found[solver_key(run)] += _recorded_cost(run, store)
    return {key: _mean(costs) for key, costs in found.items() if costs}


def _recorded_cost(run: RunPlan, store: RecordStore) -> list[SolverCost]:
    """Return what a recorded run took; nothing if its record is damaged."""
    record = store.read(run.id)
    if record is None or "cpu_seconds" not in record.times:
        return []
    passes = record.counters.get("passes", 0) / run.n_jobs
    return [SolverCost(record.times["cpu_seconds"], passes)]


def _mean(costs: Sequence[SolverCost]) -> SolverCost:
    seconds, passes = zip(*((one.seconds, one.passes) for one in costs), strict=True)
    return SolverCost(math.fsum(seconds) / len(costs), math.fsum(passes) / len(costs))


@dataclass(eq=False)
class TaskCosts:
    """What the tasks of a plan take.

    Parameters
    ----------
    plan : Plan
        The plan.
    facts : mapping of str to DatasetFacts
        Facts by data set.
    memory_limit : int or None
        Bytes that a task may take.
    rates : Rates
        Rates of a machine.
    recorded : mapping of SolverKey to SolverCost
        Costs that are known from recorded runs; they replace those by the rates.
    n_workers : int
        Workers among which sharded banks are divided.
    """

    plan: Plan
    facts: Mapping[str, DatasetFacts]
    memory_limit: int | None
    rates: Rates
    recorded: Mapping[SolverKey, SolverCost] = field(default_factory=dict)
    n_workers: int = 1
    _of_settings: dict[Settings, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._banks = {bank.id: bank for bank in self.plan.banks}
        self._n_blocks = {bank.id: _n_blocks(bank) for bank in self._banks.values()}

    def blocks(self, bank: str) -> list[int]:
        """Return the indices of the blocks of a bank that is not built yet."""
        return list(range(self._n_blocks[bank]))

    def __call__(self, item: Item) -> TaskCost:
        """Return what the task of an item takes."""
        if isinstance(item, BuildItem):
            bank = self._banks[item.bank]
            return self._build_cost(bank, len(item.blocks) / self._n_blocks[bank.id])
        return self._batch_cost(item)

    def _build_cost(self, bank: BankPlan, share: float) -> TaskCost:
        """Return what it takes to compute and store a share of a bank."""
        values = share * _n_values(bank)
        return TaskCost(values * self.rates.kernel_value_seconds, moved_bytes=share * bank.n_bytes)

    def _batch_cost(self, item: BatchItem) -> TaskCost:
        """Return what some runs on one bank take: their passes, their solvers, their records."""
        bank, rates = self._banks[item.bank], self.rates
        each = [self._solver_cost(bank, run) for run in item.runs]
        rounds = [one.passes for one in each]
        passes = passes_of_runs(
            self.plan.spec.execution, bank, item.runs, rounds, self.memory_limit, self._of_settings
        )
        vectors = math.fsum(
            run.n_jobs * of_each for run, of_each in zip(item.runs, rounds, strict=True)
        )
        of_bank = self._bank_seconds(bank, item.runs, passes, vectors)
        own = of_bank * self._own_share(bank)
        seconds = own + math.fsum(one.seconds for one in each) + len(each) * rates.record_seconds
        moved, kept = _reads(bank, passes)
        if item.builds:
            build = self._build_cost(bank, 1.0)
            seconds, moved = seconds + build.seconds, build.moved_bytes
        return TaskCost(seconds, moved, kept, rates.receipt_seconds * len(each), of_bank - own)

    def _bank_seconds(
        self, bank: BankPlan, runs: Sequence[RunPlan], passes: float, vectors: float
    ) -> float:
        """Return the time of passes for so many vectors in all, and of what no build has made.

        Shards and factors are made once.  Each solver on factors certifies its solution by a pass
        that computes the kernels.
        """
        rates = self.rates
        of_value = passes * rates.pass_value_seconds
        of_value += max(0.0, vectors - passes) * rates.vector_value_seconds
        if not bank.stored:
            of_value += rates.kernel_value_seconds * (passes if bank.recomputed else 1.0)
        if not bank.is_factored:
            return _n_values(bank) * of_value
        certified = sum(run.n_jobs for run in runs) * certificate_bytes(bank)
        return (bank.n_bytes * of_value + certified * rates.kernel_value_seconds) / FLOAT_BYTES

    def _own_share(self, bank: BankPlan) -> float:
        """Return the largest share of the work on a bank that one worker does."""
        if not bank.sharded:
            return 1.0
        of = shard_traffic(bank, self.memory_limit, self.n_workers)
        largest = of.largest_bytes / (bank.n_kernels * kernel_bytes(bank.shape))
        return min(1.0, math.ceil(of.n_shards / self.n_workers) * largest)

    def _solver_cost(self, bank: BankPlan, run: RunPlan) -> SolverCost:
        """Return what a run takes: as those that are recorded, or by the rates."""
        if (known := self.recorded.get(solver_key(run))) is not None:
            return known
        n_points = self.facts[run.dataset].known_sizes[run.split]
        seconds = self.rates.solver_seconds + self.rates.cubic_seconds * n_points**3
        passes = METHODS[run.method].typical_passes(bank.n_kernels)
        return SolverCost(run.n_jobs * seconds, passes + (run.selection is not None))


def solver_key(run: RunPlan) -> SolverKey:
    """Return the key under which the costs of a run are known."""
    return run.dataset, run.bank_label, run.key


def _n_blocks(bank: BankPlan) -> int:
    """Return the number of blocks that are built of a bank."""
    shape = BankShape(bank.n_kernels, TileLayout.for_points(bank.n_points), bank.dtype)
    return len(blocks_of(shape)) if bank.stored else 0


def _n_values(bank: BankPlan) -> int:
    """Return the number of kernel values of a bank."""
    return bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries


def _reads(bank: BankPlan, passes: float) -> tuple[float, float]:
    """Return the bytes that a batch reads, and those that its worker reads once and keeps.

    A mapped bank that the node cache cannot hold is read in every pass, as a streamed one is.
    """
    if bank.backend == "memory":
        return bank.n_bytes, 0.0
    if bank.backend == "mmap" and bank.n_bytes <= DEFAULT_BUDGET:
        return 0.0, bank.n_bytes
    return passes * bank.n_bytes * bank.stored, 0.0
