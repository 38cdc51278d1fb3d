"""The command that runs a sweep again: what it prints, and its exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

import mkldist
from mkldist.analysis.comparison import Agreement
from mkldist.cli.house import rerun_command as command
from mkldist.run.rerun import Rerun

WORDS = {
    "name": "moons",
    "datasets": [{"name": "two_moons", "options": {"n": 30}}],
    "banks": [{"family": "xu2008"}],
    "methods": [{"name": "uniform", "C": [1, 10]}],
    "splits": {"repeats": 1},
}


def run(*words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


def test_the_help_names_the_folder_of_the_rerun():
    assert "[default: results/NAME-rerun]" in " ".join(run("--help").output.split())


@pytest.fixture
def _results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mkldist.sweep(WORDS, output="results/moons", progress=False)


@pytest.mark.usefixtures("_results")
def test_equal_results_end_well(tmp_path):
    done = run("moons", "--quiet", "-o", "again")
    assert done.exit_code == 0
    assert "results/moons: the same data; the same versions" in done.stderr
    assert "2 runs compared, 2 of them equal to the bit" in done.stdout
    assert "largest difference of test_error: 0" in done.stdout
    assert "all certified intervals of the optimum have points in common" in done.stdout
    asked = run("moons", "--quiet", "-o", "again", "--json")
    document = json.loads(asked.stdout)
    assert document["holds"]
    assert document["agreement"]["n_equal"] == 2


@pytest.mark.usefixtures("_results")
def test_contradictions_and_missing_runs_show_in_the_exit_code(monkeypatch):
    runs = tuple(f"moons/xu2008/level, split {split}" for split in range(7))
    found = Agreement(9, 2, runs, (0, 3), 0.5, {"test_error": 0.25})
    monkeypatch.setattr(Rerun, "agreement", lambda self: found)
    done = run("moons", "--quiet")
    assert done.exit_code == 3
    assert "largest relative difference of objectives 5.0e-01" in done.stdout
    assert "3 complete runs in results/moons-rerun alone" in done.stdout
    assert "certificates contradict each other: moons/xu2008/level, split 4" in done.stdout
    assert "split 5" not in done.stdout
    assert "7 contradictions in all" in done.stdout
