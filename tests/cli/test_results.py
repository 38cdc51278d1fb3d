"""``mkldist report``, on a real sweep."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from mkldist.cli.results import scale_command
from mkldist.errors import OutputError
from mkldist.report import scaling
from mkldist.results.journal import Journal
from tests.analysis.studies import LAWS, study
from tests.cli.commands import run, run_here
from tests.report.made_up import facts_of
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "moons.toml").write_text(SWEEP)
    run(folder, "sweep", "moons.toml", "--workers", "1")
    return folder


def test_a_sweep_has_a_page_and_figures(folder):
    done = run_here(folder, "report", "moons", "-o", "page.html", "--figures", "figures")
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
    refused = run_here(folder, *words, code=2)
    assert re.search(r"figures/\S+: found a file of that name; .* by --overwrite", refused.stderr)
    assert not (folder / "page.html").exists()
    told = run_here(folder, *words, "--overwrite")
    files = {str(path.relative_to(folder)) for path in (folder / "figures").iterdir()}
    answer = json.loads(told.stdout)
    assert {*answer["figures"], *answer["tables"]} == files
    assert len(answer["tables"]) == len(tables)


@pytest.mark.slow
def test_a_second_report_replaces_the_first(folder):
    run_here(folder, "report", "moons", "-o", "again.html")
    first = (folder / "again.html").stat().st_ino
    run_here(folder, "report", "moons", "-o", "again.html")
    assert (folder / "again.html").stat().st_ino != first


@pytest.mark.slow
def test_a_page_of_others_is_replaced_only_when_asked(folder):
    (folder / "mine.html").write_text("<!doctype html> mine")
    done = run_here(folder, "report", "moons", "-o", "mine.html", code=2)
    assert "mine.html: found another file" in done.stderr
    assert (folder / "mine.html").read_text() == "<!doctype html> mine"
    run_here(folder, "report", "moons", "-o", "mine.html", "--overwrite")
    assert "mkldist" in (folder / "mine.html").read_text()


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
    done = run_here(tmp_path, "report", "results/moons", code=2)
    (said,) = done.stderr.splitlines()
    assert FLIPPED[name] in said
    assert "epeat the sweep's command" in said
    assert not (tmp_path / "report.html").exists()


def test_a_run_whose_record_is_gone_is_not_on_the_page(copied, tmp_path):
    journal = Journal(copied / "records.journal")
    journal.remove(list(journal.states())[:1])
    asked, *_, certified, _ = run_here(tmp_path, "report", "results/moons").stdout.splitlines()
    assert "17 of 18 runs" in asked
    assert certified.startswith("All 17 complete runs")


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_told(folder):
    (folder / "notes.txt").touch()
    done = run_here(folder, "report", "moons", "-o", "notes.txt/page.html", code=2)
    assert "notes.txt: found a file where a folder is needed" in done.stderr


WIDTHS = {"gauss-5": 5, "gauss-15": 15, "gauss-45": 45}
BANKS = "".join(
    f"""
[[banks]]
name = "{name}"
[[banks.kernels]]
function = "gaussian"
widths = {{ start = 0.1, stop = 3.0, num = {number} }}"""
    for name, number in WIDTHS.items()
)
SCALING_SWEEP = f"""
name = "moons"
execution = "isolated"
[[datasets]]
name = "two_moons"
options = {{ n = 60 }}
[splits]
repeats = 2
{BANKS}
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "uniform"
C = [1, 10]
"""


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Return a call of the command, on a tree in the place of results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def called(tree, *words: str) -> Result:
        monkeypatch.setattr(scaling.Facts, "of", lambda path: facts_of(tree))
        monkeypatch.setattr("mkldist.cli.results.note_basis", lambda path: None)
        return CliRunner().invoke(scale_command, [".", *words], catch_exceptions=False)

    return called


def test_a_table_of_each_place_fits_eighty_columns(call):
    done = call(study((100, 1000, 100_000), noise=0.05))
    lines = done.stdout.splitlines()
    assert max(map(len, lines[:7])) <= 80
    for method, (exponent, _) in LAWS.items():
        (line,) = [line for line in lines if line.startswith(method)]
        words = line.split()
        assert words[1:3] == ["3:", "100…100,000"]
        assert float(words[3]) == pytest.approx(exponent, abs=0.35)  # of passes and solver
        assert words[4].startswith("[")
        assert sum(map(float, words[-3:])) == pytest.approx(100, abs=1.5)
    assert lines[-2:] == [
        "tables:  scaling-times.csv and scaling-fits.csv in scaling",
        "figures: 1 in scaling",
    ]


def test_methods_with_runs_that_stopped_early_are_marked(call, monkeypatch):
    monkeypatch.setattr(scaling, "find_spec", lambda name: None)
    tree = study()
    tree["ring/gaussians-300/silp"]["stop_reason"][:, 0] = "time_limit"
    done = call(tree)
    marked = {n: f"{n} " in line and line.endswith("*") for line in done.stdout.splitlines()
              for n in LAWS if line.startswith(n)}  # fmt: skip
    assert marked == {"level": False, "silp": True}
    assert "Runs that stopped early: Runs of silp (3) stopped" in done.stdout


def test_names_of_methods_stand_in_a_narrow_terminal(call, monkeypatch):
    monkeypatch.setattr(scaling, "find_spec", lambda name: None)
    monkeypatch.setenv("COLUMNS", "50")
    lines = call(study(noise=0.05)).stdout.splitlines()
    assert all(any(line.startswith(method) for line in lines) for method in LAWS)


def test_a_study_over_both_sizes_has_a_table_for_each_value_of_the_other(call, monkeypatch):
    monkeypatch.setattr(scaling, "find_spec", lambda name: None)  # figures take their time
    tree = study((100, 300, 1000), (100, 200, 400), settings=(1.0,))
    lines = call(tree, "-o", "out").stdout.splitlines()
    others = [line.split()[0] for line in lines if " level " in line]
    assert others == ["100", "200", "400", "100", "300", "1,000"]


def test_json_holds_times_fits_and_cautions_and_writes_nothing(call):
    done = call(study((100, 1000), n_splits=1, settings=(1.0,), execution="shared"), "--json")
    document = json.loads(done.stdout)
    assert [row["n_kernels"] for row in document["times"]] == [100, 1000] * 2
    (fit,) = [f for f in document["fits"] if (f["method"], f["part"]) == ("silp", "solver")]
    assert fit["exponent"] == pytest.approx(LAWS["silp"][0])
    assert (fit["low"], fit["high"]) == (None, None)
    titles = [text.partition(":")[0] for text in document["cautions"]]
    assert titles == ["Times shared, not isolated", "Fewer than three sizes"]
    assert not list(Path().iterdir())


@pytest.mark.slow
def test_json_with_a_folder_writes_it_too(call):
    assert json.loads(call(study(), "--json", "-o", "out").stdout)["times"]
    assert Path("out/scaling-fits.csv").exists()


def test_files_are_replaced_only_when_asked(call, monkeypatch):
    monkeypatch.setattr(scaling, "find_spec", lambda name: None)
    call(study())
    times = Path("scaling/scaling-times.csv")
    times.write_text("precious")
    with pytest.raises(OutputError, match=r"scaling-times.csv: found a file .* by --overwrite"):
        call(study())
    assert times.read_text() == "precious"
    call(study(), "--overwrite")
    assert "level" in times.read_text()


def test_without_matplotlib_tables_are_printed_and_the_remedy_is_said(call, monkeypatch):
    monkeypatch.setattr(scaling, "find_spec", lambda name: None)
    lines = call(study()).stdout.splitlines()
    assert lines[-2:] == [
        "tables:  scaling-times.csv and scaling-fits.csv in scaling",
        "No figures: pip install 'mkldist[figures]' installs what draws them.",
    ]


@pytest.mark.slow
def test_a_real_sweep_of_three_banks_is_a_study(tmp_path):
    (tmp_path / "moons.toml").write_text(SCALING_SWEEP)
    commands = ["sweep", "moons.toml", "--workers", "1"], ["report", "moons"], ["scale", "moons"]
    for words in commands:
        done = run(tmp_path, *words)
    assert "level" in done.stdout
    times = pd.read_csv(tmp_path / "scaling" / "scaling-times.csv")
    assert times["n_kernels"].tolist() == [*WIDTHS.values()] * 2
    assert (times["counted"] == 4).all()
    fits = pd.read_csv(tmp_path / "scaling" / "scaling-fits.csv")
    (row,) = fits.query("method == 'level' and part == 'run'").to_dict("records")
    assert row["n_sizes"] == 3
    assert row["n_values"] == 6
    assert np.isfinite([row["low"], row["high"]]).all()
    written = {path.suffix for path in (tmp_path / "scaling").iterdir()}
    assert written == {".csv", ".pdf", ".png", ".svg"}
    page = (tmp_path / "report.html").read_text()
    for name in ("table-exponents-n-kernels", "time-n-kernels-title"):
        assert page.count(f'id="{name}"') == 1
