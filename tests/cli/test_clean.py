"""The command that removes stored Gram matrices asks, and removes what it printed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mkldist.bank.cache import using_banks
from mkldist.bank.store import list_banks
from mkldist.cli.house import clean_command as command
from mkldist.errors import OutputError, StoreError
from mkldist.results.folder import claimed, note_banks
from tests.bank.stores import stored


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Return a folder of three banks, of which the sweep "mine" noted two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "results" / "banks"
    for name in ("one", "two", "three"):
        stored(root, np.ones((2, 4, 4)), "float64", name)
    with claimed(Path("results/mine"), "mine"):
        note_banks(Path("results/mine"), str(root), ["one", "two"])
    return root


def clean(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(command, words, input=typed, catch_exceptions=False)


@pytest.mark.parametrize("typed", ["n\n", "", "\n"])
def test_without_a_yes_nothing_goes(root, typed):
    done = clean("mine", typed=typed)
    assert done.exit_code == 0
    assert f"{root}: 2 banks" in done.output
    assert "nothing was removed" in done.output
    assert len(list_banks(root)) == 3


@pytest.mark.parametrize(("words", "typed"), [(["mine"], "y\n"), (["results/mine", "--yes"], None)])
def test_what_was_printed_goes(root, words, typed):
    done = clean(*words, typed=typed)
    assert list_banks(root) == ["three"]
    (asked,) = [line for line in done.output.splitlines() if "2 banks" in line]
    assert done.output.rstrip().endswith(f"removed {asked.rpartition(', ')[2]}")
    assert "no Gram matrices are stored" in clean("mine").output


def test_banks_that_stay_and_those_of_other_sweeps_are_told(root):
    stored(root, np.ones((2, 4, 4)), "float64", "four")
    for name, banks in {"other": ["two", "three"], "last": ["three"]}.items():
        with claimed(Path("results") / name, name):
            note_banks(Path("results") / name, str(root), banks)
    lines = clean("mine").output.splitlines()
    assert "NOTE: 1 bank of these is used by other too, which computes it again if needed" in lines
    assert f"{root}: 2 banks stay, which mine did not store" in lines
    rows = json.loads(clean("mine", "--json").output)["banks"]
    assert {row["id"]: row["used_by"] for row in rows} == {"one": [], "two": ["other"]}
    alone = clean("results").output
    assert "4 banks" in alone
    assert "NOTE" not in alone
    assert "stay" not in alone


@pytest.mark.parametrize("folder", ["results/banks", "results"])
def test_a_folder_of_banks_is_emptied(root, folder):
    assert "3 banks" in clean(folder, "--yes").output
    assert list_banks(root) == []


def test_a_damaged_note_is_not_said_to_be_an_empty_one(root):
    Path("results/mine/banks.json").write_text("{")
    with pytest.raises(
        StoreError, match=r"a damaged note .* 'mkldist verify .* --repair'"
    ) as found:
        clean("mine", "--yes")
    assert found.value.exit_code == 2
    assert len(list_banks(root)) == 3


def test_banks_in_use_stay(root):
    with using_banks(str(root)), pytest.raises(OutputError, match="a sweep at work uses"):
        clean("mine", "--yes")
    assert len(list_banks(root)) == 3


@pytest.fixture
def copy(root) -> Path:
    """Return a copy of the results in another folder, with the note of the original."""
    copy = root.parent.parent / "kept" / "copy"
    shutil.copytree(root.parent / "mine", copy)
    return copy


@pytest.mark.parametrize("words", [["--yes"], ["--yes", "--json"], ["--yes", "--banks", "other"]])
def test_a_copy_of_results_keeps_the_banks_of_the_original(root, copy, words):
    with pytest.raises(OutputError, match="may belong to other results") as refused:
        clean(str(copy), *words)
    assert refused.value.exit_code == 2
    assert f"--banks {root}" in str(refused.value)
    assert len(list_banks(root)) == 3


def test_a_copy_of_results_says_so_before_it_asks(root, copy):
    assert f"NOTE: {root} is not beside {copy}" in clean(str(copy), typed="n\n").output
    assert "NOTE" not in clean("mine", typed="n\n").output


def test_banks_elsewhere_go_where_they_are_named(root, copy):
    assert "removed" in clean(str(copy), "--yes", "--banks", str(root)).output
    assert list_banks(root) == ["three"]


@pytest.mark.parametrize("folder", ["mine", "results"])
def test_banks_behind_a_link_are_those_beside_it(root, folder):
    disk = root.parent.parent / "disk"
    root.rename(disk)
    root.symlink_to(disk)
    clean(folder, "--yes")
    assert list_banks(disk) == (["three"] if folder == "mine" else [])


def test_banks_in_the_folder_of_results_go(root):
    inner = root.parent / "mine" / "banks"
    root.rename(inner)
    note_banks(Path("results/mine"), str(inner), ["one"])
    clean("mine", "--yes")
    assert list_banks(inner) == ["three", "two"]
