"""Labels and values that are missing: every kind of them, named with its row and the remedy."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mkldist import MKLClassifier, MKLRegressor, SemiSupervisedMKLClassifier
from mkldist.errors import DataError
from mkldist.fit.preprocess import check_labels

X = np.random.default_rng(0).normal(size=(30, 2))
CLASS = (X[:, 0] > 0).astype(int)
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
        model().fit(X, MISSING[kind])


@pytest.mark.parametrize("kind", ["floats", "None", "pd.NA", "Int64", "boolean", "texts", "string"])
def test_the_remedies_do(kind):
    y = MISSING[kind]
    with pytest.raises(DataError) as caught:
        SemiSupervisedMKLClassifier().fit(X, y)
    names = {"np": np, "pd": pd, "y": y}
    marked = eval(re.search(r"y = (.*)\.$", str(caught.value)).group(1), names)
    model = SemiSupervisedMKLClassifier().fit(X, marked)
    assert len(model.classes_) == 2
    with pytest.raises(DataError) as caught:
        MKLClassifier().fit(X, y)
    known = eval(re.search(r"known = (.*), then", str(caught.value)).group(1), names)
    model = MKLClassifier().fit(X[known], y[known])
    assert np.mean(model.predict(X[known]) == np.asarray(y[known])) > 0.8


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.__name__)
def test_an_infinite_value_is_named(model):
    y = np.where(np.arange(30) == 4, -np.inf, CLASS)
    with pytest.raises(DataError, match=r"^y: found -inf in row 4 \(from 0\); expected finite"):
        model().fit(X, y)


def test_what_is_no_array_of_rows_is_left_to_scikit_learn():
    for y in (None, 3.0, [[1, 2], [3]], np.zeros((2, 2, 2))):
        check_labels(y)
