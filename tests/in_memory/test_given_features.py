"""Features of a user: DataFrames and arrays that are taken, and messages about others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mkldist.errors import DataError
from mkldist.fit.inputs import Features

FRAME = pd.DataFrame({"age": [1, 2, 3], "bmi": [0.5, 1.5, 2.5], "old": [True, False, True]})


def test_a_frame_gives_its_columns_and_an_array_numbers_them():
    named = Features.of(FRAME)
    assert (named.names, named.named) == (("age", "bmi", "old"), True)
    np.testing.assert_array_equal(named.points, [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])
    plain = Features.of(FRAME.to_numpy())  # of dtype object
    assert (plain.names, plain.named) == (("x0", "x1", "x2"), False)
    np.testing.assert_array_equal(plain.points, named.points)
    assert plain.points.dtype == np.float64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (FRAME.assign(bmi=[1.0, np.nan, 2.0]), r"missing values in 'bmi' \(1\), of 3 rows"),
        (np.array([[1.0, np.inf]]), r"infinite values in 'x1' \(1\)"),
        (FRAME.assign(sex=["m", "f", "m"]), r"text in column 'sex' \(3 of 3"),
        (pd.concat([FRAME, FRAME[["age"]]], axis=1), "two columns 'age'"),
        (np.ones(3), r"an array of shape \(3,\)"),
        (np.ones((3, 0)), r"an array of shape \(3, 0\)"),
        (np.ones((0, 3)), "no rows; expected at least one point"),
        ([["a"]], "found texts such as a"),
        ([[1.0], [1.0, 2.0]], "found list"),
        (None, "X: "),
    ],
)
def test_features_that_cannot_be_used_are_refused(given, said):
    with pytest.raises(DataError, match=said) as caught:
        Features.of(given)
    assert str(caught.value).startswith("X: ")
    assert "impute" not in str(caught.value)


def test_new_points_are_taken_by_the_names_of_their_columns():
    features = Features.of(FRAME)
    shuffled = FRAME[["old", "age", "bmi"]]
    np.testing.assert_array_equal(features.like(shuffled).points, features.points)
    np.testing.assert_array_equal(features.like(features.points[:1]).points, features.points[:1])
    of_array = Features.of(features.points)
    np.testing.assert_array_equal(of_array.like(FRAME).points, features.points)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (FRAME.rename(columns={"age": "agee"}), "no column 'age'; .* Did you mean 'agee'"),
        (FRAME[["age", "old"]], "no column 'bmi'; expected the 3 columns"),
        (FRAME.assign(y=1), "a column 'y'; .* Leave it out"),
        (np.ones((2, 4)), "4 columns; expected 3"),
        (np.full((1, 3), np.nan), "missing values in 'x0'"),
    ],
)
def test_new_points_of_other_features_are_refused(given, said):
    with pytest.raises(DataError, match=f"X_new: found {said}"):
        Features.of(FRAME).like(given)


def test_features_that_are_mapped_from_a_file_stay_there(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 3)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(Features.of(mapped).points, mapped)
