"""Rates, what runs take by them, and forecasts held to sweeps that were run.

Solvers that wait take the same time on a busy machine, so that sweeps of them tell how work is
divided and what is lost between tasks.  Solvers that compute end after a known time of a processor,
so that the forecast from some of their runs can be held to what all of them take.
"""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from mkldist.bank.bank import TileLayout
from mkldist.core.memory import FLOAT_BYTES
from mkldist.methods.registry import METHODS
from mkldist.planning.model import BankPlan, Plan, RunPlan
from mkldist.planning.planner import WORKER_BASE_BYTES, factor_rounds
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.schema import RunState
from mkldist.run.cluster import ConnectOptions
from mkldist.run.forecast import (
    PASS_SECONDS,
    RECORDS_READ,
    REQUEST_SECONDS,
    Rates,
    SolverCost,
    SweepCosts,
    forecasts,
    recorded_costs,
)
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.spec.model import SweepSpec
from tests.planning.plans import dataset, grid, plan_of
from tests.run.sweeps import misbehaving_methods, records, run_process, sweep_text

RATES = Rates(2e-9, 1e-9, 0.01, 3e-10, 5e8)


FACTS = {"one": dataset("one", n_points=60, n_splits=4)}


def planned(
    backend: str, fit: str = "all", dtype: str = "auto", **words
) -> tuple[Plan, SweepCosts]:
    grids = {"level": grid("level", C=[1.0, 10.0])}
    bank = {"family": "xu2008", "backend": backend, "dtype": dtype, "normalisation": "trace"}
    plan = plan_of(FACTS, grids, banks=[bank], preprocessing={"fit": "all"})
    return plan, SweepCosts(plan, FACTS, None, rates=RATES)


def first_of(plan: Plan) -> tuple[BankPlan, tuple[RunPlan, ...]]:
    """Return the first bank and the runs of the first batch."""
    return plan.banks[0], plan.batches[0].runs


def values_of(bank: BankPlan) -> int:
    return bank.n_kernels * TileLayout.for_points(bank.n_points).n_entries


def work(plan: Plan, passes: float, *, recompute: bool = False) -> float:
    """Return the seconds of the first batch: passes and solvers."""
    bank, runs = first_of(plan)
    vectors = len(runs) * passes
    of_passes = passes * (1e-9 + 2e-9 * recompute)
    of_each = 0.01 + 3e-10 * 30**3
    of_vectors = passes * PASS_SECONDS + vectors * REQUEST_SECONDS
    return values_of(bank) * of_passes + of_vectors + len(runs) * of_each


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream", "recompute", "sharded"])
def test_runs_take_their_passes_and_their_solvers(backend):
    plan, costs = planned(backend)
    (bank, runs), passes = first_of(plan), METHODS["level"].typical_passes(40)
    expected = work(plan, passes, recompute=backend == "recompute")
    assert costs.seconds(bank, runs) == pytest.approx(expected)
    moved = {"memory": 1, "mmap": 1, "stream": passes}.get(backend, 0) * bank.n_bytes
    assert costs.moved_bytes(bank, runs) == moved
    built = 0.0 if backend == "recompute" else values_of(bank) * 2e-9
    assert costs.build_seconds(bank) == pytest.approx(built)
    assert costs.together(plan.batches[:1]) == pytest.approx(expected + built)


@pytest.mark.parametrize(("dtype", "n_bytes"), [("float64", 8), ("float32", 4)])
def test_factors_are_made_and_each_round_ends_with_a_pass_over_the_kernels(dtype, n_bytes):
    plan, costs = planned("factors", dtype=dtype)
    bank, runs = first_of(plan)
    passes, factors = METHODS["level"].typical_passes(40), bank.n_bytes / n_bytes
    of_passes = passes * 1e-9
    rounds = factor_rounds(bank, METHODS["level"]).usual
    of_each = rounds * values_of(bank) * 3e-9 + 0.01 + passes * REQUEST_SECONDS
    expected = factors * of_passes + passes * PASS_SECONDS + len(runs) * of_each
    assert costs.seconds(bank, runs) == pytest.approx(expected)
    assert costs.moved_bytes(bank, runs) == bank.stored_bytes
    assert costs.build_seconds(bank) == pytest.approx(factors * 2e-9)


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
    assert found == {("one", "xu2008", "level"): SolverCost(2.5 * whole, 4.0)}


@pytest.mark.parametrize("backend", ["stream", "factors"])
def test_recorded_passes_take_the_time_that_they_took(backend):
    """Those on factors too: recorded runs took all their rounds."""
    plan, by_rates = planned(backend)
    (bank, runs), passes = first_of(plan), METHODS["level"].typical_passes(40)
    known = {("one", "xu2008", "level"): SolverCost(2.5, passes)}
    costs = replace(by_rates, recorded=known)
    assert costs.seconds(bank, runs) == pytest.approx(len(runs) * 2.5)
    assert costs.moved_bytes(bank, runs) == by_rates.moved_bytes(bank, runs)


def test_the_work_is_divided_and_no_time_is_below_that_of_the_longest_run():
    _, costs = planned("recompute")
    rows = list(forecasts(costs, 3, 2, numbers=(1, 10)))
    assert [row.workers for row in rows] == [1, 3, 10]
    for row in rows:
        assert row.held_hours == pytest.approx(row.workers * 2 * row.seconds / 3600)
        assert row.processor_hours <= row.held_hours
        assert row.efficiency == pytest.approx(rows[0].seconds / row.workers / row.seconds)
    base = WORKER_BASE_BYTES
    assert rows[0].memory_per_worker == base + 2 * (costs.plan.memory_per_worker - base)
    assert rows[0].limit == "processors"
    assert rows[0].seconds == pytest.approx(costs.together(costs.plan.batches) / 2)
    bank, runs = first_of(costs.plan)
    assert rows[-1].limit == "longest task"  # eight runs on twenty threads
    assert rows[-1].seconds == pytest.approx(max(costs.seconds(bank, [run]) for run in runs))


@pytest.mark.parametrize(
    ("rates", "limit"),
    [({"storage_bytes_per_second": 1.0}, "storage"),
     ({"storage_bytes_per_second": 1e15}, "coordinator")],
)  # fmt: skip
def test_storage_and_records_limit_the_time(rates, limit):
    _, costs = planned("memory")
    passes = {("one", "xu2008", "level"): SolverCost(1e-6, 1.0)}
    *_, row = forecasts(replace(costs, rates=replace(RATES, **rates), recorded=passes), 50)
    assert row.limit == limit


def test_nothing_is_foretold_of_a_sweep_that_is_done():
    plan, costs = planned("memory")
    assert list(forecasts(costs, 2, done=[run.id for run in plan.runs])) == []


TOLERANCE = 0.25


def costs_of(text: str, rates: Rates, n_workers: int, recorded=None) -> SweepCosts:
    spec = SweepSpec.model_validate(tomllib.loads(text))
    options = ConnectOptions(n_workers=n_workers, elsewhere=True)
    rounds = sweep_rounds(spec, Path("sweep.toml"), (), options)
    facts = rounds.resolved.facts
    return SweepCosts(rounds.most, facts, rounds.memory_limit, recorded or {}, rates)


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
