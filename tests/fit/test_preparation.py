"""Imputation, scaling and labels before kernels, and the models of estimators."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist import MKLClassifier, MKLRegressor, SemiSupervisedMKLClassifier
from mkldist.errors import DataError, SpecError
from mkldist.fit.inputs import Features
from mkldist.fit.preprocess import check_labels, preparation
from mkldist.kernels import Gaussian

X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 10, 0.1, 0] + [0, 3, 5, 7]


def prepared(x, impute, scale):
    rows = Features(x, ("a", "b", "c", "d"), named=True)
    return preparation(rows, impute, scale).applied(x)


def test_missing_values_are_filled_before_scaling_and_empty_columns_kept():
    holes = X.copy()
    holes[:5, 0], holes[:, 2] = np.nan, np.nan
    found = prepared(holes, "mean", "none")
    assert found[:5, 0] == pytest.approx(X[5:, 0].mean())
    assert found.shape == X.shape


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("medain", None), "impute: found 'medain'.*Did you mean 'median'"),
        ((None, "z-score"), "scale: found 'z-score'.*Did you mean 'zscore'"),
        ((None, "standard"), "scale: found 'standard'; expected one of zscore"),
        ((0, None), "impute: found 0; expected one of median"),
        ((None, StandardScaler()), r"scale: found StandardScaler\(\).* in a pipeline"),
    ],
)
def test_other_words_are_refused(given, message):
    with pytest.raises(SpecError, match=message):
        prepared(X, *given)


@pytest.mark.parametrize(
    "model",
    [
        mkldist.MKLClassifier(),
        mkldist.MKLRegressor(impute="mean"),
        mkldist.OneClassMKL(impute="most_frequent"),
        mkldist.SemiSupervisedMKLClassifier(),
        mkldist.MKLClassifier(views={"v": [0, 2]}),
    ],
    ids=str,
)
def test_a_column_without_any_value_is_refused_as_in_a_sweep(model):
    holes, y = X.copy(), np.arange(30) % 2
    holes[:, 2] = np.nan
    with pytest.raises(DataError, match=r"X: found columns without any value in 'x2' \(30\)"):
        model.fit(holes, y)
    frame = pd.DataFrame(holes, columns=["a", "b", "c", "d"])
    with pytest.raises(DataError, match=r"X: found columns without any value in 'c' \(30\)"):
        model.fit(frame, y)


def test_a_decision_of_zero_predicts_the_first_class_as_the_estimator_does(tmp_path):
    symmetric = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    estimator = mkldist.MKLClassifier("uniform", kernels=[Gaussian(widths=1.0)], scale=None)
    estimator.fit(symmetric, [0, 0, 1, 1])
    far = np.array([[1e6]])  # where all kernels vanish
    assert estimator.decision_function(far) == estimator.intercept_ == 0.0
    assert estimator.to_model().predict(far) == estimator.predict(far) == 0


X_LABELLED = np.random.default_rng(0).normal(size=(30, 2))
CLASS = (X_LABELLED[:, 0] > 0).astype(int)
NAMES = np.where(CLASS == 1, "a", "b")


def lacking(values, missing, dtype):
    made = pd.Series(values, dtype=object)
    made[[3, 5]] = missing
    return made.astype(dtype)


MISSING = {
    "floats": lacking(CLASS, np.nan, float).to_numpy(),
    "a list": [None, *CLASS.tolist()[1:]],
    "None": lacking(CLASS, None, object).to_numpy(),
    "pd.NA": lacking(CLASS, pd.NA, object).to_numpy(),
    "Int64": lacking(CLASS, pd.NA, "Int64"),
    "Float64": lacking(CLASS, pd.NA, "Float64"),
    "boolean": lacking(CLASS == 1, pd.NA, "boolean"),
    "texts": lacking(NAMES, None, object),
    "string": lacking(NAMES, pd.NA, "string"),
    "category": lacking(NAMES, np.nan, "category"),
    "a frame": lacking(CLASS, pd.NA, "Int64").to_frame(),
}
MODELS = [MKLClassifier, MKLRegressor, SemiSupervisedMKLClassifier]


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_label_is_named_with_what_to_do(kind, model):
    rows = "row 0" if kind == "a list" else r"row 3 \(from 0\), row 5"
    remedy = "number -1" if model is SemiSupervisedMKLClassifier else "Leave these rows out"
    said = rf"^y: found (nan|None|<NA>) in {rows}.*; expected a label .*{remedy}"
    with pytest.raises(DataError, match=said):
        model().fit(X_LABELLED, MISSING[kind])


@pytest.mark.parametrize("kind", ["floats", "None", "pd.NA", "Int64", "boolean", "texts", "string"])
def test_the_remedies_do(kind):
    y = MISSING[kind]
    with pytest.raises(DataError) as caught:
        SemiSupervisedMKLClassifier().fit(X_LABELLED, y)
    names = {"np": np, "pd": pd, "y": y}
    marked = eval(re.search(r"y = (.*)\.$", str(caught.value)).group(1), names)
    model = SemiSupervisedMKLClassifier().fit(X_LABELLED, marked)
    assert len(model.classes_) == 2
    with pytest.raises(DataError) as caught:
        MKLClassifier().fit(X_LABELLED, y)
    known = eval(re.search(r"known = (.*), then", str(caught.value)).group(1), names)
    model = MKLClassifier().fit(X_LABELLED[known], y[known])
    assert np.mean(model.predict(X_LABELLED[known]) == np.asarray(y[known])) > 0.8


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.__name__)
def test_an_infinite_value_is_named(model):
    y = np.where(np.arange(30) == 4, -np.inf, CLASS)
    with pytest.raises(DataError, match=r"^y: found -inf in row 4 \(from 0\); expected finite"):
        model().fit(X_LABELLED, y)


def test_what_is_no_array_of_rows_is_left_to_scikit_learn():
    for y in (None, 3.0, [[1, 2], [3]], np.zeros((2, 2, 2))):
        check_labels(y)
