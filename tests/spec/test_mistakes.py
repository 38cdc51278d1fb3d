"""Mistakes in sweep files: each is told by its place, what was found and what is expected."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mkldist.errors import SpecError
from mkldist.planning.checks import resolve_methods
from mkldist.spec.datasets import DatasetSpec, ViewSpec
from mkldist.spec.load import load_sweep, location_of, most_telling, spec_error
from mkldist.spec.model import Distribution, SearchSpec, SweepSpec

SWEEP = """\
name = "tumours"
seed = 1
tol = 0.01

[[datasets]]
name = "wdbc"

[preprocessing]
scale = "zscore"

[splits]
kind = "holdout"
repeats = 5
train_fraction = 0.5

[[banks]]
family = "xu2008"

[[banks]]
name = "mine"
normalisation = "trace"

[[banks.kernels]]
function = "gaussian"
widths = [1, 2.5]
features = ["all", "each"]

[[methods]]
name = "level"
C = [1, 10]

[[methods]]
name = "simplemkl"

[outputs]
predictions = true
"""

# A text of the file above, what a newcomer writes in its place, and what the message holds.
MISTAKES = [
    ('seed = 1', 'repeats = 5', 'repeats', 'an unknown key', "Move 'repeats' under [splits]"),
    ('[[datasets]]\nname = "wdbc"', '', 'datasets', 'nothing', 'at least one [[datasets]] entry'),
    ('[[datasets]]\nname = "wdbc"', 'datasets = []', 'datasets',
     '[]', 'at least one [[datasets]] entry'),
    ('[[datasets]]\nname = "wdbc"', 'datasets = ["wdbc"]', 'datasets[0]',
     '"wdbc"', 'a table such as {name = "wdbc"}'),
    ('name = "wdbc"', 'name = "wdbc"\nfile = "a.csv"\ngrams = "b.npz"', 'datasets.wdbc',
     'file and grams', 'one source of data'),
    ('name = "wdbc"', 'name = "wdbc"\nclasses = [1, true]', 'datasets.wdbc.classes[1]',
     'true', 'a text in quotes'),
    ('name = "wdbc"', 'name = "wdbc"\nclasses = ["M","B"]\npositive="M"', 'datasets.wdbc',
     'classes and positive', 'one of them'),
    ('name = "wdbc"', 'name = "wdbc"\ngroups = { size = "radius" }', 'datasets.wdbc.groups.size',
     '"radius"', 'a list'),
    ('name = "wdbc"', 'name = "wdbc"\noptions = { noise = [1] }', 'datasets.wdbc.options.noise',
     '[1]', 'a number or a text in quotes'),
    ('[preprocessing]\nscale = "zscore"', 'preprocessing = "zscore"', 'datasets.wdbc.preprocessing',
     '"zscore"', 'one table, [preprocessing]'),
    ('family = "xu2008"', 'family = "xu2008"\n[[banks.kernels]]\nfunction="linear"', 'banks.xu2008',
     'family and kernels', 'one of them'),
    ('family = "xu2008"', 'name = "mine"\nfamily = "xu2008"', '',
     "'mine' twice in [[banks]]", 'a name of its own for each'),
    ('family = "xu2008"', '', 'banks[0]',
     'neither family nor kernels', 'family = "xu2008" or the like, or [[banks.kernels]'),
    ('normalisation = "trace"', 'normalisation = true', 'banks.mine.normalisation',
     'true', 'the name of a normalisation or a list of them'),
    ('function = "gaussian"', 'function = "a:b:c"', 'banks.mine.kernels[0].function',
     '"a:b:c"', 'one of "gaussian", "polynomial", "linear", "laplac'),
    ('function = "gaussian"', 'function = 3', 'banks.mine.kernels[0].function',
     '3', 'a name in quotes or "package.module:function"'),
    ('widths = [1, 2.5]', 'parameters = { a = { b = 1 } }', 'banks.mine.kernels[0].parameters.a',
     '{b = 1}', 'a number, a text, true or false, or a list of them'),
    ('function = "gaussian"', '', 'banks.mine.kernels[0].function', 'nothing', 'function = ...'),
    ('widths = [1, 2.5]', 'widths = "wide"', 'banks.mine.kernels[0].widths',
     '"wide"', 'a number, a list of numbers, {start, stop, num}, {'),
    ('widths = [1, 2.5]', 'widths = true', 'banks.mine.kernels[0].widths',
     'true', 'a number, a list of numbers, {start, stop, num}, {'),
    ('widths = [1, 2.5]', 'widths = { start = 1, end = 2, num = 3 }',
     'banks.mine.kernels[0].widths.end', 'an unknown key', 'one of start, stop, num,'),
    ('features = ["all", "each"]', 'features = [["a", "b"]]', 'banks.mine.kernels[0].features[0]',
     '["a", "b"]', '"all", "each", {count = ...}, or the name of a fea'),
    ('name = "level"', 'name = "level"\nseed = 3', 'methods.level.seed',
     'an unknown parameter', "Move 'seed' to the top of the file, above the firs"),
    ('name = "level"', 'name = "level"\nlable = "slow"', 'methods.level.lable',
     'an unknown parameter', "Did you mean 'label'?"),
    ('C = [1, 10]', 'C = true', 'methods.level.C', 'true', 'a number'),
    ('C = [1, 10]', 'C = {start=1}', 'methods.level.C',
     'start', 'start, stop and num, or base and exponents'),
    ('C = [1, 10]', 'C = {start=1, stop=100, nm=3}', 'methods.level.C.nm',
     'an unknown key', "Did you mean 'num'?"),
    ('name = "simplemkl"', 'name = "level"', '',
     "'level' twice in [[methods]]", 'a label of its own for each'),
    ('predictions = true', 'seed = 3', 'outputs.seed',
     'an unknown key', "Move 'seed' to the top of the file, above the firs"),
    ('predictions = true', 'scale = "zscore"', 'outputs.scale',
     'an unknown key', "Move 'scale' under [preprocessing]"),
    ('[outputs]', '[outputs', ', line 35',
     "text that is not TOML: expected ']' at the end of a table declaration, in '[outputs'", ''),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "where", "found", "told"),
    MISTAKES,
    ids=[f"{m[0]}->{m[1]}" for m in MISTAKES],
)
def test_a_mistake_is_told_by_place_found_and_what_to_do(
    tmp_path, right, wrong, where, found, told
):
    assert SWEEP.count(right) == 1
    file = tmp_path / "s.toml"
    file.write_text(SWEEP.replace(right, wrong))
    with pytest.raises(SpecError) as caught:
        resolve_methods(load_sweep(file))
    error = caught.value
    assert error.where.removeprefix(str(file)).removeprefix(": ") == where
    assert error.found == found
    assert told in f"{error.expected} {error.hint}"


@pytest.mark.parametrize(
    ("model", "keys", "said"),
    [
        (Distribution, {"low": 2.0, "high": 1.0}, "expected low < high"),
        (Distribution, {"low": 0.0, "high": 1.0, "scale": "log"}, "expected low above 0"),
        (Distribution, {"low": 0.0}, "high"),
        (Distribution, {"low": 0.0, "high": 1.0, "step": 0.1}, "step"),
        (SearchSpec, {"kind": "random", "factor": 2}, 'expected kind = "halving", or no factor'),
        (SearchSpec, {"kind": "halving", "trials": 1}, "expected at least 2"),
        (SearchSpec, {"kind": "tpe"}, "'random' or 'halving'"),
        (ViewSpec, {"file": "a.csv", "grams": "b.npy"}, "found file and grams; expected one"),
        (ViewSpec, {"columns": ["a"], "file": "a.csv"}, "found columns and file"),
        (ViewSpec, {"ignore": ["a"]}, "found ignore without file"),
        (ViewSpec, {"id": "a"}, "found id without a file"),
        (ViewSpec, {"grams": "b.npy", "group_file": "g.gmt"}, "found group_file and grams"),
        (ViewSpec, {"grams": "b.npy", "missing": "impute"}, 'found missing = "impute" and grams'),
        (ViewSpec, {"grams": "b.npy", "graphs": [{}]}, "found grams and graphs; expected one"),
        (ViewSpec, {"graphs": [{}], "group_file": "g.gmt"}, "found group_file and graphs"),
        (ViewSpec, {"graphs": [{}], "missing": "zero"}, "found missing and graphs"),
        (ViewSpec, {"graphs": []}, "at least 1 item"),
        (ViewSpec, {"graphs": [{"neighbours": [3, 0]}]}, "greater than or equal to 1"),
        (ViewSpec, {"graphs": [{"neighbours": []}]}, "at least 1 item"),
        (ViewSpec, {"name": "views"}, "a word for features; expected another"),
        (ViewSpec, {"missing": "drop"}, "Input should be 'zero' or 'impute'"),
        (DatasetSpec, {"views": [{"name": "v"}, {"name": "v"}]}, "found 'v' twice in views and"),
        (DatasetSpec, {"views": [{"name": "v"}], "groups": {"v": ["a"]}}, "found 'v' twice"),
        (DatasetSpec, {"views": [{"name": "v"}], "grams": "k.npy"}, "found grams and views"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(model, keys, said):
    needed = {SearchSpec: {"trials": 9}, ViewSpec: {"name": "v"}, DatasetSpec: {"name": "d"}}
    with pytest.raises(ValidationError, match=said):
        model.model_validate(needed.get(model, {}) | keys)


def test_the_sweep_without_mistakes_is_right(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(SWEEP)
    [grids] = resolve_methods(load_sweep(file)).values()
    assert set(grids) == {"level", "simplemkl"}


values = st.recursive(
    st.none().map(lambda _: "") | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def places(node: Any, path: tuple[int | str, ...] = ()) -> list[tuple[int | str, ...]]:
    """Return the paths of all values of a document, the document itself left out."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, value in items:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


@pytest.mark.slow
@given(st.data(), values)
def test_any_value_anywhere_is_right_or_told_with_its_place(data, value):
    document = tomllib.loads(SWEEP)
    *parents, last = data.draw(st.sampled_from(places(document)))
    node = document
    for part in parents:
        node = node[part]
    node[last] = value
    if isinstance(node, dict) and data.draw(st.booleans()):
        node[data.draw(st.text())] = node.pop(last)
    try:
        SweepSpec.model_validate(document)
    except ValidationError as error:
        first = most_telling(error.errors())
        told = spec_error(first, "place")
        assert told.found
        assert told.expected
        node = document
        for part in location_of(first)[:-1]:
            node = node[part]
