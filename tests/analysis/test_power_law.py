"""Fits of power laws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from mkldist.analysis.statistics import fit_power_law, fit_repeated, lack_of_fit
from tests.variants import quick


def test_an_exact_law_is_found():
    sizes = np.array([100.0, 300, 1000, 3000])
    law = fit_power_law(sizes, 2e-3 * sizes**1.5)
    assert law.factor == pytest.approx(2e-3)
    assert (law.exponent, law.low, law.high) == (pytest.approx(1.5),) * 3
    assert law.at(10_000) == pytest.approx(2e-3 * 10_000**1.5)
    assert law.n_sizes == 4


def test_the_interval_covers_the_exponent_at_its_level():
    rng = np.random.default_rng(0)
    sizes = np.repeat([100.0, 1000, 10_000], 3)
    covered = 0
    for _ in range(1000):
        law = fit_power_law(sizes, sizes**0.8 * np.exp(rng.normal(0, 0.2, len(sizes))))
        covered += law.low <= 0.8 <= law.high
    assert 0.93 <= covered / 1000 <= 0.97


N_SIZES, N_REPEATS, ROUNDS = 5, 3, 400
REPEATED = np.repeat(np.geomspace(100.0, 10_000.0, N_SIZES), N_REPEATS)
SPLITS = np.tile(np.arange(N_REPEATS), N_SIZES)


@pytest.mark.parametrize(
    ("of_size", "of_split", "of_value"),
    quick([(0.1, 0.1, 0.1), (0.3, 0.0, 0.02), (0.0, 0.2, 0.001)]),
    ids=["both", "a deviation of each size", "an exponent of each split"],
)
def test_the_interval_of_splits_covers_the_exponent_whatever_deviates(of_size, of_split, of_value):
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(ROUNDS):
        deviation = np.repeat(rng.normal(0, of_size, N_SIZES), N_REPEATS)
        exponent = 1.2 + np.tile(rng.normal(0, of_split, N_REPEATS), N_SIZES)
        noise = deviation + rng.normal(0, of_value, len(REPEATED))
        costs = REPEATED**exponent * np.exp(noise)
        law = fit_repeated(REPEATED, SPLITS, costs)
        covered += law.low <= 1.2 <= law.high
    assert covered / ROUNDS >= 0.92


def test_splits_are_no_independent_values_where_sizes_deviate():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(ROUNDS):
        deviation = np.repeat(rng.normal(0, 0.3, N_SIZES), N_REPEATS)
        law = fit_power_law(REPEATED, REPEATED**1.2 * np.exp(deviation))
        covered += law.low <= 1.2 <= law.high
    assert covered / ROUNDS < 0.8


def test_splits_that_lack_a_size_have_no_exponent_of_their_own():
    sizes, splits = np.array([1.0, 2, 4, 1, 2]), np.array([0, 0, 0, 1, 1])
    law = fit_repeated(sizes, splits, sizes**2)
    assert (law.exponent, law.low, law.high) == (pytest.approx(2.0),) * 3


def test_two_points_tell_no_interval():
    law = fit_power_law(np.array([1.0, 10.0]), np.array([1.0, 100.0]))
    assert law.exponent == pytest.approx(2.0)
    assert (law.low, law.high) == (-np.inf, np.inf)


def test_what_has_no_law_is_refused():
    with pytest.raises(ValueError, match="not above zero"):
        fit_power_law(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="found 1 size"):
        fit_power_law(np.array([5.0, 5.0]), np.array([1.0, 2.0]))


def test_lack_of_fit_agrees_with_the_worked_example_of_kutner_et_al():
    """Table 3.4 (new accounts of eleven bank branches): F = 14.80 with 4 and 5 degrees."""
    x = [125, 100, 200, 75, 150, 175, 75, 175, 125, 200, 100]
    y = [160, 112, 124, 28, 152, 156, 42, 124, 150, 104, 136]
    found = lack_of_fit(np.exp(np.array(x) / 100), np.exp(np.array(y) / 100))
    assert found == pytest.approx(scipy.stats.f.sf(14.80, 4, 5), rel=2e-3)


def test_lack_of_fit_of_a_true_law_is_uniform_and_of_a_bend_small():
    rng = np.random.default_rng(1)
    sizes = np.repeat([100.0, 300, 1000, 3000], 4)
    noise = np.exp(rng.normal(0, 0.1, (400, len(sizes))))
    values = np.array([lack_of_fit(sizes, sizes**1.2 * one) for one in noise])
    assert 0.02 <= (values < 0.05).mean() <= 0.09
    assert lack_of_fit(sizes, (5000 + sizes**1.2) * noise[0]) < 1e-3


def test_lack_of_fit_needs_three_sizes_and_repetitions():
    once = np.array([1.0, 2, 4])
    assert np.isnan(lack_of_fit(once, once))
    assert np.isnan(lack_of_fit(np.array([1.0, 1, 2, 2]), np.array([1.0, 2, 3, 4])))
    assert np.isnan(lack_of_fit(np.repeat(once, 2), np.repeat(once, 2)))
