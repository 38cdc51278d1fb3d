"""Estimate of the time of a sweep on workers that need not exist, by typical rates and records.

The work of all runs is divided by the number of threads.  No time is below that of the longest
task, of what storage serves, or of what the coordinator does for every record.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mkldist.bank.cache import DEFAULT_BUDGET
from mkldist.methods.registry import METHODS
from mkldist.planning.model import BankPlan, BatchPlan, DatasetFacts, Plan, RunPlan
from mkldist.planning.planner import (
    WORKER_BASE_BYTES,
    SolverBytes,
    factor_rounds,
    passes_of_runs,
    shares_of,
    without,
)
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState

# Of each run, what the coordinator does for its record; of a pass, with the combined kernels before
# it, what does not grow with its values; and more than that for each solver that shares the pass.
# These typical times of one processor differ little between machines.
RECORD_SECONDS, PASS_SECONDS, REQUEST_SECONDS = 1e-3, 1.5e-4, 3e-5


@dataclass(frozen=True)
class Rates:
    """Seconds of one processor that the steps of a sweep take, and the speed of storage."""

    kernel_value_seconds: float  # to compute one value of a kernel
    pass_value_seconds: float  # to read one stored value in a pass that answers one vector
    solver_seconds: float  # of a solver's own code, besides what grows with the points
    cubic_seconds: float  # the same for each n³ of n points
    storage_bytes_per_second: float  # of files that are written and flushed


TYPICAL = Rates(
    kernel_value_seconds=2e-8,
    pass_value_seconds=2e-9,
    solver_seconds=0.01,
    cubic_seconds=10 / 3 / 4e9,
    storage_bytes_per_second=math.inf,
)
"""Rates for a rough upper estimate of processor time.

A second is 4 GB of passes over stored kernels, 0.4 GB of kernels computed, or 100 solvers, each
with 10 factorisations of its Gram matrix besides.
"""
OF_PATHS = 0.1  # of the time of a solver, where it starts from the solution of another


# What runs take

RECORDS_READ = 20  # of each method on each data set and bank
NUMBERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of workers

SolverKey = tuple[str, str, str]
"""Data set, label of the bank, and key of the method."""


class SolverCost(NamedTuple):
    """What a recorded run took: processor time, with its share of the passes, and these."""

    seconds: float
    passes: float  # of each solver


def recorded_costs(plan: Plan, store: Journal) -> dict[SolverKey, SolverCost]:
    """Return the mean costs of runs of a plan that are recorded as complete.

    Records have the counts and processor times of the solvers on the training part.  Those on inner
    folds, of which the records have the seconds, had processors in the same proportion.
    """
    found: dict[SolverKey, list[SolverCost]] = defaultdict(list)
    complete = {i for i, state in store.states().items() if state is RunState.COMPLETE}
    for run in plan.runs:
        if run.id not in complete or len(found[solver_key(run)]) >= RECORDS_READ:
            continue
        record = store.read(run.id)
        if record is not None and "cpu_seconds" in record.times:
            times = record.times
            n_folds = run.selection.folds * run.selection.repeats if run.selection else 0
            passes = record.counters.get("passes", 0) * (1 + n_folds) / run.n_jobs
            on_part = times.get("own_seconds", 0.0) + times.get("pass_seconds", 0.0)
            share = 1.0 + (times.get("validation_seconds", 0.0) / on_part if on_part else 0.0)
            seconds = share * (times["cpu_seconds"] + times["pass_cpu_seconds"])
            found[solver_key(run)].append(SolverCost(seconds, passes))
    return {
        key: SolverCost(*np.mean(costs, axis=0).tolist()) for key, costs in found.items() if costs
    }


def solver_key(run: RunPlan) -> SolverKey:
    """Return the key under which the costs of a run are known."""
    return run.dataset, run.bank_label, run.key


@dataclass(eq=False)
class SweepCosts:
    """What the work of a plan takes by the rates of a machine, or as recorded runs did."""

    plan: Plan
    facts: Mapping[str, DatasetFacts]
    memory_limit: int | None  # bytes that a task may take
    recorded: Mapping[SolverKey, SolverCost] = field(default_factory=dict)
    rates: Rates = TYPICAL

    def __post_init__(self) -> None:
        self.banks = {bank.id: bank for bank in self.plan.banks}
        self._solvers = SolverBytes(self.memory_limit)

    def together(self, batches: Sequence[BatchPlan]) -> float:
        """Return the time of all threads for some batches, with the build of their banks."""
        built = {batch.bank for batch in batches}
        return math.fsum(
            [
                *(self.build_seconds(self.banks[bank]) for bank in built),
                *(self.seconds(self.banks[batch.bank], batch.runs) for batch in batches),
            ]
        )

    def build_seconds(self, bank: BankPlan) -> float:
        """Return the time to compute the kernels, or factors, that are kept."""
        return 0.0 if bank.recomputed else _n_values(bank) * self.rates.kernel_value_seconds

    def seconds(self, bank: BankPlan, runs: Sequence[RunPlan]) -> float:
        """Return the time of some runs on one bank: as recorded, or else by the rates."""
        known = [self.recorded.get(solver_key(run)) for run in runs]
        new = [run for run, cost in zip(runs, known, strict=True) if cost is None]
        recorded = math.fsum(cost.seconds for cost in known if cost is not None)
        return recorded + (self._by_rates(bank, new) if new else 0.0)

    def _by_rates(self, bank: BankPlan, runs: Sequence[RunPlan]) -> float:
        """Return the time of the passes and the solvers of some runs by the rates."""
        rates, passes = self.rates, self._passes(bank, runs)
        computed = rates.pass_value_seconds + rates.kernel_value_seconds
        of_value = computed if bank.recomputed else rates.pass_value_seconds
        seconds = passes * (_n_values(bank) * of_value + PASS_SECONDS)
        for run in runs:
            own = rates.solver_seconds
            if bank.is_factored:  # no matrix of all points; each round ends with the kernels
                rounds = factor_rounds(bank, METHODS[run.method]).usual
                n_values = bank.n_kernels * bank.shape.layout.n_entries
                seconds += run.n_jobs * rounds * n_values * computed
            else:
                own += rates.cubic_seconds * self.facts[run.dataset].known_sizes[run.split] ** 3
            own *= OF_PATHS if run.on_path else 1.0
            seconds += run.n_jobs * (own + self._passes_of(bank, run) * REQUEST_SECONDS)
        return seconds

    def moved_bytes(self, bank: BankPlan, runs: Sequence[RunPlan]) -> float:
        """Return the bytes that a task of some runs reads from storage.

        A worker that maps a bank reads it once, which counts for each of its tasks.
        """
        if not bank.stored:
            return 0.0
        if bank.backend == "memory" or bank.is_factored:
            return bank.stored_bytes
        if bank.backend == "mmap" and bank.n_bytes <= DEFAULT_BUDGET:
            return bank.n_bytes
        return self._passes(bank, runs) * bank.n_bytes

    def _passes(self, bank: BankPlan, runs: Sequence[RunPlan]) -> float:
        """Return the passes over a bank that some runs share."""
        rounds = [self._passes_of(bank, run) for run in runs]
        return passes_of_runs(self.plan.spec.execution, bank, runs, rounds, self._solvers)

    def _passes_of(self, bank: BankPlan, run: RunPlan) -> float:
        """Return the passes of each solver of a run: as recorded, or as is typical."""
        if (known := self.recorded.get(solver_key(run))) is not None:
            return known.passes
        return METHODS[run.method].typical_passes(bank.n_kernels) + (run.selection is not None)


def _n_values(bank: BankPlan) -> int:
    """Return the number of values of a bank: of its kernels, or of factors that stand for them."""
    if bank.is_factored:
        return bank.n_bytes // np.dtype(bank.dtype).itemsize
    return bank.n_kernels * bank.shape.layout.n_entries


@dataclass(frozen=True)
class Forecast:
    """What a sweep is expected to take on some workers; an estimate."""

    workers: int
    threads: int  # of each worker
    seconds: float  # wall time
    efficiency: float  # speed-up over one worker, divided by the number of workers
    processor_hours: float  # that all threads compute
    held_hours: float  # of all threads from the beginning to the end, which a cluster charges
    bytes: float  # between workers and storage
    memory_per_worker: int  # bytes at its peak
    limit: str  # "processors", "storage", "coordinator" or "longest task": what the time is


def forecasts(
    costs: SweepCosts,
    workers: int,
    threads: int = 1,
    done: Iterable[str] = (),
    numbers: Iterable[int] = NUMBERS,
) -> Iterator[Forecast]:
    """Yield the forecast for each number of workers, rising, `workers` among them.

    A batch is divided where there are more threads than batches; its parts share fewer passes.
    """
    batches = without(costs.plan.batches, frozenset(done))
    if not batches:
        return
    banks = [costs.banks[bank] for bank in dict.fromkeys(batch.bank for batch in batches)]
    built = math.fsum(costs.build_seconds(bank) for bank in banks)
    written = math.fsum(bank.stored_bytes for bank in banks)
    of_records = RECORD_SECONDS * sum(len(batch.runs) for batch in batches)
    memory, alone = costs.plan.memory_per_worker - WORKER_BASE_BYTES, math.nan
    for number in sorted({1, workers, *numbers}):
        n_threads = number * threads
        tasks = [
            (costs.banks[batch.bank], runs)
            for batch in batches
            for runs in shares_of(batch.runs, max(1, n_threads // len(batches)))
        ]
        seconds = [costs.seconds(*task) for task in tasks]
        moved = written + math.fsum(costs.moved_bytes(*task) for task in tasks)
        work = built + math.fsum(seconds)
        bounds = {
            "processors": work / n_threads,
            "storage": moved / costs.rates.storage_bytes_per_second,
            "coordinator": of_records,
            "longest task": max(seconds),
        }
        limit = max(bounds, key=lambda name: bounds[name])
        wall = bounds[limit]
        alone = wall if number == 1 else alone
        yield Forecast(
            workers=number,
            threads=threads,
            seconds=wall,
            efficiency=alone / (number * wall),
            processor_hours=work / 3600,
            held_hours=n_threads * wall / 3600,
            bytes=moved,
            memory_per_worker=WORKER_BASE_BYTES + threads * memory,
            limit=limit,
        )
