"""Nested training parts: shares of each class, whole groups, nothing of the test part."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mkldist.data.dataset import Dataset, Split
from mkldist.data.splits import cut_splits, nested_splits
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


def test_cut_parts_are_nested_and_of_the_asked_size():
    cut = [cut_splits(dataset(), SPLITS, n, 0, "splits", stratified=True) for n in (2, 5, 12, 20)]
    for number, split in enumerate(SPLITS):
        parts = [set(splits[number].train.tolist()) for splits in cut]
        assert [len(rows) for rows in parts] == [2, 5, 12, 20]
        assert all(small < large for small, large in pairwise(parts))
        of_class = [sum(LABELS[list(rows)] > 0) for rows in parts]
        np.testing.assert_allclose(of_class, [0.5, 1.25, 3, 5], atol=0.99)  # a quarter, rounded
        assert all((splits[number].test == split.test).all() for splits in cut)
    whole = cut_splits(dataset(), SPLITS, 20, 0, "splits", stratified=True)
    assert [s.fingerprint for s in whole] == [s.fingerprint for s in SPLITS]


def test_cut_parts_need_not_be_stratified():
    counts = set()
    for seed in range(20):
        cut = cut_splits(dataset(), SPLITS, 8, seed, "splits", stratified=False)
        counts.add(int((LABELS[cut[0].train] > 0).sum()))
    assert len(counts) > 1


def test_cut_parts_hold_as_many_whole_groups_as_fit():
    groups = np.arange(40) // 4  # two rows of each in every training part
    data = dataset(row_groups=groups, classes=None)
    sizes = [
        [len(s.train) for s in cut_splits(data, SPLITS, n, 0, "splits", stratified=False)]
        for n in (2, 5, 20)
    ]
    assert sizes == [[2, 2], [4, 4], [20, 20]]
    taken = set(groups[cut_splits(data, SPLITS, 5, 0, "splits", stratified=False)[0].train])
    assert len(taken) == 2


def test_more_rows_than_a_training_part_holds_are_refused():
    with pytest.raises(DataError, match=r"splits: n_train: found 21; expected at most 20, the tra"):
        cut_splits(dataset(), SPLITS, 21, 0, "splits", stratified=True)


def test_fewer_rows_than_the_first_group_are_refused():
    data = dataset(row_groups=np.arange(40) // 10, classes=None)  # five rows of each in a part
    for seed in range(4):
        with pytest.raises(
            DataError, match=r"^s: n_train: found 4; expected at least 5, the rows of the group"
        ):
            cut_splits(data, SPLITS, 4, seed, "s", stratified=False)
        assert len(cut_splits(data, SPLITS, 5, seed, "s", stratified=False)[0].train) == 5
