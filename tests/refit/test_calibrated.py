"""Models with probabilities: against scikit-learn on the same folds, and with groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mkldist
from mkldist.errors import InputError
from mkldist.fit.select import (
    Prepared,
    calibrated,
    choose,
    held_out_values,
    prepared_fit,
    refit,
)
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep
from tests.refit.sweeps import entry, swept

N = 90
SWEEP = """
name = "small"
tol = 1e-9
[[datasets]]
name = "mine"
file = "mine.csv"
label = "{label}"
id = "row"
ignore = ["note"]
[preprocessing]
scale = "zscore"
[splits]
train_fraction = 0.8
{splits}
[selection]
folds = 0
metric = "{metric}"
[[banks]]
normalisation = "none"
[[banks.kernels]]
function = "gaussian"
widths = [1.5]
features = ["all"]
[[methods]]
name = "uniform"
C = [2.0]
"""


def rows() -> pd.DataFrame:
    """Return rows of two or of three classes, in groups."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=(N, 3))
    value = x[:, 0] * x[:, 1] + 0.3 * draw.normal(size=N)
    return pd.DataFrame(
        {
            "row": [f"r{i}" for i in range(N)], "a": x[:, 0], "b": 5.0 * x[:, 1], "c": x[:, 2],
            "patient": draw.permutation(N) // 3, "note": "x",
            "two": np.where(value > 0.4, "yes", "no"),
            "three": np.digitize(value, [-0.3, 0.4]),
        }
    )  # fmt: skip


def fitted(
    folder: Path, label: str = "two", metric: str = "error", splits: str = ""
) -> tuple[Path, Prepared]:
    """Run a sweep of one setting; return its folder, and the data and run of its fit."""
    others = [name for name in ("two", "three", "patient") if name != label and name not in splits]
    rows().drop(columns=others).to_csv(folder / "mine.csv", index=False)
    file = folder / "small.toml"
    file.write_text(SWEEP.format(label=label, metric=metric, splits=splits))
    run_sweep(load_sweep(file), origin=file, output=folder / "results")
    return folder / "results", prepared_fit(folder / "results", choose(folder / "results"))


@pytest.mark.slow
@pytest.mark.parametrize("label", ["two", "three"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_are_those_of_scikit_learn_on_the_same_folds(label, method, tmp_path):
    results, prepared = fitted(tmp_path, label)
    plain = refit(results, choose(results))
    model = calibrated(plain, prepared, method)
    model.save(tmp_path / "a.model")
    model = mkldist.load_model(tmp_path / "a.model")
    held_out, values, folds = held_out_values(prepared)
    assert sorted(held_out.tolist()) == list(range(N))
    parts = [(held_out[folds != f], held_out[folds == f]) for f in range(5)]
    new, y = rows()[["a", "b", "c"]], rows()[label].to_numpy()
    x = new.to_numpy()
    machine = make_pipeline(StandardScaler(), SVC(C=2.0, gamma=1 / (2 * 1.5**2), tol=1e-9))
    each = []
    for c, name in enumerate(model.labels.classes.tolist()):  # each against the rest
        for train, test in parts if label == "three" or c else ():
            expected = clone(machine).fit(x[train], y[train] == name).decision_function(x[test])
            own = values[np.isin(held_out, test), c if label == "three" else 0]
            np.testing.assert_allclose(own, expected, atol=1e-5)
        other = CalibratedClassifierCV(machine, method=method, ensemble=False, cv=parts)
        each.append(other.fit(x, y == name).predict_proba(x)[:, 1])
    expected = np.stack(each, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    found = model.predict_proba(new)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    classes = np.asarray(model.labels.classes)
    np.testing.assert_array_equal(model.predict(new), classes[found.argmax(axis=1)])
    np.testing.assert_array_equal(model.decision_function(new), plain.decision_function(new))
    figures = model.facts["calibration"]
    assert figures["folds"] == 5
    assert 0 < figures["brier"] < figures["brier_of_shares"]


@pytest.mark.slow
def test_the_threshold_is_that_of_the_metric_of_the_sweep(tmp_path):
    results, prepared = fitted(tmp_path, metric="balanced_error")
    model = calibrated(refit(results, choose(results)), prepared, "sigmoid")
    held_out, values, _ = held_out_values(prepared)
    y = rows()["two"].to_numpy()[held_out] == "yes"
    threshold = model.calibration.threshold
    figures = model.facts["calibration"]
    assert figures["metric"] == "balanced_error"
    at_0 = 1 - balanced_accuracy_score(y, values[:, 0] >= 0)
    assert figures["at_0"] == pytest.approx(at_0)
    assert threshold != 0.0
    assert 1 - balanced_accuracy_score(y, values[:, 0] >= threshold) < at_0
    assert figures["calibrated"] < at_0
    new = rows()[["a", "b", "c"]]
    expected = np.where(model.decision_function(new) >= threshold, "yes", "no")
    np.testing.assert_array_equal(model.predict(new), expected)


def test_groups_stay_together_and_a_split_has_its_own_rows(tmp_path):
    results, prepared = fitted(tmp_path, splits='groups = "patient"')
    held_out, _, folds = held_out_values(prepared)
    patients = rows()["patient"].to_numpy()[held_out]
    assert max(len(set(folds[patients == one])) for one in set(patients)) == 1
    assert len(set(folds)) == 5
    of_split, _, _ = held_out_values(prepared, 0)
    np.testing.assert_array_equal(np.sort(of_split), np.sort(prepared[0].splits[0].train))
    assert refit(results, choose(results), 0).facts["rows"] == len(of_split)


@pytest.mark.slow
def test_real_values_have_no_probabilities(tmp_path):
    methods = entry("primalmkl", loss='"squared"', C=10.0)
    results = swept(tmp_path, methods, "value", dataset='task = "regression"')
    choice = choose(results)
    with pytest.raises(InputError, match="--calibrate: found real values"):
        calibrated(refit(results, choice), prepared_fit(results, choice), "sigmoid")
