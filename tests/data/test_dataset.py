"""Data sets and splits: facts that follow from their arrays, and names by content."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mkldist.data.dataset import Dataset, Split

X = np.arange(8.0).reshape(4, 2)
TWO = Dataset("two", X, np.array([-1.0, 1.0, 1.0, -1.0]), ("no", "yes"), ("a", "b"))
THREE = Dataset("three", X, np.array([2.0, 0.0, 1.0, 2.0]), ("x", "y", "z"), ("a", "b"))
VALUES = Dataset("values", X, np.array([-1.0, 1.0, 1.0, -1.0]), None, ("a", "b"))


@pytest.mark.parametrize(
    ("dataset", "task", "multiclass"),
    [
        (TWO, "classification", ()),
        (THREE, "classification", ("x", "y", "z")),
        (VALUES, "regression", ()),
    ],
)
def test_classes_decide_the_task(dataset, task, multiclass):
    assert (dataset.task, dataset.multiclass) == (task, multiclass)
    assert (dataset.n_points, dataset.n_features) == (4, 2)


def test_classes_have_positions():
    assert TWO.class_numbers.tolist() == [0, 1, 1, 0]
    assert THREE.class_numbers.tolist() == [2, 0, 1, 2]


def test_gram_matrices_have_no_features():
    assert replace(TWO, x=None, grams=np.ones((1, 4, 4))).n_features == 0


def test_names_by_content_follow_the_data_and_nothing_else():
    same = [TWO, replace(TWO, name="other", origin="elsewhere", feature_names=("c", "d"))]
    other = [
        replace(TWO, x=X + 1.0),
        replace(TWO, y=-TWO.y),
        replace(TWO, x=None, grams=np.ones((1, 4, 4))),
        VALUES,
    ]
    assert len({dataset.fingerprint for dataset in same}) == 1
    assert len({dataset.fingerprint for dataset in (TWO, *other)}) == 1 + len(other)


def test_methods_know_labelled_and_unlabelled_rows():
    train, test = np.array([5, 1]), np.array([0, 2])
    assert Split(train, test).known.tolist() == [5, 1]
    assert Split(train, test, unlabelled=np.array([4, 3])).known.tolist() == [1, 3, 4, 5]


def test_splits_are_told_apart_by_the_part_that_a_row_is_in():
    first, last = np.array([0, 1]), np.array([2, 3])
    splits = [
        Split(first, last),
        Split(last, first),
        Split(first, last[:1], last[1:]),
        Split(first[::-1], last),
    ]
    assert len({split.fingerprint for split in splits}) == len(splits)
    assert Split(first, last, np.zeros(0, dtype=np.intp)).fingerprint == splits[0].fingerprint
