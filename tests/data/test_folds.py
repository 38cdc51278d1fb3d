"""Inner folds against scikit-learn, and their number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, RepeatedKFold, RepeatedStratifiedKFold

from mkldist.data.dataset import Dataset
from mkldist.data.splits import inner_folds, n_inner_folds
from mkldist.spec.model import SelectionSpec
from tests.data.mistakes import mistake

SIZES = (9, 4, 12)
ROWS = np.array([0, 2, 3, 5, 8, 9, 11, 12, 14, 15, 17, 19, 22, 24])  # 5, 3 and 6 of each class


def classes(*sizes: int) -> Dataset:
    y = np.repeat(np.arange(float(len(sizes))), sizes)
    if len(sizes) == 2:
        y = 2.0 * y - 1.0
    names = tuple(f"class {number}" for number in range(len(sizes)))
    return Dataset("t", y[:, None], y, names, ("f",))


def values(n: int) -> Dataset:
    return Dataset("t", np.arange(n * 1.0)[:, None], np.arange(n * 1.0), None, ("f",))


def number(data: Dataset, rows: np.ndarray, **words: Any) -> int:
    return n_inner_folds(data, rows, SelectionSpec(**words), "data set 't'")


@pytest.mark.parametrize("seed", [3, 2**32 + 3])
def test_folds_of_classes_are_stratified(seed: int) -> None:
    data = classes(*SIZES)
    found = inner_folds(data, ROWS, SelectionSpec(folds=3, repeats=2), seed)
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=3)
    expected = [np.sort(ROWS[held]) for _, held in splitter.split(ROWS[:, None], data.y[ROWS])]
    assert len(found) == len(expected) == 6
    for held_out, rows in zip(found, expected, strict=True):
        np.testing.assert_array_equal(held_out, rows)
        assert set(data.y[np.setdiff1d(ROWS, held_out)]) == {0, 1, 2}


def test_folds_of_values_are_not() -> None:
    rows = np.arange(3, 20)
    found = inner_folds(values(25), rows, SelectionSpec(folds=4), 1)
    splitter = RepeatedKFold(n_splits=4, n_repeats=1, random_state=1)
    for held_out, (_, held) in zip(found, splitter.split(rows[:, None]), strict=True):
        np.testing.assert_array_equal(held_out, np.sort(rows[held]))


@pytest.mark.parametrize(("sizes", "words", "n_folds"), [
    ((9, 4, 12), {}, 4), ((9, 4), {"repeats": 3}, 12), ((7, 9), {}, 5), ((7, 9), {"folds": 7}, 7),
])  # fmt: skip
def test_the_default_is_five_folds_or_the_size_of_the_smallest_class(
    sizes: tuple[int, ...], words: dict[str, int], n_folds: int
) -> None:
    data, rows = classes(*sizes), np.arange(sum(sizes))
    assert number(data, rows, **words) == n_folds
    assert len(inner_folds(data, rows, SelectionSpec(**words), 0)) == n_folds


def test_too_few_points() -> None:
    with mistake("data set 't'", "4 training points, 1 of class 'class 1'", "at least two"):
        number(classes(9, 4), np.array([0, 1, 2, 9]))
    with mistake("folds = 5", "at most 4", "of the smallest class", "omit it to use up to 5 folds"):
        number(classes(9, 4), np.arange(13), folds=5)
    with mistake("1 training point;", "at least two"):
        number(values(9), np.array([3]))
    with mistake("folds = 7", "at most 6, the training points."):
        number(values(9), np.arange(6), folds=7)


def test_folds_of_groups_keep_groups_together() -> None:
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


def test_groups_that_cannot_be_folded() -> None:
    data = replace(values(25), row_groups=np.arange(25) % 3)
    with mistake("folds = 4", "at most 3, the groups of the training part"):
        number(data, ROWS, folds=4)
    with mistake("14 training points of one group", "at least two groups"):
        number(replace(data, row_groups=np.zeros(25, np.intp)), ROWS)
    apart = replace(classes(6, 6), row_groups=np.repeat([0, 1, 2], [6, 3, 3]))
    with mistake("inner fold", "all 6 training points of class 'class 0'"):
        number(apart, np.arange(12))
