"""Sweep files by name, overrides, and messages about what is no sweep file."""

import json
import tomllib
from pathlib import Path

import pytest

from mkldist.errors import SpecError
from mkldist.planning.checks import resolve_methods
from mkldist.spec import load as loading
from mkldist.spec.load import (
    apply_override,
    load_sweep,
    shipped_sweeps,
    spelled_location,
    sweep_file,
)

SWEEP = """
name = "s"
tol = 0.01
[[datasets]]
name = "wdbc"
[[banks]]
family = "xu2008"
[[banks]]
name = "mine"
[[banks.kernels]]
function = "gaussian"
widths = [1, 2.5]
features = ["all", "each", { count = 3, size = 2 }]
[[banks.kernels]]
function = "gaussian"
widths = { start = 0.1, stop = 10, num = 3, scale = "log" }
[[banks.kernels]]
function = "polynomial"
degrees = [1, 2]
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "level"
label = "slow"
near = 0.99
"""


def load(tmp_path: Path, *overrides: str, text: str = SWEEP):
    path = tmp_path / "s.toml"
    path.write_text(text)
    spec = load_sweep(path, overrides)
    resolve_methods(spec)
    return spec


def test_a_sweep_is_read(tmp_path):
    spec = load(tmp_path)
    assert [bank.label for bank in spec.banks] == ["xu2008", "mine"]
    assert [method.key for method in spec.methods] == ["level", "slow"]
    assert spec.banks[1].kernels[1].widths.values() == pytest.approx((0.1, 1.0, 10.0))
    assert spec.methods[1].settings == {"near": 0.99}
    assert spec.splits.kind == "holdout"
    assert spec.preprocessing.fit == "train"


def test_results_keep_the_normalisation_and_not_the_other_defaults(tmp_path):
    spec = load(tmp_path)
    words = spec.model_dump_json(exclude_defaults=True)
    assert json.loads(words)["banks"][0] == {"family": "xu2008", "normalisation": "variance"}
    again = type(spec).model_validate_json(words)
    assert again.model_dump() == spec.model_dump()


def test_words_for_numbers_and_classes_are_taken_as_meant(tmp_path):
    entry = 'classes = [3, 8]\n[[banks]]\nname = "b"\nnormalisation = ["centre", "trace"]\n'
    kernels = '[[banks.kernels]]\nfunction = "linear"\nfeatures = "mean radius"\n[[banks]]'
    text = SWEEP.replace("[[banks]]", entry + kernels, 1)
    spec = load(tmp_path, text=text)
    assert spec.datasets[0].classes == ("3", "8")
    assert spec.banks[0].normalisations == ("centre", "trace")
    assert spec.banks[0].kernels[0].features == "mean radius"


def test_a_file_that_is_not_there_names_the_one_that_was_meant(tmp_path):
    load(tmp_path)
    with pytest.raises(SpecError, match=r"no such file.*Did you mean '.*/s.toml'\?"):
        load_sweep(tmp_path / "ss.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "s.toml: found bytes that are not UTF-8 text; expected a sweep file in TOML"),
        (b"[[x]\n", "s.toml, line 1: found text that is not TOML: expected ']]' at the end of an "
         "array declaration, "
         "in '[[x]'"),
        (b"x = [1", "s.toml: found text that is not TOML: Unclosed array (at end of document)"),
        (b"x = " + 4000 * b"[", "s.toml: found lists or tables in each other too deep to read"),
        (50_000 * b"a." + b"a = 1", "s.toml: found a key of over 100 parts; expected keys such as "
         "splits.folds"),
        (b"x = " + 5000 * b"1", "s.toml: found a whole number of more than 4000 digits; "
         "expected a number that a computer holds"),
    ],
)  # fmt: skip
def test_what_is_not_toml_is_said_so(tmp_path, content, message):
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load_sweep(path)
    assert str(caught.value).removeprefix(f"{tmp_path}/") == message


def test_a_folder_is_no_sweep_file(tmp_path):
    with pytest.raises(SpecError, match="found a folder; expected a sweep file that can be read"):
        load_sweep(tmp_path)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SWEEP.encode())
    assert load_sweep(path).name == "s"


def test_a_missing_section_is_named(tmp_path):
    with pytest.raises(
        SpecError, match=r"s.toml: banks: found nothing; expected at least one \[\[banks"
    ):
        load(tmp_path, text='name = "s"\n[[datasets]]\nname = "wdbc"\n[[methods]]\nname = "level"')


def test_init_is_advised_for_data(tmp_path):
    (tmp_path / "d.csv.gz").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SpecError, match=r"mkldist init d.csv.gz writes a sweep file"):
        load_sweep(tmp_path / "d.csv.gz")


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
     "execution, memory, wall_time, worker_wait, datasets, preprocessing, splits, graph, "
     "selection, search, banks, methods, outputs. "
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
        "datasets": [{"name": "heart", "label": "disease"}, {"name": "lung", "label": "disease"}],
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


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return the folders of an installation, which is missing, and of a clone with two sweeps."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("one.toml", "two.toml", "README.md"):
        (clone / name).write_text("")
    monkeypatch.setattr(loading, "FOLDERS", (tmp_path / "installed", clone))
    monkeypatch.chdir(tmp_path)
    return loading.FOLDERS


def test_sweeps_of_a_clone_are_those_of_its_folder(folders):
    _, clone = folders
    assert shipped_sweeps() == {"one": clone / "one.toml", "two": clone / "two.toml"}


def test_sweeps_of_papers_have_names_like_the_others(folders):
    _, clone = folders
    (clone / "papers").mkdir()
    (clone / "papers" / "table.toml").write_text("")
    assert [*shipped_sweeps()] == ["one", "table", "two"]
    assert sweep_file(Path("table")) == clone / "papers" / "table.toml"


def test_without_a_folder_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "FOLDERS", (tmp_path / "nowhere",))
    assert shipped_sweeps() == {}
    assert sweep_file(Path("one")) == Path("one")


@pytest.mark.parametrize("given", ["one", "one.toml"])
def test_a_name_stands_for_the_file_unless_the_user_has_one(folders, given):
    assert sweep_file(Path(given)) == folders[1] / "one.toml"
    Path(given).write_text("")
    assert sweep_file(Path(given)) == Path(given)
