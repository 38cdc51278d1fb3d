"""Rules of comparisons on the splits of one data set: sizes of parts, and where no test applies."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from mkldist.analysis.losses import inference, only_shifted, overlap_of
from mkldist.analysis.statistics import Overlap


def parts(**sizes: list[int]) -> xr.Dataset:
    return xr.Dataset({name: ("split", values) for name, values in sizes.items()})


def test_the_overlap_is_of_the_mean_sizes_of_the_chosen_splits():
    data = parts(n_train=[60, 70, 200], n_test=[30, 20, 1], n_unlabelled=[5, 5, 5])
    assert overlap_of(data, [0, 1]) == Overlap(65.0, 25.0)
    assert overlap_of(data, [1]) == Overlap(70.0, 20.0, independent=True)
    assert overlap_of(data).n_train == pytest.approx(110.0)


def test_without_test_rows_the_unlabelled_ones_are_the_scored_part():
    data = parts(n_train=[10, 10], n_test=[0, 0], n_unlabelled=[80, 90])
    assert overlap_of(data) == Overlap(10.0, 85.0)


def test_the_test_is_the_corrected_one():
    differences = np.array([0.1, 0.3, -0.05])
    scale = differences.std(ddof=1) * np.sqrt(1 / 3 + 0.5)
    p_value, posterior = inference(differences, Overlap(60, 30), 0.02)
    assert p_value == pytest.approx(2 * stats.t.sf(differences.mean() / scale, 2))
    assert posterior.above == pytest.approx(stats.t.sf((0.02 - differences.mean()) / scale, 2))


@pytest.mark.parametrize("differences", [[0.1], [0.1, 0.1, 0.1], [-0.3, -0.3]])
def test_nothing_is_tested_without_a_spread(differences):
    p_value, posterior = inference(np.array(differences), Overlap(60, 30), 0.02)
    assert np.isnan([p_value, *posterior]).all()


def test_no_difference_anywhere_is_equivalent_and_not_a_shift():
    assert not only_shifted(np.zeros(3))
    assert only_shifted(np.full(3, 0.1))
    assert inference(np.zeros(3), Overlap(60, 30), 0.02) == (1.0, (0.0, 1.0, 0.0))
