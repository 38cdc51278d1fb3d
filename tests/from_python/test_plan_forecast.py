"""The forecast of a plan, from Python and on the command line."""

from __future__ import annotations

import io
import json
import tomllib
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

import mkldist
from mkldist.cli import command
from mkldist.errors import SpecError
from mkldist.from_python.plans import (
    ALL_RECORDED,
    FORECAST_COLUMNS,
    MEASURED_NOW,
    STORED,
    forecast_table,
)
from mkldist.run.forecast import Forecast, Rates, store_rates
from tests.run.sweeps import run_here, sweep_text

RATES = Rates(2e-9, 1e-9, 1e-10, 3e-4, 2e-5, 0.01, 3e-10, 0.005, 0.002, 0.0005, 5e8)
TEXT = sweep_text({"uniform": [1.0, 10.0]}, repeats=12)


@pytest.fixture(autouse=True)
def stored(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    store_rates(RATES)


def foretold(*options: str, cwd) -> dict:
    (cwd / "s.toml").write_text(TEXT)
    done = CliRunner().invoke(command, ["plan", str(cwd / "s.toml"), *options, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_command_and_python_foretell_the_same(tmp_path):
    work = mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3, threads_per_worker=2)
    rows = work.forecast
    assert list(rows.columns) == FORECAST_COLUMNS
    assert 3 in rows.workers.tolist()
    assert (rows.threads == 2).all()
    for threads in ("--threads-per-worker", "--threads"):
        said = foretold("--workers", "3", threads, "2", cwd=tmp_path)["forecast"]
        assert [row["seconds"] for row in said] == pytest.approx(rows.seconds.tolist())


def test_without_workers_nothing_is_foretold(tmp_path):
    assert foretold(cwd=tmp_path)["forecast"] == []
    assert mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r").forecast.empty


def test_the_text_has_a_row_for_each_number_of_workers(tmp_path):
    said = str(mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3))
    assert f"{STORED}\nNo run of uniform is recorded: besides passes, a run counts" in said
    table = said.partition("efficiency")[2].splitlines()[2:-4]
    assert [int(line.split()[0]) for line in table] == [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]


ROW = Forecast(1000, 8, 3.6e6, 1.0, 4e5, 8e6, 2.0**50, 99 * 2**30, 10, 123.0, 0.345, "longest task")
SMALL = replace(ROW, workers=1, seconds=5.0, held_hours=0.011, bytes=75_000.0, scheduler_load=0.004)


def lines_of(*rows):
    console = Console(file=io.StringIO(), width=200)
    console.print(forecast_table(rows))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_cost_and_load_are_in_the_table_which_fits_80_columns():
    lines = lines_of(SMALL, ROW)
    assert max(map(len, lines)) <= 80
    assert [" ".join(lines[place].split()) for place in (0, 2, 3)] == [
        "workers time efficiency held h moved memory load limit",
        "1 00:05 100% 0.011 73.2 kiB 99.0 GiB 0.4% longest task",
        "1000 1000:00:00 100% 8000000 1.00 PiB 99.0 GiB 34% longest task",
    ]


def test_processor_hours_are_there_where_they_fit():
    heading, rule, _ = lines_of(replace(SMALL, processor_hours=0.01, limit="storage"))
    assert "efficiency  CPU h  held h" in heading
    assert len(rule) <= 80


@pytest.mark.slow
def test_another_storage_changes_what_is_foretold(tmp_path):
    plain = foretold("--workers", "2", cwd=tmp_path)["forecast"]
    slow = foretold("--workers", "2", "--storage", "1kB", cwd=tmp_path)["forecast"]
    assert {row["limit"] for row in slow} == {"storage"}
    assert slow[0]["seconds"] > 100 * plain[0]["seconds"]


def test_a_wrong_speed_of_storage_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text(TEXT)
    words = ["plan", str(tmp_path / "s.toml"), "--workers", "2", "--storage", "fast"]
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, SpecError) or done.exit_code == 2
    assert "--storage" in f"{done.output}{done.exception}"


def test_rates_that_are_missing_are_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr("mkldist.from_python.plans.measured_rates", lambda folder: RATES)
    said = str(mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=1))
    assert MEASURED_NOW in said
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_only_runs_without_a_record_are_foretold(tmp_path):
    few = sweep_text({"uniform": [1.0]}, repeats=12)
    run_here(few, tmp_path / "r", None)
    spec = tomllib.loads(TEXT)
    left = mkldist.plan(spec, output=tmp_path / "r", workers=1).forecast
    all_of_them = mkldist.plan(spec, output=tmp_path / "none", workers=1).forecast
    assert "is recorded: besides" not in str(mkldist.plan(spec, output=tmp_path / "r", workers=1))
    assert left.processor_hours[0] < all_of_them.processor_hours[0]


@pytest.mark.slow
def test_a_sweep_that_is_recorded_is_not_foretold(tmp_path):
    few = sweep_text({"uniform": [1.0]}, repeats=2)
    run_here(few, tmp_path / "r", None)
    done = mkldist.plan(tomllib.loads(few), output=tmp_path / "r", workers=2)
    assert done.forecast.empty
    assert str(done).endswith(ALL_RECORDED)


def test_the_memory_of_several_threads_is_named_as_that_of_one(tmp_path):
    work = mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3, threads_per_worker=2)
    assert "per worker of one thread at its peak, 3 workers of 2 threads" in str(work)


def test_more_workers_than_can_be_simulated_are_refused(tmp_path):
    with pytest.raises(SpecError, match="at least 1 and at most 100000"):
        mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=10**8)


@pytest.mark.parametrize("storage", ["10GB", True, -1.0, float("nan"), float("inf")])
def test_a_speed_of_storage_is_a_number_above_zero(tmp_path, storage):
    with pytest.raises(SpecError, match="expected a finite number of bytes a second"):
        mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=2, storage=storage)
