"""Missing values: medians, and a `listing` of the columns that have them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.impute import SimpleImputer

from mkldist.data.missing import complete
from tests.data.mistakes import mistake

NAMES = ("a", "b", "c")
NAN, INF = np.nan, np.inf


def test_complete_features_are_passed_on() -> None:
    x = np.eye(3)
    assert complete(x, NAMES, None, "t") is x


def test_missing_values_are_refused_with_columns_and_counts() -> None:
    x = np.array([[NAN, 1, NAN], [NAN, 2, 3], [4, 5, 6]])
    with mistake("'a' (2)", "'c' (1)", "of 3 rows", 'impute = "median"'):
        complete(x, NAMES, None, "t")


def test_many_columns_are_not_all_named() -> None:
    with mistake("'f7' (2)", "12 more columns"):
        complete(np.full((2, 20), NAN), [f"f{i}" for i in range(20)], None, "t")


def test_infinite_values_are_refused_even_with_imputation() -> None:
    with mistake("infinite values in 'b' (1)", "finite"):
        complete(np.array([[1, -INF, NAN], [1, 2, 3]]), NAMES, "median", "t")


def test_a_column_without_values_has_no_median() -> None:
    with mistake("columns without any value in 'b' (2)", "Remove"):
        complete(np.array([[NAN, NAN, 1], [1, NAN, 3]]), NAMES, "median", "t")


@settings(deadline=None)
@given(arrays(np.float64, (6, 3), elements=st.one_of(st.just(NAN), st.floats(-1e6, 1e6))))
def test_medians_agree_with_scikit_learn(x: np.ndarray) -> None:
    x[0] = 1.0
    expected = SimpleImputer(strategy="median").fit_transform(x)
    np.testing.assert_allclose(complete(x, NAMES, "median", "t"), expected)
