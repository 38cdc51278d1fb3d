"""Data, splits, kernels and grids of a sweep, loaded and checked."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from mkldist.core.identity import array_id
from mkldist.errors import InputError, SpecError
from mkldist.planning.resolved import Resolved, resolve
from mkldist.planning.spec_checks import resolve_methods
from mkldist.spec.model import SweepSpec

SWEEP = """
name = "s"
tol = 0.001
datasets = [{ name = "two_moons", options = { n = 40 } }, { name = "friedman1", options = { n = 30 } }]
[preprocessing]
target = "zscore"
[splits]
repeats = 3
train_fraction = 0.5
[[banks]]
name = "mine"
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 1.0]
[[methods]]
name = "spicymkl"
loss = "squared"
C = { start = 0.01, stop = 1.0, num = 3, scale = "log" }
[[methods]]
name = "primalmkl"
label = "primal"
loss = "squared"
"""  # noqa: E501


def resolved(words: str, base: Path = Path()) -> Resolved:
    return resolve(SweepSpec.model_validate(tomllib.loads(words)), (), base)


def test_facts_are_those_of_the_loaded_data():
    found = resolved(SWEEP)
    for name, n in (("two_moons", 40), ("friedman1", 30)):
        dataset, splits = found.datasets[name]
        facts = found.facts[name]
        assert facts.n_points == n == len(dataset.x)
        assert facts.fingerprint == dataset.fingerprint
        assert facts.known_sizes == tuple(len(split.train) for split in splits) == (n // 2,) * 3
        assert facts.known_fingerprints == tuple(array_id(split.train) for split in splits)
        assert len(set(facts.split_fingerprints)) == 3
        assert (facts.n_problems, facts.inner_folds, facts.precomputed) == (1, (), False)
        assert found.banks[name, "mine"].n_kernels == len(found.kernels[name, "mine"]) == 2
        assert len(found.kernel_names(name, "mine")) == 2
    assert [facts.target for facts in found.facts.values()] == ["none", "zscore"]


def test_dims_and_settings_are_those_of_the_methods():
    found = resolved(SWEEP)
    for name in ("two_moons", "friedman1"):
        grids = found.grids[name]
        dims = {key: grid.dims for key, grid in grids.items()}
        assert list(dims) == ["spicymkl", "primal"]
        assert dims["spicymkl"]["C"] == pytest.approx([0.01, 0.1, 1.0])
        assert dims["primal"] == {"C": [grids["primal"].points[0].C]}
        assert [point["tol"] for point in grids["spicymkl"].settings] == [0.001] * 3


def test_a_selection_has_inner_folds_for_every_split():
    facts = resolved(SWEEP + "[selection]\nfolds = 4\n").facts
    assert {facts.inner_folds for facts in facts.values()} == {(4, 4, 4)}


def test_precomputed_matrices_have_their_own_bank(tmp_path):
    factor = np.random.default_rng(0).normal(size=(3, 20, 4))
    np.savez(tmp_path / "k.npz", grams=factor @ factor.swapaxes(1, 2), y=np.arange(20) % 2)
    words = (
        'name = "s"\ndatasets = [{ name = "k", grams = "k.npz" }]\n'
        'banks = [{ family = "precomputed" }]\nmethods = [{ name = "level" }]\n'
    )
    found = resolved(words, tmp_path)
    assert found.facts["k"].precomputed
    assert found.banks["k", "precomputed"].n_kernels == 3
    assert found.kernel_names("k", "precomputed") == ["gram[0]", "gram[1]", "gram[2]"]
    assert not found.kernels
    with pytest.raises(
        SpecError, match=r"banks\.xu2008: found kernels of features for 'k', which holds"
    ):
        resolved(words.replace("precomputed", "xu2008"), tmp_path)


def test_mistakes_are_found_before_data_are_read():
    spec = SweepSpec.model_validate(tomllib.loads(SWEEP.replace('"primalmkl"', '"primal"')))
    with pytest.raises(
        SpecError, match=r"methods\.primal\.name: found the unknown method 'primal'"
    ):
        resolve_methods(spec)
    with pytest.raises(InputError, match="two_suns"):
        resolved(SWEEP.replace("two_moons", "two_suns"))


COUNTS = """
name = "s"
datasets = [{ name = "counts", file = "counts.csv" }]
[preprocessing]
scale = "none"
[[banks]]
name = "mine"
[[banks.kernels]]
function = "intersection"
features = ["all", "b"]
[[methods]]
name = "uniform"
"""


def test_functions_of_numbers_of_at_least_0_take_counts_as_they_are(tmp_path):
    file = tmp_path / "counts.csv"
    file.write_text("a,b,class\n1,0,x\n0,2,y\n3,1,x\n2,5,y\n0,0,x\n4,2,y\n")
    kernels = resolved(COUNTS, tmp_path).kernels["counts", "mine"]
    assert kernels.names(["a", "b"]) == ["intersection[all]", "intersection[b]"]
    for scale in ("zscore", "minmax"):
        words = f'banks.mine: found an intersection kernel of features that scale = "{scale}" makes'
        with pytest.raises(SpecError, match=words):
            resolved(COUNTS.replace('"none"', f'"{scale}"'), tmp_path)
    file.write_text(file.read_text().replace("2,5,y", "2,-5,y"))
    with pytest.raises(InputError, match=r"counts: found -5 in line 5, column 'b', for an int"):
        resolved(COUNTS, tmp_path)


def test_functions_of_the_user_are_tried_on_points_as_kernels_see_them(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "counting_kernels.py").write_text(
        "seen = []\ndef k(x, z):\n    seen.append(x)\n    return x @ z.T\n"
    )
    sweep = COUNTS.replace('"intersection"', '"counting_kernels:k"').replace('"none"', '"minmax"')
    rows = "".join(f"{i},{-i},{'xy'[i % 2]}\n" for i in range(8))
    (tmp_path / "counts.csv").write_text(f"a,b,class\n{rows}")
    resolved(sweep, tmp_path)
    seen = sys.modules["counting_kernels"].seen
    assert [points.shape for points in seen] == [(4, 2), (4, 1)]
    assert seen[0].min(axis=0).tolist() == [-1.0, -1.0]
    assert seen[0].max(axis=0).tolist() == [1.0, 1.0]
