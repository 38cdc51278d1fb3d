"""What tasks take, against the same written out; and the forecast of a whole plan, `curve`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mkldist.bank.bank import TileLayout
from mkldist.bank.cache import DEFAULT_BUDGET
from mkldist.forecast.costs import SolverCost, TaskCosts, recorded_costs
from mkldist.forecast.curve import forecasts, limit_of
from mkldist.forecast.rates import Rates
from mkldist.forecast.simulation import Crew, Outcome
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import factor_rounds
from mkldist.planning.model import Plan
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState
from mkldist.run.work_queue import BatchItem, BuildItem
from tests.planning.plans import dataset, grid, plan_of

RATES = Rates(2e-9, 1e-9, 1e-10, 3e-4, 2e-5, 0.01, 3e-10, 0.005, 0.002, 0.0005, 5e8)
FACTS = {"one": dataset("one", n_points=60, n_splits=4)}


def planned(backend: str, fit: str = "all", dtype: str = "auto", **words) -> tuple[Plan, TaskCosts]:
    grids = {"level": grid("level", C=[1.0, 10.0])}
    bank = {"family": "xu2008", "backend": backend, "dtype": dtype, "normalisation": "trace"}
    plan = plan_of(FACTS, grids, banks=[bank], preprocessing={"fit": fit}, **words)
    return plan, TaskCosts(plan, FACTS, None, RATES)


def item_of(plan: Plan, *, builds: bool = False) -> BatchItem:
    return BatchItem(plan.batches[0].bank, plan.batches[0].runs, builds=builds)


def work(plan: Plan, passes: float, *, recompute: bool = False) -> float:
    """Return the seconds of the first batch: passes, solvers and records."""
    [bank], runs = plan.banks[:1], plan.batches[0].runs
    values = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    vectors = len(runs) * passes
    of_passes = passes * (1e-9 + 2e-9 * recompute) + (vectors - passes) * 1e-10
    of_each = 0.01 + 3e-10 * 30**3 + 0.005
    return values * of_passes + passes * 3e-4 + vectors * 2e-5 + len(runs) * of_each


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream", "recompute"])
def test_a_batch_takes_its_passes_its_solvers_and_its_records(backend):
    plan, costs = planned(backend)
    bank, passes = plan.banks[0], METHODS["level"].typical_passes(40)
    cost = costs(item_of(plan))
    assert cost.seconds == pytest.approx(work(plan, passes, recompute=backend == "recompute"))
    moved = {"memory": bank.n_bytes, "stream": passes * bank.n_bytes}.get(backend, 0)
    assert cost.moved_bytes == moved
    assert cost.kept_bytes == (bank.n_bytes if backend == "mmap" else 0)
    assert cost.receipt_seconds == pytest.approx(0.0005 * len(plan.batches[0].runs))


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
    assert planned("recompute")[1].blocks(planned("recompute")[0].banks[0].id) == []


def test_a_mapped_bank_beyond_the_cache_is_read_in_every_pass(monkeypatch):
    plan, costs = planned("mmap")
    assert plan.banks[0].n_bytes < DEFAULT_BUDGET
    monkeypatch.setattr("mkldist.forecast.costs.DEFAULT_BUDGET", 1)
    cost = costs(item_of(plan))
    assert cost.kept_bytes == 0
    assert cost.moved_bytes == METHODS["level"].typical_passes(40) * plan.banks[0].n_bytes


def test_a_sharded_bank_is_computed_once_by_all_workers_together():
    plan, costs = planned("sharded")
    bank, runs, cost = plan.banks[0], plan.batches[0].runs, costs(item_of(plan))
    values = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    once = values * 2e-9 + work(plan, METHODS["level"].typical_passes(40))
    assert cost.all_seconds == pytest.approx(once)
    assert cost.seconds == pytest.approx(len(runs) * (0.01 + 3e-10 * 30**3 + 0.005))
    assert (cost.moved_bytes, cost.kept_bytes, cost.parts) == (0, 0, 1)  # 40 kernels are one block


@pytest.mark.parametrize(("dtype", "n_bytes"), [("float64", 8), ("float32", 4)])
def test_factors_are_made_and_each_round_ends_with_a_pass_over_the_kernels(dtype, n_bytes):
    plan, costs = planned("factors", dtype=dtype)
    bank, runs = plan.banks[0], plan.batches[0].runs
    passes, factors = METHODS["level"].typical_passes(40), bank.n_bytes / n_bytes
    kernels = bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries
    of_passes = passes * 1e-9 + (len(runs) - 1) * passes * 1e-10
    rounds = factor_rounds(bank, METHODS["level"]).usual
    of_each = rounds * kernels * 3e-9 + 0.01 + 0.005 + passes * 2e-5
    expected = factors * of_passes + passes * 3e-4 + len(runs) * of_each
    cost = costs(item_of(plan))
    assert cost.seconds == pytest.approx(expected)
    read = (bank.stored_bytes, 0, 0)
    assert (cost.moved_bytes, cost.kept_bytes, cost.shared_seconds) == read
    built = [costs(BuildItem(bank.id, (block,))) for block in costs.blocks(bank.id)]
    assert len(built) == bank.n_kernels
    assert sum(one.seconds for one in built) == pytest.approx(factors * 2e-9)
    assert sum(one.moved_bytes for one in built) == pytest.approx(bank.stored_bytes)


def test_recorded_runs_replace_the_rates(tmp_path):
    plan, _ = planned("memory")
    store = Journal(tmp_path / "records.journal")
    for run, seconds in zip(plan.batches[0].runs, (1.0, 3.0), strict=False):
        times = {"cpu_seconds": seconds, "pass_cpu_seconds": 0.25 * seconds}
        fields = {"times": times, "counters": {"passes": 4}}
        store.append([replace(RunRecord.failed(run, ""), state=RunState.COMPLETE, **fields)])
    found = recorded_costs(plan, store)
    assert found == {("one", "xu2008", "level"): SolverCost(2.0, 4.0, 0.5)}


@pytest.mark.parametrize("backend", ["stream", "factors"])
def test_recorded_passes_take_the_time_that_they_took(backend):
    """Those on factors too: recorded runs took all their rounds."""
    plan, by_rates = planned(backend)
    item, passes = item_of(plan), METHODS["level"].typical_passes(40)
    known = {("one", "xu2008", "level"): SolverCost(2.0, passes, 0.5)}
    costs = replace(by_rates, recorded=known)
    assert costs(item).seconds == pytest.approx(len(item.runs) * (2.0 + 0.5 + 0.005))
    assert costs(item).moved_bytes == by_rates(item).moved_bytes


def test_passes_whose_time_is_not_recorded_take_that_of_the_rates():
    plan, by_rates = planned("stream")
    item, passes = item_of(plan), METHODS["level"].typical_passes(40)
    unknown = {("one", "xu2008", "level"): SolverCost(0.01 + 3e-10 * 30**3, passes)}
    assert replace(by_rates, recorded=unknown)(item).seconds == pytest.approx(
        by_rates(item).seconds
    )


def test_a_forecast_adds_up(tmp_path):
    _, costs = planned("recompute")
    rows = list(forecasts(costs, Crew(3, 2), numbers=(1, 10)))
    assert [row.workers for row in rows] == [1, 3, 10]
    for row in rows:
        assert row.held_hours == pytest.approx(row.workers * 2 * row.seconds / 3600)
        assert row.processor_hours <= row.held_hours
        assert row.efficiency == pytest.approx(rows[0].seconds / row.workers / row.seconds)
        assert row.seconds <= rows[0].seconds * 1.001
    base = 300 * 2**20
    assert rows[0].memory_per_worker == base + 2 * (costs.plan.memory_per_worker - base)
    assert rows[-1].limit == "longest task"  # four splits, on twenty threads


def test_nothing_is_foretold_of_a_sweep_that_is_done():
    plan, costs = planned("memory")
    assert list(forecasts(costs, Crew(2), [run.id for run in plan.runs])) == []


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
    assert limit_of(took, Crew(2, 2)) == limit
