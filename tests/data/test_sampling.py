"""Random parts of a data set with equally many points of each class."""

from __future__ import annotations

import numpy as np

from mkldist.data.sampling import drawn_per_class
from tests.data.mistakes import mistake

Y = np.tile([0.0, 1.0, 1.0, 2.0], 30)
NAMES = ("a", "b", "c")


def drawn(count: int, seed: int = 0) -> np.ndarray:
    return drawn_per_class(Y, count, seed, NAMES, "t.csv")


def test_each_class_has_its_count_of_distinct_rows() -> None:
    rows = drawn(7)
    assert (np.diff(rows) > 0).all()
    assert np.bincount(Y[rows].astype(int)).tolist() == [7, 7, 7]
    assert drawn(30).size == 90


def test_the_seed_decides() -> None:
    np.testing.assert_array_equal(drawn(7, 4), drawn(7, 4))
    assert drawn(7, 4).tolist() != drawn(7, 5).tolist()


def test_every_point_is_drawn_about_equally_often() -> None:
    times = np.zeros(len(Y))
    for seed in range(400):
        times[drawn(10, seed)] += 1
    expected = 400 * 10 / np.array([30, 60, 30])[Y.astype(int)]
    assert (np.abs(times - expected) < 5 * np.sqrt(expected)).all()


def test_a_class_of_fewer_points() -> None:
    with mistake("t.csv: per_class", "30 points of class 'a'", "at most 30"):
        drawn(31)
