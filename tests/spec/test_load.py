"""Sweep files: what is read, and what a newcomer is told about each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.errors import SpecError
from mkldist.run.resolve import resolve_methods
from mkldist.spec.load import load_sweep

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


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("tol=1e-4", lambda s: s.tol == 1e-4),
        ("methods.level.C=[3]", lambda s: s.methods[0].settings["C"] == [3]),
        ("methods.slow.C=7", lambda s: s.methods[1].settings["C"] == 7),
        ("methods.1.C=7", lambda s: s.methods[1].settings["C"] == 7),
        ("splits.repeats=9", lambda s: s.splits.repeats == 9),
        ("splits.kind=kfold", lambda s: s.splits.kind == "kfold"),
        ('banks.mine.normalisation="cosine"', lambda s: s.banks[1].normalisations == ("cosine",)),
        ("outputs.predictions=true", lambda s: s.outputs.predictions),
        ("datasets.wdbc.source=digits", lambda s: s.datasets[0].source == "digits"),
    ],
)
def test_overrides_reach_every_place(tmp_path, override, found):
    assert found(load(tmp_path, override))


MISTAKES = [
    ("tolx=1", "s.toml: tolx: unknown key; expected one of name, description, seed, tol, "
     "execution, memory, datasets, preprocessing, splits, banks, methods, outputs. "
     "Did you mean 'tol'?"),
    ("tol=-1", "s.toml: tol: found -1; expected a value greater than 0"),
    ("tol='a'", "s.toml: tol: found 'a'; expected a number"),
    ("seed=1.5", "s.toml: seed: found 1.5; expected a whole number"),
    ("seed=-1", "s.toml: seed: found -1; expected a value greater than or equal to 0"),
    ("execution='sharde'",
     "s.toml: execution: found 'sharde'; expected one of shared, isolated. Did you mean 'shared'?"),
    ("name='a b'",
     "s.toml: name: found 'a b'; expected a name of letters, digits and the signs _ . + -"),
    ("datasets=[]", "s.toml: datasets: empty; expected at least one [[datasets]] entry"),
    ("preprocessing=3", "s.toml: preprocessing: found 3; expected a table"),
    ("preprocessing.scale='z'",
     "s.toml: preprocessing.scale: found 'z'; expected one of zscore, minmax, none"),
    ("splits.kind='hold'",
     "s.toml: splits.kind: found 'hold'; expected one of holdout, kfold, predefined. "
     "Did you mean 'holdout'?"),
    ("splits.train_fraction=1.5",
     "s.toml: splits.train_fraction: found 1.5; expected a value less than 1"),
    ("splits.repeats=0",
     "s.toml: splits.repeats: found 0; expected a value greater than or equal to 1"),
    ("splits.stratified='often'", "s.toml: splits.stratified: found 'often'; "
     "expected true or false"),
    ("splits.fold=3", "s.toml: splits.fold: unknown key; expected one of kind, repeats, "
     "train_fraction, folds, stratified, first. Did you mean 'folds'?"),
    ("datasets.wdbc.fle='x'",
     "s.toml: datasets[0].fle: unknown key; expected one of name, source, file, openml, grams, "
     "labels, label, classes, positive, impute, drop_constant, groups, options. "
     "Did you mean 'file'?"),
    ("datasets.wdbc.impute='mean'",
     "s.toml: datasets[0].impute: found 'mean'; expected one of median. Did you mean 'median'?"),
    ("datasets=[{name='a', file='x.csv', grams='y.npz'}]",
     "s.toml: datasets[0]: found file and grams; expected one source of data"),
    ("banks.xu2008.family='xu08'",
     "s.toml: banks[0].family: found 'xu08'; expected one of xu2008, suzuki2011, hao2012, "
     "hao2012-polynomial, do2009, do2009-gaussian, guo2011, precomputed. Did you mean 'xu2008'?"),
    ("banks.mine.kernels=[]",
     "s.toml: banks[1]: found neither; expected a family or [[banks.kernels]] entries"),
    ("banks.mine.normalisation=['trace','cosine']",
     "s.toml: banks[1]: found cosine after another normalisation; expected it first"),
    ("banks.mine.kernels.0.function='gauss'",
     "s.toml: banks[1].kernels[0].function: found 'gauss'; expected one of gaussian, polynomial, "
     "linear, laplacian-rbf. Did you mean 'gaussian'?"),
    ("banks.mine.kernels.0.widths={start=1}",
     "s.toml: banks[1].kernels[0].widths: found neither or both; expected "
     "{start, stop, num[, scale]} or {base, exponents}"),
    ("banks.mine.kernels.0.widths={start=0, stop=1, num=3, scale='log'}",
     "s.toml: banks[1].kernels[0].widths: found a log scale from or to 0; expected "
     "start and stop above 0"),
    ("banks.mine.name='xu2008'",
     "s.toml: found 'xu2008' twice among banks; expected a name of its own for each"),
    ("methods.slow.label='level'",
     "s.toml: found 'level' twice among methods; expected a name of its own for each"),
    ("methods.level.name='levle'",
     "methods.levle.name: unknown method 'levle'; expected one of level, simplemkl, uniform, "
     "best_single, majority. Did you mean 'level'?"),
    ("methods.level.c=1", "methods.level.c: unknown parameter; expected one of tol, max_iter, "
     "time_limit, trace, C, far, near, stop. Did you mean 'C'?"),
    ("methods.level.C=[]", "methods.level.C: found an empty list; expected at least one value"),
    ("methods.level.C=[1, -2]",
     "methods.level.C: found -2; expected a value greater than 0"),
    ("methods.level.C=[1, 1.0]", "methods.level.C: found [1, 1.0]; expected every value once"),
    ("methods.level.C='much'", "methods.level.C: found 'much'; expected a number"),
    ("methods.levl.C=1",
     "--set methods.levl.C=1: no item 'levl'; expected one of level, slow. Did you mean 'level'?"),
    ("tol", "--set tol: no '='; expected path.to.key=value"),
    ("name.first=1", "--set name.first=1: name is the value 's'; expected a table"),
    ("outputs.predictions=3", "s.toml: outputs.predictions: found 3; expected true or false"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "message"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_every_mistake_is_told_by_place_found_and_expected(tmp_path, override, message):
    with pytest.raises(SpecError) as caught:
        load(tmp_path, override)
    assert str(caught.value).replace(f"{tmp_path}/", "") == message
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there_names_the_one_that_was_meant(tmp_path):
    load(tmp_path)
    with pytest.raises(SpecError, match=r"no such file.*Did you mean 's.toml'\?"):
        load_sweep(tmp_path / "ss.toml")


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", b"[[x]\n"])
def test_what_is_not_toml_is_said_so(tmp_path, content):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=r"bad.toml: (not TOML|cannot be read)"):
        load_sweep(path)


def test_a_missing_section_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"s.toml: banks: missing; expected at least one \[\[banks"):
        load(tmp_path, text='name = "s"\n[[datasets]]\nname = "wdbc"\n[[methods]]\nname = "level"')


def test_all_sweeps_of_the_project_can_be_read():
    folder = Path(__file__).parents[2] / "sweeps"
    files = sorted(folder.glob("*.toml"))
    assert len(files) >= 2
    for file in files:
        spec = load_sweep(file)
        resolve_methods(spec)
        assert spec.description
