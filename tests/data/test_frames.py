"""Features and labels from pandas frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mkldist.core.wording import FROM_ONE
from mkldist.data.columns import ColumnChoice, column_roles
from mkldist.data.frames import (
    BY_KEYS,
    frame_features,
    frame_labels,
    frame_texts,
    frames_data,
)
from mkldist.errors import DataError
from tests.data.mistakes import mistake

FRAME = pd.DataFrame(
    {
        "a": [1, 2, 3],
        "b": [0.5, None, -1],
        "c": [True, False, True],
        "d": pd.array([1, None, 3], "Int64"),
        "e": ["1", None, "2.5"],
        "f": pd.Categorical([7, 8, 7]),
    }
)


def test_columns_of_all_kinds() -> None:
    nan = np.nan
    found = frame_features(FRAME, "t")
    expected = [[1, 0.5, 1, 1, 1, 7], [2, nan, 0, nan, nan, 8], [3, -1, 1, 3, 2.5, 7]]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


def test_labels_of_all_kinds() -> None:
    assert frame_labels(FRAME["c"]).tolist() == ["True", "False", "True"]
    np.testing.assert_array_equal(frame_labels(FRAME["d"]), [1, np.nan, 3])
    assert frame_labels(FRAME["e"]).tolist() == ["1", "", "2.5"]
    assert frame_labels(pd.Series(pd.Categorical(["p", "q", "p"]))).tolist() == ["p", "q", "p"]


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint64"])
def test_large_whole_numbers_of_labels_keep_their_digits(kind: str) -> None:
    labels = [2**53, 2**53 + 1, 2**53]
    assert frame_labels(pd.Series(labels, dtype=kind)).tolist() == labels
    assert frame_labels(pd.Series([2**53, 1, 2], dtype=kind)).dtype == np.float64
    frame = pd.DataFrame({"a": [0.5, 1, 2], "y": pd.Series([1, 2**53, 2**53 + 1], dtype=kind)})
    blocks = [frame.iloc[:2], frame.iloc[2:]]
    roles = column_roles(("a", "y"), ColumnChoice(), "t")
    assert frames_data(blocks, 3, roles, "t").labels.tolist() == frame["y"].tolist()


def test_text_in_feature_columns() -> None:
    with mistake(
        "'colour' (red, blue), the first in row 0 (from 0)",
        "numbers in every feature column",
        "get_dummies",
    ):
        frame_features(FRAME.assign(colour=["red", "blue", "red"]), "t")
    many = pd.DataFrame({f"f{i}": ["x", "y"] for i in range(8)})
    with mistake("'f4' (x, y)", "… 3 more columns"):
        frame_features(many, "t")


def test_the_values_that_are_no_numbers_are_named_with_their_row() -> None:
    frame = pd.DataFrame({"age": [1, 2, "old", 3]}, index=[7, 7, 8, 9])
    with mistake("no numbers in 'age' (old), the first in row 3 (from 1)", "get_dummies"):
        frame_features(frame, "t", row_labels=FROM_ONE)
    with pytest.raises(DataError, match=r"'age' \(1,5\), .*Write decimals with a point\.$"):
        frame_features(FRAME.assign(age="1,5"), "t")


@pytest.mark.parametrize("date", [pd.Timestamp("2020-01-31"), "31.1.2020"])
def test_dates_are_to_be_turned_into_numbers(date: object) -> None:
    with mistake("'seen' (", "Turn dates into numbers, such as (dates - dates.min()).dt.days"):
        frame_features(FRAME.assign(seen=date), "t")
    with mistake("'seen' (", "ignore = [names] for dates", 'kind = "time"'):
        frame_features(FRAME.assign(seen=date), "t", BY_KEYS)


def test_no_feature_column() -> None:
    with mistake("a label column alone"):
        frame_features(FRAME[[]], "t")


def test_bytes_are_texts_in_utf8() -> None:
    column = pd.Series([b"ab", "gé".encode(), None], name="dna")
    assert frame_texts(column) == ["ab", "gé", ""]
    assert frame_labels(column).tolist() == ["ab", "gé", ""]
    for read in (frame_texts, frame_labels):
        with mistake("t.parquet, column 'dna', row 1 (from 0): found bytes that are not UTF-8"):
            read(pd.Series([b"a", b"\xff"], name="dna"), "t.parquet")
