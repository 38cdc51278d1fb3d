"""McNemar's tests on the points of each split, held to the binomial test of scipy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from mkldist.analysis.comparison import PointCounts, compare_results, point_counts
from mkldist.analysis.pairing import Pair
from tests.analysis.two_sweeps import level_and_uniform, made

ERRORS = {("heart", "level"): [0.1] * 3, ("heart", "uniform"): [0.2] * 3}
SPLITS = ("s0", "s1", "s2")


def counts(folder, level, uniform) -> PointCounts | None:
    wrong = {"level": level, "uniform": uniform}
    results = made(folder, ERRORS, split_names=SPLITS, wrong=wrong)
    return compare_results(results, results, level_and_uniform).pairs[0].points


def test_points_are_counted_and_p_values_adjusted_for_the_splits(tmp_path):
    found = counts(tmp_path, [[], [0, 1], [5]], [range(12), [1, 2], [5]])
    # Split 0: level alone has 12 right. Split 1: one each. Split 2: both miss the same point.
    assert found is not None
    assert (found.first_better, found.second_better, found.undecided) == (1, 0, 2)
    assert (found.first_only, found.second_only) == (13, 1)
    assert found.smallest_p == pytest.approx(3 * stats.binomtest(12, 12).pvalue)


def test_the_second_method_may_be_better(tmp_path):
    found = counts(tmp_path, [range(15)] * 3, [[]] * 3)
    assert found is not None
    assert (found.first_better, found.second_better, found.undecided) == (0, 3, 0)


def test_without_predictions_there_are_no_counts(tmp_path):
    results = made(tmp_path, ERRORS, split_names=SPLITS)
    assert compare_results(results, results, level_and_uniform).pairs[0].points is None


def side(labels, test_rows, values, n_test, loss="test_error") -> Any:
    """Return a method with predictions on one split."""
    record = SimpleNamespace(test_rows=np.array(test_rows), decision_values=np.array(values))
    coords = {"label": ("sample", np.array(labels, float)), "n_test": ("split", [n_test])}
    return SimpleNamespace(records=[record], data=xr.Dataset(coords=coords), loss=loss)


def test_of_several_classes_a_tie_goes_to_the_most_frequent_in_training():
    # Rows 5 to 8 are scored. Of the training rows, three are of class 2, one each of 0 and 1; over
    # all rows class 0 is the most frequent.
    labels = [2, 2, 2, 0, 1, 2, 0, 0, 0]
    tie_of_0_and_2 = [1.0, 0.0, 1.0]
    second = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    first = [tie_of_0_and_2, tie_of_0_and_2, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    sides = [side(labels, [5, 6, 7, 8], np.transpose(rows), 4) for rows in (first, second)]
    found = point_counts(Pair(*sides, splits=((0, 0),)))
    # The first predicts 2, 2, 0, 2 and the second 2, 0, 0, 1 where 2, 0, 0, 0 is right.
    assert found is not None
    assert (found.first_only, found.second_only) == (0, 1)


def test_classes_without_training_rows_are_counted():
    labels = [1, 0, 0, 2]  # class 2 is not in the training rows
    sides = [side(labels, [3], np.array([row]).T, 1) for row in ([0, 0, 1], [0, 1, 0])]
    found = point_counts(Pair(*sides, splits=((0, 0),)))
    assert found is not None
    assert (found.first_only, found.second_only) == (1, 0)


@pytest.mark.parametrize(("loss", "only"), [("test_error", (1, 0)), ("unlabelled_error", (0, 2))])
def test_unlabelled_rows_stand_after_the_test_rows(loss, only):
    labels = [1, -1, 1, 1, 1, 1]
    values = ([1.0, -1.0, -1.0], [-1.0, 1.0, 1.0])  # of the rows 3, 4, 5; the first is a test row
    sides = [side(labels, [3, 4, 5], row, 1, loss) for row in values]
    found = point_counts(Pair(*sides, splits=((0, 0),)))
    assert found is not None
    assert (found.first_only, found.second_only) == only
