"""Mistakes in `model`, `banks`, `kernel_entries`, `graph`, `kinds`, `selection` and `splits`."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mkldist.errors import SpecError
from mkldist.kernel_functions.registry import FUNCTIONS, PARAMETERS
from mkldist.methods.registry import METHODS
from mkldist.planning.methods import resolve_methods
from mkldist.spec.load import load_sweep, location_of, most_telling, spec_error
from mkldist.spec.model import SweepSpec
from mkldist.spec.toml_texts import spelled

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

TOP = (
    "one of name, description, seed, tol, execution, memory, wall_time, datasets, preprocessing, "
    "splits, graph, selection, search, banks, methods, outputs"
)
DATASET = (
    "one of name, source, file, openml, grams, labels, task, label, id, ignore, categorical, "
    "texts, classes, positive, per_class, n_points, class_weight, weights, impute, drop_constant, "
    "sparse, groups, group_file, views, options, preprocessing, splits, graph"
)
SPLITS = (
    "one of kind, repeats, train_fraction, folds, order, groups, column, labelled_per_class, "
    "labelled_fraction, labelled, "
    "test_fraction, stratified, n_train, first"
)
OUTPUTS = "one of path, banks, keep_banks, predictions, coefficients, weights, figures"
KERNEL = f"one of function, {', '.join(PARAMETERS)}, relative_widths, parameters, features"
LEVEL = (
    "one of tol, max_iter, time_limit, trace, C, acceleration, stop, far, near, "
    "label, kernel_weights, banks, on"
)
NORMALISATION = 'one of "none", "trace", "cosine", "centre", "variance", "multiplicative variance"'

# A text of the file above, what a newcomer writes in its place, and the message.
MISTAKES = [
    ('name = "tumours"', 'title = "tumours"',
     f': title: found an unknown key; expected {TOP}'),
    ('name = "tumours"', 'name = "my tumours"',
     ': name: found "my tumours"; expected a name of letters, digits and _ . + - '
     'without blanks'),
    ('name = "tumours"', 'name = tumours',
     ", line 1: found text that is not TOML: invalid value, in 'name = tumours'. Write text in "
     "quotes."),
    ('name = "tumours"', 'name "tumours"',
     ", line 1: found text that is not TOML: expected '=' after a key in a key/value pair, in "
     "'name "
     '"tumours"\''),
    ('seed = 1', 'seed = 1.5',
     ': seed: found 1.5; expected a whole number'),
    ('seed = 1', 'seed = "1"',
     ': seed: found "1"; expected a whole number'),
    ('seed = 1', 'seed = -1',
     ': seed: found -1; expected a number of at least 0'),
    ('seed = 1', 'seeds = 1',
     f": seeds: found an unknown key; expected {TOP}. Did you mean 'seed'?"),
    ('seed = 1', 'repeats = 5',
     f": repeats: found an unknown key; expected {TOP}. Move 'repeats' under [splits]."),
    ('seed = 1', 'seed = 1\nseed = 2',
     ", line 3: found text that is not TOML: cannot overwrite a value, in 'seed = 2'. Give each "
     "key "
     'once; begin every entry of a list with its own header, [[like.this]].'),
    ('tol = 0.01', 'tol = 0',
     ': tol: found 0; expected a number above 0'),
    ('tol = 0.01', 'tol = inf',
     ': tol: found inf; expected a finite number'),
    ('tol = 0.01', 'tol = true',
     ': tol: found true; expected a number'),
    ('tol = 0.01', 'tol = "1%"',
     ': tol: found "1%"; expected a number'),
    ('[[datasets]]', '[datasets]',
     ': datasets: found {name = "wdbc"}; expected at least one [[datasets]] entry'),
    ('[[datasets]]\nname = "wdbc"', '',
     ': datasets: found nothing; expected at least one [[datasets]] entry'),
    ('[[datasets]]\nname = "wdbc"', 'datasets = []',
     ': datasets: found []; expected at least one [[datasets]] entry'),
    ('[[datasets]]\nname = "wdbc"', 'datasets = ["wdbc"]',
     ': datasets[0]: found "wdbc"; expected a table such as {name = "wdbc"}'),
    ('[[datasets]]\nname', '[[dataset]]\nname',
     f": dataset: found an unknown key; expected {TOP}. Did you mean 'datasets'?"),
    ('name = "wdbc"', 'nme = "wdbc"',
     f": datasets[0].nme: found an unknown key; expected {DATASET}. Did you mean 'name'?"),
    ('name = "wdbc"', 'file = "a.csv"',
     ': datasets[0].name: found nothing; expected name = ...'),
    ('name = "wdbc"', 'name = "wdbc"\nfile = "a.csv"\ngrams = "b.npz"',
     ': datasets.wdbc: found file and grams; expected one source of data'),
    ('name = "wdbc"', 'name = "wdbc"\nclasses = ["M"]',
     ': datasets.wdbc.classes: found ["M"]; expected two classes or more'),
    ('name = "wdbc"', 'name = "wdbc"\nclasses = "M"',
     ': datasets.wdbc.classes: found "M"; expected a list'),
    ('name = "wdbc"', 'name = "wdbc"\nclasses = [1, true]',
     ': datasets.wdbc.classes[1]: found true; expected a text in quotes'),
    ('name = "wdbc"', 'name = "wdbc"\nclasses = ["M","B"]\npositive="M"',
     ': datasets.wdbc: found classes and positive; expected one of them'),
    ('name = "wdbc"', 'name = "wdbc"\nlabel = 1.5',
     ': datasets.wdbc.label: found 1.5; expected a whole number'),
    ('name = "wdbc"', 'name = "wdbc"\nimpute = "modian"',
     ': datasets.wdbc.impute: found "modian"; expected one of "median", "mean", "most_frequent". '
     "Did you mean 'median'?"),
    ('name = "wdbc"', 'name = "wdbc"\ngroups = { size = "radius" }',
     ': datasets.wdbc.groups.size: found "radius"; expected a list'),
    ('name = "wdbc"', 'name = "wdbc"\noptions = { noise = [1] }',
     ': datasets.wdbc.options.noise: found [1]; expected a number or a text in '
     'quotes'),
    ('[preprocessing]', '[[preprocessing]]',
     ': preprocessing: found [{scale = "zscore"}]; expected one table, '
     '[preprocessing]'),
    ('[preprocessing]', '[preprocesing]',
     f": preprocesing: found an unknown key; expected {TOP}. Did you mean 'preprocessing'?"),
    ('[preprocessing]', '[Preprocessing]',
     f": Preprocessing: found an unknown key; expected {TOP}. Did you mean 'preprocessing'?"),
    ('[preprocessing]\nscale = "zscore"', 'preprocessing = "zscore"',
     ': datasets.wdbc.preprocessing: found "zscore"; expected one table, [preprocessing]'),
    ('scale = "zscore"', 'scale = "z-score"',
     ': preprocessing.scale: found "z-score"; expected one of "zscore", "minmax", '
     '"tfidf", "none". Did you mean \'zscore\'?'),
    ('kind = "holdout"', 'kind = "k-fold"',
     ': splits.kind: found "k-fold"; expected one of "holdout", "kfold", '
     '"leave-one-group-out", "time", "predefined", "semi-supervised". Did you mean \'kfold\'?'),
    ('repeats = 5', 'repeats = 0',
     ': splits.repeats: found 0; expected a number of at least 1'),
    ('repeats = 5', 'repeat = 5',
     f": splits.repeat: found an unknown key; expected {SPLITS}. Did you mean 'repeats'?"),
    ('repeats = 5', 'repeats = 5.0',
     ': splits.repeats: found 5.0; expected a whole number'),
    ('train_fraction = 0.5', 'train_fraction = 50',
     ': splits.train_fraction: found 50; expected a number below 1'),
    ('train_fraction = 0.5', 'stratified = "yes"',
     ': splits.stratified: found "yes"; expected true or false'),
    ('family = "xu2008"', 'family = "xu2007"',
     ': banks.xu2007.family: found "xu2007"; expected one of "default", "xu2008", '
     '"suzuki2011", "hao2012", "hao2012-polynomial", "do2009", "do2009-gaussian", "guo2011", '
     '"precomputed". Did you mean \'xu2008\'?'),
    ('family = "xu2008"', 'family = "xu2008"\ndtype = "float16"',
     ': banks.xu2008.dtype: found "float16"; expected one of "auto", "float32", '
     '"float64". Did you mean \'float64\'?'),
    ('family = "xu2008"', 'family = "xu2008"\n[[banks.kernels]]\nfunction="linear"',
     ': banks.xu2008: found family and kernels; expected one of them'),
    ('family = "xu2008"', 'name = "mine"\nfamily = "xu2008"',
     ": found 'mine' twice in [[banks]]; expected a name of its own for each"),
    ('family = "xu2008"', '',
     ': banks[0]: found neither family nor kernels; expected family = "xu2008" or '
     'the like, or [[banks.kernels]] entries'),
    ('normalisation = "trace"', 'normalisation = "traces"',
     f': banks.mine.normalisation: found "traces"; expected {NORMALISATION}. Did you '
     "mean 'trace'?"),
    ('normalisation = "trace"', 'normalisation = ["centre", "unit"]',
     f': banks.mine.normalisation[1]: found "unit"; expected {NORMALISATION}'),
    ('normalisation = "trace"', 'normalisation = true',
     ': banks.mine.normalisation: found true; expected the name of a normalisation '
     'or a list of them'),
    ('normalisation = "trace"', 'normalization = "trace"',
     ': banks.mine.normalization: found an unknown key; expected one of name, family, '
     "kernels, n_kernels, normalisation, dtype, backend, allow, rank, tolerance, device. Did you "
     "mean 'normalisation'?"),
    ('normalisation = "trace"', 'normalisation = ["trace", "cosine"]',
     ': banks.mine: found cosine after another normalisation; expected it first'),
    ('function = "gaussian"', 'function = "rbf"',
     ': banks.mine.kernels[0].function: found "rbf"; expected one of '
     f'{", ".join(map(spelled, (*FUNCTIONS, "precomputed")))}. Write "gaussian".'),
    ('function = "gaussian"', 'function = "mater"',
     ': banks.mine.kernels[0].function: found "mater"; expected one of '
     f'{", ".join(map(spelled, (*FUNCTIONS, "precomputed")))}. Did you mean \'matern\'?'),
    ('function = "gaussian"', 'function = "a:b:c"',
     ': banks.mine.kernels[0].function: found "a:b:c"; expected one of '
     f'{", ".join(map(spelled, (*FUNCTIONS, "precomputed")))}'),
    ('function = "gaussian"', 'function = 3',
     ': banks.mine.kernels[0].function: found 3; expected a name in quotes or '
     '"package.module:function"'),
    ('widths = [1, 2.5]', 'nu = -1',
     ': banks.mine.kernels[0].nu: found -1; expected a number above 0'),
    ('widths = [1, 2.5]', 'parameters = { a = { b = 1 } }',
     ': banks.mine.kernels[0].parameters.a: found {b = 1}; expected a number, a text, true or '
     'false, or a list of them'),
    ('function = "gaussian"', '',
     ': banks.mine.kernels[0].function: found nothing; expected function = ...'),
    ('widths = [1, 2.5]', 'widths = []',
     ': banks.mine.kernels[0].widths: found []; expected at least one entry'),
    ('widths = [1, 2.5]', 'widths = [1, "2"]',
     ': banks.mine.kernels[0].widths[1]: found "2"; expected a number'),
    ('widths = [1, 2.5]', 'widths = [1, -2]',
     ': banks.mine.kernels[0].widths[1]: found -2; expected a number above 0'),
    ('widths = [1, 2.5]', 'widths = "wide"',
     ': banks.mine.kernels[0].widths: found "wide"; expected a number, a list of '
     'numbers, {start, stop, num}, {base, exponents}, or "chi2"'),
    ('widths = [1, 2.5]', 'widths = true',
     ': banks.mine.kernels[0].widths: found true; expected a number, a list of '
     'numbers, {start, stop, num}, {base, exponents}, or "chi2"'),
    ('widths = [1, 2.5]', 'width = 1',
     f': banks.mine.kernels[0].width: found an unknown key; expected {KERNEL}. Did you mean '
     "'widths'?"),
    ('widths = [1, 2.5]', 'widths = { start = 1, stop = 2 }',
     ': banks.mine.kernels[0].widths: found start, stop; expected start, stop and '
     'num, or base and exponents'),
    ('widths = [1, 2.5]', 'widths = { start = 1, end = 2, num = 3 }',
     ': banks.mine.kernels[0].widths.end: found an unknown key; expected one of start, stop, '
     'num, scale, base, exponents'),
    ('widths = [1, 2.5]', 'widths = { start = 0, stop = 2, num = 3, scale = "log" }',
     ': banks.mine.kernels[0].widths: found a log scale from or to 0; expected start '
     'and stop above 0'),
    ('widths = [1, 2.5]', 'widths = { start = 1, stop = 2, num = "3" }',
     ': banks.mine.kernels[0].widths.num: found "3"; expected a whole number'),
    ('widths = [1, 2.5]', 'widths = 1\ndegrees = [1, 2.5]',
     ': banks.mine.kernels[0].degrees[1]: found 2.5; expected a whole number'),
    ('widths = [1, 2.5]', 'widths = 1\ndegrees = 0',
     ': banks.mine.kernels[0].degrees: found 0; expected a number of at least 1'),
    ('features = ["all", "each"]', 'features = { count = 0 }',
     ': banks.mine.kernels[0].features.count: found 0; expected a number of at least '
     '1'),
    ('features = ["all", "each"]', 'features = 3',
     ': banks.mine.kernels[0].features: found 3; expected "all", "each", {count = '
     '...}, or a list of such and of names of features'),
    ('features = ["all", "each"]', 'features = ["all", 3]',
     ': banks.mine.kernels[0].features[1]: found 3; expected "all", "each", {count = '
     '...}, or the name of a feature or feature group'),
    ('features = ["all", "each"]', 'features = [["a", "b"]]',
     ': banks.mine.kernels[0].features[0]: found ["a", "b"]; expected "all", "each", '
     '{count = ...}, or the name of a feature or feature group'),
    ('name = "level"', 'name = "levle"',
     "methods.levle.name: found the unknown method 'levle'; expected one of METHODS. "
     "Did you mean 'level'?"),
    ('name = "level"', 'method = "level"',
     ': methods[0].name: found nothing; expected name = ...'),
    ('name = "level"', 'name = "level"\nseed = 3',
     f"methods.level.seed: found an unknown parameter; expected {LEVEL}. Move 'seed' to the "
     'top of the file, above the first [section].'),
    ('name = "level"', 'name = "level"\nmax_iter = 10.5',
     'methods.level.max_iter: found 10.5; expected a whole number'),
    ('name = "level"', 'name = "level"\nfar = 1',
     'methods.level.far: found 1; expected a number below 1'),
    ('C = [1, 10]', 'c = [1, 10]',
     f"methods.level.c: found an unknown parameter; expected {LEVEL}. Did you mean 'C'?"),
    ('name = "level"', 'name = "level"\nlable = "slow"',
     f"methods.level.lable: found an unknown parameter; expected {LEVEL}. Did you mean 'label'?"),
    ('C = [1, 10]', 'C = []',
     'methods.level.C: found an empty list; expected at least one value'),
    ('C = [1, 10]', 'C = [1, 1.0]',
     'methods.level.C: found [1, 1.0]; expected every value once'),
    ('C = [1, 10]', 'C = [1, 0]',
     'methods.level.C: found 0; expected a number above 0'),
    ('C = [1, 10]', 'C = "1"',
     'methods.level.C: found "1"; expected a number, a list or series of numbers, or "path"'),
    ('C = [1, 10]', 'C = true',
     'methods.level.C: found true; expected a number'),
    ('C = [1, 10]', 'C = [[1, 10]]',
     'methods.level.C: found [1, 10]; expected a number'),
    ('C = [1, 10]', 'C = {start=1}',
     'methods.level.C: found start; expected start, stop and num, or base and '
     'exponents'),
    ('C = [1, 10]', 'Cost = 1',
     f'methods.level.Cost: found an unknown parameter; expected {LEVEL}'),
    ('C = [1, 10]', 'C = {start=1, stop=100, nm=3}',
     'methods.level.C.nm: found an unknown key; expected one of start, stop, num, scale, '
     "base, exponents. Did you mean 'num'?"),
    ('name = "simplemkl"', 'name = "level"',
     ": found 'level' twice in [[methods]]; expected a label of its own for each"),
    ('predictions = true', 'predictions = 1',
     ': outputs.predictions: found 1; expected true or false'),
    ('predictions = true', 'predict = true',
     f': outputs.predict: found an unknown key; expected {OUTPUTS}. Did you mean '
     "'predictions'?"),
    ('predictions = true', 'seed = 3',
     f": outputs.seed: found an unknown key; expected {OUTPUTS}. Move 'seed' to the top of the "
     'file, above the first [section].'),
    ('predictions = true', 'scale = "zscore"',
     f": outputs.scale: found an unknown key; expected {OUTPUTS}. Move 'scale' under "
     '[preprocessing].'),
    ('[outputs]', '[output]',
     f": output: found an unknown key; expected {TOP}. Did you mean 'outputs'?"),
    ('[outputs]', '[outputs',
     ", line 35: found text that is not TOML: expected ']' at the end of a table declaration, in "
     "'[outputs'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "message"), MISTAKES, ids=[f"{m[0]}->{m[1]}" for m in MISTAKES]
)
def test_a_mistake_is_told_by_place_found_and_expected(tmp_path, right, wrong, message):
    assert SWEEP.count(right) == 1
    file = tmp_path / "s.toml"
    file.write_text(SWEEP.replace(right, wrong))
    with pytest.raises(SpecError) as caught:
        resolve_methods(load_sweep(file))
    expected = message.replace("METHODS", ", ".join(METHODS))
    assert str(caught.value).removeprefix(str(file)) == expected
    assert caught.value.exit_code == 2


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
