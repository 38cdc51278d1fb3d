"""Inner folds: they divide the labelled rows, each class in proportion, as scikit-learn does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from mkldist.data.dataset import Dataset
from mkldist.data.folds import inner_folds, n_inner_folds
from mkldist.spec.selection import SelectionSpec
from tests.data.mistakes import mistake

Y = np.array([1.0] * 12 + [-1.0] * 24 + [1.0] * 4)
CLASSES = Dataset("d", None, Y, ("no", "yes"))
VALUES = Dataset("d", None, np.linspace(0.0, 1.0, 40), None)
LABELLED = np.random.default_rng(0).permutation(36)  # 12 of "yes", 24 of "no"


@pytest.mark.parametrize("dataset", [CLASSES, VALUES], ids=["classes", "values"])
@pytest.mark.parametrize(("folds", "repeats"), [(2, 1), (4, 3)])
def test_folds_of_each_repetition_divide_the_labelled_rows(dataset, folds, repeats):
    spec = SelectionSpec(folds=folds, repeats=repeats)
    found = inner_folds(dataset, LABELLED, spec, seed=3)
    assert len(found) == folds * repeats == n_inner_folds(dataset, LABELLED, spec, "s")
    assert all((np.diff(rows) > 0).all() for rows in found)
    for start in range(0, len(found), folds):
        together = np.concatenate(found[start : start + folds])
        assert sorted(together.tolist()) == sorted(LABELLED.tolist())
    assert len({rows.tobytes() for rows in found}) == len(found)


def test_every_fold_has_its_share_of_each_class():
    for rows in inner_folds(CLASSES, LABELLED, SelectionSpec(folds=4), seed=0):
        assert [int((Y[rows] == label).sum()) for label in (1.0, -1.0)] == [3, 6]


def test_seeds_beyond_32_bits_are_taken_modulo():
    seed = 5
    for_each = [inner_folds(CLASSES, LABELLED, SelectionSpec(), s) for s in (seed, seed + 2**32)]
    np.testing.assert_equal(for_each[0], for_each[1])
    state = np.random.RandomState(seed)  # a repetition takes its own seed from it
    own = StratifiedKFold(5, shuffle=True, random_state=state)
    expected = [np.sort(LABELLED[out]) for _, out in own.split(LABELLED, Y[LABELLED])]
    np.testing.assert_equal(list(for_each[0]), expected)


def test_folds_are_fewer_where_the_smallest_class_is_smaller():
    few = np.array([0, 1, 2, *range(12, 30)])  # 3 of "yes"
    assert n_inner_folds(CLASSES, few, SelectionSpec(), "s") == 3
    assert len(inner_folds(CLASSES, few, SelectionSpec(repeats=2), seed=0)) == 6
    with mistake("folds = 5", "at most 3, the training points of the smallest class"):
        n_inner_folds(CLASSES, few, SelectionSpec(folds=5), "s")


def test_folds_need_two_points_of_each_class():
    with mistake("9 training points, 1 of class 'yes'", "at least two of each class"):
        n_inner_folds(CLASSES, np.arange(11, 20), SelectionSpec(), "s")
    with mistake("1 training point", "at least two"):
        n_inner_folds(VALUES, np.array([7]), SelectionSpec(), "s")
