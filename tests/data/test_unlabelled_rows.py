"""Rows without a label: left out if asked, in unlabelled parts of splits, refused elsewhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

import mkldist
from mkldist.data.catalogue import load_dataset
from mkldist.data.splits import make_splits
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake

RNG = np.random.default_rng(4)
Y = np.where(np.arange(30) % 2, "case", "ctl").astype(object)
X = np.round(RNG.normal(size=(30, 2)) + (Y == "case")[:, None], 3)
WITHOUT = np.arange(30) >= 18
PART = np.where(np.arange(30) < 12, "train", "unlabelled")  # of which six have a label


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    lines = [
        f"{a},{b},{part},{'' if without else label}"
        for (a, b), part, label, without in zip(X, PART, Y, WITHOUT, strict=True)
    ]
    path.write_text("\n".join(["f,g,part,label", *lines]) + "\n")
    return path


def loaded(file: Path, splits: SplitsSpec, **words: Any):
    spec = DatasetSpec(name="t", file=str(file), ignore=["part"] * (not splits.column), **words)
    return load_dataset(spec, (), Path(), 0, splits)


def test_they_are_left_out_if_asked_and_counted(file):
    data = loaded(file, SplitsSpec(), unlabelled="drop")
    assert (data.n_points, data.summary.n_rows) == (18, 30)
    assert data.summary.left_out[0] == "12 rows without a label"
    np.testing.assert_array_equal(data.y > 0, Y[:18] == "ctl")
    np.testing.assert_array_equal(data.x, X[:18])


def test_categories_that_are_constant_without_them_are_dropped_and_counted(file):
    file.write_text(file.read_text().replace("unlabelled", "train", 6))
    spec = DatasetSpec(name="t", file=str(file), categorical=["part"], unlabelled="drop")
    data = load_dataset(spec, (), Path(), 0, SplitsSpec())
    assert data.feature_names == ("f", "g")
    assert (data.groups, data.summary.constant) == ({}, ("part=train", "part=unlabelled"))


@pytest.mark.parametrize("kind", ["holdout", "kfold"])
def test_they_are_refused_in_supervised_splits(file, kind):
    with mistake("no label in 12 of 30 rows", 'unlabelled = "drop"'):
        loaded(file, SplitsSpec(kind=kind))


def test_they_stay_in_unlabelled_parts(file):
    given = SplitsSpec(kind="predefined", column="part")
    data = loaded(file, given)
    [split] = make_splits(given, data, 0)
    assert (len(split.train), len(split.unlabelled)) == (12, 18)
    np.testing.assert_array_equal(data.labelled, ~WITHOUT)
    drawn = SplitsSpec(kind="semi-supervised", labelled_per_class=3, test_fraction=0.3, repeats=5)
    data = loaded(file, drawn)
    for split in make_splits(drawn, data, 0):
        assert not WITHOUT[np.concatenate([split.train, split.test])].any()
        assert (len(split.train), len(split.test), len(split.unlabelled)) == (6, 6, 18)
        assert set(np.flatnonzero(WITHOUT)) < set(split.unlabelled)


def test_a_training_part_that_holds_one_is_refused(file):
    file.write_text(file.read_text().replace("unlabelled", "train", 10))
    given = SplitsSpec(kind="predefined", column="part")
    with mistake("no label in 4 of 22 rows of its training part"):
        make_splits(given, loaded(file, given), 0)


def test_scores_of_unlabelled_rows_count_those_with_a_label(file, tmp_path):
    spec = {
        "name": "semi",
        "datasets": [{"name": "t", "file": str(file)}],
        "splits": {"kind": "predefined", "column": "part"},
        "graph": {"neighbours": 4},
        "banks": [{"name": "b", "kernels": [{"function": "gaussian", "widths": [1]}]}],
        "methods": [{"name": "laprls"}],
    }
    tree = mkldist.sweep(spec, output=tmp_path / "semi", progress=False, workers=0)
    run = tree["t/laprls"].ds.squeeze()
    values = run.decision_values.to_numpy()
    assert np.isnan(run.label).sum() == 12
    assert np.isfinite(values[12:]).all()
    y = (Y[12:18] == "ctl").astype(int)
    assert run.unlabelled_auc == pytest.approx(metrics.roc_auc_score(y, values[12:18]))
    error = 1 - metrics.accuracy_score(y, values[12:18] >= 0)
    assert run.unlabelled_error == pytest.approx(error)
    assert run.n_new == 6
