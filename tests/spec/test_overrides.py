"""Overrides: the values that they replace, and the message about a path that leads nowhere."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mkldist.errors import SpecError
from mkldist.spec.load import apply_override, load_sweep, spelled_location
from tests.spec.test_load import SWEEP


@pytest.mark.parametrize(
    ("override", "location", "value"),
    [
        ("tol=1e-4", ("tol",), 1e-4),
        ("splits.repeats=9", ("splits", "repeats"), 9),
        ("splits.kind=kfold", ("splits", "kind"), "kfold"),
        ("splits.kind = kfold", ("splits", "kind"), "kfold"),
        ("outputs.predictions=true", ("outputs", "predictions"), True),
        ("description=two words", ("description",), "two words"),
        ("methods.level.C=[3]", ("methods", 0, "C"), [3]),
        ("methods.level.C.1=7", ("methods", 0, "C", 1), 7),
        ("methods.slow.C=7", ("methods", 1, "C"), 7),
        ("methods.1.C=7", ("methods", 1, "C"), 7),
        ("methods[1].C=7", ("methods", 1, "C"), 7),
        ("methods.1={name='uniform'}", ("methods", 1), {"name": "uniform"}),
        ("banks.xu2008.dtype=float32", ("banks", 0, "dtype"), "float32"),
        ("banks.mine.kernels.0.widths=[1]", ("banks", 1, "kernels", 0, "widths"), [1]),
        ("datasets.wdbc.options.noise=.5", ("datasets", 0, "options", "noise"), ".5"),
        ('banks."mine".dtype=float32', ("banks", 1, "dtype"), "float32"),
    ],
)
def test_an_override_reaches_its_place(override, location, value):
    document = tomllib.loads(SWEEP)
    assert apply_override(document, override) == location
    node = document
    for part in location:
        node = node[part]
    assert node == value


MISTAKES = [
    ("tol", "found no '='; expected path.to.key=value"),
    ("=3", "found the path ''; expected keys with dots between them, as in splits.repeats=5"),
    ("a b=3", "found the path 'a b'; expected keys with dots between them, as in splits.repeats=5"),
    ("tol=small", 'found "small"; expected a number'),
    ("methods.levl.C=5",
     "found no item 'levl' in methods; expected one of level, slow. Did you mean 'level'?"),
    ("methods.C=5", "found no item 'C' in methods; expected one of level, slow"),
    ("methods.7.C=5", "found no item '7' in methods; expected one of level, slow"),
    ("methods.level.C.9=5", "found no item '9' in methods.level.C; expected an index below 2"),
    ("name.first=5", 'found the value "s" at name; expected a table or list'),
    ("methods.level.C=[1,x]", "found '[1,x]', which is not TOML; expected a value as in a sweep "
     "file, such as [1, 1000]. Write text within lists in quotes, and the whole option in the "
     "shell's quotes: --set 'methods.level.C=[1,1000]'."),
    ("methods=5", "found 5; expected at least one [[methods]] entry"),
    ("splits.repeets=5", "found an unknown key; expected one of kind, repeats, train_fraction, "
     "folds, "
     "order, groups, column, labelled_per_class, labelled_fraction, labelled, test_fraction, "
     "stratified, n_train, first. Did you mean 'repeats'?"),
    ("split.repeats=5", "found an unknown key; expected one of name, description, seed, tol, "
     "execution, memory, wall_time, datasets, preprocessing, splits, graph, selection, search, "
     "banks, methods, outputs. "
     "Did you mean 'splits'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("override", "where", "found"),
    [
        ("seed=" + 5000 * "1", "--set seed: ", "a whole number of more than 4000 digits"),
        ("seed=" + 5000 * "[", "--set seed: ", "lists or tables in each other too deep"),
        (50_000 * "a." + "a=1", "--set a.a.a", "a key of over 100 parts"),
    ],
)
def test_an_override_beyond_all_use_is_told_in_one_short_message(override, where, found):
    with pytest.raises(SpecError, match=f"found {found}") as caught:
        apply_override({}, override)
    assert str(caught.value).startswith(where)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("override", "message"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistaken_override_is_named(tmp_path, override, message):
    file = tmp_path / "s.toml"
    file.write_text(SWEEP)
    with pytest.raises(SpecError) as caught:
        load_sweep(file, [override])
    assert str(caught.value) == f"--set {override}: {message}"


def test_a_mistaken_table_of_the_file_is_not_blamed_on_an_override_in_it(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(f"{SWEEP}[split]\nrepeats = 3\n")
    with pytest.raises(SpecError) as caught:
        load_sweep(file, ["split.repeats=5"])
    assert str(caught.value).startswith(f"{file}: split: found an unknown key")


def test_items_of_one_name_are_told_apart_by_index():
    document = {"methods": [{"name": "level", "label": "a"}, {"name": "level", "label": "b"}]}
    with pytest.raises(SpecError, match=r"methods\[0\] and methods\[1\], both called 'level'"):
        apply_override(document, "methods.level.C=1")
    assert apply_override(document, "methods.b.C=1") == ("methods", 1, "C")


def test_a_data_set_is_named_by_its_name_and_not_by_the_column_of_its_labels():
    document = {
        "datasets": [
            {"name": "heart", "label": "disease"},
            {"name": "lung", "label": "disease"},
        ],
        "methods": [{"name": "level", "label": "slow"}],
    }
    assert apply_override(document, "datasets.lung.positive=yes") == ("datasets", 1, "positive")
    assert apply_override(document, "methods.slow.C=1") == ("methods", 0, "C")
    assert spelled_location(("datasets", 1, "file"), document) == "datasets.lung.file"
    with pytest.raises(SpecError, match="expected one of heart, lung"):
        apply_override(document, "datasets.disease.positive=yes")


def test_a_data_file_of_the_command_line_lies_where_the_command_runs(tmp_path, monkeypatch):
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "s.toml").write_text(SWEEP)
    (tmp_path / "heart.csv").write_text("")
    monkeypatch.chdir(tmp_path)
    for given, meant in (("heart.csv", str(tmp_path / "heart.csv")), ("other.csv", "other.csv")):
        spec = load_sweep(Path("sweeps/s.toml"), [f"datasets.wdbc.file={given}"])
        assert spec.datasets[0].file == meant
