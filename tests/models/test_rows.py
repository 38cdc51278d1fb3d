"""Columns of new rows, matched with those of a model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from mkldist.data.dataset import SourceColumns
from mkldist.errors import DataError
from mkldist.fit.new_rows import NewRows, opened_rows, unseen_lines
from tests.models.made_up import COLUMNS


def features(source: object, columns: SourceColumns = COLUMNS) -> tuple[NewRows, np.ndarray]:
    """Return rows in Python, matched with columns of a model, and their features."""
    with opened_rows(source, columns, 2, "X") as rows:
        return rows, np.concatenate([block.x for block in rows.blocks])


def match(names: tuple[str, ...], columns: SourceColumns = COLUMNS, **keys: object) -> NewRows:
    """Return a table without rows that has columns of these names."""
    frame = pd.DataFrame(columns=list(names))
    with opened_rows(frame, columns, 2, "t.csv", **keys) as rows:
        return rows


def test_features_are_those_of_scikit_learns_encoder():
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"size": ["S", "L", None, "XL", "L"], "b": range(5), "a": range(5, 10)})
    rows, x = features(frame)
    encoder = OneHotEncoder(categories=[["L", "S", "?"]], handle_unknown="ignore")
    expected = encoder.fit_transform(frame[["size"]].fillna("?")).toarray()
    np.testing.assert_array_equal(x[:, 2:], expected[:, :2])  # "?" is not kept
    np.testing.assert_array_equal(x[:, :2], frame[["a", "b"]])
    assert rows.unseen == Counter({("size", "XL"): 1})


def test_a_column_of_the_model_stands_once_in_a_frame():
    frame = pd.DataFrame([[1, 2, "S", 3, 4]], columns=["a", "b", "size", "a", "label"])
    with pytest.raises(DataError, match=r"^X: found 2 columns 'a'; expected .* Rename or drop"):
        features(frame)


def test_numbers_may_be_text_and_truth_values():
    frame = pd.DataFrame({"a": ["1", "2.5"], "b": [True, False], "size": ["S", "S"]})
    _, x = features(frame)
    assert x[:, :2].tolist() == [[1.0, 1.0], [2.5, 0.0]]


def test_all_differences_are_told_in_one_message():
    said = "t.csv: found no column 'a', 'size'; columns 'Sise', 'age', unknown to the model"
    with pytest.raises(DataError, match=said):
        match(("b", "Sise", "age"))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("A", "b", "Size "), "'a': Did you mean 'A'.*'size': Did you mean 'Size '.*"),
        (("A", "b", "size", "a note"), "Did you mean 'A'.*: --ignore A --ignore 'a note'."),
        (("a", "b", "size", "y", "z"), "any order. Rename .*: --ignore y --ignore z."),
    ],
)
def test_a_name_of_other_case_or_signs_is_shown(names, said):
    with pytest.raises(DataError, match=f"{said}$"):
        match(names)


def test_columns_may_be_ignored_by_name():
    assert match(("a", "b", "size", "age"), ignored=["age"]).id == ""
    with pytest.raises(DataError, match=r"no column 'agee' to ignore.*Did you mean 'age'"):
        match(("a", "b", "size", "age"), ignored=["agee"])


def test_a_label_has_no_name_where_the_source_was_no_table():
    columns = SourceColumns(["f0", "f1"])
    _, x = features(pd.DataFrame([["ill", 1, 2]], columns=["label", "f1", "f0"]), columns)
    assert x.tolist() == [[2.0, 1.0]]


def test_positions_of_an_array_are_those_of_the_columns():
    columns = SourceColumns(("a", "b", "c"), kept=(0, 2))
    assert features([[1, 2, 3]], columns)[1].tolist() == [[1.0, 3.0]]


def test_lines_about_unknown_categories():
    unseen = Counter({("size", "XL"): 2, ("colour", "red"): 1, ("size", "M"): 1})
    assert [line.split(" (")[0] for line in unseen_lines(unseen)] == [
        "column 'size': 3 rows of unknown categories",
        "column 'colour': 1 row of unknown categories",
    ]
