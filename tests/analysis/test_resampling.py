"""Corrected intervals and tests on overlapping splits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from mkldist.analysis.statistics import (
    Overlap,
    corrected_interval,
    corrected_t_test,
    correlated_posterior,
    known_interval,
    loss_interval,
)

HALVES = Overlap(50, 50)


def test_without_overlap_the_test_is_that_of_scipy():
    differences = np.random.default_rng(0).normal(0.3, 1.0, 12)
    test = corrected_t_test(differences, Overlap(90, 10, independent=True))
    expected = stats.ttest_1samp(differences, 0.0)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    interval = corrected_interval(differences, Overlap(90, 10, independent=True))
    low, high = expected.confidence_interval(0.95)
    assert (interval.low, interval.high) == (pytest.approx(low), pytest.approx(high))


def test_the_correction_of_ten_folds_is_that_of_the_paper():
    # Nadeau & Bengio: 1/10 + 1/9 in place of 1/10.
    differences = np.random.default_rng(1).normal(0.3, 1.0, 10)
    plain = stats.ttest_1samp(differences, 0.0).statistic
    corrected = corrected_t_test(differences, Overlap(90, 10)).statistic
    assert plain / corrected == pytest.approx(math.sqrt((1 / 10 + 1 / 9) * 10))


def test_corrected_tests_keep_their_level_where_naive_ones_do_not():
    # Means of a fresh sample, on random halves of 40 points: the true difference is zero.
    rng = np.random.default_rng(2)
    naive, corrected = [], []
    for _ in range(400):
        sample = rng.normal(size=40)
        values = np.array([sample[rng.permutation(40)[:20]].mean() for _ in range(15)])
        naive.append(stats.ttest_1samp(values, 0.0).pvalue < 0.05)
        corrected.append(corrected_t_test(values, Overlap(20, 20)).p_value < 0.05)
    assert np.mean(naive) > 0.3
    assert np.mean(corrected) < 0.08


@pytest.mark.parametrize("value", [0.0, 0.2, -0.2])
def test_equal_differences(value):
    differences = np.full(5, value)
    test = corrected_t_test(differences, HALVES)
    assert test.p_value == (1.0 if value == 0.0 else 0.0)
    assert correlated_posterior(differences, HALVES, 0.1) == (value < 0, value == 0, value > 0)


def test_the_posterior_is_the_integral_of_the_papers_density():
    # Benavoli et al. 2017, (9): Student with n - 1 degrees of freedom, location the mean, and
    # scale² (1/n + rho / (1 - rho)) times the variance.
    differences = np.random.default_rng(3).normal(0.02, 0.03, 25)
    rho = 30 / (70 + 30)
    scale = math.sqrt((1 / 25 + rho / (1 - rho)) * differences.var(ddof=1))

    def density(x: float) -> float:
        u = (x - differences.mean()) / scale
        constant = math.gamma(12.5) / (math.sqrt(24 * math.pi) * math.gamma(12)) / scale
        return constant * (1 + u**2 / 24) ** -12.5

    posterior = correlated_posterior(differences, Overlap(70, 30), 0.01)
    inside = integrate.quad(density, -0.01, 0.01)[0]
    assert posterior.equivalent == pytest.approx(inside, abs=1e-9)
    assert posterior.above == pytest.approx(integrate.quad(density, 0.01, 3)[0], abs=1e-6)
    assert sum(posterior) == pytest.approx(1.0)


def test_what_cannot_be_told_is_refused():
    with pytest.raises(ValueError, match="found 1 split; expected at least two"):
        corrected_t_test(np.array([1.0]), HALVES)
    with pytest.raises(ValueError, match="found rope = -1"):
        correlated_posterior(np.zeros(3), HALVES, -1)


def test_an_interval_is_of_the_values_that_are_known():
    values = np.array([0.1, np.nan, 0.4])
    assert known_interval(values, HALVES) == corrected_interval(values[[0, 2]], HALVES)
    one = known_interval(values[:2], HALVES)
    assert one.mean == 0.1
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(known_interval(values[1:2], HALVES).mean)


def test_the_interval_of_a_share_is_clopper_and_pearsons_of_the_effective_rows():
    errors, overlap = np.array([0.1, 0.3, 0.2, 0.25, 0.15]), Overlap(126, 54)
    interval = loss_interval(errors, overlap, 150, 1.0)
    variance = errors.var(ddof=1) * (1 / 5 + 54 / 126)
    ratio = stats.t.ppf(0.975, 149) / stats.t.ppf(0.975, 4)
    n = 0.2 * 0.8 / variance * ratio**2
    assert n < 150
    assert interval.mean == pytest.approx(0.2)
    assert interval.low == pytest.approx(stats.beta.ppf(0.025, 0.2 * n, 0.8 * n + 1))
    assert interval.high == pytest.approx(stats.beta.ppf(0.975, 0.2 * n + 1, 0.8 * n))


@pytest.mark.parametrize("errors", [[0.0] * 5, [0.25] * 5, [1.0] * 5, [0.0], [0.0, 0.02]])
def test_no_interval_of_a_share_is_of_no_width_or_leaves_its_bounds(errors):
    interval = loss_interval(np.array(errors), Overlap(126, 54), 150, 1.0)
    assert 0.0 <= interval.low < interval.high <= 1.0
    assert interval.low <= interval.mean <= interval.high


def test_the_interval_of_a_loss_without_bound_is_students_of_its_logarithm():
    losses = np.array([3.0, 5.0, 4.0, np.nan])
    interval = loss_interval(losses, Overlap(90, 10), 30, math.inf)
    relative = losses[:3].std(ddof=1) * math.sqrt(1 / 3 + 1 / 9) / 4.0
    half = stats.t.ppf(0.975, 2) * relative
    assert interval.low == pytest.approx(4.0 * math.exp(-half))
    assert interval.high == pytest.approx(4.0 * math.exp(half))
    assert math.isnan(loss_interval(losses[:1], Overlap(90, 10), 30, math.inf).low)
    assert math.isnan(loss_interval(np.array([np.nan]), Overlap(90, 10), 30, 1.0).mean)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_splits", "n", "n_train"), [(1, 60, 42), (3, 60, 42), (5, 60, 42), (10, 60, 42),
                                   (5, 200, 20), (10, 400, 10)],
)  # fmt: skip
def test_intervals_of_errors_hold_the_expected_error_as_often_as_they_say(n_splits, n, n_train):
    """Nearest centroids on n rows of two Gaussian classes."""
    rng, truth, found = np.random.default_rng(0), [], []
    shift = np.array([3.5, 0.0, 0.0, 0.0, 0.0])

    def drawn(n):
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        return rng.normal(size=(n, 5)) + y[:, None] * shift / 2, y

    def rule(x, y):
        ends = x[y > 0].mean(axis=0), x[y < 0].mean(axis=0)
        return ends[0] - ends[1], (ends[0] @ ends[0] - ends[1] @ ends[1]) / 2

    for _ in range(1000):
        w, b = rule(*drawn(n_train))
        centre, spread = w @ shift / 2, np.linalg.norm(w)
        ends = np.array([b - centre, -centre - b]) / spread
        truth.append(stats.norm.cdf(ends).mean())
    for _ in range(300):
        (x, y), errors, tested, n_test = drawn(n), [], set(), n - n_train
        for _ in range(n_splits):
            of_class = 2 * rng.permutation(n // 2), 2 * rng.permutation(n // 2) + 1
            order = np.stack(of_class, axis=1).ravel()  # both classes in turn
            train, test = order[n_test:], order[:n_test]
            w, b = rule(x[train], y[train])
            errors.append(((x[test] @ w >= b) != (y[test] > 0)).mean())
            tested |= {*test.tolist()}
        overlap = Overlap(n_train, n_test, independent=n_splits == 1)
        found.append(loss_interval(np.array(errors), overlap, len(tested), 1.0))
    held = np.mean([one.low <= np.mean(truth) <= one.high for one in found])
    assert held >= 0.94
