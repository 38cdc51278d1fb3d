"""What the output folder saves of inputs, what paths and names mean, and sweeps run again."""

import errno
import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mkldist
from mkldist.cli.models import fit_command as fit
from mkldist.cli.sweeps import plan_command as plan
from mkldist.cli.sweeps import status_command as status
from mkldist.cli.sweeps import sweep_command as sweep
from mkldist.data.inputs import input_data
from mkldist.errors import DataError, OutputError, StoreError
from mkldist.results.folder import (
    OutputFolder,
    banks_root,
    claimed,
    output_path,
    results_of,
    sweep_file_of,
)
from mkldist.results.layout import read_layout, write_layout
from mkldist.results.status import sweep_status
from mkldist.run import rerun
from mkldist.run.rerun import Rerun, rerun_folder
from mkldist.run.saved_inputs import FROM_FILES, FilesBefore, SavedInputs, file_name
from mkldist.spec.load import load_sweep

X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
DATA = {"a": input_data((X, Y), "a"), "b-2": input_data((-X, Y), "b")}


def written(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.path.rglob("*.*")}


def test_what_is_there_is_not_written_again(tmp_path):
    folder, kept = OutputFolder(tmp_path), SavedInputs("name = 1\n", DATA)
    assert kept.write(folder) == []
    names = {file_name(name, data) for name, data in DATA.items()}
    before = written(folder)
    assert before.keys() == names | {"sweep.toml"}
    assert kept.write(folder) == []
    assert written(folder) == before
    SavedInputs("name = 2\n", DATA).write(folder)
    assert {name for name, at in written(folder).items() if at != before[name]} == {"sweep.toml"}


def test_damaged_data_are_written_anew(tmp_path):
    folder, kept = OutputFolder(tmp_path), SavedInputs("s", DATA)
    kept.write(folder)
    file, other = (folder.data / file_name(name, data) for name, data in DATA.items())
    sound, before = file.read_bytes(), other.stat().st_mtime_ns
    file.write_bytes(other.read_bytes())
    kept.write(folder)
    assert file.read_bytes() == sound
    assert other.stat().st_mtime_ns == before


def test_data_that_changed_are_told_and_old_ones_removed(tmp_path):
    folder = OutputFolder(tmp_path)
    SavedInputs("s", DATA).write(folder)
    changed = {"a": input_data((X + 1, Y), "a"), "new": DATA["b-2"]}
    [said] = SavedInputs("s", changed).write(folder)
    assert said.startswith("a: these data differ from those of the last call")
    assert written(folder).keys() - {"sweep.toml"} == {
        file_name(name, data) for name, data in changed.items()
    }


def test_a_sweep_of_files_keeps_nothing(tmp_path):
    assert FROM_FILES.write(OutputFolder(tmp_path)) == []
    assert not written(OutputFolder(tmp_path))


def test_a_full_disk_is_told_and_leaves_the_old_words(tmp_path, monkeypatch):
    folder = OutputFolder(tmp_path)
    SavedInputs("old", {}).write(folder)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OutputError, match="no space left on the device"):
        SavedInputs("new", DATA).write(folder)
    assert folder.sweep_file.read_text() == "old"
    assert written(folder).keys() == {"sweep.toml"}


SWEEP = """
name = "small"
[[datasets]]
name = "t"
file = "t.csv"
[splits]
train_fraction = 0.5
[[banks]]
kernels = [{ function = "linear" }]
[[methods]]
name = "uniform"
C = 1
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the table of a sweep in the folder of the commands."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i * 7 % 11},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "t.csv").write_text(f"x,label\n{rows}")
    (tmp_path / "small.toml").write_text(SWEEP)
    return tmp_path / "t.csv"


def said(command, *words: str) -> str:
    return CliRunner().invoke(command, words, catch_exceptions=False).output


@pytest.mark.slow
def test_a_changed_file_is_named_with_what_becomes_of_the_runs(table):
    said(sweep, "small.toml")
    assert "recorded:  1 of 1 run in" in said(plan, "small.toml")
    assert "t.csv" not in said(status, "small")
    before = table.read_text()
    table.write_text(before.replace("7,", "8,", 1))
    changed = f"{table} changed since this sweep read it on "
    told = said(plan, "small.toml")
    assert f"changed:   {changed}" in told
    assert "their records are kept, and count again if the old file comes back" in told
    assert f"{table} was written after this sweep read it on " in said(status, "small")
    assert f"{table} was written after this sweep read it on " in said(fit, "small")
    told = said(sweep, "small.toml")
    assert changed in told
    assert "another sweep of the name" not in told
    assert "was written" not in said(status, "small")
    assert "changed:" not in said(plan, "small.toml")
    table.write_text(before)
    assert "changed:" not in said(plan, "small.toml")  # the old runs count again


def test_data_from_python_have_no_files(table):
    spec = load_sweep(Path("small.toml"))
    assert FilesBefore.of(spec, (), table.parent, ["t"]).stamps == {}
    assert list(FilesBefore.of(spec, (), table.parent).stamps["t"]) == [str(table)]


PATHS_SWEEP = """
name = "mine"
[[datasets]]
name = "two_moons"
[[banks]]
family = "do2009"
[[methods]]
name = "majority"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the folder of the command, with a sweep file and the results that it made."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(PATHS_SWEEP)
    with claimed(Path("results/mine"), "mine", Path("mine.toml")):
        pass
    return tmp_path


@pytest.mark.parametrize("given", ["results/mine", "results/mine/", "mine", "mine.toml"])
def test_results_are_found_by_folder_name_and_file(folder, given):
    assert results_of(Path(given)) == Path("results/mine")
    if given != "mine" and not given.endswith(".toml"):
        assert sweep_file_of(Path(given)) == folder / "mine.toml"


@pytest.mark.parametrize("given", ["results/mine", "mine"])
def test_results_whose_manifest_is_a_folder_are_found_for_the_command_to_tell(folder, given):
    Path("mine.toml").unlink()
    Path("results/mine/sweep.json").unlink()
    Path("results/mine/sweep.json").mkdir()
    assert results_of(Path(given), several=True) == Path("results/mine")
    for refused in (sweep_status, sweep_file_of):
        said = r"sweep\.json: found a folder; .* Move that folder away, then repeat the sweep's"
        with pytest.raises(OutputError, match=said):
            refused(Path("results/mine"))


def test_a_file_names_the_folder_that_it_writes_to(folder):
    Path("other.toml").write_text(PATHS_SWEEP + '[outputs]\npath = "elsewhere"')
    with pytest.raises(StoreError, match=r"elsewhere: found no such folder.*mkldist sweep other"):
        results_of(Path("other.toml"))
    Path("elsewhere").mkdir()
    assert results_of(Path("other.toml")) == Path("elsewhere")
    (folder / "empty").mkdir()  # left to the command
    assert results_of(folder / "empty") == folder / "empty"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (".", "found a folder with the results of 1 sweep; .* Name it: results/mine"),
        ("results", "found a folder with the results of 1 sweep; .* Name it: results/mine"),
        ("mines", "Did you mean 'mine'"),
        ("tumours", "The results here: mine"),
        ("quickstart", "Run the sweep first: mkldist sweep quickstart"),
    ],
)
def test_what_means_no_results_is_told_with_those_that_there_are(folder, given, said):
    with pytest.raises(StoreError, match=said):
        results_of(Path(given))


def test_a_file_here_precedes_results_of_its_name(folder):
    assert sweep_file_of(Path("mine")) == Path("mine.toml")
    Path("mine.toml").rename("renamed.toml")
    assert sweep_file_of(Path("mine")) == folder / "mine.toml"  # and loading says that it is gone
    assert sweep_file_of(Path("unknown")) == Path("unknown")


def test_sweeps_side_by_side_share_banks_that_they_keep(folder):
    spec = load_sweep(Path("mine.toml"))
    assert output_path(spec) == Path("results/mine")
    assert output_path(spec, Path("x")) == Path("x")
    assert banks_root(spec, Path("results/mine")) == str(folder / "results/mine/banks")
    shared = load_sweep(Path("mine.toml"), ["outputs.keep_banks=true"])
    assert banks_root(shared, Path("results/mine")) == str(folder / "results/banks")
    far = load_sweep(Path("mine.toml"), ["outputs.banks=s3://bucket/banks"])
    assert banks_root(far, Path("results/mine")) == "s3://bucket/banks"


RERUN_SWEEP = """
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


def write_points(folder: Path, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(24, 2))
    rows = [f"{a},{b},{'no' if a > b else 'yes'}" for a, b in points]
    (folder / "mine.csv").write_text("\n".join(["a,b,label", *rows, ""]))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    write_points(tmp_path / "files", seed=0)
    (tmp_path / "files" / "mine.toml").write_text(RERUN_SWEEP)
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
def test_a_file_that_is_gone_is_named(results, tmp_path, monkeypatch, given):
    path = tmp_path / "files" / "mine.csv"
    words = RERUN_SWEEP.replace("mine.csv", str(path) if given != path.name else given)
    layout = read_layout(results)
    attributes = layout.attributes | {"spec": json.dumps(tomllib.loads(words))}
    write_layout(results, replace(layout, attributes=attributes))
    monkeypatch.setattr(rerun, "_base", lambda folder: path.parent)
    (tmp_path / "else").mkdir()
    gone = path.rename(tmp_path / "else" / "mine.csv")
    shutil.copy(gone, "mine.csv")  # in the folder of the command, where no run read it
    with pytest.raises(DataError, match=f"{path}.: found no such file"):
        Rerun(results, tmp_path / "again").check_data()
    Rerun(results, tmp_path / "again", (gone.parent,)).check_data()


def test_other_data_are_refused_before_anything_is_written(results, tmp_path):
    write_points(tmp_path / "files", seed=1)
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


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("a" * 40, f"{'a' * 40}-dirty", "changed: commit aaaaaaaaaaaa → aaaaaaaaaaaa-dirty"),
        ("", "b" * 40, "changed: commit none → bbbbbbbbbbbb"),
        (None, "", "the same versions"),
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
