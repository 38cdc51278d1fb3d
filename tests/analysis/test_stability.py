"""Stability of selections."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from mkldist.analysis.statistics import frequencies, selection_stability


def test_equal_sizes_give_the_mean_correlation_of_pairs():
    # For selections of one size the measure is Kuncheva's index, the mean Pearson correlation.
    rng = np.random.default_rng(0)
    selected = np.zeros((8, 30), bool)
    for row in selected:
        row[rng.choice(20, 6, replace=False)] = True
    pairs = [np.corrcoef(a, b)[0, 1] for a, b in itertools.combinations(selected, 2)]
    assert selection_stability(selected).mean == pytest.approx(np.mean(pairs), rel=1e-12)


def test_random_selections_have_no_stability_and_equal_ones_all():
    rng = np.random.default_rng(1)
    values = [selection_stability(rng.random((10, 50)) < 0.2).mean for _ in range(200)]
    assert abs(np.mean(values)) < 0.01
    same = np.tile(rng.random(50) < 0.2, (10, 1))
    assert selection_stability(same).mean == pytest.approx(1.0)


def test_the_interval_covers_the_true_value():
    # Kernel m is selected with probability p_m, independently: the population's measure is known.
    rng = np.random.default_rng(2)
    p = rng.beta(0.3, 1.0, 60)
    share = p.mean()
    truth = 1 - (p * (1 - p)).mean() / (share * (1 - share))
    covered = 0
    for _ in range(300):
        interval = selection_stability(rng.random((50, 60)) < p)
        covered += interval.low <= truth <= interval.high
    assert 0.9 <= covered / 300 <= 0.99


@pytest.mark.parametrize(("n_splits", "known"), [(2, False), (4, False), (5, True)])
def test_few_splits_have_a_measure_without_an_interval(n_splits, known):
    found = selection_stability(np.random.default_rng(3).random((n_splits, 20)) < 0.3)
    assert not np.isnan(found.mean)
    assert np.isnan([found.low, found.high]).tolist() == [not known] * 2


def test_selections_without_choice_have_no_measure():
    assert np.isnan(selection_stability(np.ones((3, 4), bool)).mean)
    assert np.isnan(selection_stability(np.zeros((3, 4), bool)).mean)
    with pytest.raises(ValueError, match="found 1 split"):
        selection_stability(np.ones((1, 4), bool))


def test_frequencies_have_wilson_intervals():
    n, p, z = 10, 0.8, norm.ppf(0.975)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    (found,) = frequencies(np.arange(10)[:, None] < 8)
    assert found == pytest.approx((p, centre - half, centre + half))
    assert math.isnan(frequencies(np.array([[True]]))[0].low)
