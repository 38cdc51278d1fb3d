"""Categories as features, against scikit-learn's encoder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from mkldist.data.categories import encoded
from tests.data.mistakes import mistake

X = np.arange(6.0)[:, None]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["red", "blue", "Blue", "10 cm"]), min_size=5, max_size=9))
def test_indicators_are_those_of_scikit_learn(texts: list[str]) -> None:
    x = np.zeros((len(texts), 0))
    expected = OneHotEncoder(sparse_output=False).fit_transform(np.array(texts)[:, None])
    found = encoded(x, (), {"c": texts}, "t")
    np.testing.assert_array_equal(found.x, expected)
    assert found.names == tuple(f"c={name}" for name in sorted(set(texts)))


def test_columns_follow_the_numbers_and_form_groups() -> None:
    columns = {"size": ["2", "10", "2", "", "10", "NA"], "sex": ["m", "f"] * 3}
    found = encoded(X, ("age",), columns, "t")
    assert found.names == ("age", "size=2", "size=10", "size=?", "sex=f", "sex=m")
    assert found.groups == {"size": (1, 2, 3), "sex": (4, 5)}
    assert found.said == ("'size' as 3 features", "'sex' as 2 features")
    np.testing.assert_array_equal(found.x[:, 0], X[:, 0])
    assert found.x[3].tolist() == [3, 0, 0, 1, 1, 0] == [3, *found.x[5, 1:4], 1, 0]


def test_without_categories_the_numbers_are_passed_on() -> None:
    assert encoded(X, ("age",), {}, "t").x is X


def test_names_of_rows_are_no_categories() -> None:
    with mistake("column 'name'", "in each of 6 rows", 'id = "name"'):
        encoded(X, ("age",), {"name": list("abcdef")}, "t")


def test_features_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mkldist.data.raw.physical_memory", lambda: 100)
    with mistake("an array of", 'ignore = ["c"]'):
        encoded(X, ("age",), {"c": list("aabbcc")}, "t")
