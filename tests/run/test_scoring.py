"""Scores and records of runs: scores by scikit-learn, and failures told in full."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.fit.score import failed_record
from mkldist.planning.model import RunPlan
from mkldist.results.schema import RunState
from tests.run.few_labels import WIDTHS, do, save_npz, text

RUN = RunPlan("r", "d", "b", "bank", 2, "level", "level", {"C": 1.0})
UNIFORM = '[[methods]]\nname = "uniform"\nC = 10.0\n'
RIDGE = '[[methods]]\nname = "spicymkl"\nloss = "squared"\nregularizer = "uniform"\nC = 100.0\n'


def broken() -> Exception:
    try:
        raise ZeroDivisionError("of two kernels")
    except ZeroDivisionError as error:
        return error


def test_an_error_is_recorded_with_its_traceback():
    record = failed_record(RUN, broken(), 7, "class 'a', inner fold 1 (from 0)")
    assert (record.state, record.n_kernels, record.split) == (RunState.FAILED, 7, 2)
    assert record.error == "class 'a', inner fold 1 (from 0): ZeroDivisionError: of two kernels"
    assert "in broken" in record.provenance["traceback"]
    assert record.provenance.keys() > {"traceback"}


def test_words_in_place_of_an_error_have_no_traceback():
    record = failed_record(RUN, "its worker died", 7)
    assert record.error == "its worker died"
    assert "traceback" not in record.provenance


def test_scores_of_two_classes_are_those_of_scikit_learn(tmp_path):
    done = do(text(UNIFORM), tmp_path)
    assert len(done.records) == len(done.splits) == 2
    for record in done.records.values():
        split = done.splits[record.split]
        assert record.test_rows.tolist() == [*split.test, *split.unlabelled]
        ends = {"test": slice(len(split.test)), "unlabelled": slice(len(split.test), None)}
        for part, where in ends.items():
            y, values = done.dataset.y[record.test_rows[where]], record.decision_values[where]
            predicted = np.where(values >= 0, 1.0, -1.0)
            expected = {
                "error": 1 - metrics.accuracy_score(y, predicted),
                "balanced_error": 1 - metrics.balanced_accuracy_score(y, predicted),
                "auc": metrics.roc_auc_score(y, values),
            }
            names = {"error": f"{part}_error"}
            if part == "unlabelled":
                names |= {name: f"unlabelled_{name}" for name in ("balanced_error", "auc")}
            for name, value in expected.items():
                assert record.scores[names.get(name, name)] == pytest.approx(value)


def test_scores_of_values_are_in_the_users_units(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (60, 2))
    y = 5000.0 + 300.0 * np.sin(x[:, 0]) + rng.normal(0.0, 5.0, 60)
    source = save_npz(tmp_path / "d.npz", x=x, y=y) + '\ntask = "regression"'
    done = do(text(RIDGE, source=source, splits="train_fraction = 0.5"), tmp_path)
    [record] = done.records.values()
    found, true = record.decision_values, done.dataset.y[record.test_rows]
    rmse = metrics.root_mean_squared_error(true, found)
    assert record.scores["rmse"] == pytest.approx(rmse)
    assert rmse < 0.5 * true.std()


MAJORITY = '[[methods]]\nname = "majority"\n'
LOGISTIC = '[[methods]]\nname = "spicymkl"\nC = 100.0\n'


def test_log_loss_is_that_of_logistic_regression_and_of_no_other(tmp_path):
    done = do(text(UNIFORM + LOGISTIC), tmp_path)
    for record in done.records.values():
        split = done.splits[record.split]
        values = record.decision_values[: len(split.test)]
        names = {name for name in record.scores if "log_loss" in name or "brier" in name}
        if record.method == "uniform":
            assert not names
            continue
        assert names == {"log_loss", "unlabelled_log_loss", "brier", "unlabelled_brier"}
        probabilities = 1.0 / (1.0 + np.exp(-values))
        expected = metrics.log_loss(done.dataset.y[split.test], probabilities)
        assert record.scores["log_loss"] == pytest.approx(expected)


@pytest.mark.parametrize("splits", ["train_fraction = 0.5\nrepeats = 2", None])
def test_the_error_on_training_rows_is_that_of_the_decision_function(tmp_path, splits):
    """With unlabelled rows the bank is asked for the values, without them the solver has them."""
    changes = {} if splits is None else {"splits": splits}
    methods = UNIFORM.replace("10.0", "[0.01, 10.0]") + LOGISTIC + MAJORITY
    done = do(text(methods, **changes), tmp_path)
    errors = set()
    for record in done.records.values():
        if record.method == "spicymkl" and splits:
            assert "train_error" not in record.scores
            continue
        split = done.splits[record.split]
        x = done.dataset.x[split.train]
        x = (x - done.dataset.x[split.known].mean(axis=0)) / done.dataset.x[split.known].std(axis=0)
        values = np.full(len(x), record.bias)
        for kernel, weight in zip(record.kernels, record.weights, strict=True):
            gram = rbf_kernel(x, gamma=0.5 / WIDTHS[kernel] ** 2)
            values += weight * gram @ record.coefficients / len(x)
        wrong = (values >= 0) != (done.dataset.y[split.train] > 0)
        assert record.scores["train_error"] == pytest.approx(wrong.mean())
        errors.add(round(wrong.mean(), 3))
    assert len(errors) > 1


def test_scores_of_classes_are_recorded_for_two(tmp_path):
    done = do(text(UNIFORM), tmp_path)
    for record in done.records.values():
        split = done.splits[record.split]
        y, values = done.dataset.y[split.test], record.decision_values[: len(split.test)]
        expected = metrics.confusion_matrix(y, np.where(values >= 0, 1.0, -1.0))
        np.testing.assert_array_equal(record.of_classes["confusion"], expected)
        assert record.of_classes["unlabelled_confusion"].sum() == len(split.unlabelled)
