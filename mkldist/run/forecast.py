"""Forecast of a sweep on workers that need not exist, by rates of this machine.

What each task takes follows from rates that are measured here, or from runs that are recorded.  The
work queue of real sweeps then runs with a clock in place of workers.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.bank.bank import MemoryBank, TileLayout, block_kernels
from mkldist.bank.cache import DEFAULT_BUDGET, default_directory
from mkldist.bank.passes import answer
from mkldist.bank.requests import Quadratic
from mkldist.bank.sources import FeatureSource, computed
from mkldist.bank.view import make_views
from mkldist.core.checksums import parsed, write_checked
from mkldist.core.threads import single_threaded
from mkldist.errors import MkldistError
from mkldist.fit.engine import problem_on
from mkldist.kernels.families import kernel_list
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import WORKER_BASE_BYTES, SolverBytes, factor_rounds, passes_of_runs
from mkldist.planning.model import BankPlan, BatchPlan, DatasetFacts, Plan, RunPlan
from mkldist.planning.planner import without
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.run.doctor import Finding, speed_of_writing
from mkldist.run.work_queue import BatchItem, BuildItem, Item, WorkQueue, backends_of
from mkldist.solvers.lockstep import Job, solve_timed
from mkldist.spec.banks import BankSpec

RATES_FILE = "rates.json"
# Of a task, what coordinator and scheduler do to submit it and take its outcome; of each run in it,
# what the coordinator does for its record; of a pass, with the combined kernels before it, what
# does not grow with its values; and more than that for each solver that shares the pass.  These
# typical times of one processor differ little between machines.
TASK_SECONDS, RECEIPT_SECONDS, PASS_SECONDS, REQUEST_SECONDS = 2.5e-3, 1e-3, 1.5e-4, 3e-5


@dataclass(frozen=True)
class Rates:
    """Seconds of one processor that the steps of a sweep take, and the speed of storage."""

    kernel_value_seconds: float  # to compute one value of a kernel
    pass_value_seconds: float  # to read one stored value in a pass that answers one vector
    vector_value_seconds: float  # more than that for each further vector that shares the pass
    solver_seconds: float  # of a solver's own code, besides what grows with the points
    cubic_seconds: float  # the same for each n³ of n points
    storage_bytes_per_second: float  # of files that are written and flushed


TYPICAL = Rates(
    kernel_value_seconds=2e-8,
    pass_value_seconds=2e-9,
    vector_value_seconds=0.0,
    solver_seconds=0.01,
    cubic_seconds=10 / 3 / 4e9,
    storage_bytes_per_second=math.inf,
)
"""Rates for a rough upper estimate of processor time, where no machine was measured.

A second is 4 GB of passes over stored kernels, 0.4 GB of kernels computed, or 100 solvers, each
with 10 factorisations of its Gram matrix besides.
"""
OF_PATHS = 0.1  # of the time of a solver, where it starts from the solution of another


def rates_path() -> Path:
    """Return the file of this machine's rates, beside the node cache."""
    return default_directory() / RATES_FILE


def store_rates(rates: Rates) -> Path:
    """Write the rates of this machine, and return their file."""
    path = rates_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_checked(path, asdict(rates))
    return path


def stored_rates() -> Rates | None:
    """Return the rates that were stored; None if there are none or they are damaged."""
    with suppress(OSError, ValueError, TypeError):
        return Rates(**parsed(rates_path().read_bytes()))
    return None


# What a task takes

RECORDS_READ = 20  # of each method on each data set and bank

SolverKey = tuple[str, str, str]
"""Data set, label of the bank, and key of the method."""


@dataclass(frozen=True)
class TaskCost:
    """What a task takes: times of a thread and of the coordinator, bytes of the storage."""

    seconds: float
    moved_bytes: float = 0.0
    kept_bytes: float = 0.0  # that a worker reads once for all of its tasks on the bank
    receipt_seconds: float = 0.0  # of the coordinator for the outcome
    shared_seconds: float = 0.0  # of what workers do together, each some of equal parts
    parts: int = 1

    @property
    def all_seconds(self) -> float:
        """Time of all threads together."""
        return self.seconds + self.shared_seconds

    def seconds_on(self, workers: int) -> float:
        """Return the time from beginning to end where there are so many workers."""
        most = -(-self.parts // workers)  # parts of the worker that has most
        return self.seconds + self.shared_seconds * most / self.parts


@dataclass(frozen=True)
class SolverCost:
    """What a run takes: processor time of its solvers' code, and passes of each solver."""

    seconds: float
    passes: float
    pass_seconds: float | None = None  # of its share of the passes; None if only rates tell it


def recorded_costs(plan: Plan, store: Journal) -> dict[SolverKey, SolverCost]:
    """Return the mean costs of runs of a plan that are recorded as complete.

    Records have the counts and processor times of the solvers on the training part.  Those on inner
    folds, of which the records have the seconds, had processors in the same proportion.
    """
    found: dict[SolverKey, list[SolverCost]] = defaultdict(list)
    complete = {i for i, state in store.states().items() if state is RunState.COMPLETE}
    for run in plan.runs:
        if run.id in complete and len(found[solver_key(run)]) < RECORDS_READ:
            record = store.read(run.id)
            if record is not None and "cpu_seconds" in record.times:
                times = record.times
                n_folds = run.selection.folds * run.selection.repeats if run.selection else 0
                passes = record.counters.get("passes", 0) * (1 + n_folds) / run.n_jobs
                on_part = times.get("own_seconds", 0.0) + times.get("pass_seconds", 0.0)
                share = 1.0 + (times.get("validation_seconds", 0.0) / on_part if on_part else 0.0)
                of_passes = times.get("pass_cpu_seconds")
                of_passes = None if of_passes is None else share * of_passes
                cost = SolverCost(share * times["cpu_seconds"], passes, of_passes)
                found[solver_key(run)].append(cost)
    return {key: _mean(costs) for key, costs in found.items() if costs}


def _mean(costs: Sequence[SolverCost]) -> SolverCost:
    of_passes = [one.pass_seconds for one in costs if one.pass_seconds is not None]
    return SolverCost(
        math.fsum(one.seconds for one in costs) / len(costs),
        math.fsum(one.passes for one in costs) / len(costs),
        math.fsum(of_passes) / len(of_passes) if of_passes else None,
    )


def solver_key(run: RunPlan) -> SolverKey:
    """Return the key under which the costs of a run are known."""
    return run.dataset, run.bank_label, run.key


@dataclass(eq=False)
class TaskCosts:
    """What the tasks of a plan take by the rates of a machine, or as recorded runs did."""

    plan: Plan
    facts: Mapping[str, DatasetFacts]
    memory_limit: int | None  # bytes that a task may take
    rates: Rates
    recorded: Mapping[SolverKey, SolverCost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._banks = {bank.id: bank for bank in self.plan.banks}
        self._solvers = SolverBytes(self.memory_limit)
        self._blocks = {
            bank.id: bank.shape.needed if bank.stored else range(0) for bank in self._banks.values()
        }

    def together(self, batches: Iterable[BatchPlan]) -> float:
        """Return the time of all threads for some batches, with the build of their banks."""
        seconds, built = 0.0, set[str]()
        for batch in batches:
            builds = self._banks[batch.bank].stored and batch.bank not in built
            built.add(batch.bank)
            seconds += self(BatchItem(batch.bank, batch.runs, builds=builds)).all_seconds
        return seconds

    def blocks(self, bank: str) -> range:
        """Return the indices of the blocks of a bank that is not built yet."""
        return self._blocks[bank]

    def __call__(self, item: Item) -> TaskCost:
        """Return what the task of an item takes."""
        bank = self._banks[item.bank]
        if isinstance(item, BatchItem):
            return self._batch_cost(bank, item)
        share = len(item.blocks) / len(self._blocks[bank.id])
        seconds = share * _n_values(bank) * self.rates.kernel_value_seconds
        return TaskCost(seconds, moved_bytes=share * bank.stored_bytes)

    def _batch_cost(self, bank: BankPlan, item: BatchItem) -> TaskCost:
        """Return what some runs on one bank take: their passes and their solvers."""
        rates, runs = self.rates, item.runs
        each = [self._solver_cost(bank, run) for run in runs]
        built = _n_values(bank) * rates.kernel_value_seconds
        of_bank = self._pass_seconds(bank, runs, each)
        of_runs, receipt = math.fsum(one.seconds for one in each), RECEIPT_SECONDS * len(each)
        if bank.sharded:
            parts = -(-bank.n_kernels // block_kernels(bank.shape.layout))
            return TaskCost(
                of_runs, receipt_seconds=receipt, shared_seconds=of_bank + built, parts=parts
            )
        if bank.is_factored:  # of each round a pass over the kernels, if rates alone tell the time
            of_value = rates.kernel_value_seconds + rates.pass_value_seconds
            rounds = sum(
                run.n_jobs * factor_rounds(bank, METHODS[run.method]).usual
                for run in runs
                if solver_key(run) not in self.recorded
            )
            of_runs += rounds * bank.n_kernels * bank.shape.layout.n_entries * of_value
        if item.builds:
            return TaskCost(of_bank + of_runs + built, bank.stored_bytes, 0.0, receipt)
        moved, kept = 0.0, 0.0
        if bank.backend == "memory" or bank.is_factored:
            moved = bank.stored_bytes
        elif bank.backend == "mmap" and bank.n_bytes <= DEFAULT_BUDGET:
            kept = bank.n_bytes
        elif bank.stored:  # read in every pass, as a mapped one is that the cache cannot hold
            moved = self._passes(bank, runs, each) * bank.n_bytes
        return TaskCost(of_bank + of_runs, moved, kept, receipt)

    def _passes(
        self, bank: BankPlan, runs: Sequence[RunPlan], costs: Sequence[SolverCost]
    ) -> float:
        """Return the passes over a bank that runs of some costs share."""
        rounds = [one.passes for one in costs]
        return passes_of_runs(self.plan.spec.execution, bank, runs, rounds, self._solvers)

    def _pass_seconds(
        self, bank: BankPlan, runs: Sequence[RunPlan], costs: Sequence[SolverCost]
    ) -> float:
        """Return the time of the passes of some runs: as recorded, or by the rates."""
        recorded = math.fsum(one.pass_seconds or 0.0 for one in costs)
        left = [(r, c) for r, c in zip(runs, costs, strict=True) if c.pass_seconds is None]
        if not left:
            return recorded
        rates, passes = self.rates, self._passes(bank, *zip(*left, strict=True))
        vectors = math.fsum(run.n_jobs * one.passes for run, one in left)
        of_pass = rates.pass_value_seconds + bank.recomputed * rates.kernel_value_seconds
        further = max(0.0, vectors - passes) * rates.vector_value_seconds
        of_values = _n_values(bank) * (passes * of_pass + further)
        return recorded + of_values + passes * PASS_SECONDS + vectors * REQUEST_SECONDS

    def _solver_cost(self, bank: BankPlan, run: RunPlan) -> SolverCost:
        """Return what a run takes: as those that are recorded, or by the rates."""
        if (known := self.recorded.get(solver_key(run))) is not None:
            return known  # of runs on factors with all rounds, passes over kernels among them
        n_points = self.facts[run.dataset].known_sizes[run.split]
        seconds = self.rates.solver_seconds
        if not bank.is_factored:  # no solver on factors makes a matrix of all points
            seconds += self.rates.cubic_seconds * n_points**3
        seconds *= OF_PATHS if run.on_path else 1.0
        passes = METHODS[run.method].typical_passes(bank.n_kernels)
        return SolverCost(run.n_jobs * seconds, passes + (run.selection is not None))


def _n_values(bank: BankPlan) -> int:
    """Return the number of values of a bank: of its kernels, or of factors that stand for them."""
    if bank.is_factored:
        return bank.n_bytes // np.dtype(bank.dtype).itemsize
    return bank.n_kernels * bank.shape.layout.n_entries


# The work queue with a clock in place of workers

NUMBERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of workers

MakesQueue = Callable[[Callable[[str], bool], Callable[[], int]], WorkQueue]
"""Makes a work queue of what says whether a run is recorded, and of the number of threads."""


@dataclass
class Outcome:
    """What a simulated sweep took."""

    seconds: float = 0.0  # from the first task to the outcome of the last
    computing_seconds: float = 0.0  # of all threads together
    coordinator_seconds: float = 0.0
    storage_seconds: float = 0.0
    longest_seconds: float = 0.0  # of the longest task, without waiting for others
    moved_bytes: float = 0.0  # between workers and storage
    tasks: int = 0


def simulated(
    make_queue: MakesQueue,
    cost_of: Callable[[Item], TaskCost],
    workers: int,
    threads: int = 1,
    task_seconds: float = 0.0,
    bytes_per_second: float = math.inf,
) -> Outcome:
    """Do all the work of a queue in a discrete-event simulation.

    The queue is that of real sweeps, by the same rules as in :mod:`mkldist.run.sweep_loop`: one
    task in flight for every thread, and each outcome is taken before further tasks are submitted.
    Three resources take time: the threads of the workers; the storage, which serves the reads and
    writes of all workers one after the other; and the coordinator, which does one thing at a time,
    so that outcomes wait for it.
    """
    took, recorded = Outcome(), set[str]()
    queue = make_queue(recorded.__contains__, lambda: workers * threads)
    free = deque(worker for worker in range(workers) for _ in range(threads))
    cached_banks = [set[str]() for _ in range(workers)]
    ends: list[tuple[float, int, Item, TaskCost, int]] = []  # of tasks in flight; a heap
    now = storage_free = 0.0  # until then coordinator and storage are busy
    while True:
        while free and (item := queue.next()) is not None:
            now += task_seconds
            took.coordinator_seconds += task_seconds
            worker, cost = free.popleft(), cost_of(item)
            moved = cost.moved_bytes
            if cost.kept_bytes and item.bank not in cached_banks[worker]:
                cached_banks[worker].add(item.bank)
                moved += cost.kept_bytes
            moving, computing, begins = moved / bytes_per_second, cost.seconds_on(workers), now
            if moving:
                begins = storage_free = max(storage_free, now) + moving
            took.tasks += 1
            heapq.heappush(ends, (begins + computing, took.tasks, item, cost, worker))
            took.computing_seconds += cost.all_seconds
            took.storage_seconds += moving
            took.moved_bytes += moved
            took.longest_seconds = max(took.longest_seconds, moving + computing)
        if not ends:
            return took
        at, _, item, cost, worker = heapq.heappop(ends)
        now = max(now, at) + cost.receipt_seconds
        took.coordinator_seconds += cost.receipt_seconds
        took.seconds = now
        free.append(worker)
        if isinstance(item, BuildItem):
            queue.built(item)
        else:
            recorded.update(run.id for run in item.runs)
            queue.batch_done(item)


@dataclass(frozen=True)
class Forecast:
    """What a sweep is expected to take on some workers."""

    workers: int
    threads: int  # of each worker
    seconds: float  # wall time
    efficiency: float  # speed-up over one worker, divided by the number of workers
    processor_hours: float  # that all threads compute
    held_hours: float  # of all threads from the beginning to the end, which a cluster charges
    bytes: float  # between workers and storage
    memory_per_worker: int  # bytes at its peak
    tasks: int  # that are begun
    tasks_per_second: float
    scheduler_load: float  # share of the time in which coordinator and scheduler are busy
    limit: str  # "processors", "storage", "scheduler" or "longest task": the nearest lower bound


def forecasts(
    costs: TaskCosts,
    workers: int,
    threads: int = 1,
    done: Iterable[str] = (),
    numbers: Iterable[int] = NUMBERS,
) -> Iterator[Forecast]:
    """Yield the forecast for each number of workers, rising, `workers` among them."""
    batches = without(costs.plan.batches, frozenset(done))
    wanted = {batch.bank for batch in batches}
    banks = list({bank.id: bank for bank in costs.plan.banks if bank.id in wanted}.values())
    speed, alone = costs.rates.storage_bytes_per_second, 0.0
    memory = costs.plan.memory_per_worker - WORKER_BASE_BYTES

    def make_queue(is_recorded: Callable[[str], bool], n_threads: Callable[[], int]) -> WorkQueue:
        return WorkQueue(backends_of(banks), batches, costs.blocks, is_recorded, n_threads)

    for number in sorted({1, workers, *numbers}) if batches else ():
        took = simulated(make_queue, costs, number, threads, TASK_SECONDS, speed)
        alone = took.seconds if number == 1 else alone
        seconds = max(took.seconds, 1e-9)
        yield Forecast(
            workers=number,
            threads=threads,
            seconds=took.seconds,
            efficiency=alone / (number * seconds),
            processor_hours=took.computing_seconds / 3600,
            held_hours=number * threads * took.seconds / 3600,
            bytes=took.moved_bytes,
            memory_per_worker=WORKER_BASE_BYTES + threads * memory,
            tasks=took.tasks,
            tasks_per_second=took.tasks / seconds,
            scheduler_load=took.coordinator_seconds / seconds,
            limit=limit_of(took, number * threads),
        )


def limit_of(outcome: Outcome, n_threads: int) -> str:
    """Return the name of the largest of the times below which the wall time cannot fall."""
    bounds = {
        "processors": outcome.computing_seconds / n_threads,
        "storage": outcome.storage_seconds,
        "scheduler": outcome.coordinator_seconds,
        "longest task": outcome.longest_seconds,
    }
    return max(bounds, key=lambda name: bounds[name])


# The rates of this machine, in processor time, which other programs change little

FEATURES = 8  # of points drawn at random; the bank of Xu et al. 2008 has 13 kernels for each
SMALL, LARGE = 100, 400  # points
VECTORS = 16  # that share a pass
REPEATS = 3


def measured_rates(folder: Path) -> Rates:
    """Return the rates of this machine and of the storage of a folder; takes some seconds."""
    with single_threaded():
        source, _ = _problem(LARGE)
        bank = _built(source)
        n_values = bank.n_kernels * bank.layout.n_entries
        of_value = _least(lambda: _built(source)) / n_values
        vectors = np.random.default_rng(0).normal(size=(bank.n_points, VECTORS))
        answer(bank, [Quadratic(vectors)])
        of_pass = _least(lambda: answer(bank, [Quadratic(vectors[:, :1])])) / n_values
        of_all = _least(lambda: answer(bank, [Quadratic(vectors)])) / n_values
        small, large = _solver_seconds(SMALL), _solver_seconds(LARGE)
    cubic = max(large - small, 1e-3 * small) / (LARGE**3 - SMALL**3)
    probe = folder / f".mkldist-rates-{time.time_ns()}"
    try:
        speed = speed_of_writing(probe)
    finally:
        probe.unlink(missing_ok=True)
    return Rates(
        kernel_value_seconds=of_value,
        pass_value_seconds=of_pass,
        vector_value_seconds=max(of_all - of_pass, 1e-3 * of_pass) / (VECTORS - 1),
        solver_seconds=max(small - cubic * SMALL**3, 1e-3 * small),
        cubic_seconds=cubic,
        storage_bytes_per_second=speed,
    )


def rates_finding(folder: Path) -> Finding:
    """Measure the rates of this machine, store them, and say so."""
    try:
        rates = measured_rates(folder)
        path = store_rates(rates)
    except (OSError, MkldistError) as error:
        return Finding("rates", str(error), "Plans for --workers measure them anew")
    words = (
        f"a second: {1e-6 / rates.kernel_value_seconds:.0f} million kernel values computed or "
        f"{1e-6 / rates.pass_value_seconds:.0f} million read in a pass, by one processor; "
        f"stored in {path}"
    )
    return Finding("rates", words)


def _least(do: Callable[[], object]) -> float:
    """Return the least processor time of this thread that some calls take."""
    found = []
    for _ in range(REPEATS):
        start = time.thread_time()
        do()
        found.append(time.thread_time() - start)
    return max(min(found), 1e-9)


def _problem(n_points: int) -> tuple[FeatureSource, Any]:
    """Return kernels on points of two classes that overlap, and the labels."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n_points) % 2, 1.0, -1.0)
    points = rng.normal(size=(n_points, FEATURES)) + 0.5 * y[:, None]
    names = [f"x{j}" for j in range(FEATURES)]
    return FeatureSource(points, kernel_list(BankSpec(family="xu2008"), FEATURES, names, {}, 0)), y


def _built(source: FeatureSource) -> MemoryBank:
    """Return a bank of all kernels of a source."""
    layout = TileLayout.for_points(source.n_points)
    return MemoryBank(computed(source, slice(0, source.n_kernels), layout, "float64"), layout)


def _solver_seconds(n_points: int) -> float:
    """Return the processor time of the Level method's own code on some points."""
    source, y = _problem(n_points)
    bank = _built(source)
    [view] = make_views(bank, [None], ("trace",))
    method = METHODS["level"]
    found = []
    for _ in range(1 + REPEATS):  # the first compiles
        problem, params = problem_on(view, method, y), {"C": float(n_points)}
        steps = method.solve(problem, method.params(**params))
        found.append(solve_timed(bank, Job("level", view, problem, steps)).times.cpu_seconds)
    return max(min(found[1:]), 1e-9)
