"""What a user may give as a data set in Python, and what is said of anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csr_array

from mkldist.data.inputs import input_data, read_inputs
from mkldist.data.tables import ColumnChoice
from mkldist.errors import DataError

X = np.arange(12.0).reshape(6, 2)
Y = np.array([1, -1, 1, -1, 1, -1])


@pytest.mark.parametrize(
    "labels",
    [Y.tolist(), Y[:, None], pd.Series(Y, index=range(5, 11)), Y.astype(object)],
    ids=["list", "column", "series", "objects"],
)
def test_labels_have_any_form(labels):
    raw = input_data((X, labels), "data").raw_data(ColumnChoice(), "data")
    assert raw.labels.astype(float).tolist() == Y.tolist()


def test_features_have_any_form():
    for points in (X.tolist(), csr_array(X), X.astype(np.float32), X.astype(object)):
        raw = input_data((points, Y), "data").raw_data(ColumnChoice(), "data")
        np.testing.assert_array_equal(raw.x, X)
    frame = pd.DataFrame(X, columns=["a", "b"], index=range(9, 3, -1))
    raw = input_data((frame, Y), "data").raw_data(ColumnChoice(), "data")
    np.testing.assert_array_equal(raw.x, X)
    assert raw.feature_names == ("a", "b")
    named = input_data({"x": X, "y": Y, "feature_names": ["a", "b"]}, "data")
    assert named.raw_data(ColumnChoice(), "data").feature_names == ("a", "b")


@pytest.mark.parametrize("form", [csr_array, coo_matrix])
def test_sparse_features_stay_sparse_where_the_sweep_says_so(form, tmp_path: Path):
    given = input_data({"x": form(X), "y": Y, "feature_names": ["a", "b"]}, "data")
    raw = given.raw_data(ColumnChoice(sparse=True), "data")
    assert raw.x is None
    np.testing.assert_array_equal(raw.sparse.toarray(), X)
    assert raw.feature_names == ("a", "b")
    file = tmp_path / f"kept-{given.id}.inputs.npz"
    given.save(file)
    kept = read_inputs(file, ColumnChoice(sparse=True), "data")
    np.testing.assert_array_equal(kept.sparse.toarray(), X)


@pytest.mark.parametrize("points", [X, pd.DataFrame(X), np.ones((2, 6, 6))])
def test_dense_features_are_no_sparse_ones(points):
    with pytest.raises(DataError, match=r"data.*: found sparse = true for dense features"):
        input_data((points, Y), "data").raw_data(ColumnChoice(sparse=True), "data")


def test_days_and_whole_numbers_are_spelled_as_in_files():
    given = {"x": X, "y": Y, "order": pd.date_range("2021-03-01", periods=6), "groups": [1.0] * 6}
    arrays = input_data(given, "data").arrays
    assert arrays["order"][0] == "2021-03-01"
    assert arrays["groups"].tolist() == ["1"] * 6
    times = {"x": X, "y": Y, "order": pd.date_range("2021-03-01 08:30", periods=6)}
    assert input_data(times, "data").arrays["order"][0] == "2021-03-01T08:30:00"


def test_columns_that_divide_rows_are_those_given_for_it():
    frame = pd.DataFrame(X, columns=["order", "groups"])
    assert input_data((frame, Y), "data").of_splits == ()
    assert input_data((X, Y, Y), "data").of_splits == ("groups",)
    assert input_data((frame[["order"]], Y, Y), "data").of_splits == ("groups",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mine.csv", r"data: found str; expected \(X, y\)"),
        ((X,), "data: found tuple"),
        ({"x": X}, "data: found keys x; expected x or grams, and y"),
        ({"x": X, "grams": X, "y": Y}, "expected x or grams, and y"),
        ({"x": X, "y": Y, "group": Y}, "unknown key 'group'.*Did you mean 'groups'"),
        (([[1, 2], [3]], [1, -1]), "data: X: found list"),
        ((X, np.c_[Y, Y]), r"data: y: found numpy.ndarray of shape \(6, 2\)"),
        ((X, Y, Y[:3]), "data: groups: found 3; expected 6, one a point"),
        ((X, Y, np.c_[Y, Y]), "data: groups: found numpy.ndarray of lists"),
        ((np.array([["a"] * 2] * 6, dtype=object), Y), "X: found values that are no numbers"),
        ((pd.DataFrame(X), Y[:3]), "6 rows of features but 3 labels"),
        ((pd.DataFrame(X, columns=["a", "label"]), Y), "a column 'label' in X, beside y"),
        ({"x": pd.DataFrame(X), "y": Y, "train": [0]}, "train beside a DataFrame; expected none"),
    ],
)
def test_anything_else_is_told(given, said):
    with pytest.raises(DataError, match=said):
        input_data(given, "data")


def test_bytes_are_texts_in_utf8():
    frame = pd.DataFrame(
        {"a": X[:, 0], "dna": [b"ac", "gé".encode()] * 3, "label": [b"p", b"q"] * 3}
    )
    choice = ColumnChoice("label", texts=("dna",))
    raw = input_data(frame, "data").raw_data(choice, "data")
    assert raw.texts is not None
    assert raw.texts.values.ravel().tolist() == ["ac", "gé"] * 3
    assert raw.labels.tolist() == ["p", "q"] * 3
    with pytest.raises(
        DataError, match=r"column 'dna', row 0 \(from 0\): found bytes that are not"
    ):
        input_data(frame.assign(dna=[b"\xff"] * 6), "data")
