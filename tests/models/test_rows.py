"""Columns of new rows, matched with those of a model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from mkldist.data.source_columns import SourceColumns
from mkldist.errors import DataError
from mkldist.fit.new_rows import NewRows, array_rows, check_rows, frame_rows, unseen_lines
from mkldist.row_places import FROM_ONE
from tests.models.made_up import COLUMNS


def test_features_are_those_of_scikit_learns_encoder():
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"size": ["S", "L", None, "XL", "L"], "b": range(5), "a": range(5, 10)})
    rows, x = frame_rows(COLUMNS, frame, "X")
    encoder = OneHotEncoder(categories=[["L", "S", "?"]], handle_unknown="ignore")
    expected = encoder.fit_transform(frame[["size"]].fillna("?")).toarray()
    np.testing.assert_array_equal(x[:, 2:], expected[:, :2])  # "?" is not kept
    np.testing.assert_array_equal(x[:, :2], frame[["a", "b"]])
    assert rows.unseen == Counter({("size", "XL"): 1})


def test_a_column_of_the_model_stands_once_in_a_frame():
    frame = pd.DataFrame([[1, 2, "S", 3, 4]], columns=["a", "b", "size", "a", "label"])
    with pytest.raises(DataError, match=r"^X: found 2 columns 'a'; expected .* Rename or drop"):
        frame_rows(COLUMNS, frame, "X")


def test_numbers_may_be_text_and_truth_values():
    frame = pd.DataFrame({"a": ["1", "2.5"], "b": [True, False], "size": ["S", "S"]})
    _, x = frame_rows(COLUMNS, frame, "X")
    assert x[:, :2].tolist() == [[1.0, 1.0], [2.5, 0.0]]


def test_all_differences_are_told_in_one_message():
    said = "t.csv: found no column 'a', 'size'; columns 'Sise', 'age', unknown to the model"
    with pytest.raises(DataError, match=said):
        NewRows.of(COLUMNS, ("b", "Sise", "age"), "t.csv")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("A", "b", "Size "), "Rename 'A' to 'a', 'Size ' to 'size'."),
        (("A", "b", "size", "a note"), "Rename 'A' to 'a'. Leave out what .*: --ignore 'a note'."),
        (("z", "b", "size"), "Rename the column that holds 'a', .* one. Leave out .* --ignore z."),
        (("a", "b", "size", "y", "z"), "any order. Leave out .*: --ignore y --ignore z."),
    ],
)
def test_a_name_of_other_case_or_signs_is_to_be_changed_and_not_left_out(names, said):
    with pytest.raises(DataError, match=f"{said}$"):
        NewRows.of(COLUMNS, names, "t.csv")


def test_columns_may_be_ignored_by_name():
    assert NewRows.of(COLUMNS, ("a", "b", "size", "age"), "t.csv", ["age"]).id == ""
    with pytest.raises(DataError, match=r"no column 'agee' to ignore.*Did you mean 'age'"):
        NewRows.of(COLUMNS, ("a", "b", "size", "age"), "t.csv", ["agee"])


def test_a_label_has_no_name_where_the_source_was_no_table():
    columns = SourceColumns.of_features(["f0", "f1"])
    assert NewRows.of(columns, ("f0", "f1", "label"), "t.csv").numbers == ("f0", "f1")


def test_positions_of_an_array_are_those_of_the_columns():
    columns = SourceColumns(("a", "b", "c"), kept=(0, 2))
    assert array_rows(columns, [[1, 2, 3]], "X").tolist() == [[1.0, 3.0]]


@pytest.mark.parametrize(
    ("value", "said"), [(np.nan, "found no value"), (np.inf, "found an infinite value")]
)
def test_a_value_is_refused_by_row_and_column(value, said):
    x = np.zeros((4, 2))
    x[2, 1] = value
    with pytest.raises(DataError, match=rf"t.csv, row 103 \(from 1\), column 'b': {said}"):
        check_rows(x, ("a", "b"), "t.csv", filled=False, row_places=FROM_ONE.after(100))
    if np.isnan(value):
        check_rows(x, ("a", "b"), "t.csv", filled=True)


def test_lines_about_unknown_categories():
    unseen = Counter({("size", "XL"): 2, ("colour", "red"): 1, ("size", "M"): 1})
    assert [line.split(" (")[0] for line in unseen_lines(unseen)] == [
        "column 'size': 3 rows of unknown categories",
        "column 'colour': 1 row of unknown categories",
    ]
