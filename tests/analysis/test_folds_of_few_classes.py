"""Scores of folds that lack a class, in tables and comparisons, against scikit-learn."""

from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import mkldist
from mkldist.analysis import compare_methods, compare_sweeps
from mkldist.analysis.summary import selected_summary, summary

KERNELS = [{"function": "gaussian", "widths": [1, 4], "features": "all"}]
SWEEP = {
    "name": "few",
    "banks": [{"name": "b", "kernels": KERNELS}],
    "methods": [{"name": "uniform", "C": [1, 30]}, {"name": "level", "C": [1]}],
}
RNG = np.random.default_rng(3)
GROUPS = np.repeat(np.arange(7), 4)
Y = np.where(np.arange(28) % 4 < (GROUPS % 3), "case", "ctl")  # three groups have no case
X = RNG.normal(size=(28, 2)) + 0.9 * (Y == "case")[:, None]


def results(folder: Path, y: np.ndarray = Y, **words: object):
    spec = SWEEP | {"datasets": [{"name": "d"}]} | words
    groups = {"groups": GROUPS} if "groups" in spec["splits"] else {}
    data = {"d": {"x": X, "y": y, **groups}}
    return mkldist.sweep(spec, data, output=folder / "few", progress=False, workers=0)


def of_all_rows(run) -> dict[str, float]:
    """Return the scores of all rows, each by the decision value of the fold that tested it."""
    values = run.decision_values.max("split").to_numpy()
    y = np.where(run.label > 0, 1, 0)
    return {
        "auc": metrics.roc_auc_score(y, values),
        "average_precision": metrics.average_precision_score(y, values),
        "balanced_error": 1 - metrics.balanced_accuracy_score(y, values >= 0),
        "f1": metrics.f1_score(y, values >= 0),
    }


@pytest.mark.parametrize(
    "splits",
    [
        {"kind": "leave-one-group-out", "groups": "groups"},
        {"kind": "kfold", "folds": 28, "stratified": False},
    ],
)
def test_rows_of_all_folds_are_scored_together_where_one_lacks_a_class(tmp_path, splits):
    tree = results(tmp_path, splits=splits, selection={"folds": 0, "metric": "auc"})
    rows = summary(tree)
    if "groups" in splits:
        assert tree["d/level"].group.to_numpy().tolist() == list("0123456")
    n_lacking = 3 if "groups" in splits else 28
    assert (rows["pooled"] == n_lacking).all()
    assert tree["d/uniform"].auc.isnull().sum() == 2 * n_lacking  # a fold has its own, or none
    for row in rows.to_dict("records"):
        run = tree[f"d/{row['method']}"].ds.sel(C=row["C"])
        for name, score in of_all_rows(run).items():
            assert row[f"{name}_mean"] == pytest.approx(score)
            assert row[f"{name}_low"] < score < row[f"{name}_high"]
    [pair] = compare_methods(tree).to_dict("records")
    best = rows.groupby("method")["auc_mean"].max()
    assert pair["difference"] == pytest.approx(best["uniform"] - best["level"], abs=1e-12) or (
        pair["difference"] == pytest.approx(best["level"] - best["uniform"])
    )
    assert 0.0 < pair["p_value"] <= 1.0
    [found] = compare_sweeps(tmp_path / "few", methods=("uniform", "level")).pairs
    assert found.scores.first == pytest.approx(best["uniform"])
    assert found.pooled == n_lacking


def test_settings_may_differ_between_folds_that_are_scored_together(tmp_path):
    splits = {"kind": "leave-one-group-out", "groups": "groups"}
    selection = {"folds": 2, "metric": "balanced_error"}
    tree = results(tmp_path, splits=splits, selection=selection)
    chosen = mkldist.selected(tree)
    for row in selected_summary(tree).to_dict("records"):
        for name, score in of_all_rows(chosen[f"d/{row['method']}"].ds).items():
            assert row[f"{name}_mean"] == pytest.approx(score)


def test_folds_that_have_each_class_are_scored_one_by_one(tmp_path):
    tree = results(tmp_path, splits={"kind": "kfold", "folds": 3})
    rows = summary(tree)
    assert not rows["pooled"].any()
    auc = tree["d/level"].auc.mean("split").item()
    assert rows.set_index("method").loc["level", "auc_mean"] == pytest.approx(auc)


def test_r2_of_single_rows_is_that_of_all(tmp_path):
    y = X[:, 0] + 0.1 * RNG.normal(size=28)
    splits = {"kind": "kfold", "folds": 28}
    methods = [{"name": "spicymkl", "loss": "squared", "C": [10]}]
    datasets = [{"name": "d", "task": "regression"}]
    tree = results(tmp_path, y, splits=splits, methods=methods, datasets=datasets)
    [row] = summary(tree).to_dict("records")
    values = tree["d/spicymkl"].decision_values.max("split").to_numpy().ravel()
    assert row["r2_mean"] == pytest.approx(metrics.r2_score(y, values))
