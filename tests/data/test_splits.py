"""Splits into training and test parts, against those of scikit-learn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from mkldist.data.dataset import Dataset, Split
from mkldist.data.splits import make_splits
from mkldist.errors import DataError, SpecError
from mkldist.spec import checks
from mkldist.spec.datasets import SplitsSpec
from tests.data.mistakes import mistake


def dataset(negative: int, positive: int, *predefined: tuple[list[int], list[int]]) -> Dataset:
    y = np.repeat([-1.0, 1.0], [negative, positive])
    splits = tuple(Split(np.array(a, np.intp), np.array(b, np.intp)) for a, b in predefined)
    return Dataset("t", np.arange(len(y))[:, None] * 1.0, y, ("no", "yes"), ("f",), splits)


def made(data: Dataset, seed: int = 0, **spec: Any) -> tuple[Split, ...]:
    return make_splits(SplitsSpec(**spec), data, seed)


def made_or_refused(
    data: Dataset, seed: int, **spec: Any
) -> tuple[tuple[Split, ...], DataError | None]:
    try:
        return made(data, seed, **spec), None
    except DataError as error:
        return (), error


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("stratified", [True, False])
def test_these_are_the_splits_of_scikit_learn(seed: int, stratified: bool) -> None:
    data = dataset(14, 9)
    shuffle = StratifiedShuffleSplit if stratified else ShuffleSplit
    folds = RepeatedStratifiedKFold if stratified else RepeatedKFold
    for splitter, spec in (
        (shuffle(4, train_size=0.6, random_state=seed), {"train_fraction": 0.6, "repeats": 4}),
        (folds(n_splits=3, n_repeats=2, random_state=seed),
         {"kind": "kfold", "folds": 3, "repeats": 2}),
    ):  # fmt: skip
        found = made(data, seed, stratified=stratified, **spec)
        expected = list(splitter.split(data.x, data.y))
        assert len(found) == len(expected)
        for split, (train, test) in zip(found, expected, strict=True):
            np.testing.assert_array_equal(split.train, np.sort(train))
            np.testing.assert_array_equal(split.test, np.sort(test))


SIZES = st.integers(1, 30)


@settings(deadline=None)
@given(SIZES, SIZES, st.integers(0, 2**40), st.floats(0.05, 0.95), st.booleans(), st.integers(1, 3))
def test_holdouts_partition_the_points_or_say_why_not(
    negative: int, positive: int, seed: int, fraction: float, stratified: bool, repeats: int
) -> None:
    data = dataset(negative, positive)
    spec = {"train_fraction": fraction, "stratified": stratified, "repeats": repeats}
    splits, refusal = made_or_refused(data, seed, **spec)
    if refusal is not None:
        assert all((refusal.where, refusal.found, refusal.expected, refusal.hint))
        return
    assert len(splits) == repeats
    for split in splits:
        check_partition(split, data)
        assert len(split.train) == int(fraction * data.n_points)
        if stratified:
            share = np.mean(data.y[split.train] > 0) * len(split.train)
            assert abs(share - positive / data.n_points * len(split.train)) < 1 + 1e-9
    assert [s.fingerprint for s in splits] == [s.fingerprint for s in made(data, seed, **spec)]


@pytest.mark.slow
@settings(deadline=None)
@given(SIZES, SIZES, st.integers(0, 2**40), st.integers(2, 8), st.booleans(), st.integers(1, 3))
def test_folds_cover_every_point_once(
    negative: int, positive: int, seed: int, folds: int, stratified: bool, repeats: int
) -> None:
    data = dataset(negative, positive)
    assume(folds <= min(negative, positive))
    spec = {"kind": "kfold", "folds": folds, "repeats": repeats, "stratified": stratified}
    splits, refusal = made_or_refused(data, seed, **spec)
    if refusal is not None:
        # Only folds drawn without regard to classes may leave one out.
        assert not stratified
        assert "no point of class" in refusal.found
        return
    assert len(splits) == folds * repeats
    for repetition in range(repeats):
        group = splits[repetition * folds : (repetition + 1) * folds]
        together = np.sort(np.concatenate([split.test for split in group]))
        np.testing.assert_array_equal(together, np.arange(data.n_points))
        sizes = [len(split.test) for split in group]
        assert max(sizes) - min(sizes) <= (2 if stratified else 1)
        if stratified:
            positives = [np.count_nonzero(data.y[split.test] > 0) for split in group]
            assert max(positives) - min(positives) <= 1
    for split in splits:
        check_partition(split, data)


def check_partition(split: Split, data: Dataset) -> None:
    assert split.train.dtype == split.test.dtype == np.intp
    both = np.sort(np.concatenate([split.train, split.test]))
    np.testing.assert_array_equal(both, np.arange(data.n_points))
    assert {-1.0, 1.0} == set(data.y[split.train])
    assert len(split.test)


def test_each_group_is_the_test_part_once() -> None:
    groups = np.random.default_rng(0).integers(0, 5, 40)
    data = replace(dataset(20, 20), row_groups=groups)
    found = made(data, kind="leave-one-group-out", groups="site")
    expected = LeaveOneGroupOut().split(data.x, groups=groups)
    for split, (train, test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.test, test)
    assert len(made(data, kind="leave-one-group-out", groups="site", first=2)) == 2


def test_groups_that_leave_no_class_or_no_rows_to_train_on_are_refused() -> None:
    data = replace(dataset(4, 4), row_groups=np.repeat([0, 1], 4))
    with mistake("split 0 of 2", "no point of class", "Merge this group"):
        made(data, kind="leave-one-group-out", groups="site")
    with mistake("one group", "two groups or more"):
        made(
            replace(data, row_groups=np.zeros(8, dtype=int)), kind="leave-one-group-out", groups="g"
        )
    with mistake("without groups", "groups = ..."):
        made(dataset(4, 4), kind="leave-one-group-out")


def test_predefined_partitions_are_taken_as_they_are() -> None:
    data = dataset(2, 2, ([2, 0], [1]), ([3, 1], [0, 2]), ([1, 2], [3]))
    found = made(data, kind="predefined")
    assert [s.train.tolist() for s in found] == [[2, 0], [3, 1], [1, 2]]
    assert [s.test.tolist() for s in made(data, kind="predefined", first=2)] == [[1], [0, 2]]
    with mistake("first", "4", "at most 3"):
        made(data, kind="predefined", first=4)


def test_data_without_partitions() -> None:
    with mistake("data set 't'", "no predefined partitions", "train and test", "kfold"):
        made(dataset(3, 3), kind="predefined")


def test_a_split_that_leaves_a_class_out_is_named() -> None:
    data = dataset(2, 2, ([0, 2], [1]), ([0, 1], [2]))
    with mistake("split 1 of 2", "no point of class 'yes'", "training part of 2"):
        made(data, kind="predefined")
    with mistake("no point of class 'no'", "both classes", "stratified"):
        made(dataset(1, 60), stratified=False, repeats=30, train_fraction=0.1)


def test_a_split_without_test_points_is_named() -> None:
    with mistake("split 0 of 1", "no test or unlabelled point"):
        made(dataset(1, 1, ([0, 1], [])), kind="predefined")


def test_too_few_points() -> None:
    with mistake("5 folds", "4 points of class 'no', 9 of class 'yes'", "at most 4", "fewer"):
        made(dataset(4, 9), kind="kfold")
    with mistake("at most 5 folds"):
        made(dataset(2, 3), kind="kfold", folds=6, stratified=False)
    with mistake("cannot be divided", "1 point of class 'no'"):
        made(dataset(1, 9))
    with mistake("cannot be divided"):
        made(dataset(2, 2), train_fraction=0.1, stratified=False)


def values(n: int, *predefined: tuple[list[int], list[int]]) -> Dataset:
    splits = tuple(Split(np.array(a, np.intp), np.array(b, np.intp)) for a, b in predefined)
    x = np.arange(n)[:, None] * 1.0
    return Dataset("t", x, np.linspace(-5, 300, n), None, ("f",), splits)


@pytest.mark.parametrize("stratified", [None, False])
def test_values_are_divided_without_strata(stratified: bool | None) -> None:
    for splitter, spec in (
        (ShuffleSplit(4, train_size=0.6, random_state=3), {"train_fraction": 0.6, "repeats": 4}),
        (RepeatedKFold(n_splits=3, n_repeats=1, random_state=3), {"kind": "kfold", "folds": 3}),
    ):
        data = values(20)
        found = made(data, 3, stratified=stratified, **spec)
        for split, (train, test) in zip(found, splitter.split(data.x), strict=True):
            np.testing.assert_array_equal(split.train, np.sort(train))
            np.testing.assert_array_equal(split.test, np.sort(test))


def test_what_values_cannot_be_divided_into() -> None:
    with mistake("'t'", "stratified = true", "regression", "Remove stratified"):
        made(values(20), stratified=True)
    with mistake("21 folds of 20 points", "at most 20 folds", "fewer folds"):
        made(values(20), kind="kfold", folds=21)
    with mistake("no training point"):
        made(values(6, ([], [1])), kind="predefined")
    with mistake("no test or unlabelled point"):
        made(values(6, ([1, 2], [])), kind="predefined")
    with mistake("cannot be divided so", "Change train_fraction."):
        made(values(2), train_fraction=0.1)


def many_classes(*counts: int) -> Dataset:
    y = np.repeat(np.arange(len(counts), dtype=np.float64), counts)
    names = tuple("abcdefghijklmnop"[: len(counts)])
    return Dataset("t", np.arange(len(y))[:, None] * 1.0, y, names, ("f",))


def test_each_of_many_classes_is_divided_in_proportion() -> None:
    data = many_classes(10, 20, 30)
    for split in made(data, kind="kfold", folds=5):
        assert np.bincount(data.class_numbers[split.train]).tolist() == [8, 16, 24]
    (split,) = made(data, train_fraction=0.5)
    assert np.bincount(data.class_numbers[split.test]).tolist() == [5, 10, 15]


def test_too_few_points_of_one_of_many_classes() -> None:
    data = many_classes(9, 3, 7)
    counts = "9 points of class 'a', 3 of class 'b', 7 of class 'c'"
    with mistake("5 folds", counts, "at most 3", "fewer"):
        made(data, kind="kfold")
    with mistake("2 more classes"):
        made(many_classes(*[4] * 12), kind="kfold")
    left_out = Split(np.arange(9), np.arange(9, 19))
    predefined = Dataset("t", data.x, data.y, data.classes, ("f",), (left_out,))
    with mistake("no point of class 'b'", "every class"):
        made(predefined, kind="predefined")


# 24 points of eight groups of one to five, and two classes.
GROUPS = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 4, 3, 2])[np.random.default_rng(4).permutation(24)]


def grouped(groups: np.ndarray = GROUPS) -> Dataset:
    y = np.where(np.arange(len(groups)) % 2, 1.0, -1.0)
    x = np.arange(len(groups))[:, None] * 1.0
    return Dataset("t", x, y, ("no", "yes"), ("f",), row_groups=groups)


@pytest.mark.parametrize("seed", [0, 7])
def test_holdouts_of_groups_are_those_of_scikit_learn(seed: int) -> None:
    found = made(grouped(), seed, groups="patient", repeats=3, train_fraction=0.5)
    splitter = GroupShuffleSplit(n_splits=3, train_size=4, test_size=4, random_state=seed)
    expected = list(splitter.split(GROUPS, groups=GROUPS))
    assert len(found) == len(expected) == 3
    for split, (train, test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(split.train, np.sort(train))
        np.testing.assert_array_equal(split.test, np.sort(test))


def test_folds_of_groups_divide_the_groups() -> None:
    found = made(grouped(), 5, kind="kfold", folds=4, groups="patient")
    folds = KFold(4, shuffle=True, random_state=5).split(np.arange(8))
    assert len(found) == 4
    for split, (_, test) in zip(found, folds, strict=True):
        np.testing.assert_array_equal(split.test, np.flatnonzero(np.isin(GROUPS, test)))
        np.testing.assert_array_equal(split.train, np.setdiff1d(np.arange(24), split.test))


def test_groups_that_cannot_be_divided() -> None:
    with mistake("9 folds of 8 groups", "at most 8 folds"):
        made(grouped(), kind="kfold", folds=9, groups="patient")
    with mistake("1 group in all, none for the training part"):
        made(grouped(np.zeros(6, np.intp)), groups="patient")
    with mistake("no point of class 'yes'", "another seed"):
        made(grouped(np.array([0, 1, 0, 1, 0, 1])), groups="patient")


@pytest.mark.parametrize("order", [None, np.random.default_rng(1).permutation(23)])
@pytest.mark.parametrize("folds", [2, 5, 22])
def test_folds_in_time_are_those_of_scikit_learn(order: np.ndarray | None, folds: int) -> None:
    x = np.arange(23.0)
    data = Dataset("t", x[:, None], x, None, ("f",), row_order=order)
    found = made(data, kind="time", folds=folds)
    rows = np.arange(23) if order is None else order
    expected = list(TimeSeriesSplit(folds).split(x))
    assert len(found) == len(expected) == folds
    for split, (train, test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(split.train, np.sort(rows[train]))
        np.testing.assert_array_equal(split.test, np.sort(rows[test]))


def test_points_that_cannot_be_divided_in_time() -> None:
    with mistake("6 folds of 6 points", "at most 5 folds"):
        made(dataset(3, 3), kind="time", folds=6)
    with mistake("split 0 of 2", "no point of class 'yes'", "Set fewer folds"):
        made(dataset(4, 2), kind="time", folds=2)


@pytest.mark.parametrize("kind", ["holdout", "kfold", "semi-supervised"])
def test_splits_that_memory_does_not_hold_are_refused_before_they_are_drawn(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    labelled = {"labelled_per_class": 2} if kind == "semi-supervised" else {}
    monkeypatch.setattr(checks, "physical_memory", lambda: 10**6)
    with pytest.raises(SpecError, match=r"splits of data set 't': found \d+,000 splits.* repeats"):
        made(dataset(10, 10), kind=kind, repeats=10_000, **labelled)
