"""A sweep run again from its results: its words, its data, and what is compared."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mkldist
from mkldist.errors import DataError, OutputError, StoreError
from mkldist.results.layout import read_layout, write_layout
from mkldist.run import rerun
from mkldist.run.rerun import Rerun, rerun_folder

SWEEP = """
name = "mine"
seed = 3
[[datasets]]
name = "mine"
file = "mine.csv"
[splits]
repeats = 2
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
[[methods]]
name = "level"
C = [1, 10]
"""


def write_data(folder: Path, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(24, 2))
    rows = [f"{a},{b},{'no' if a > b else 'yes'}" for a, b in points]
    (folder / "mine.csv").write_text("\n".join(["a,b,label", *rows, ""]))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    write_data(tmp_path / "files", seed=0)
    (tmp_path / "files" / "mine.toml").write_text(SWEEP)
    mkldist.sweep("files/mine.toml", changes={"tol": 1e-3}, output="results/mine", progress=False)
    return tmp_path / "results" / "mine"


@pytest.mark.slow
def test_results_come_out_the_same_without_the_sweep_file(results, tmp_path):
    (tmp_path / "files" / "mine.toml").unlink()
    again = Rerun(results, rerun_folder(results))
    again.check_data()
    assert again.versions == "the same versions"
    assert again.run().computed == 4
    found = again.agreement()
    assert (found.n_runs, found.n_equal, found.holds) == (4, 4, True)
    assert mkldist.open_results(again.output).attrs["spec"] != ""
    words = (again.output / "sweep.toml").read_text()
    assert "tol = 0.001" in words
    assert str(tmp_path / "files" / "mine.csv") in words
    assert all(path.name.startswith(".") for path in (again.output / "banks").iterdir())
    assert Rerun(results, rerun_folder(results)).run().computed == 0


@pytest.mark.slow
def test_a_rerun_can_be_run_again_after_its_folder_has_moved(results, tmp_path):
    Rerun(results, tmp_path / "b").run()
    moved = (tmp_path / "b").rename(tmp_path / "c")
    again = Rerun(moved, tmp_path / "d")
    again.check_data()
    again.run()
    assert again.agreement().n_equal == 4


def test_data_given_in_python_come_from_their_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(20, 2))
    words = {"name": "p", "banks": [{"family": "xu2008"}], "methods": [{"name": "uniform"}]}
    mkldist.sweep(words, data={"p": (x, np.sign(x[:, 0]))}, output="p", progress=False)
    again = Rerun((tmp_path / "p").rename(tmp_path / "moved"), tmp_path / "again")
    again.check_data()
    again.run()
    assert again.agreement().holds


@pytest.mark.parametrize("given", ["mine.csv", "path of the root"])
def test_a_file_that_is_gone_is_named_as_it_was_given(results, tmp_path, monkeypatch, given):
    path = tmp_path / "files" / "mine.csv"
    words = SWEEP.replace("mine.csv", str(path) if given != path.name else given)
    layout = read_layout(results)
    attributes = layout.attributes | {"spec": json.dumps(tomllib.loads(words))}
    write_layout(results, replace(layout, attributes=attributes))
    monkeypatch.setattr(rerun, "_base", lambda folder: path.parent)
    (tmp_path / "else").mkdir()
    gone = path.rename(tmp_path / "else" / "mine.csv")
    shutil.copy(gone, "mine.csv")  # in the folder of the command, where no run read it
    said = {"mine.csv": f"mine.csv of its data in {path.parent}"}.get(given, f"{path} of its data")
    with pytest.raises(DataError, match=f"/mine: found no file {said}; .* folder by --data-dir"):
        Rerun(results, tmp_path / "again").check_data()
    Rerun(results, tmp_path / "again", (gone.parent,)).check_data()


def test_other_data_are_refused_before_anything_is_written(results, tmp_path):
    write_data(tmp_path / "files", seed=1)
    again = Rerun(results, tmp_path / "again")
    with pytest.raises(DataError, match=r"data that differ now: data set 'mine'; the same version"):
        again.check_data()
    assert not again.output.exists()


def test_other_splits_are_refused(results, tmp_path):
    again = Rerun(results, tmp_path / "again")
    again.document["seed"] = 4
    with pytest.raises(DataError, match="split 0 of data set 'mine', split 1 of"):
        again.check_data()


def test_records_that_tell_the_data_are_needed(results, tmp_path):
    (results / "records.journal").unlink()
    with pytest.raises(StoreError, match=r"no record of a run on 'mine'"):
        Rerun(results, tmp_path / "again").check_data()


def test_versions_that_differ_are_named(results, tmp_path, monkeypatch):
    again = Rerun(results, tmp_path / "again")
    now = json.loads(again.attributes["provenance"])
    later = now | {"python": "9.9", "versions": now["versions"] | {"numpy": "9.8"}}
    monkeypatch.setattr(rerun, "environment", lambda: later)
    python, numpy = now["python"], now["versions"]["numpy"]
    assert again.versions == f"changed: python {python} → 9.9, numpy {numpy} → 9.8"


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("a" * 40, "b" * 40, "changed: commit aaaaaaaaaaaa → bbbbbbbbbbbb"),
        ("a" * 40, f"{'a' * 40}-dirty", "changed: commit aaaaaaaaaaaa → aaaaaaaaaaaa-dirty"),
        ("", "b" * 40, "changed: commit none → bbbbbbbbbbbb"),
        (None, "", "the same versions"),
        ("b" * 40, "b" * 40, "the same versions"),
    ],
)
def test_another_commit_is_named(results, tmp_path, monkeypatch, before, now, said):
    again = Rerun(results, tmp_path / "again")
    told = json.loads(again.attributes["provenance"])
    former = {k: v for k, v in (told | {"commit": before}).items() if v is not None}
    again.attributes["provenance"] = json.dumps(former)
    monkeypatch.setattr(rerun, "environment", lambda: told | {"commit": now})
    assert again.versions == said


def test_results_are_not_compared_with_themselves(results):
    with pytest.raises(OutputError, match="the results to compare with; expected another folder"):
        Rerun(results, Path("results/mine"))
