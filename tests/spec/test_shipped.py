"""Sweep files by name: files of the user come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.spec import shipped
from mkldist.spec.load import shipped_sweeps, sweep_file


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return the folders of an installation, which is missing, and of a clone with two sweeps."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("one.toml", "two.toml", "README.md"):
        (clone / name).write_text("")
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path / "installed", clone))
    monkeypatch.chdir(tmp_path)
    return shipped.FOLDERS


def test_sweeps_of_a_clone_are_those_of_its_folder(folders):
    _, clone = folders
    assert shipped_sweeps() == {"one": clone / "one.toml", "two": clone / "two.toml"}


def test_sweeps_of_papers_have_names_like_the_others(folders):
    _, clone = folders
    (clone / "papers").mkdir()
    (clone / "papers" / "table.toml").write_text("")
    assert [*shipped_sweeps()] == ["one", "table", "two"]
    assert sweep_file(Path("table")) == clone / "papers" / "table.toml"


def test_an_installation_has_its_own(folders):
    installed, _ = folders
    installed.mkdir()
    (installed / "three.toml").write_text("")
    assert shipped_sweeps() == {"three": installed / "three.toml"}


def test_without_a_folder_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path / "nowhere",))
    assert shipped_sweeps() == {}
    assert sweep_file(Path("one")) == Path("one")


@pytest.mark.parametrize("given", ["one", "one.toml"])
def test_a_name_stands_for_the_file_unless_the_user_has_one(folders, given):
    assert sweep_file(Path(given)) == folders[1] / "one.toml"
    Path(given).write_text("")
    assert sweep_file(Path(given)) == Path(given)


@pytest.mark.parametrize("given", ["three", "elsewhere/one.toml"])
def test_other_names_and_paths_stay_as_they_are(folders, given):
    assert sweep_file(Path(given)) == Path(given)
