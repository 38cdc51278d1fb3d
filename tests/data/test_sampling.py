"""Random parts of a data set, with equally many points of each class or as many as there are."""

from __future__ import annotations

import numpy as np

from mkldist.data.validate import drawn_per_class, drawn_points
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


def test_a_part_keeps_the_proportions_of_the_classes() -> None:
    for count in (3, 4, 40, 120):
        rows = drawn_points(Y, count, 0, stratified=True, where="t.csv")
        counts = np.bincount(Y[rows].astype(int), minlength=3)
        assert (np.diff(rows) > 0).all()
        assert counts.sum() == count
        assert counts.min() >= 1
        assert (np.abs(counts - count * np.array([0.25, 0.5, 0.25])) <= 1).all()
    again = drawn_points(Y, 40, 0, stratified=True, where="t.csv")
    other = drawn_points(Y, 40, 1, stratified=True, where="t.csv")
    assert again.tolist() == drawn_points(Y, 40, 0, stratified=True, where="t.csv").tolist()
    assert again.tolist() != other.tolist()


def test_a_rare_class_keeps_a_point() -> None:
    y = np.repeat([0.0, 1.0], [1, 999])
    assert 0 in drawn_points(y, 10, 0, stratified=True, where="t.csv")


def test_points_of_real_values_are_drawn_about_equally_often() -> None:
    times = np.zeros(50)
    for seed in range(400):
        times[drawn_points(np.arange(50.0), 10, seed, stratified=False, where="t.csv")] += 1
    assert (np.abs(times - 80) < 5 * np.sqrt(80)).all()


def test_more_points_than_there_are_or_fewer_than_classes() -> None:
    with mistake("t.csv: n_points", "121 of 120 points", "at most 120"):
        drawn_points(Y, 121, 0, stratified=True, where="t.csv")
    with mistake("t.csv: n_points", "2 of 120 points", "at least one of each of 3 classes"):
        drawn_points(Y, 2, 0, stratified=True, where="t.csv")
