"""The simulated sweep against cases worked out by hand, and bounds that hold for any schedule."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.forecast.simulation import (
    RESTART_SECONDS,
    Crew,
    Outcome,
    Service,
    TaskCost,
    simulate,
)
from mkldist.planning.model import BatchPlan, RunPlan
from mkldist.run.work_queue import MAX_ATTEMPTS, BuildItem, WorkQueue


def run_plan(bank: str, number: int) -> RunPlan:
    return RunPlan(f"run {number}", "d", bank, "b", number, "level", "level", {"C": 1.0})


def simulated(
    seconds: list[float],
    crew: Crew,
    service: Service = Service(),  # noqa: B008  # frozen
    *,
    blocks: int = 0,
    moved: float = 0.0,
    kept: float = 0.0,
    receipt: float = 0.0,
    one_bank: bool = False,
) -> Outcome:
    """Simulate a batch of one run for each of some times, after blocks of a second each.

    Each batch has a bank of its own, or all have one, whose batches the queue divides anew.
    """
    runs = [run_plan("bank" if one_bank else f"bank {i}", i) for i in range(len(seconds))]
    batches = [BatchPlan(run.id, run.bank, (run,)) for run in runs]
    banks = list(dict.fromkeys(run.bank for run in runs))
    of_run = {f"run {i}": own for i, own in enumerate(seconds)}
    built: set[tuple[str, int]] = set()

    def make_queue(is_recorded, n_threads):
        def missing(bank):
            return [block for block in range(blocks) if (bank, block) not in built]

        return WorkQueue(banks, batches, missing, is_recorded, n_threads)

    def cost_of(item):
        if isinstance(item, BuildItem):
            built.update((item.bank, block) for block in item.blocks)
            return TaskCost(float(len(item.blocks)))
        own = math.fsum(of_run[run.id] for run in item.runs)
        return TaskCost(own, moved, kept, receipt)

    return simulate(make_queue, cost_of, crew, service)


def test_two_workers_do_three_tasks():
    # 0–3 and 0–2, then 2–4: the second worker takes the third task.
    took = simulated([3.0, 2.0, 2.0], Crew(2))
    assert (took.seconds, took.computing_seconds, took.tasks) == (4.0, 7.0, 3)
    assert took.longest_seconds == 3.0


def test_the_threads_of_one_worker_do_what_as_many_workers_do():
    times = [3.0, 2.0, 2.0, 5.0, 1.0]
    assert simulated(times, Crew(1, threads=2)) == simulated(times, Crew(2))


def test_a_bank_is_built_before_its_batches():
    # Two blocks side by side in one second, then the tasks.
    assert simulated([3.0, 2.0], Crew(2), blocks=2, one_bank=True).seconds == 4.0
    # One worker takes both blocks in one task.
    took = simulated([3.0, 2.0], Crew(1), blocks=2, one_bank=True)
    assert (took.seconds, took.tasks) == (7.0, 3)


def test_the_coordinator_does_one_thing_at_a_time():
    # Submitted at 1, 2 and 3; told at 2, 3 and 4, each of which takes half a second more:
    # 0–1, 1–2 submit; at 2 both threads are busy.  The ends at 3 and 4 wait for their turn.
    took = simulated([2.0, 2.0], Crew(2), Service(task_seconds=1.0), receipt=0.5)
    assert took.seconds == 4.5
    assert took.coordinator_seconds == 3.0


def test_more_threads_than_the_coordinator_serves_gain_nothing():
    # Each task takes 1 s of the coordinator: 20 of them end at 21 s at the earliest.
    few = simulated([1.0] * 20, Crew(2), Service(task_seconds=1.0))
    many = simulated([1.0] * 20, Crew(20), Service(task_seconds=1.0))
    assert few.seconds == many.seconds == 21.0


def test_the_storage_serves_one_after_the_other():
    # 10 bytes at 5 a second: read from 0 to 2 and from 2 to 4, then a second of work.
    took = simulated([1.0, 1.0], Crew(2), Service(bytes_per_second=5.0), moved=10.0)
    assert (took.seconds, took.storage_seconds, took.moved_bytes) == (5.0, 4.0, 20.0)


def test_a_worker_reads_a_bank_that_it_keeps_once():
    # The first worker reads from 0 to 2, the second from 2 to 4; meanwhile the first works.
    service = Service(bytes_per_second=5.0)
    took = simulated([1.0] * 4, Crew(2), service, kept=10.0, one_bank=True)
    assert (took.seconds, took.moved_bytes) == (5.0, 20.0)


def test_a_straggler_makes_a_tail():
    # Both slow: everything takes 4 times as long.
    slow = simulated([1.0, 1.0, 1.0], Crew(2, stragglers=1.0, slowness=4.0))
    assert slow.seconds == 8.0


@pytest.mark.parametrize(("workers", "seconds"), [(1, 9.0), (2, 5.0), (3, 5.0), (4, 3.0), (9, 3.0)])
def test_workers_divide_the_parts_of_a_task_among_them(workers, seconds):
    # One second alone, and four parts of two seconds each; the worker that has most decides.
    run = run_plan("bank", 0)

    def make_queue(is_recorded, n_threads):
        batch = BatchPlan(run.id, run.bank, (run,))
        return WorkQueue(["bank"], [batch], lambda bank: [], is_recorded, n_threads)

    cost = TaskCost(1.0, shared_seconds=8.0, parts=4)
    took = simulate(make_queue, lambda item: cost, Crew(workers), Service())
    assert (took.seconds, took.longest_seconds) == (seconds, seconds)
    assert took.computing_seconds == 9.0


class Lives:
    """Draws of a generator that are given: nobody is slow, lives as listed, then for ever."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)

    def __call__(self, seed: int) -> Lives:
        return self

    def random(self) -> float:
        return 1.0

    def expovariate(self, rate: float) -> float:
        return self.seconds.pop(0) if self.seconds else math.inf


def test_a_death_repeats_its_task(monkeypatch):
    # The only worker dies at 2, comes back at 7, and does the task of 3 again, then the other.
    monkeypatch.setattr("mkldist.forecast.simulation.random.Random", Lives(2.0))
    took = simulated([3.0, 1.0], Crew(1, deaths_per_hour=1.0), blocks=0)
    assert took.seconds == 2 + RESTART_SECONDS + 4
    assert (took.deaths, took.abandoned, took.computing_seconds) == (1, 0, 6.0)


def test_another_worker_takes_the_task_of_a_dead_one(monkeypatch):
    # One dies at 2 of 3 seconds; the other, free at 1, would idle otherwise: it has 0–1, 2–5.
    monkeypatch.setattr("mkldist.forecast.simulation.random.Random", Lives(2.0))
    took = simulated([3.0, 1.0], Crew(2, deaths_per_hour=1.0))
    assert (took.seconds, took.deaths, took.tasks) == (5.0, 1, 3)


def test_a_run_whose_workers_always_die_is_abandoned(monkeypatch):
    # Each of MAX_ATTEMPTS attempts ends with the second death.
    monkeypatch.setattr("mkldist.forecast.simulation.random.Random", Lives(*[1.0] * 100))
    took = simulated([3.0], Crew(1, deaths_per_hour=1.0))
    assert took.abandoned == 1
    assert took.deaths == 2 * MAX_ATTEMPTS
    assert took.seconds == took.deaths + (took.deaths - 1) * RESTART_SECONDS


def test_a_seed_gives_one_outcome():
    crew = Crew(5, stragglers=0.3, deaths_per_hour=2000.0, seed=7)
    times = [1.0 + i % 3 for i in range(40)]
    assert simulated(times, crew) == simulated(times, crew)
    others = [simulated(times, Crew(5, 1, 0.3, 3.0, 2000.0, seed)).seconds for seed in range(5)]
    assert len(set(others)) > 1


@given(
    st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30),
    st.integers(1, 8),
    st.integers(1, 3),
)
@settings(max_examples=60)
def test_no_schedule_beats_the_bounds_and_lists_keep_grahams(times, workers, threads):
    """Graham 1966: list scheduling takes at most (2 - 1/m) of the best possible time."""
    took = simulated(times, Crew(workers, threads))
    m, work = workers * threads, took.computing_seconds
    assert work == pytest.approx(math.fsum(times))
    least = max(work / m, took.longest_seconds)
    assert least <= took.seconds * (1 + 1e-9)
    assert took.seconds <= work / m + (1 - 1 / m) * took.longest_seconds + 1e-9
