"""Models of sweeps against the predictions that they stored, on all rows, and calibrated."""

import shutil
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
from mkldist.errors import DataError, InputError, SpecError, StoreError
from mkldist.fit.engine import BankInputs
from mkldist.fit.select import (
    Prepared,
    calibrated,
    choose,
    held_out_values,
    prepared_fit,
    refit,
    source_of,
)
from mkldist.results.schema import RunState
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep
from tests.fit.sweeps import FEW_LABELS, N, chosen, entry, recorded, rows, swept, table

TWO_CLASSES = "".join(
    [
        entry("level", C=[1.0, 100.0]),
        entry("spicymkl", C=100.0),
        entry("easymkl", lam=0.1),
        entry("best_single", C=10.0, tol=1e-12),  # else bits of K decide where the machine stops
        entry("majority"),
    ]
)


def assert_predicts_as_recorded(results: Path, tmp_path: Path) -> None:
    """Compare each record's decision values with those of a model on the split's training part."""
    records = recorded(results)
    assert records
    assert {record.state for record in records} == {RunState.COMPLETE}
    for record in records:
        refit(results, chosen(record), record.split).save(tmp_path / "split.model")
        model = mkldist.load_model(tmp_path / "split.model")
        new = rows().iloc[record.test_rows]
        stored = record.decision_values.T
        largest = max(1.0, np.abs(stored).max())
        np.testing.assert_allclose(
            model.decision_function(new), stored, rtol=0, atol=1e-10 * largest
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scale": "minmax", "impute": "mean", "normalisation": '"variance"'},
        {"scale": "none", "impute": "most_frequent", "normalisation": '"cosine"'},
        {"fit": "all", "normalisation": '["centre", "trace"]'},
        {"normalisation": '["cosine", "centre"]', "dataset": "drop_constant = false"},
        {"normalisation": '"none"', "scale": "minmax"},
    ],
    ids=str,
)
def test_two_classes_are_predicted_as_in_the_sweep(changes, tmp_path):
    assert_predicts_as_recorded(swept(tmp_path, TWO_CLASSES, **changes), tmp_path)


@pytest.mark.slow
def test_more_classes_are_predicted_as_in_the_sweep(tmp_path):
    methods = entry("level", C=10.0) + entry(
        "level", label='"shared"', kernel_weights='"shared"', C=10.0
    )
    results = swept(tmp_path, methods, "three", normalisation='["centre", "variance"]')
    assert_predicts_as_recorded(results, tmp_path)
    model = refit(results, choose(results, method="level"))
    assert model.decision_function(rows()).shape == (N, 3)
    assert set(model.predict(rows()).tolist()) == {0, 10, 20}  # whole numbers, as in the table
    assert set(model.kernel_weights["class"]) == {"0", "10", "20"}


@pytest.mark.slow
@pytest.mark.parametrize("fit", ["train", "all"])
def test_few_labels_are_predicted_as_in_the_sweep(fit, tmp_path):
    methods = (
        entry("lapmkl", gamma_a=0.01, gamma_i=0.1)
        + entry("mklsvm", gamma_a=0.01, gamma_i=0.1)
        + entry("level", C=10.0)
    )
    results = swept(tmp_path, methods, splits=FEW_LABELS, fit=fit)
    assert_predicts_as_recorded(results, tmp_path)
    model = refit(results, choose(results, method="lapmkl"))
    assert model.facts["rows"] == N


@pytest.mark.slow
def test_classes_share_the_graph_that_they_learn_from(tmp_path, monkeypatch):
    methods = entry("lapmkl", gamma_a=0.01, gamma_i=0.1)
    target = swept(tmp_path, methods, "three", splits=FEW_LABELS)
    made, laplacian = [], BankInputs.laplacian

    def counted(inputs, *given):
        made.append(given)
        return laplacian(inputs, *given)

    monkeypatch.setattr(BankInputs, "laplacian", counted)
    assert len(refit(target, choose(target)).functions) == 3
    assert len(made) == 1


@pytest.mark.slow
def test_a_selected_setting_is_fitted_without_its_inner_folds(tmp_path):
    splits = "[splits]\nrepeats = 2\n[selection]\nfolds = 3"
    results = swept(tmp_path, entry("level", C=[1.0, 100.0]), splits=splits)
    assert_predicts_as_recorded(results, tmp_path)
    validation = {
        C: np.mean([r.scores["validation_error"] for r in recorded(results) if r.params["C"] == C])
        for C in (1.0, 100.0)
    }
    choice = choose(results)
    assert choice.settings == {"C": min(validation, key=validation.get)}
    assert "the best of 2 settings by cross-validation" in choice.said


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    return swept(tmp_path_factory.mktemp("refit"), TWO_CLASSES)


@pytest.mark.slow
def test_all_rows_are_fitted_and_the_origin_is_kept(results):
    model = refit(results, choose(results, method="level", settings={"C": 100.0}))
    assert model.facts["rows"] == N
    assert model.facts["params"]["C"] == 100.0
    assert model.facts["stop_reason"] == "converged"
    assert 0 <= model.facts["gap"] <= 1e-3
    assert model.facts["data_fingerprint"] == recorded(results)[0].provenance["data_fingerprint"]
    assert (model.predict(rows()) == table()["two"]).mean() > 0.9
    held = np.count_nonzero(model.functions[0].coefficients)
    assert model.n_support == held < N
    assert (model.kernel_weights["weight"] > 0).all()


@pytest.mark.slow
def test_a_parameter_may_be_changed_and_is_checked(results):
    choice = choose(results, method="level", settings={"C": 7.0, "tol": 1e-6})
    assert choice.changed == {"C": 7.0, "tol": 1e-6}
    model = refit(results, choice)
    assert model.facts["params"]["C"] == 7.0
    assert model.facts["gap"] <= 1e-6
    bad = choose(results, method="level", settings={"D": 7.0})
    with pytest.raises(SpecError, match="unknown parameter"):
        refit(results, bad)


@pytest.mark.slow
def test_the_sweep_needs_its_data_no_longer(results, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(results, moved)
    model = refit(moved, choose(moved, method="level"))
    assert model.facts["rows"] == N


@pytest.mark.slow
def test_what_the_folder_lacks_is_told(results, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(results, broken)
    choice = choose(broken, method="level")
    shutil.rmtree(broken / "snapshots")
    with pytest.raises(StoreError, match="no copy of the data of 'mine'"):
        refit(broken, choice)
    (broken / "records.journal").unlink()
    with pytest.raises(StoreError, match="no record of run"):
        source_of(broken, choice.run_ids[0])


@pytest.mark.slow
def test_gram_matrices_are_refused_with_a_way_out(tmp_path):
    x = np.random.default_rng(0).normal(size=(20, 3))
    np.savez(tmp_path / "k.npz", grams=np.array([x @ x.T]), y=np.sign(x[:, 0]))
    file = tmp_path / "grams.toml"
    file.write_text(
        'name = "grams"\n[[datasets]]\nname = "mine"\ngrams = "k.npz"\n[splits]\nrepeats = 1\n'
        '[[banks]]\nfamily = "precomputed"\n[[methods]]\nname = "uniform"\n'
    )
    run_sweep(load_sweep(file), origin=file, output=tmp_path / "results")
    choice = choose(tmp_path / "results")
    with pytest.raises(DataError, match=r"precomputed Gram matrices; expected features.*bank\.on"):
        refit(tmp_path / "results", choice)


N_C = 90
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


def rows_c() -> pd.DataFrame:
    """Return rows of two or of three classes, in groups."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=(N_C, 3))
    value = x[:, 0] * x[:, 1] + 0.3 * draw.normal(size=N_C)
    return pd.DataFrame(
        {
            "row": [f"r{i}" for i in range(N_C)], "a": x[:, 0], "b": 5.0 * x[:, 1], "c": x[:, 2],
            "patient": draw.permutation(N_C) // 3, "note": "x",
            "two": np.where(value > 0.4, "yes", "no"),
            "three": np.digitize(value, [-0.3, 0.4]),
        }
    )  # fmt: skip


def fitted(
    folder: Path, label: str = "two", metric: str = "error", splits: str = ""
) -> tuple[Path, Prepared]:
    """Run a sweep of one setting; return its folder, and the data and run of its fit."""
    others = [name for name in ("two", "three", "patient") if name != label and name not in splits]
    rows_c().drop(columns=others).to_csv(folder / "mine.csv", index=False)
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
    assert sorted(held_out.tolist()) == list(range(N_C))
    parts = [(held_out[folds != f], held_out[folds == f]) for f in range(5)]
    new, y = rows_c()[["a", "b", "c"]], rows_c()[label].to_numpy()
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
    y = rows_c()["two"].to_numpy()[held_out] == "yes"
    threshold = model.calibration.threshold
    figures = model.facts["calibration"]
    assert figures["metric"] == "balanced_error"
    at_0 = 1 - balanced_accuracy_score(y, values[:, 0] >= 0)
    assert figures["at_0"] == pytest.approx(at_0)
    assert threshold != 0.0
    assert 1 - balanced_accuracy_score(y, values[:, 0] >= threshold) < at_0
    assert figures["calibrated"] < at_0
    new = rows_c()[["a", "b", "c"]]
    expected = np.where(model.decision_function(new) >= threshold, "yes", "no")
    np.testing.assert_array_equal(model.predict(new), expected)


def test_groups_stay_together_and_a_split_has_its_own_rows(tmp_path):
    results, prepared = fitted(tmp_path, splits='groups = "patient"')
    held_out, _, folds = held_out_values(prepared)
    patients = rows_c()["patient"].to_numpy()[held_out]
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
