"""Rates, what tasks take by them, the simulated sweep, and forecasts held to sweeps that were run.

Solvers that wait take the same time on a busy machine, so that sweeps of them tell how work is
divided and what is lost between tasks.  Solvers that compute end after a known time of a processor,
so that the forecast from some of their runs can be held to what all of them take.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.bank.bank import TileLayout
from mkldist.bank.cache import DEFAULT_BUDGET
from mkldist.core.memory import FLOAT_BYTES
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import WORKER_BASE_BYTES, factor_rounds
from mkldist.planning.model import BatchPlan, Plan, RunPlan
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState
from mkldist.run.cluster import ConnectOptions
from mkldist.run.forecast import (
    PASS_SECONDS,
    RECEIPT_SECONDS,
    RECORDS_READ,
    REQUEST_SECONDS,
    Outcome,
    Rates,
    SolverCost,
    TaskCost,
    TaskCosts,
    forecasts,
    limit_of,
    measured_rates,
    rates_finding,
    rates_path,
    recorded_costs,
    simulated,
    store_rates,
    stored_rates,
)
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.run.work_queue import BatchItem, BuildItem, WorkQueue
from mkldist.spec.model import SweepSpec
from tests.planning.plans import dataset, grid, plan_of
from tests.run.sweeps import misbehaving_methods, record_times, records, run_process, sweep_text

RATES = Rates(2e-9, 1e-9, 1e-10, 0.01, 3e-10, 5e8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))


def test_stored_rates_come_back():
    assert stored_rates() is None
    store_rates(RATES)
    assert stored_rates() == RATES


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"pass_value_seconds": 1e-9}'])
def test_damaged_rates_count_as_none(damage):
    store_rates(RATES)
    rates_path().write_bytes(damage)
    assert stored_rates() is None


def test_a_changed_digit_is_found():
    store_rates(RATES)
    content = rates_path().read_bytes()
    rates_path().write_bytes(content.replace(b"0.01", b"0.02"))
    assert stored_rates() is None


@pytest.mark.slow
def test_this_machine_has_rates_in_the_order_that_its_work_must_have(tmp_path):
    rates = measured_rates(tmp_path)
    assert all(getattr(rates, field.name) > 0 for field in fields(rates))
    # An exponential costs more than to read a number; sixteen vectors less than sixteen passes.
    assert rates.kernel_value_seconds > 0.5 * rates.pass_value_seconds
    assert rates.vector_value_seconds < rates.pass_value_seconds
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_stores_what_it_measures(tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.run.forecast.measured_rates", lambda folder: RATES)
    finding = rates_finding(tmp_path)
    assert "500 million kernel values computed or 1000 million read" in finding.words
    assert stored_rates() == RATES


FACTS = {"one": dataset("one", n_points=60, n_splits=4)}


def planned(backend: str, fit: str = "all", dtype: str = "auto", **words) -> tuple[Plan, TaskCosts]:
    grids = {"level": grid("level", C=[1.0, 10.0])}
    bank = {"family": "xu2008", "backend": backend, "dtype": dtype, "normalisation": "trace"}
    plan = plan_of(FACTS, grids, banks=[bank], preprocessing={"fit": fit}, **words)
    return plan, TaskCosts(plan, FACTS, None, RATES)


def item_of(plan: Plan, *, builds: bool = False) -> BatchItem:
    return BatchItem(plan.batches[0].bank, plan.batches[0].runs, builds=builds)


def work(plan: Plan, passes: float, *, recompute: bool = False) -> float:
    """Return the seconds of the first batch: passes and solvers."""
    [bank], runs = plan.banks[:1], plan.batches[0].runs
    values = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    vectors = len(runs) * passes
    of_passes = passes * (1e-9 + 2e-9 * recompute) + (vectors - passes) * 1e-10
    of_each = 0.01 + 3e-10 * 30**3
    of_vectors = passes * PASS_SECONDS + vectors * REQUEST_SECONDS
    return values * of_passes + of_vectors + len(runs) * of_each


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream", "recompute"])
def test_a_batch_takes_its_passes_and_its_solvers_and_its_records_the_coordinator(backend):
    plan, costs = planned(backend)
    bank, passes = plan.banks[0], METHODS["level"].typical_passes(40)
    cost = costs(item_of(plan))
    assert cost.seconds == pytest.approx(work(plan, passes, recompute=backend == "recompute"))
    moved = {"memory": bank.n_bytes, "stream": passes * bank.n_bytes}.get(backend, 0)
    assert cost.moved_bytes == moved
    assert cost.kept_bytes == (bank.n_bytes if backend == "mmap" else 0)
    assert cost.receipt_seconds == pytest.approx(RECEIPT_SECONDS * len(plan.batches[0].runs))


def test_a_bank_is_computed_once_and_written():
    plan, costs = planned("memory")
    bank = plan.banks[0]
    values = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    blocks = costs.blocks(bank.id)
    built = [costs(BuildItem(bank.id, (block,))) for block in blocks]
    assert sum(one.seconds for one in built) == pytest.approx(values * 2e-9)
    assert sum(one.moved_bytes for one in built) == pytest.approx(bank.n_bytes)
    alone, both = costs(item_of(plan)), costs(item_of(plan, builds=True))
    assert both.seconds - alone.seconds == pytest.approx(values * 2e-9)
    assert both.moved_bytes == bank.n_bytes
    assert planned("recompute")[1].blocks(planned("recompute")[0].banks[0].id) == range(0)


def test_a_mapped_bank_beyond_the_cache_is_read_in_every_pass(monkeypatch):
    plan, costs = planned("mmap")
    assert plan.banks[0].n_bytes < DEFAULT_BUDGET
    monkeypatch.setattr("mkldist.run.forecast.DEFAULT_BUDGET", 1)
    cost = costs(item_of(plan))
    assert cost.kept_bytes == 0
    assert cost.moved_bytes == METHODS["level"].typical_passes(40) * plan.banks[0].n_bytes


def test_a_sharded_bank_is_computed_once_by_all_workers_together():
    plan, costs = planned("sharded")
    bank, runs, cost = plan.banks[0], plan.batches[0].runs, costs(item_of(plan))
    values = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    once = values * 2e-9 + work(plan, METHODS["level"].typical_passes(40))
    assert cost.all_seconds == pytest.approx(once)
    assert cost.seconds == pytest.approx(len(runs) * (0.01 + 3e-10 * 30**3))
    assert (cost.moved_bytes, cost.kept_bytes, cost.parts) == (0, 0, 1)  # 40 kernels are one block


@pytest.mark.parametrize(("dtype", "n_bytes"), [("float64", 8), ("float32", 4)])
def test_factors_are_made_and_each_round_ends_with_a_pass_over_the_kernels(dtype, n_bytes):
    plan, costs = planned("factors", dtype=dtype)
    bank, runs = plan.banks[0], plan.batches[0].runs
    passes, factors = METHODS["level"].typical_passes(40), bank.n_bytes / n_bytes
    kernels = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    of_passes = passes * 1e-9 + (len(runs) - 1) * passes * 1e-10
    rounds = factor_rounds(bank, METHODS["level"]).usual
    of_each = rounds * kernels * 3e-9 + 0.01 + passes * REQUEST_SECONDS
    expected = factors * of_passes + passes * PASS_SECONDS + len(runs) * of_each
    cost = costs(item_of(plan))
    assert cost.seconds == pytest.approx(expected)
    read = (bank.stored_bytes, 0, 0)
    assert (cost.moved_bytes, cost.kept_bytes, cost.shared_seconds) == read
    built = [costs(BuildItem(bank.id, (block,))) for block in costs.blocks(bank.id)]
    assert len(built) == bank.n_kernels
    assert sum(one.seconds for one in built) == pytest.approx(factors * 2e-9)
    assert sum(one.moved_bytes for one in built) == pytest.approx(bank.stored_bytes)


@pytest.mark.parametrize("inner", [0, 3])
def test_recorded_runs_replace_the_rates(tmp_path, inner):
    plan, _ = planned("memory")
    store = Journal(tmp_path / "records.journal")
    for run, seconds in zip(plan.batches[0].runs, (1.0, 3.0), strict=False):
        times = {"cpu_seconds": seconds, "pass_cpu_seconds": 0.25 * seconds}
        times |= {"own_seconds": 2.0, "pass_seconds": 1.0, "validation_seconds": inner * 3.0}
        fields = {"times": times, "counters": {"passes": 4}}
        store.append([replace(RunRecord.failed(run, ""), state=RunState.COMPLETE, **fields)])
    found = recorded_costs(plan, store)
    whole = 1 + inner  # with the solvers on inner folds
    assert found == {("one", "xu2008", "level"): SolverCost(2.0 * whole, 4.0, 0.5 * whole)}


@pytest.mark.parametrize("backend", ["stream", "factors"])
def test_recorded_passes_take_the_time_that_they_took(backend):
    """Those on factors too: recorded runs took all their rounds."""
    plan, by_rates = planned(backend)
    item, passes = item_of(plan), METHODS["level"].typical_passes(40)
    known = {("one", "xu2008", "level"): SolverCost(2.0, passes, 0.5)}
    costs = replace(by_rates, recorded=known)
    assert costs(item).seconds == pytest.approx(len(item.runs) * (2.0 + 0.5))
    assert costs(item).moved_bytes == by_rates(item).moved_bytes


def test_a_forecast_adds_up(tmp_path):
    _, costs = planned("recompute")
    rows = list(forecasts(costs, 3, 2, numbers=(1, 10)))
    assert [row.workers for row in rows] == [1, 3, 10]
    for row in rows:
        assert row.held_hours == pytest.approx(row.workers * 2 * row.seconds / 3600)
        assert row.processor_hours <= row.held_hours
        assert row.efficiency == pytest.approx(rows[0].seconds / row.workers / row.seconds)
        assert row.seconds <= rows[0].seconds * 1.001
    base = WORKER_BASE_BYTES
    assert rows[0].memory_per_worker == base + 2 * (costs.plan.memory_per_worker - base)
    assert rows[-1].limit == "longest task"  # four splits, on twenty threads


def test_nothing_is_foretold_of_a_sweep_that_is_done():
    plan, costs = planned("memory")
    assert list(forecasts(costs, 2, done=[run.id for run in plan.runs])) == []


@pytest.mark.parametrize(
    ("took", "limit"),
    [
        (Outcome(computing_seconds=40.0, longest_seconds=9.0), "processors"),
        (Outcome(computing_seconds=40.0, longest_seconds=11.0), "longest task"),
        (Outcome(computing_seconds=40.0, storage_seconds=11.0), "storage"),
        (Outcome(computing_seconds=40.0, coordinator_seconds=11.0), "scheduler"),
    ],
)
def test_the_limit_is_the_largest_bound(took, limit):
    assert limit_of(took, 4) == limit


def run_plan(bank: str, number: int) -> RunPlan:
    return RunPlan(f"run {number}", "d", bank, "b", number, "level", "level", {"C": 1.0})


def took_of(
    seconds: list[float],
    *service: float,  # workers, threads of each, seconds a task, bytes a second
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

        return WorkQueue(dict.fromkeys(banks, "stream"), batches, missing, is_recorded, n_threads)

    def cost_of(item):
        if isinstance(item, BuildItem):
            built.update((item.bank, block) for block in item.blocks)
            return TaskCost(float(len(item.blocks)))
        own = math.fsum(of_run[run.id] for run in item.runs)
        return TaskCost(own, moved, kept, receipt)

    return simulated(make_queue, cost_of, *service)


@pytest.mark.parametrize(
    ("seconds", "service", "changes", "expected"),
    [
        # 0–3 and 0–2, then 2–4: the second worker takes the third task.
        ([3.0, 2.0, 2.0], (2,), {}, {"seconds": 4.0, "computing_seconds": 7.0, "tasks": 3}),
        # 0–1 and 1–2 submit; the ends at 3 and 4 take half a second more each, one at a time.
        ([2.0, 2.0], (2, 1, 1.0), {"receipt": 0.5}, {"seconds": 4.5, "coordinator_seconds": 3.0}),
        # Each task takes 1 s of the coordinator: more threads than it serves gain nothing.
        ([1.0] * 20, (2, 1, 1.0), {}, {"seconds": 21.0}),
        ([1.0] * 20, (20, 1, 1.0), {}, {"seconds": 21.0}),
        # 10 bytes at 5 a second: read from 0 to 2 and from 2 to 4, then a second of work.
        ([1.0, 1.0], (2, 1, 0.0, 5.0), {"moved": 10.0},
         {"seconds": 5.0, "storage_seconds": 4.0, "moved_bytes": 20.0}),
        # A worker reads a bank that it keeps once, the first from 0 to 2, the second from 2 to 4.
        ([1.0] * 4, (2, 1, 0.0, 5.0), {"kept": 10.0, "one_bank": True},
         {"seconds": 5.0, "moved_bytes": 20.0}),
        # Two blocks side by side in one second, then the tasks; one worker takes both in one task.
        ([3.0, 2.0], (2,), {"blocks": 2, "one_bank": True}, {"seconds": 4.0}),
        ([3.0, 2.0], (1,), {"blocks": 2, "one_bank": True}, {"seconds": 7.0, "tasks": 3}),
    ],
)  # fmt: skip
def test_a_simulated_sweep_takes_what_is_counted_by_hand(seconds, service, changes, expected):
    took = took_of(seconds, *service, **changes)
    assert {name: getattr(took, name) for name in expected} == expected


def test_the_threads_of_one_worker_do_what_as_many_workers_do():
    times = [3.0, 2.0, 2.0, 5.0, 1.0]
    assert took_of(times, 1, 2) == took_of(times, 2)


@pytest.mark.parametrize(("workers", "seconds"), [(1, 9.0), (2, 5.0), (3, 5.0), (4, 3.0), (9, 3.0)])
def test_workers_divide_the_parts_of_a_task_among_them(workers, seconds):
    # One second alone, and four parts of two seconds each; the worker that has most decides.
    run = run_plan("bank", 0)

    def make_queue(is_recorded, n_threads):
        batch = BatchPlan(run.id, run.bank, (run,))
        return WorkQueue({"bank": "stream"}, [batch], lambda bank: [], is_recorded, n_threads)

    cost = TaskCost(1.0, shared_seconds=8.0, parts=4)
    took = simulated(make_queue, lambda item: cost, workers)
    assert (took.seconds, took.longest_seconds) == (seconds, seconds)
    assert took.computing_seconds == 9.0


@given(
    st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30), st.integers(1, 8), st.integers(1, 3)
)
@settings(max_examples=60)
def test_no_schedule_beats_the_bounds_and_lists_keep_grahams(times, workers, threads):
    """Graham 1966: list scheduling takes at most (2 - 1/m) of the best possible time."""
    took = took_of(times, workers, threads)
    m, work = workers * threads, took.computing_seconds
    assert work == pytest.approx(math.fsum(times))
    least = max(work / m, took.longest_seconds)
    assert least <= took.seconds * (1 + 1e-9)
    assert took.seconds <= work / m + (1 - 1 / m) * took.longest_seconds + 1e-9


TOLERANCE = 0.25


def costs_of(text: str, rates: Rates, n_workers: int, recorded=None) -> TaskCosts:
    spec = SweepSpec.model_validate(tomllib.loads(text))
    options = ConnectOptions(n_workers=n_workers, elsewhere=True)
    rounds = sweep_rounds(spec, Path("sweep.toml"), (), options)
    facts = rounds.resolved.facts
    return TaskCosts(rounds.most, facts, rounds.memory_limit, rates, recorded or {})


def seconds_of(output: Path) -> float:
    """Return the time from the start of the first solver to the last record."""
    written = {name.partition(".")[0]: at / 1e9 for name, at in record_times(output).items()}
    waited = {run_id: record.times["wall_seconds"] for run_id, record in records(output).items()}
    return max(written.values()) - min(written[i] - waited[i] for i in waited)


@pytest.mark.cluster
def test_one_two_and_four_workers_take_what_is_foretold(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_TEST_SECONDS", "1.5")
    text = sweep_text({"slow": [1.0]}, repeats=24, fit="all")
    took = {}
    for n_workers in (1, 2, 4):
        code, said = run_process(text, tmp_path / str(n_workers), "--workers", str(n_workers))
        assert code == 0, said
        took[n_workers] = seconds_of(tmp_path / str(n_workers))
    own = [record.times["own_seconds"] for record in records(tmp_path / "1").values()]
    each = {("two_moons", "bank", "slow"): SolverCost(math.fsum(own) / len(own), 2.0)}
    with misbehaving_methods():
        for n_workers, seconds in took.items():
            costs = costs_of(text, RATES, n_workers, each)
            assert {(r.dataset, r.bank_label, r.key) for r in costs.plan.runs} == each.keys()
            rows = forecasts(costs, n_workers, numbers=())
            [foretold] = [row.seconds for row in rows if row.workers == n_workers]
            assert foretold == pytest.approx(seconds, rel=TOLERANCE)


@pytest.mark.cluster
def test_what_one_two_and_four_workers_compute_is_foretold_from_some_of_their_runs(
    tmp_path, monkeypatch
):
    seconds = 0.05
    monkeypatch.setenv("MKLDIST_TEST_SECONDS", str(seconds))
    text = sweep_text({"busy": [1.0, 10.0, 100.0]}, repeats=24, fit="all")
    for n_workers in (1, 2, 4):
        output = tmp_path / str(n_workers)
        code, said = run_process(text, output, "--workers", str(n_workers))
        assert code == 0, said
        n_done = len(records(output))
        assert n_done == 72 > RECORDS_READ
        with misbehaving_methods():
            plan = costs_of(text, RATES, n_workers).plan
            known = recorded_costs(plan, Journal(output / "records.journal"))
            costs = costs_of(text, RATES, n_workers, known)
            rows = list(forecasts(costs, n_workers, numbers=()))
        [foretold] = [row for row in rows if row.workers == n_workers]
        bank = costs.plan.banks[0]
        built = bank.n_bytes / FLOAT_BYTES * RATES.kernel_value_seconds
        of_runs = foretold.processor_hours * 3600 - built
        assert of_runs == pytest.approx(n_done * seconds, rel=TOLERANCE)
