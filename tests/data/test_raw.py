"""Checks that all readers share: rows, labels, types and memory."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.data import checks
from mkldist.data.checks import as_features, check_fits, check_rows
from tests.data.mistakes import mistake


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "bool", ">f8"])
def test_features_become_contiguous_float64(dtype: str) -> None:
    values = np.array([[0, 1], [1, 1], [1, 0]], dtype=dtype)[:, ::-1]
    found = as_features(values, "t")
    np.testing.assert_array_equal(found, [[1, 0], [1, 1], [0, 1]])
    assert found.dtype == np.dtype("float64")
    assert found.flags.c_contiguous


@pytest.mark.parametrize("values", [
    np.array([["1"]]), np.array([[1]], object), np.array([[1j]]), np.ones(3),
    np.ones((3, 0)), np.ones((2, 2, 2)),
])  # fmt: skip
def test_what_is_no_matrix_of_real_numbers(values: np.ndarray) -> None:
    with mistake("an array of "):
        as_features(values, "t")


def test_a_text_in_an_array_is_named_with_its_place() -> None:
    values = np.array([[1, "2"], ["old", 3]], dtype=object)
    with mistake("t, row 1 (from 0), column 'age': found 'old'; expected a number"):
        as_features(values, "t", ("age", "crp"))
    with mistake("t, row 0 (from 0), column 1 (from 0): found '1,5'", "decimals with a point"):
        as_features(np.array([["1", "1,5"]]), "t")


def test_rows_and_labels_are_as_many() -> None:
    check_rows(3, 3, "t")
    with mistake("3 rows of features but 4 labels", "one label per row"):
        check_rows(3, 4, "t")
    with mistake("no rows"):
        check_rows(0, 0, "t")


def test_half_of_the_memory_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "physical_memory", lambda: 8 * 2**30)
    check_fits(4 * 2**30, "t", "Select features first")
    with mistake("4.5 GiB", "at most 4.0 GiB, half of this machine's memory", "Select features"):
        check_fits(9 * 2**29, "t", "Select features first")
