"""Forecasts held to sweeps that were run: `curve`, `costs` and `simulation` together.

Solvers that wait take the same time on a busy machine, so that these sweeps tell how work is
divided and what is lost between tasks.  Solvers that compute end after a known time of a processor,
so that the forecast from some of their runs can be held to what all of them take.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from mkldist.core.memory import FLOAT_BYTES
from mkldist.forecast.costs import RECORDS_READ, SolverCost, TaskCosts, recorded_costs
from mkldist.forecast.curve import forecasts
from mkldist.forecast.rates import Rates
from mkldist.forecast.simulation import Crew
from mkldist.results.journal import Journal
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import (
    misbehaving_methods,
    record_times,
    records,
    run_process,
    sweep_text,
)

RATES = Rates(2e-9, 1e-9, 1e-10, 3e-4, 2e-5, 0.01, 3e-10, 0.005, 0.002, 0.0005, 5e8)
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


@pytest.mark.slow
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
            rows = forecasts(costs, Crew(n_workers), numbers=())
            [foretold] = [row.seconds for row in rows if row.workers == n_workers]
            assert foretold == pytest.approx(seconds, rel=TOLERANCE)


@pytest.mark.slow
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
            rows = list(forecasts(costs, Crew(n_workers), numbers=()))
        [foretold] = [row for row in rows if row.workers == n_workers]
        bank = costs.plan.banks[0]
        built = bank.n_bytes / FLOAT_BYTES * RATES.kernel_value_seconds
        of_runs = foretold.processor_hours * 3600 - built - n_done * RATES.record_seconds
        assert of_runs == pytest.approx(n_done * seconds, rel=TOLERANCE)
