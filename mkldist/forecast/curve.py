"""The forecast of a sweep over the number of workers, and what limits each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mkldist.forecast.costs import TaskCosts
from mkldist.forecast.simulation import Crew, Outcome, Service, simulate
from mkldist.planning.costs import WORKER_BASE_BYTES
from mkldist.planning.model import BankPlan, BatchPlan
from mkldist.planning.planner import without
from mkldist.run.work_queue import WorkQueue

NUMBERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Forecast:
    """What a sweep is expected to take on some workers.

    Parameters
    ----------
    workers, threads : int
        Workers, and threads of each.
    seconds : float
        Wall time.
    efficiency : float
        Speed-up over one worker, divided by the number of workers.
    processor_hours : float
        Time that all threads compute.
    held_hours : float
        Time of all threads from the beginning to the end, which a cluster charges.
    bytes : float
        Bytes between workers and storage.
    memory_per_worker : int
        Bytes of a worker at its peak.
    tasks : int
        Tasks that are begun.
    tasks_per_second : float
        Mean number of tasks that the scheduler begins in a second.
    scheduler_load : float
        Share of the time in which the coordinator and the scheduler are busy.
    limit : str
        What the wall time cannot fall below, and is nearest to: ``"processors"``, ``"storage"``,
        ``"scheduler"`` or ``"longest task"``.
    deaths, abandoned : int
        Workers that die, and runs that fail for it.
    """

    workers: int
    threads: int
    seconds: float
    efficiency: float
    processor_hours: float
    held_hours: float
    bytes: float
    memory_per_worker: int
    tasks: int
    tasks_per_second: float
    scheduler_load: float
    limit: str
    deaths: int = 0
    abandoned: int = 0


def forecasts(
    costs: TaskCosts,
    crew: Crew,
    done: Iterable[str] = (),
    numbers: Iterable[int] = NUMBERS,
) -> Iterator[Forecast]:
    """Yield the forecast for each number of workers, rising, that of the crew among them."""
    batches = without(costs.plan.batches, frozenset(done))
    if not batches:
        return
    wanted = {batch.bank for batch in batches}
    banks = list({bank.id: bank for bank in costs.plan.banks if bank.id in wanted}.values())
    alone = _outcome(costs, banks, batches, replace(crew, workers=1))
    for number in sorted({1, crew.workers, *numbers}):
        here = replace(crew, workers=number)
        outcome = alone if number == 1 else _outcome(costs, banks, batches, here)
        yield _forecast(costs.plan.memory_per_worker, here, outcome, alone)


def _outcome(
    costs: TaskCosts, banks: list[BankPlan], batches: tuple[BatchPlan, ...], crew: Crew
) -> Outcome:
    """Simulate a plan on some workers."""
    rates = costs.rates
    return simulate(
        lambda is_recorded, n_threads: WorkQueue.of_plans(
            banks, batches, costs.blocks, is_recorded, n_threads
        ),
        costs,
        crew,
        Service(rates.task_seconds, rates.storage_bytes_per_second),
    )


def _forecast(memory: int, crew: Crew, outcome: Outcome, alone: Outcome) -> Forecast:
    """Return the forecast of a simulated sweep."""
    seconds = max(outcome.seconds, 1e-9)
    return Forecast(
        workers=crew.workers,
        threads=crew.threads,
        seconds=outcome.seconds,
        efficiency=alone.seconds / (crew.workers * seconds),
        processor_hours=outcome.computing_seconds / 3600,
        held_hours=crew.workers * crew.threads * outcome.seconds / 3600,
        bytes=outcome.moved_bytes,
        memory_per_worker=WORKER_BASE_BYTES + crew.threads * (memory - WORKER_BASE_BYTES),
        tasks=outcome.tasks,
        tasks_per_second=outcome.tasks / seconds,
        scheduler_load=outcome.coordinator_seconds / seconds,
        limit=limit_of(outcome, crew),
        deaths=outcome.deaths,
        abandoned=outcome.abandoned,
    )


def limit_of(outcome: Outcome, crew: Crew) -> str:
    """Return the name of the largest of the times below which the wall time cannot fall."""
    bounds = {
        "processors": outcome.computing_seconds / (crew.workers * crew.threads),
        "storage": outcome.storage_seconds,
        "scheduler": outcome.coordinator_seconds,
        "longest task": outcome.longest_seconds,
    }
    return max(bounds, key=lambda name: bounds[name])
