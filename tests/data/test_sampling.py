"""Random parts of a data set with equally many points of each class."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mkldist.data.sampling import drawn_per_class
from tests.data.mistakes import mistake

NAMES = ("a", "b", "c")
Y = np.random.default_rng(0).permutation(np.repeat([0.0, 1.0, 2.0], [5, 8, 11]))


@given(count=st.integers(1, 5), seed=st.integers(0, 2**40))
def test_each_class_has_as_many_distinct_rows(count, seed):
    rows = drawn_per_class(Y, count, seed, NAMES, "t.csv")
    assert (np.diff(rows) > 0).all()
    assert np.bincount(Y[rows].astype(int)).tolist() == [count] * 3
    np.testing.assert_array_equal(rows, drawn_per_class(Y, count, seed, NAMES, "t.csv"))


def test_every_row_is_drawn_equally_often():
    n_seeds, count = 2000, 4
    drawn = [drawn_per_class(Y, count, seed, NAMES, "t.csv") for seed in range(n_seeds)]
    shares = np.bincount(np.concatenate(drawn), minlength=len(Y)) / n_seeds
    sizes = np.bincount(Y.astype(int))[Y.astype(int)]
    errors = np.sqrt(count / sizes * (1 - count / sizes) / n_seeds)
    assert (np.abs(shares - count / sizes) < 5 * errors).all()


def test_a_class_of_fewer_points_is_named():
    with mistake("per_class", "5 points of class 'a'", "at least 6 of each class"):
        drawn_per_class(Y, 6, 0, NAMES, "t.csv")
