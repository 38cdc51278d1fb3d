"""Tests, intervals and fits on plain arrays, held to formulas, tables and simulations."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.stats import norm

from mkldist.analysis.statistics import (
    Overlap,
    corrected_interval,
    corrected_t_test,
    correlated_posterior,
    frequencies,
    friedman,
    holm,
    known_interval,
    loss_interval,
    pairwise_wilcoxon,
    selection_stability,
)
from mkldist.errors import InputError

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


@pytest.mark.slow
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


# Areas under the curve of C4.5 without tuning, with m, with cf, and with both tuned.
DEMSAR = pd.DataFrame(
    {
        "adult": (0.763, 0.768, 0.771, 0.798),
        "breast cancer": (0.599, 0.591, 0.590, 0.569),
        "breast cancer wisconsin": (0.954, 0.971, 0.968, 0.967),
        "cmc": (0.628, 0.661, 0.654, 0.657),
        "ionosphere": (0.882, 0.888, 0.886, 0.898),
        "iris": (0.936, 0.931, 0.916, 0.931),
        "liver disorders": (0.661, 0.668, 0.609, 0.685),
        "lung cancer": (0.583, 0.583, 0.563, 0.625),
        "lymphography": (0.775, 0.838, 0.866, 0.875),
        "mushroom": (1.000, 1.000, 1.000, 1.000),
        "primary tumor": (0.940, 0.962, 0.965, 0.962),
        "rheum": (0.619, 0.666, 0.614, 0.669),
        "voting": (0.972, 0.981, 0.9751, 0.975),  # printed 0.975 with ranks 2 and 3
        "wine": (0.957, 0.978, 0.946, 0.970),
    },
    index=["C4.5", "+m", "+cf", "+m+cf"],
).T


def test_ranks_and_friedmans_test_are_those_of_the_paper():
    test = friedman(DEMSAR, smaller_is_better=False)
    assert test.mean_ranks.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    # The paper's chi-squared leaves out the correction for ties that scipy makes.
    uncorrected = 12 * 14 / (4 * 5) * ((test.mean_ranks**2).sum() - 4 * 5**2 / 4)
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    chi_squared = stats.friedmanchisquare(*DEMSAR.to_numpy().T).statistic
    assert chi_squared > uncorrected
    assert test.statistic == pytest.approx(13 * chi_squared / (14 * 3 - chi_squared))
    assert test.p_value == pytest.approx(stats.f.sf(test.statistic, 3, 39))


def test_critical_differences_are_those_of_the_paper():
    at = {level: friedman(DEMSAR, significance=level).critical_difference for level in (0.05, 0.1)}
    assert at[0.05] == pytest.approx(1.25, abs=0.005)
    assert at[0.1] == pytest.approx(1.12, abs=0.005)


def test_errors_rank_as_accuracies_do():
    accuracies = friedman(DEMSAR, smaller_is_better=False)
    errors = friedman(1.0 - DEMSAR)
    pd.testing.assert_series_equal(errors.mean_ranks, accuracies.mean_ranks)


def test_wilcoxons_test_is_that_of_the_paper():
    table = pairwise_wilcoxon(DEMSAR)
    assert len(table) == 6
    row = table[(table["first"] == "C4.5") & (table["second"] == "+m")].iloc[0]
    differences = (DEMSAR["+m"] - DEMSAR["C4.5"]).to_numpy().round(3)
    ranks = stats.rankdata(np.abs(differences))
    zeros = ranks[differences == 0].sum()
    least = ranks[differences < 0].sum() + zeros / 2
    assert least == 12.0  # T of section 3.1.3, so z = -2.54
    assert row["p_value"] == pytest.approx(2 * stats.norm.sf(2.54), abs=0.01)
    assert row["median_difference"] < 0
    assert (table["p_holm"] >= table["p_value"]).all()


def test_holms_adjustment_is_the_step_down_rule():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p_values = rng.random(6) ** 3
        adjusted = holm(p_values)
        for alpha in (0.01, 0.05, 0.2):
            rejected = np.zeros(6, bool)
            for step, i in enumerate(np.argsort(p_values)):
                if p_values[i] > alpha / (6 - step):
                    break
                rejected[i] = True
            np.testing.assert_array_equal(adjusted <= alpha, rejected)


def test_copies_of_a_test_count_once():
    adjusted = holm(np.array([0.04, 0.01, np.nan, 0.01, 0.03]), ["b", "a", "n", "a", "c"])
    assert adjusted == pytest.approx([0.06, 0.03, np.nan, 0.03, 0.06], nan_ok=True)


def test_what_cannot_be_compared_is_refused():
    holed = DEMSAR.copy()
    holed.loc["iris", "+m"] = np.nan
    with pytest.raises(ValueError, match=r"found no score of '\+m' on 'iris'"):
        friedman(holed)
    with pytest.raises(ValueError, match="found 2 methods; expected at least 3"):
        friedman(DEMSAR[["+m", "+cf"]])


def test_equal_scores_do_not_differ():
    equal = pd.DataFrame(np.ones((5, 3)), columns=list("abc"))
    test = friedman(equal)
    assert test.statistic == 0.0
    assert test.p_value == 1.0
    assert (pairwise_wilcoxon(equal)["p_value"] == 1.0).all()


@pytest.mark.parametrize("test", [friedman, pairwise_wilcoxon])
def test_splits_of_one_data_set_are_no_data_sets(test):
    splits = DEMSAR.rename_axis(index="split")
    with pytest.raises(InputError, match="training parts of splits overlap") as refused:
        test(splits)
    assert "corrected_t_test" in str(refused.value)


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
