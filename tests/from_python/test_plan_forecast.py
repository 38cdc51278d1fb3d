"""The forecast of a plan, from Python and on the command line."""

from __future__ import annotations

import json
import tomllib

import pytest
from click.testing import CliRunner

import mkldist
from mkldist.cli import command
from mkldist.errors import SpecError
from mkldist.forecast import measuring
from mkldist.forecast.rates import Rates, store_rates
from mkldist.from_python.plan_forecast import FORECAST_COLUMNS, MEASURED_NOW, STORED
from tests.run.sweeps import run_here, sweep_text

RATES = Rates(2e-9, 1e-9, 1e-10, 0.01, 3e-10, 0.005, 0.002, 0.0005, 5e8)
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
    said = foretold("--workers", "3", "--threads", "2", cwd=tmp_path)["forecast"]
    assert [row["seconds"] for row in said] == pytest.approx(rows.seconds.tolist())


def test_without_workers_nothing_is_foretold(tmp_path):
    assert foretold(cwd=tmp_path)["forecast"] == []
    assert mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r").forecast.empty


def test_the_text_has_a_row_for_each_number_of_workers(tmp_path):
    said = str(mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3))
    assert f"{STORED}\nNo run is recorded of uniform: their" in said
    table = said.partition("efficiency")[2].splitlines()[2:-3]
    assert [int(line.split()[0]) for line in table] == [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]


def test_other_storage_and_fates_change_what_is_foretold(tmp_path):
    plain = foretold("--workers", "2", cwd=tmp_path)["forecast"]
    slow = foretold("--workers", "2", "--storage", "1kB", cwd=tmp_path)["forecast"]
    assert {row["limit"] for row in slow} == {"storage"}
    assert slow[0]["seconds"] > 100 * plain[0]["seconds"]
    tail = foretold("--workers", "2", "--stragglers", "1", cwd=tmp_path)["forecast"]
    assert tail[1]["processor_hours"] == pytest.approx(3 * plain[1]["processor_hours"], rel=1e-6)
    options = "--workers", "2", "--deaths", "100000", "--seed", "1"
    dying = foretold(*options, cwd=tmp_path)["forecast"]
    assert sum(row["deaths"] for row in dying) > 0
    assert dying == foretold(*options, cwd=tmp_path)["forecast"]


def test_a_wrong_speed_of_storage_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text(TEXT)
    words = ["plan", str(tmp_path / "s.toml"), "--workers", "2", "--storage", "fast"]
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, SpecError) or done.exit_code == 2
    assert "--storage" in f"{done.output}{done.exception}"


def test_rates_that_are_missing_are_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(measuring, "measured_rates", lambda folder: RATES)
    said = str(mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=1))
    assert MEASURED_NOW in said
    assert not (tmp_path / "other").exists()


def test_only_runs_without_a_record_are_foretold(tmp_path):
    run_here(sweep_text({"uniform": [1.0]}), tmp_path / "r", None)
    spec = tomllib.loads(sweep_text({"uniform": [1.0, 10.0]}))
    left = mkldist.plan(spec, output=tmp_path / "r", workers=1)
    all_of_them = mkldist.plan(spec, output=tmp_path / "none", workers=1)
    assert "No run is recorded" not in str(left)
    assert left.forecast.processor_hours[0] < all_of_them.forecast.processor_hours[0]
