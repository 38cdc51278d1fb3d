"""Repetitions, folds and sizes of splits in the tree of results."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.data.dataset import Dataset, Split
from mkldist.data.random_splits import repeated_folds
from mkldist.run.sweep_setup import scored_rows, split_coordinates
from mkldist.spec.datasets import SplitsSpec


def test_the_folds_of_a_repetition_divide_the_rows():
    tests = list(repeated_folds(3, 2, 0, 10))
    splits = tuple(Split(np.setdiff1d(np.arange(10), test), test) for test in tests)
    found = split_coordinates(SplitsSpec(kind="kfold", folds=3, repeats=2), splits)
    for repeat in (0, 1):
        own = [
            split.test for split, of in zip(splits, found["repeat"], strict=True) if of == repeat
        ]
        assert sorted(np.concatenate(own)) == list(range(10))
    assert found["fold"].tolist() == [0, 1, 2, 0, 1, 2]
    assert (found["n_train"] + found["n_test"]).tolist() == [10] * 6
    assert found["n_test"].tolist() == [len(test) for test in tests]
    assert found["n_unlabelled"].tolist() == [0] * 6


def test_other_splits_are_repetitions_and_times_are_folds():
    split = Split(np.arange(4), np.arange(4, 6), np.arange(6, 9))
    found = split_coordinates(SplitsSpec(repeats=3), (split,) * 3)
    assert (found["repeat"].tolist(), found["fold"].tolist()) == ([0, 1, 2], [0, 0, 0])
    assert found["n_unlabelled"].tolist() == [3, 3, 3]
    by_group = SplitsSpec(kind="leave-one-group-out", groups="site")
    found = split_coordinates(by_group, (split,) * 3)
    assert found["repeat"].tolist() == [0, 0, 0]
    assert found["fold"].tolist() == [0, 1, 2]
    found = split_coordinates(SplitsSpec(kind="time", folds=3), (split,) * 3)
    assert (found["repeat"].tolist(), found["fold"].tolist()) == ([0, 0, 0], [0, 1, 2])


def test_rows_that_score_are_counted_once_and_a_constant_is_scored():
    y = np.array([1.0, -1.0, -1.0, -1.0, 1.0, -1.0])
    dataset = Dataset(
        name="d", x=np.zeros((6, 1)), y=y, classes=("no", "yes"), feature_names=("a",)
    )
    splits = [
        Split(np.array([0, 1, 2]), np.array([3, 4, 5])),
        Split(np.array([1, 2, 4]), np.array([0, 3, 5])),
    ]
    found = scored_rows(dataset, splits, "error")
    assert (found["n_new"].tolist(), found["n_rarest"].tolist()) == ([3, 1], [1, 1])
    assert found["constant_score"].tolist() == pytest.approx([1 / 3, 1 / 3])
    assert scored_rows(dataset, splits, "balanced_error")["constant_score"].tolist() == [0.5, 0.5]
