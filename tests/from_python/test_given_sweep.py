"""The words and data of a sweep as a call of Python gives them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from mkldist.errors import MkldistError, SpecError
from mkldist.from_python.sweeps import SweepInputs, given_folders
from mkldist.run.saved_inputs import FROM_FILES
from mkldist.spec.load import load_sweep

X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
SPEC = {"name": "s", "banks": [{"family": "do2009"}], "methods": [{"name": "level"}]}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_file_alone_is_the_file_of_the_commands():
    given = SweepInputs.of("quickstart")
    assert given.origin.name == "quickstart.toml"
    assert given.output == Path("results/quickstart")
    assert given.saved is FROM_FILES
    assert given.spec == load_sweep(given.origin)


def test_words_are_kept_as_a_sweep_file_that_says_the_same(tmp_path):
    spec = SPEC | {"tol": np.float64(0.1), "description": None, "seed": np.int64(3)}
    given = SweepInputs.of(spec, {"d": (X, Y)}, {"methods.level.C": range(1, 4)}, "there")
    assert (given.output, given.origin) == (Path("there"), Path("there/sweep.toml"))
    document = tomllib.loads(given.saved.text)
    [entry] = document.pop("datasets")
    assert entry == {"name": "d", "file": f"data/d-{given.saved.data['d'].id}.inputs.npz"}
    assert document == SPEC | {
        "tol": 0.1,
        "seed": 3,
        "methods": [{"name": "level", "C": [1, 2, 3]}],
        "outputs": {"path": str(tmp_path / "there")},
    }
    assert SweepInputs.of(given.spec).spec == given.spec


def test_paths_of_data_files_are_kept_absolute(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d.csv").touch()
    entries = [{"name": "d", "file": "d.csv"}, {"name": "e", "file": "in-a-data-dir.csv"}]
    text = 'name = "s"\nbanks = [{family = "do2009"}]\nmethods = [{name = "level"}]\n'
    text += "".join(f'[[datasets]]\nname = "{e["name"]}"\nfile = "{e["file"]}"\n' for e in entries)
    (tmp_path / "sub" / "s.toml").write_text(text)
    given = SweepInputs.of("sub/s.toml", changes={"seed": 1})
    files = [dataset.file for dataset in given.spec.datasets]
    assert files == [str(tmp_path / "sub" / "d.csv"), "in-a-data-dir.csv"]


def test_data_replace_those_of_the_last_call():
    first = SweepInputs.of(SPEC, {"d": (X, Y)})
    folder = first.output
    folder.mkdir(parents=True)
    first.origin.write_text(first.saved.text)
    second = SweepInputs.of(first.origin, {"d": (-X, Y)}, output=folder)
    assert second.spec.datasets[0].file != first.spec.datasets[0].file


@pytest.mark.parametrize(
    ("splits", "key", "expected"),
    [
        ({}, "groups", {"groups": "groups"}),
        (
            {"kind": "kfold", "folds": 2},
            "groups",
            {"kind": "kfold", "folds": 2, "groups": "groups"},
        ),
        ({"kind": "time", "folds": 2}, "order", {"kind": "time", "folds": 2, "order": "order"}),
        (
            {"kind": "leave-one-group-out"},
            "groups",
            {"kind": "leave-one-group-out", "groups": "groups"},
        ),
    ],
)
def test_columns_that_divide_rows_are_used_for_it(splits, key, expected):
    spec = SPEC | ({"splits": splits} if splits else {})
    given = SweepInputs.of(spec, {"d": {"x": X, "y": Y, key: [1, 1, 2, 2]}, "e": (X, Y)})
    with_column, without = given.spec.datasets
    assert with_column.splits.model_dump(exclude_unset=True) == expected
    assert without.splits is None


def test_weights_of_rows_are_used_as_such():
    first, second = SweepInputs.of(
        SPEC, {"d": {"x": X, "y": Y, "weights": [1, 2, 1, 0]}, "e": (X, Y)}
    ).spec.datasets
    assert first.weights == "weights"
    assert second.weights is None


def test_parts_are_used_unless_the_words_divide_otherwise():
    parts = {"x": X, "y": Y, "train": [0, 1], "test": [2, 3]}
    assert SweepInputs.of(SPEC, {"d": parts}).spec.datasets[0].splits.kind == "predefined"
    divided = SweepInputs.of(SPEC | {"splits": {"repeats": 2}}, {"d": parts})
    assert divided.spec.datasets[0].splits is None


@pytest.mark.parametrize(
    ("spec", "data", "changes", "said"),
    [
        (3, None, None, "spec: found int; expected a sweep file"),
        (SPEC, None, None, r"datasets: found none; .* Give data=\{"),
        (SPEC, (X, Y), None, "data: found tuple; expected data sets by name"),
        (
            SPEC | {"datasets": [{"name": "e"}]},
            {"d": (X, Y)},
            None,
            r"data\['d'\]: found a name that no",
        ),
        (
            SPEC | {"datasets": [{"name": "d", "file": "d.csv"}]},
            {"d": (X, Y)},
            None,
            r"datasets\.d: found file, beside data\['d'\]",
        ),
        (
            SPEC,
            {"d": (X, Y)},
            {"methods.silp.C": 1},
            r"changes\['methods\.silp\.C'\]: found no item",
        ),
        (
            SPEC | {"splits": {"kind": "time"}},
            {"d": (X, Y, Y)},
            None,
            'groups, but splits.kind = "time"; expected splits that use it: holdout or kfold',
        ),
        (SPEC | {"name": "a b"}, {"d": (X, Y)}, None, 'name: found "a b"; expected a name of'),
        ("nowhere.toml", None, None, "nowhere.toml: found no such file"),
    ],
)
def test_mistakes_name_their_place(spec, data, changes, said):
    with pytest.raises(MkldistError, match=said):
        SweepInputs.of(spec, data, changes)


@pytest.mark.parametrize("changes", [["a"], ["seed=1"], "seed=1", 3])
def test_changes_are_a_mapping(changes):
    with pytest.raises(SpecError, match=r"^changes: found .*; expected a mapping"):
        SweepInputs.of(SPEC, {"d": (X, Y)}, changes)


def test_folders_are_one_path_or_several(tmp_path):
    assert given_folders("data_dirs", str(tmp_path)) == [tmp_path]
    assert given_folders("data_dirs", tmp_path) == [tmp_path]
    assert given_folders("data_dirs", ("a", tmp_path)) == [Path("a"), tmp_path]
    for wrong in (3, None, b"/tmp"):
        with pytest.raises(SpecError, match=r"^data_dirs: found .*; expected folders"):
            given_folders("data_dirs", wrong)
