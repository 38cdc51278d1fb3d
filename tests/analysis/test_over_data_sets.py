"""Comparisons over data sets, held to the worked example of Demšar (2006), tables 2, 5 and 6."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mkldist.analysis.comparison import compare_active_kernels
from mkldist.analysis.statistics import (
    friedman,
    holm,
    pairwise_wilcoxon,
    signed_rank_posterior,
)
from mkldist.errors import InputError

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


def test_the_signed_rank_posterior_is_sure_where_the_data_are():
    assert signed_rank_posterior(np.full(20, 0.3), 0.01).above > 0.99
    assert signed_rank_posterior(np.full(20, -0.3), 0.01).below > 0.99
    assert signed_rank_posterior(np.full(20, 0.001), 0.01).equivalent > 0.99


def test_the_signed_rank_posterior_of_one_difference_is_its_integral():
    # With weights (w, 1 - w) ~ Beta(1/2, 1) of zero and of d = 1: the sum of two is above 2 rope
    # unless both are zero, so "above" wins where 1 - w² > 1/2.
    expected = stats.beta(0.5, 1).cdf(math.sqrt(0.5))
    found = signed_rank_posterior(np.array([1.0]), 0.1, draws=200_000)
    assert found.above == pytest.approx(expected, abs=0.004)
    assert found.equivalent == pytest.approx(1 - expected, abs=0.004)
    assert signed_rank_posterior(np.array([1.0]), 0.1) == signed_rank_posterior(
        np.array([1.0]), 0.1
    )


def test_what_cannot_be_compared_is_refused():
    holed = DEMSAR.copy()
    holed.loc["iris", "+m"] = np.nan
    with pytest.raises(ValueError, match=r"found no score of '\+m' on 'iris'"):
        friedman(holed)
    with pytest.raises(ValueError, match="found 2 methods; expected at least 3"):
        friedman(DEMSAR[["+m", "+cf"]])
    with pytest.raises(ValueError, match="expected at least one data set"):
        signed_rank_posterior(np.empty(0), 0.1)


def test_equal_scores_do_not_differ():
    equal = pd.DataFrame(np.ones((5, 3)), columns=list("abc"))
    test = friedman(equal)
    assert test.statistic == 0.0
    assert test.p_value == 1.0
    assert (pairwise_wilcoxon(equal)["p_value"] == 1.0).all()


@pytest.mark.parametrize("test", [friedman, pairwise_wilcoxon, compare_active_kernels])
def test_splits_of_one_data_set_are_no_data_sets(test):
    splits = DEMSAR.rename_axis(index="split")
    with pytest.raises(InputError, match="training parts of splits overlap") as refused:
        test(splits)
    assert "corrected_t_test" in str(refused.value)
