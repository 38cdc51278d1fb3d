"""``mkldist report``, on a real sweep."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mkldist.cli.results import report_command as command
from mkldist.results.journal import Journal
from tests.run.damage import flip

pytestmark = pytest.mark.slow

SWEEP = """
name = "moons"
[[datasets]]
name = "two_moons"
options = { n = 60 }
[splits]
repeats = 3
[[banks]]
family = "do2009"
[[methods]]
name = "level"
C = [1, 10, 100]
trace = true
[[methods]]
name = "uniform"
C = [1, 10, 100]
"""


def run(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "mkldist", *words],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "moons.toml").write_text(SWEEP)
    run(folder, "sweep", "moons.toml", "--workers", "1")
    return folder


def test_a_sweep_has_a_page_and_figures(folder):
    done = run(folder, "report", "moons", "-o", "page.html", "--figures", "figures")
    asked, *came_out, certified, page, figures = done.stdout.splitlines()
    assert all(words in asked for words in ("2 methods", "20 kernels", "all 18 runs"))
    assert came_out[0].startswith("On two_moons, ")
    assert certified.startswith("All 18 complete runs reached their tolerance")
    assert page == "report:  page.html"
    text = (folder / "page.html").read_text()
    names = re.findall(r'<h3 id="([^"]+)-title">', text)
    tables = re.findall(r'<table id="table-([^"]+)"', text)
    assert f"figures: {len(names)}, and {len(tables)} tables, in figures" == figures
    drawn = ("roc", "calibration", "path", "convergence-passes", "convergence-seconds", "kernels")
    assert {f"{name}-two-moons" for name in drawn} <= set(names)
    written = {path.stem for path in (folder / "figures").iterdir()}
    assert written == {*names, *tables}
    (folder / "page.html").unlink()
    words = ("report", "moons", "-o", "page.html", "--figures", "figures", "--json")
    refused = run(folder, *words, code=2)
    assert re.search(r"figures/\S+: found a file of that name; .* by --overwrite", refused.stderr)
    assert not (folder / "page.html").exists()
    told = run(folder, *words, "--overwrite")
    files = {str(path.relative_to(folder)) for path in (folder / "figures").iterdir()}
    answer = json.loads(told.stdout)
    assert {*answer["figures"], *answer["tables"]} == files
    assert len(answer["tables"]) == len(tables)


@pytest.mark.slow
def test_a_second_report_replaces_the_first(folder):
    run(folder, "report", "moons", "-o", "again.html")
    first = (folder / "again.html").stat().st_ino
    run(folder, "report", "moons", "-o", "again.html")
    assert (folder / "again.html").stat().st_ino != first


@pytest.mark.slow
def test_a_page_of_others_is_replaced_only_when_asked(folder):
    (folder / "mine.html").write_text("<!doctype html> mine")
    done = run(folder, "report", "moons", "-o", "mine.html", code=2)
    assert "mine.html: found a file that is no page of mkldist" in done.stderr
    assert (folder / "mine.html").read_text() == "<!doctype html> mine"
    run(folder, "report", "moons", "-o", "mine.html", "--overwrite")
    assert "mkldist" in (folder / "mine.html").read_text()


def test_results_that_are_not_there_are_refused(tmp_path):
    done = run(tmp_path, "report", "nothing", code=2)
    assert "nothing: found no such folder, sweep file or name" in done.stderr
    assert not (tmp_path / "report.html").exists()


FLIPPED = {
    "tree.layout": "tree.layout: found results that cannot be read",
    "sweep.json": "sweep.json: found a manifest that cannot be read",
}


@pytest.fixture
def copied(folder, tmp_path) -> Path:
    """Return the output folder of a copy of the sweep, to be damaged."""
    shutil.copytree(folder / "results", tmp_path / "results")
    return tmp_path / "results" / "moons"


@pytest.mark.parametrize("name", FLIPPED)
def test_a_flipped_bit_is_one_message(copied, tmp_path, name):
    flip(copied / name, np.random.default_rng(0))
    done = run(tmp_path, "report", "results/moons", code=2)
    (said,) = done.stderr.splitlines()
    assert FLIPPED[name] in said
    assert "--repair" in said
    assert not (tmp_path / "report.html").exists()


def test_a_run_whose_record_is_gone_is_not_on_the_page(copied, tmp_path):
    journal = Journal(copied / "records.journal")
    journal.remove(list(journal.states())[:1])
    asked, *_, certified, _ = run(tmp_path, "report", "results/moons").stdout.splitlines()
    assert "17 of 18 runs" in asked
    assert certified.startswith("All 17 complete runs")


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_told(folder):
    done = run(folder, "report", "moons", "-o", "moons.toml/page.html", code=2)
    assert "moons.toml: found a file where a folder is needed" in done.stderr


def test_the_command_has_its_name():
    assert command.name == "report"
