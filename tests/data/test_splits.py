"""Splits of every kind and inner folds, against those of scikit-learn."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
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
from mkldist.data.splits import (
    cut_splits,
    group_folds,
    inner_folds,
    make_splits,
    n_inner_folds,
    partition_of_column,
    partitions_of,
    restricted,
)
from mkldist.errors import DataError, SpecError
from mkldist.spec import kinds
from mkldist.spec.datasets import SplitsSpec
from mkldist.spec.model import SelectionSpec
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
def test_these_are_the_splits_of_scikit_learn(seed, stratified):
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
    negative, positive, seed, fraction, stratified, repeats
):
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


def check_partition(split: Split, data: Dataset) -> None:
    assert split.train.dtype == split.test.dtype == np.intp
    both = np.sort(np.concatenate([split.train, split.test]))
    np.testing.assert_array_equal(both, np.arange(data.n_points))
    assert {-1.0, 1.0} == set(data.y[split.train])
    assert len(split.test)


def test_each_group_is_the_test_part_once():
    groups = np.random.default_rng(0).integers(0, 5, 40)
    data = replace(dataset(20, 20), row_groups=groups)
    found = made(data, kind="leave-one-group-out", groups="site")
    expected = LeaveOneGroupOut().split(data.x, groups=groups)
    for split, (train, test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.test, test)
    assert len(made(data, kind="leave-one-group-out", groups="site", first=2)) == 2


def test_groups_that_leave_no_class_or_no_rows_to_train_on_are_refused():
    data = replace(dataset(4, 4), row_groups=np.repeat([0, 1], 4))
    with mistake("split 0 of 2", "no point of class", "Merge this group"):
        made(data, kind="leave-one-group-out", groups="site")
    with mistake("one group", "two groups or more"):
        made(
            replace(data, row_groups=np.zeros(8, dtype=int)), kind="leave-one-group-out", groups="g"
        )
    with mistake("without groups", "groups = ..."):
        made(dataset(4, 4), kind="leave-one-group-out")


def test_predefined_partitions_are_taken_as_they_are():
    data = dataset(2, 2, ([2, 0], [1]), ([3, 1], [0, 2]), ([1, 2], [3]))
    found = made(data, kind="predefined")
    assert [s.train.tolist() for s in found] == [[2, 0], [3, 1], [1, 2]]
    assert [s.test.tolist() for s in made(data, kind="predefined", first=2)] == [[1], [0, 2]]
    with mistake("first", "4", "at most 3"):
        made(data, kind="predefined", first=4)


def test_a_split_that_leaves_a_class_out_is_named():
    data = dataset(2, 2, ([0, 2], [1]), ([0, 1], [2]))
    with mistake("split 1 of 2", "no point of class 'yes'", "training part of 2"):
        made(data, kind="predefined")
    with mistake("no point of class 'no'", "both classes", "stratified"):
        made(dataset(1, 60), stratified=False, repeats=30, train_fraction=0.1)


def test_a_split_without_test_points_is_named():
    with mistake("split 0 of 1", "no test or unlabelled point"):
        made(dataset(1, 1, ([0, 1], [])), kind="predefined")


def test_too_few_points():
    with mistake("5 folds", "4 points of class 'no', 9 points", "at most 4", "fewer"):
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
def test_values_are_divided_without_strata(stratified):
    for splitter, spec in (
        (ShuffleSplit(4, train_size=0.6, random_state=3), {"train_fraction": 0.6, "repeats": 4}),
        (RepeatedKFold(n_splits=3, n_repeats=1, random_state=3), {"kind": "kfold", "folds": 3}),
    ):
        data = values(20)
        found = made(data, 3, stratified=stratified, **spec)
        for split, (train, test) in zip(found, splitter.split(data.x), strict=True):
            np.testing.assert_array_equal(split.train, np.sort(train))
            np.testing.assert_array_equal(split.test, np.sort(test))


def test_what_values_cannot_be_divided_into():
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


def test_each_of_many_classes_is_divided_in_proportion():
    data = many_classes(10, 20, 30)
    for split in made(data, kind="kfold", folds=5):
        assert np.bincount(data.class_numbers[split.train]).tolist() == [8, 16, 24]
    (split,) = made(data, train_fraction=0.5)
    assert np.bincount(data.class_numbers[split.test]).tolist() == [5, 10, 15]


def test_too_few_points_of_one_of_many_classes():
    data = many_classes(9, 3, 7)
    counts = "9 points of class 'a', 3 points of class 'b', 7 points of class 'c'"
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
def test_holdouts_of_groups_are_those_of_scikit_learn(seed):
    spec = {"groups": "patient", "repeats": 3, "train_fraction": 0.5, "stratified": False}
    found = made(grouped(), seed, **spec)
    splitter = GroupShuffleSplit(n_splits=3, train_size=4, test_size=4, random_state=seed)
    expected = list(splitter.split(GROUPS, groups=GROUPS))
    assert len(found) == len(expected) == 3
    for split, (train, test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(split.train, np.sort(train))
        np.testing.assert_array_equal(split.test, np.sort(test))


def test_folds_of_groups_divide_the_groups():
    found = made(grouped(), 5, kind="kfold", folds=4, groups="patient", stratified=False)
    folds = KFold(4, shuffle=True, random_state=5).split(np.arange(8))
    assert len(found) == 4
    for split, (_, test) in zip(found, folds, strict=True):
        np.testing.assert_array_equal(split.test, np.flatnonzero(np.isin(GROUPS, test)))
        np.testing.assert_array_equal(split.train, np.setdiff1d(np.arange(24), split.test))


def test_groups_that_cannot_be_divided():
    with mistake("9 folds of 8 groups", "at most 8 folds"):
        made(grouped(), kind="kfold", folds=9, groups="patient")
    with mistake("1 group in all, none for the training part"):
        made(grouped(np.zeros(6, np.intp)), groups="patient")
    apart = grouped(np.array([0, 1, 0, 1, 0, 1]))
    with mistake("training part of 3, a class in 1 of 2 groups", "Enlarge the training part"):
        made(apart, groups="patient")
    with mistake("class 'no' in 1 of 2 groups", "each class in two groups or more"):
        made(apart, kind="kfold", folds=2, groups="patient")


def patients(cases: int, of: int, rows: int = 4) -> Dataset:
    y = np.repeat(np.where(np.arange(of) < cases, 1.0, -1.0), rows)
    groups = np.repeat(np.random.default_rng(of).permutation(of), rows)
    return Dataset("t", y[:, None], y, ("ctl", "case"), ("f",), row_groups=groups)


@pytest.mark.parametrize("seed", range(9))
def test_few_cases_among_patients_are_divided_for_every_seed(seed):
    data = patients(4, 24)
    folds = made(data, seed, kind="kfold", folds=5, repeats=4, groups="patient")
    halves = made(data, seed, repeats=4, groups="patient")
    assert [np.sum(data.y[split.train] > 0) for split in halves] == [8] * 4
    assert len({split.fingerprint for split in halves}) == 4
    for repeat in range(4):
        cases = [np.sum(data.y[split.test] > 0) for split in folds[5 * repeat : 5 * repeat + 5]]
        assert sorted(cases) == [0, 4, 4, 4, 4]
    for split in (*folds, *halves):
        assert not set(data.row_groups[split.train]) & set(data.row_groups[split.test])
        selection = SelectionSpec(folds=3, repeats=2)
        assert number(data, split.train, folds=3, repeats=2) == 6
        for held_out in inner_folds(data, split.train, selection, seed):
            assert len(np.unique(data.y[np.setdiff1d(split.train, held_out)])) == 2
    assert [s.fingerprint for s in made(data, seed, kind="kfold", repeats=2, groups="patient")] == [
        split.fingerprint for split in folds[:10]
    ]


@pytest.mark.parametrize("spec", [{"train_fraction": 0.7}, {"kind": "kfold", "folds": 2}])
def test_repetitions_divide_few_groups_otherwise_while_there_are_other_ways(spec):
    spec = {"groups": "centre", **spec}
    splits = made(grouped(), repeats=10, **spec)
    assert len({tuple(split.test) for split in splits}) == len(splits)
    three = made(grouped(GROUPS % 3), repeats=5, **spec)  # which divide in three ways
    assert len({tuple(split.test) for split in three}) == 3 * len(three) // 5


@pytest.mark.parametrize("n_groups", [100, 400])
def test_each_class_is_in_folds_of_groups_in_proportion(n_groups):
    rng = np.random.default_rng(n_groups)
    groups = np.repeat(np.arange(n_groups), 3)
    y = np.repeat(rng.permutation(np.arange(n_groups) % 10 == 0), 3).astype(int)
    for held_out in group_folds(5, 2, 1, groups, y):
        assert len(held_out) == 3 * n_groups // 5
        assert y[held_out].sum() == 3 * n_groups // 50


@settings(deadline=None)
@given(st.data())
def test_folds_of_groups_leave_every_class_outside_where_that_can_be(draw):
    k, n = draw.draw(st.integers(2, 4)), draw.draw(st.integers(6, 30))
    groups = np.array(draw.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    y = np.array(draw.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    in_groups = [len(np.unique(groups[y == one])) for one in np.unique(y)]
    n_folds = draw.draw(st.integers(3, 5))
    assume(min(in_groups) > 1 and len(np.unique(groups)) >= n_folds)
    folds = list(group_folds(n_folds, 2, draw.draw(st.integers(0, 99)), groups, y))
    for repeat in (folds[:n_folds], folds[n_folds:]):
        assert sorted(np.concatenate(repeat).tolist()) == list(range(n))
        for held_out in repeat:
            assert len(held_out)
            assert set(np.delete(y, held_out)) == set(y)


@pytest.mark.parametrize("order", [None, np.random.default_rng(1).permutation(23)])
@pytest.mark.parametrize("folds", [2, 5, 22])
def test_folds_in_time_are_those_of_scikit_learn(order, folds):
    x = np.arange(23.0)
    data = Dataset("t", x[:, None], x, None, ("f",), row_order=order)
    found = made(data, kind="time", folds=folds)
    rows = np.arange(23) if order is None else order
    expected = list(TimeSeriesSplit(folds).split(x))
    assert len(found) == len(expected) == folds
    for split, (train, test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(split.train, np.sort(rows[train]))
        np.testing.assert_array_equal(split.test, np.sort(rows[test]))


def test_points_that_cannot_be_divided_in_time():
    with mistake("6 folds of 6 points", "at most 5 folds"):
        made(dataset(3, 3), kind="time", folds=6)
    with mistake("split 0 of 2", "no point of class 'yes'", "Set fewer folds"):
        made(dataset(4, 2), kind="time", folds=2)


@pytest.mark.parametrize("kind", ["holdout", "kfold", "semi-supervised"])
def test_splits_that_memory_does_not_hold_are_refused_before_they_are_drawn(monkeypatch, kind):
    labelled = {"labelled_per_class": 2} if kind == "semi-supervised" else {}
    monkeypatch.setattr(kinds, "physical_memory", lambda: 10**6)
    with pytest.raises(SpecError, match=r"splits of data set 't': found \d+,000 splits.* repeats"):
        made(dataset(10, 10), kind=kind, repeats=10_000, **labelled)


N = 6


def pair(train: object, test: object) -> dict[str, np.ndarray]:
    return {"train": np.array(train), "test": np.array(test)}


def test_one_row_a_partition():
    found = partitions_of(pair([[0, 1], [2, 3]], [[5], [4]]), N, "t")
    assert [(s.train.tolist(), s.test.tolist()) for s in found] == [([0, 1], [5]), ([2, 3], [4])]
    single = partitions_of(pair([0, 1], [2]), N, "t")
    assert single[0].train.tolist() == [0, 1]
    labelled = {"idx_labs": np.array([[1]]), "idx_unls": np.array([[0, 2]])}
    (few,) = partitions_of(labelled, N, "t")
    assert (few.train.tolist(), few.unlabelled.tolist(), few.test.tolist()) == ([1], [0, 2], [])
    assert few.known.tolist() == [0, 1, 2]
    (three,) = partitions_of(pair([4, 0], [2]) | {"unlabelled": np.array([3])}, N, "t")
    assert (three.train.tolist(), three.test.tolist()) == ([4, 0], [2])
    assert three.known.tolist() == [0, 3, 4]
    assert partitions_of({}, N, "t") == ()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"train": np.array([[0]])}, ("'train' without 'test' or 'unlabelled'",)),
        ({"unlabelled": np.array([[0]])}, ("'unlabelled' without 'train'",)),
        (pair([[0]], [[1]]) | {"unlabelled": np.array([[1]])}, ("'unlabelled' and 'test'",)),
        (pair([[0]], [[1]]) | {"unlabelled": np.array([[7]])}, ("'unlabelled', row 0", "index 7")),
        (pair([[0]], [[1]]) | {"idx_labs": np.array([[0]])}, ("'train' and 'idx_labs'", "one set")),
        ({"idx_unls": np.array([[0]])}, ("'idx_unls' without 'idx_labs'",)),
        (pair([[1, 6]], [[2]]), ("index 6", "6 points", "0 to 5", "Subtract 1")),
        (pair([[0, 6]], [[2]]), ("index 6", "6 points", "belong to these data")),
        (pair([[0, -1]], [[1]]), ("index -1",)),
        (pair([[0, 0]], [[1]]), ("'train', row 0", "index 0 twice")),
        (pair([[0], [1]], [[1], [1]]), ("row 1", "1 point in both, such as 1")),
        (pair([[0], [1]], [[1]]), ("2 rows in 'train' but 1 in 'test'",)),
        (pair([[0.5]], [[1]]), ("float64", "integers")),
        (pair([[True, False]], [[1]]), ("bool", "flatnonzero")),
        (pair([[[0]]], [[1]]), ("shape (1, 1, 1)",)),
    ],
)
def test_wrong_indices(arrays, words):
    with mistake(*words):
        partitions_of(arrays, N, "t")


@settings(deadline=None)
@given(st.permutations(range(N)), st.integers(1, N - 1), st.sets(st.integers(0, N - 1)))
def test_rows_that_are_kept_stay_in_their_parts(order, cut, kept):
    rows = np.array(sorted(kept), dtype=np.intp)
    (split,) = restricted(partitions_of(pair([order[:cut]], [order[cut:]]), N, "t"), rows, N)
    assert rows[split.train].tolist() == [i for i in order[:cut] if i in kept]
    assert rows[split.test].tolist() == [i for i in order[cut:] if i in kept]


def test_a_column_of_words_is_a_partition():
    words = np.array(["test", "Train", "unlabelled", "train", "TEST"])
    split = partition_of_column(words, "t")
    assert (split.train.tolist(), split.test.tolist()) == ([1, 3], [0, 4])
    assert split.unlabelled.tolist() == [2]


@pytest.mark.parametrize("words", [["train", "tset"], ["train", "train"], ["test", "unlabelled"]])
def test_a_column_of_other_words_is_none(words):
    with mistake("t: split", repr(words[0]), "'train' in some rows"):
        partition_of_column(np.array(words), "t: split")


CLASS_SIZES = (9, 4, 12)
ROWS = np.array([0, 2, 3, 5, 8, 9, 11, 12, 14, 15, 17, 19, 22, 24])  # 5, 3 and 6 of each class


def classes(*sizes: int) -> Dataset:
    y = np.repeat(np.arange(float(len(sizes))), sizes)
    if len(sizes) == 2:
        y = 2.0 * y - 1.0
    names = tuple(f"class {number}" for number in range(len(sizes)))
    return Dataset("t", y[:, None], y, names, ("f",))


def number(data: Dataset, rows: np.ndarray, **words: Any) -> int:
    return n_inner_folds(data, rows, SelectionSpec(**words), "data set 't'")


@pytest.mark.parametrize("seed", [3, 2**32 + 3])
def test_folds_of_classes_are_stratified(seed):
    data = classes(*CLASS_SIZES)
    found = inner_folds(data, ROWS, SelectionSpec(folds=3, repeats=2), seed)
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=3)
    expected = [np.sort(ROWS[held]) for _, held in splitter.split(ROWS[:, None], data.y[ROWS])]
    assert len(found) == len(expected) == 6
    for held_out, rows in zip(found, expected, strict=True):
        np.testing.assert_array_equal(held_out, rows)
        assert set(data.y[np.setdiff1d(ROWS, held_out)]) == {0, 1, 2}


def test_folds_of_values_are_not():
    rows = np.arange(3, 20)
    found = inner_folds(values(25), rows, SelectionSpec(folds=4), 1)
    splitter = RepeatedKFold(n_splits=4, n_repeats=1, random_state=1)
    for held_out, (_, held) in zip(found, splitter.split(rows[:, None]), strict=True):
        np.testing.assert_array_equal(held_out, np.sort(rows[held]))


@pytest.mark.parametrize(("sizes", "words", "n_folds"), [
    ((9, 4, 12), {}, 4), ((9, 4), {"repeats": 3}, 12), ((7, 9), {}, 5), ((7, 9), {"folds": 7}, 7),
])  # fmt: skip
def test_the_default_is_five_folds_or_the_size_of_the_smallest_class(sizes, words, n_folds):
    data, rows = classes(*sizes), np.arange(sum(sizes))
    assert number(data, rows, **words) == n_folds
    assert len(inner_folds(data, rows, SelectionSpec(**words), 0)) == n_folds


def test_too_few_points_for_inner_folds():
    with mistake(
        "data set 't'",
        "training points of the smallest class: 1",
        "at least two",
    ):
        number(classes(9, 4), np.array([0, 1, 2, 9]))
    with mistake("folds = 5", "at most 4", "of the smallest class", "omit it to use up to 5 folds"):
        number(classes(9, 4), np.arange(13), folds=5)
    with mistake("training points: 1", "at least two"):
        number(values(9), np.array([3]))
    with mistake("folds = 7", "at most 6, the training points."):
        number(values(9), np.arange(6), folds=7)


def test_folds_of_groups_keep_groups_together():
    groups = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3])
    data = replace(values(25), row_groups=groups)
    spec = SelectionSpec(folds=3, repeats=1)
    found = inner_folds(data, ROWS, spec, 6)
    present = np.unique(groups[ROWS])
    splitter = KFold(3, shuffle=True, random_state=6)
    for held_out, (_, test) in zip(found, splitter.split(present), strict=True):
        np.testing.assert_array_equal(held_out, ROWS[np.isin(groups[ROWS], present[test])])
    assert number(data, ROWS, folds=3, repeats=2) == 6
    assert number(replace(data, row_groups=np.arange(25) % 3), ROWS) == 3


def test_groups_that_cannot_be_folded():
    data = replace(values(25), row_groups=np.arange(25) % 3)
    with mistake("folds = 4", "at most 3, the groups of the training part"):
        number(data, ROWS, folds=4)
    with mistake("groups of the training part: 1", "at least two groups"):
        number(replace(data, row_groups=np.zeros(25, np.intp)), ROWS)
    apart = replace(classes(6, 6), row_groups=np.repeat([0, 1, 2], [6, 3, 3]))
    with mistake("class 'class 0' in 1 of 3 groups", "each class in two groups or more"):
        number(apart, np.arange(12))


LABELS = np.array([-1.0] * 30 + [1.0] * 10)
SPLITS = [Split(np.arange(0, 40, 2), np.arange(1, 40, 2)), Split(np.arange(1, 40, 2), np.arange(2))]


def forty_rows(**words) -> Dataset:
    return Dataset(
        **{"name": "a", "x": np.zeros((40, 1)), "y": LABELS, "classes": ("n", "y")} | words
    )


def test_cut_parts_are_nested_and_of_the_asked_size():
    cut = [
        cut_splits(forty_rows(), SPLITS, n, 0, "splits", stratified=True) for n in (2, 5, 12, 20)
    ]
    for number, split in enumerate(SPLITS):
        parts = [set(splits[number].train.tolist()) for splits in cut]
        assert [len(rows) for rows in parts] == [2, 5, 12, 20]
        assert all(small < large for small, large in pairwise(parts))
        of_class = [sum(LABELS[list(rows)] > 0) for rows in parts]
        np.testing.assert_allclose(of_class, [0.5, 1.25, 3, 5], atol=0.99)  # a quarter, rounded
        assert all((splits[number].test == split.test).all() for splits in cut)
    whole = cut_splits(forty_rows(), SPLITS, 20, 0, "splits", stratified=True)
    assert [s.fingerprint for s in whole] == [s.fingerprint for s in SPLITS]


def test_cut_parts_need_not_be_stratified():
    counts = set()
    for seed in range(20):
        cut = cut_splits(forty_rows(), SPLITS, 8, seed, "splits", stratified=False)
        counts.add(int((LABELS[cut[0].train] > 0).sum()))
    assert len(counts) > 1


def test_cut_parts_hold_as_many_whole_groups_as_fit():
    groups = np.arange(40) // 4  # two rows of each in every training part
    data = forty_rows(row_groups=groups, classes=None)
    sizes = [
        [len(s.train) for s in cut_splits(data, SPLITS, n, 0, "splits", stratified=False)]
        for n in (2, 5, 20)
    ]
    assert sizes == [[2, 2], [4, 4], [20, 20]]
    taken = set(groups[cut_splits(data, SPLITS, 5, 0, "splits", stratified=False)[0].train])
    assert len(taken) == 2


def test_more_rows_than_a_training_part_holds_are_refused():
    with pytest.raises(DataError, match=r"splits: n_train: found 21; expected at most 20, the tra"):
        cut_splits(forty_rows(), SPLITS, 21, 0, "splits", stratified=True)


def test_fewer_rows_than_the_first_group_are_refused():
    data = forty_rows(row_groups=np.arange(40) // 10, classes=None)  # five rows of each in a part
    for seed in range(4):
        with pytest.raises(
            DataError, match=r"^s: n_train: found 4; expected at least 5, the rows of the group"
        ):
            cut_splits(data, SPLITS, 4, seed, "s", stratified=False)
        assert len(cut_splits(data, SPLITS, 5, seed, "s", stratified=False)[0].train) == 5


def shuffled(*sizes: int) -> Dataset:
    y = np.repeat(np.arange(len(sizes)), sizes).astype(float)
    if len(sizes) == 2:
        y = 2 * y - 1
    y = np.random.default_rng(9).permutation(y)
    names = tuple(f"class {i}" for i in range(len(sizes)))
    return Dataset("t", np.arange(len(y))[:, None] * 1.0, y, names, ("f",))


def partly_labelled(data: Dataset, seed: int = 0, **words: Any) -> tuple[Split, ...]:
    return make_splits(SplitsSpec(kind="semi-supervised", **words), data, seed)


def counts(data: Dataset, rows: np.ndarray) -> list[int]:
    return [int(np.count_nonzero(data.y[rows] == label)) for label in np.unique(data.y)]


AMOUNTS = st.one_of(
    st.fixed_dictionaries({"labelled_per_class": st.integers(1, 4)}),
    st.fixed_dictionaries({"labelled_fraction": st.floats(0.05, 0.4)}),
    st.fixed_dictionaries(
        {"labelled": st.integers(4, 12), "stratified": st.sampled_from([None, True, False])}
    ),
)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.integers(12, 30), min_size=2, max_size=4),
    AMOUNTS,
    st.sampled_from([0.0, 0.25]),
    st.integers(0, 2**40),
)
def test_the_three_parts_are_all_points_once(sizes, amount, test_fraction, seed):
    data = shuffled(*sizes)
    splits = partly_labelled(data, seed, test_fraction=test_fraction, repeats=3, **amount)
    assert len(splits) == 3
    for split in splits:
        parts = (split.train, split.unlabelled, split.test)
        assert all(part.dtype == np.intp and (np.diff(part) > 0).all() for part in parts)
        assert np.sort(np.concatenate(parts)).tolist() == list(range(data.n_points))
        np.testing.assert_array_equal(split.known, np.setdiff1d(range(data.n_points), split.test))
        assert len(split.test) == np.ceil(test_fraction * data.n_points)
        assert len(split.unlabelled)
        labelled = counts(data, split.train)
        assert min(labelled) >= 1
        if "labelled_per_class" in amount:
            assert labelled == [amount["labelled_per_class"]] * len(sizes)
        elif "labelled_fraction" in amount:
            assert labelled == [max(1, round(amount["labelled_fraction"] * n)) for n in sizes]
        else:
            assert sum(labelled) == amount["labelled"]
        for n_test, size in zip(counts(data, split.test), sizes, strict=True):
            assert abs(n_test - len(split.test) * size / sum(sizes)) < 1 + 1e-9


def test_more_repeats_begin_with_those_of_fewer():
    data = shuffled(20, 30)
    few = partly_labelled(data, 3, labelled_per_class=4, test_fraction=0.2, repeats=2)
    many = partly_labelled(data, 3, labelled_per_class=4, test_fraction=0.2, repeats=6)
    prints = [split.fingerprint for split in many]
    assert prints[:2] == [split.fingerprint for split in few]
    assert len(set(prints)) == 6
    other = partly_labelled(data, 4, labelled_per_class=4, test_fraction=0.2, repeats=6)
    assert not set(prints) & {split.fingerprint for split in other}


def test_labelled_points_in_proportion_unless_the_sweep_says_otherwise():
    data = shuffled(90, 30)
    drawn = partly_labelled(data, labelled=20, repeats=20)
    assert {tuple(counts(data, split.train)) for split in drawn} == {(15, 5)}
    free = partly_labelled(data, labelled=20, stratified=False, repeats=20)
    assert len({tuple(counts(data, split.train)) for split in free}) > 3
    rare = shuffled(12, 30, 30, 30)
    drawn = partly_labelled(rare, labelled=6, repeats=3)
    assert {(counts(rare, split.train)[0], len(split.train)) for split in drawn} == {(1, 6)}


@pytest.mark.parametrize(
    ("sizes", "words", "said"),
    [
        (
            (5, 9),
            {"labelled_per_class": 6},
            ("6 points to be labelled of 5 in class 'class 0'", "at most 5"),
        ),
        ((5, 5), {"labelled_per_class": 5}, ("all of 10 points labelled", "holdout")),
        ((9, 9), {"labelled": 30}, ("30 of 18 points", "2 to 17")),
        ((9, 9, 9), {"labelled": 2}, ("labelled", "2 of 27 points, of 3 classes", "3 to 26")),
        (
            (1, 9),
            {"labelled": 3, "test_fraction": 0.2},
            ("test_fraction", "2 of 10 points, of 2 classes, the smallest of 1", "two points"),
        ),
        ((9, 9, 9), {"labelled": 25}, ("labelled: found 25 of 27 points", "3 to 24 points")),
        ((1, 5000), {"labelled": 2, "stratified": False}, ("1000 draws", "stratified")),
    ],
)
def test_too_few_points_to_be_labelled(sizes, words, said):
    with mistake("data set 't'", *said):
        partly_labelled(shuffled(*sizes), **words)


def test_values_of_regression_have_no_classes_to_draw_of():
    data = Dataset("t", np.arange(9.0)[:, None], np.arange(9.0), None, ("f",))
    with mistake("regression", "classes", "splits = {...}"):
        partly_labelled(data, labelled=4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "found no number of labelled rows; expected one of labelled_per_class"),
        ({"labelled": 4, "labelled_fraction": 0.5}, "found labelled_fraction and labelled"),
        ({"labelled": 4, "train_fraction": 0.5}, "found train_fraction with kind"),
        ({"labelled": 4, "folds": 3}, "found folds with kind"),
        ({"kind": "holdout", "labelled": 4}, 'expected kind = "semi-supervised"'),
        (
            {"kind": "holdout", "folds": 4},
            'found folds .* expected kind = "kfold" or "time", or no folds',
        ),
        ({"kind": "kfold", "train_fraction": 0.5}, 'expected kind = "holdout"'),
        ({"kind": "predefined", "train_fraction": 0.5}, "found train_fraction with kind"),
        ({"kind": "predefined", "folds": 5}, "found folds with kind"),
        ({"kind": "predefined", "repeats": 5}, "or no repeats"),
        ({"kind": "predefined", "stratified": True}, "found stratified with kind"),
        ({"kind": "kfold", "test_fraction": 0.2}, "found test_fraction with kind"),
        ({"labelled_per_class": 4, "stratified": False}, "found stratified = false"),
    ],
)
def test_words_that_do_not_fit_together(words, said):
    with pytest.raises(ValidationError, match=said):
        SplitsSpec(**{"kind": "semi-supervised"} | words)
