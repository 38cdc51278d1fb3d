"""What each task of a plan takes, by rates of a machine or by runs that are recorded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mkldist.bank.bank import block_kernels
from mkldist.bank.cache import DEFAULT_BUDGET
from mkldist.forecast.rates import Rates
from mkldist.forecast.simulation import TaskCost
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import SolverBytes, factor_rounds, passes_of_runs
from mkldist.planning.model import BankPlan, DatasetFacts, Plan, RunPlan
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.run.work_queue import BatchItem, BuildItem, Item

RECORDS_READ = 20  # of each method on each data set and bank

SolverKey = tuple[str, str, str]
"""Data set, label of the bank, and key of the method."""


@dataclass(frozen=True)
class SolverCost:
    """What a run takes.

    Parameters
    ----------
    seconds : float
        Processor time of the code of its solvers.
    passes : float
        Passes over the bank of each solver.
    pass_seconds : float or None
        Processor time of its share of the passes; None if only the rates tell it.
    """

    seconds: float
    passes: float
    pass_seconds: float | None = None


def recorded_costs(plan: Plan, store: Journal) -> dict[SolverKey, SolverCost]:
    """Return the mean costs of runs of a plan that are recorded as complete."""
    found: dict[SolverKey, list[SolverCost]] = defaultdict(list)
    complete = {i for i, state in store.states().items() if state is RunState.COMPLETE}
    for run in plan.runs:
        if run.id in complete and len(found[solver_key(run)]) < RECORDS_READ:
            found[solver_key(run)] += _recorded_cost(run, store)
    return {key: _mean(costs) for key, costs in found.items() if costs}


def _recorded_cost(run: RunPlan, store: Journal) -> list[SolverCost]:
    """Return what a recorded run took; nothing if its record is damaged."""
    record = store.read(run.id)
    if record is None or "cpu_seconds" not in record.times:
        return []
    passes = record.counters.get("passes", 0) / run.n_jobs
    times = record.times
    return [SolverCost(times["cpu_seconds"], passes, times.get("pass_cpu_seconds"))]


def _mean(costs: Sequence[SolverCost]) -> SolverCost:
    seconds, passes = zip(*((one.seconds, one.passes) for one in costs), strict=True)
    passing = [one.pass_seconds for one in costs if one.pass_seconds is not None]
    return SolverCost(
        math.fsum(seconds) / len(costs),
        math.fsum(passes) / len(costs),
        math.fsum(passing) / len(passing) if passing else None,
    )


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
    """

    plan: Plan
    facts: Mapping[str, DatasetFacts]
    memory_limit: int | None
    rates: Rates
    recorded: Mapping[SolverKey, SolverCost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._banks = {bank.id: bank for bank in self.plan.banks}
        self._n_blocks = {bank.id: _n_blocks(bank) for bank in self._banks.values()}
        self._solvers = SolverBytes(self.memory_limit)

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
        values, moved = share * _n_values(bank), share * bank.stored_bytes
        return TaskCost(values * self.rates.kernel_value_seconds, moved_bytes=moved)

    def _batch_cost(self, item: BatchItem) -> TaskCost:
        """Return what some runs on one bank take: their passes, their solvers, their records."""
        bank, rates = self._banks[item.bank], self.rates
        each = [self._solver_cost(bank, run) for run in item.runs]
        passes = self._passes(bank, item.runs, each)
        of_bank = self._bank_seconds(bank, item.runs, each)
        of_runs = math.fsum(one.seconds for one in each) + len(each) * rates.record_seconds
        receipt = rates.receipt_seconds * len(each)
        if bank.sharded:
            of_bank += _n_values(bank) * rates.kernel_value_seconds
            parts = -(-bank.n_kernels // block_kernels(bank.shape.layout))
            return TaskCost(of_runs, receipt_seconds=receipt, shared_seconds=of_bank, parts=parts)
        if bank.is_factored:
            of_runs += self._certificate_seconds(bank, item.runs)
        moved, kept = _reads(bank, passes)
        if item.builds:
            build = self._build_cost(bank, 1.0)
            of_bank, moved = of_bank + build.seconds, build.moved_bytes
        return TaskCost(of_bank + of_runs, moved, kept, receipt)

    def _bank_seconds(
        self, bank: BankPlan, runs: Sequence[RunPlan], costs: Sequence[SolverCost]
    ) -> float:
        """Return the time of the passes of some runs: as recorded, or by the rates."""
        recorded = math.fsum(one.pass_seconds or 0.0 for one in costs)
        others = [i for i, one in enumerate(costs) if one.pass_seconds is None]
        if not others:
            return recorded
        runs, costs = [runs[i] for i in others], [costs[i] for i in others]
        vectors = (run.n_jobs * one.passes for run, one in zip(runs, costs, strict=True))
        passes = self._passes(bank, runs, costs)
        return recorded + self._pass_seconds(bank, passes, math.fsum(vectors))

    def _passes(
        self, bank: BankPlan, runs: Sequence[RunPlan], costs: Sequence[SolverCost]
    ) -> float:
        """Return the passes over a bank that runs of some costs share."""
        rounds = [one.passes for one in costs]
        return passes_of_runs(self.plan.spec.execution, bank, runs, rounds, self._solvers)

    def _pass_seconds(self, bank: BankPlan, passes: float, vectors: float) -> float:
        """Return the time of some passes over a bank, for so many vectors in all."""
        rates = self.rates
        of_pass = rates.pass_value_seconds + bank.recomputed * rates.kernel_value_seconds
        further = max(0.0, vectors - passes) * rates.vector_value_seconds
        of_values = _n_values(bank) * (passes * of_pass + further)
        return of_values + passes * rates.pass_seconds + vectors * rates.request_seconds

    def _certificate_seconds(self, bank: BankPlan, runs: Sequence[RunPlan]) -> float:
        """Return the time of a pass over the kernels for each round of runs not known by others."""
        of_value = self.rates.kernel_value_seconds + self.rates.pass_value_seconds
        passes = sum(
            run.n_jobs * factor_rounds(bank, METHODS[run.method]).usual
            for run in runs
            if solver_key(run) not in self.recorded
        )
        return passes * bank.n_kernels * bank.shape.layout.n_entries * of_value

    def _solver_cost(self, bank: BankPlan, run: RunPlan) -> SolverCost:
        """Return what a run takes: as those that are recorded, or by the rates."""
        if (known := self.recorded.get(solver_key(run))) is not None:
            return known  # of runs on factors with all rounds, passes over kernels among them
        n_points = self.facts[run.dataset].known_sizes[run.split]
        seconds = self.rates.solver_seconds
        if not bank.is_factored:  # no solver on factors makes a matrix of all points
            seconds += self.rates.cubic_seconds * n_points**3
        passes = METHODS[run.method].typical_passes(bank.n_kernels)
        return SolverCost(run.n_jobs * seconds, passes + (run.selection is not None))


def solver_key(run: RunPlan) -> SolverKey:
    """Return the key under which the costs of a run are known."""
    return run.dataset, run.bank_label, run.key


def _n_blocks(bank: BankPlan) -> int:
    """Return the number of blocks that are built of a bank."""
    if bank.is_factored:
        return bank.n_kernels  # a piece of each factor
    return len(bank.shape.blocks) if bank.stored else 0


def _n_values(bank: BankPlan) -> int:
    """Return the number of values of a bank: of its kernels, or of factors that stand for them."""
    if bank.is_factored:
        return bank.n_bytes // np.dtype(bank.dtype).itemsize
    return bank.n_kernels * bank.shape.layout.n_entries


def _reads(bank: BankPlan, passes: float) -> tuple[float, float]:
    """Return the bytes that a batch reads, and those that its worker reads once and keeps.

    A mapped bank that the node cache cannot hold is read in every pass, as a streamed one is.  Of a
    bank that is not stored nothing is read.
    """
    if bank.backend == "memory" or bank.is_factored:
        return bank.stored_bytes, 0.0
    if bank.backend == "mmap" and bank.n_bytes <= DEFAULT_BUDGET:
        return 0.0, bank.n_bytes
    return passes * bank.n_bytes * bank.stored, 0.0
