"""Missing values: what fills them, and a `listing` of the columns that have them."""

from collections.abc import Iterator

import numpy as np
import pytest

from mkldist.data import checks
from mkldist.data.checks import check_values
from mkldist.data.dataset import Dataset, Split
from mkldist.data.validate import check_known_rows
from tests.data.mistakes import mistake

NAMES = ("a", "b", "c")
NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True, scope="module", params=[None, 100], ids=["a block", "small blocks"])
def block_bytes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything holds for data of one block, and for rows that are read a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr(checks, "BLOCK_BYTES", request.param)
        yield


def test_rows_and_columns_with_gaps_are_counted() -> None:
    assert check_values(np.eye(3), NAMES, "median", "t") == (0, 0)
    x = np.array([[NAN, 1, NAN], [1, 2, 3], [NAN, 2, 3]])
    assert check_values(x, NAMES, "median", "t") == (2, 2)


def test_missing_values_are_refused_with_columns_and_counts() -> None:
    x = np.array([[NAN, 1, NAN], [NAN, 2, 3], [4, 5, 6]])
    with mistake("'a' (2)", "'c' (1)", "of 3 rows", 'impute = "median"'):
        check_values(x, NAMES, None, "t")


def test_many_columns_are_not_all_named() -> None:
    with mistake("'f7' (2)", "12 more columns"):
        check_values(np.full((2, 20), NAN), [f"f{i}" for i in range(20)], None, "t")


def test_infinite_values_are_refused_even_with_imputation() -> None:
    with mistake("infinite values in 'b' (1)", "finite"):
        check_values(np.array([[1, -INF, NAN], [1, 2, 3]]), NAMES, "median", "t")


def test_a_column_without_values_has_no_median() -> None:
    with mistake("columns without any value in 'b' (2)", "Remove"):
        check_values(np.array([[NAN, NAN, 1], [1, NAN, 3]]), NAMES, "median", "t")


def test_a_split_must_know_a_value_of_every_feature() -> None:
    x = np.array([[1, NAN, 1], [2, NAN, NAN], [3, 5, 2], [4, 6, 3]])
    whole, part = Split(np.array([1, 2]), np.array([3])), Split(np.array([0, 1]), np.array([3]))
    unlabelled = Split(np.array([0, 1]), np.array([3]), np.array([2]))
    dataset = Dataset("t", x, np.array([1.0, -1, 1, -1]), ("no", "yes"), NAMES, impute="mean")
    check_known_rows(dataset, [whole, unlabelled])
    with mistake("split 1 of 2", "no value of 'b' in its training part of 2", 'fit = "all"'):
        check_known_rows(dataset, [whole, part])
