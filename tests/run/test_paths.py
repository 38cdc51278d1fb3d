"""Places of outputs and banks, and what a path or a name on the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.errors import OutputError, StoreError
from mkldist.results.folder import claimed
from mkldist.results.status import sweep_status
from mkldist.run.paths import banks_root, output_path, results_of, sweep_file_of
from mkldist.spec.load import load_sweep

SWEEP = """
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
    Path("mine.toml").write_text(SWEEP)
    with claimed(Path("results/mine"), "mine", Path("mine.toml")):
        pass
    return tmp_path


@pytest.mark.parametrize("given", ["results/mine", "results/mine/", "mine", "mine.toml"])
def test_results_are_found_by_folder_name_and_file(folder, given):
    assert results_of(Path(given)) == Path("results/mine")


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
    Path("other.toml").write_text(SWEEP + '[outputs]\npath = "elsewhere"')
    with pytest.raises(StoreError, match=r"elsewhere: found no such folder.*mkldist sweep other"):
        results_of(Path("other.toml"))
    Path("elsewhere").mkdir()
    assert results_of(Path("other.toml")) == Path("elsewhere")
    with pytest.raises(StoreError, match="Run the sweep first: mkldist sweep quickstart"):
        results_of(Path("quickstart"))


def test_folders_without_results_are_left_to_the_command(folder):
    (folder / "empty").mkdir()
    assert results_of(folder / "empty") == folder / "empty"


@pytest.mark.parametrize("given", [".", "results"])
def test_a_folder_of_results_of_sweeps_lists_them(folder, given):
    said = "found a folder with the results of 1 sweep; .* Name it: results/mine"
    with pytest.raises(StoreError, match=said):
        results_of(Path(given))


def test_a_name_of_nothing_meets_the_nearest_results(folder):
    with pytest.raises(StoreError, match="Did you mean 'mine'"):
        results_of(Path("mines"))
    with pytest.raises(StoreError, match="The results here: mine"):
        results_of(Path("tumours"))


@pytest.mark.parametrize("given", ["results/mine", "results/mine/"])
def test_the_file_of_results_is_the_one_that_they_were_made_from(folder, given):
    assert sweep_file_of(Path(given)) == folder / "mine.toml"


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
