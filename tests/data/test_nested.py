"""Nested training parts: shares of each class, whole groups, nothing of the test part."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.data.dataset import Dataset, Split
from mkldist.data.nested import nested_splits
from mkldist.errors import DataError

LABELS = np.array([-1.0] * 30 + [1.0] * 10)
SPLITS = [Split(np.arange(0, 40, 2), np.arange(1, 40, 2)), Split(np.arange(1, 40, 2), np.arange(2))]


def dataset(**words) -> Dataset:
    return Dataset(
        **{"name": "a", "x": np.zeros((40, 1)), "y": LABELS, "classes": ("n", "y")} | words
    )


def test_smaller_parts_are_nested_and_have_their_share_of_each_class():
    found = nested_splits(dataset(), SPLITS, [0.1, 0.4, 1.0], seed=0)
    assert len(found) == 6
    for number, split in enumerate(SPLITS):
        small, middle, whole = (set(found[number + 2 * rung].train) for rung in range(3))
        assert small < middle < whole == set(split.train)
        counts = [sum(LABELS[list(rows)] < 0) for rows in (small, middle, whole)]
        assert counts == [2, 6, 15]  # of 15, rounded up
        assert [len(rows) for rows in (small, middle, whole)] == [3, 8, 20]
        assert all((found[number + 2 * k].test == split.test).all() for k in range(3))
        assert all((np.diff(found[number + 2 * k].train) > 0).all() for k in range(3))


def test_a_share_does_not_depend_on_the_others():
    alone = nested_splits(dataset(), SPLITS, [0.4], seed=3)
    beside = nested_splits(dataset(), SPLITS, [0.1, 0.4], seed=3)[2:]
    assert [s.fingerprint for s in alone] == [s.fingerprint for s in beside]
    other = nested_splits(dataset(), SPLITS, [0.4], seed=4)
    assert [s.fingerprint for s in alone] != [s.fingerprint for s in other]


def test_real_values_are_taken_in_one_share():
    found = nested_splits(dataset(classes=None), SPLITS[:1], [0.1], seed=0)
    assert len(found[0].train) == 2


def test_groups_stay_whole():
    groups = np.arange(40) // 4
    found = nested_splits(dataset(row_groups=groups, classes=None), SPLITS, [0.25], seed=0)
    for split, whole in zip(found, SPLITS, strict=True):
        taken = set(groups[split.train])
        assert len(taken) == 3
        assert set(split.train) == {row for row in whole.train if groups[row] in taken}


def test_groups_that_leave_out_a_class_are_refused():
    with pytest.raises(DataError, match=r"no point of class 'y' in a share of 0.1.*Raise first"):
        nested_splits(dataset(row_groups=np.arange(40) // 10), SPLITS[:1], [0.1], seed=1)
