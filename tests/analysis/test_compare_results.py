"""Two methods on common splits, held to scipy and to formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mkldist.analysis.comparison import ROPE, compare_results, over_data_sets
from tests.analysis.made_up_pairs import pair
from tests.analysis.two_sweeps import N_TEST, N_TRAIN, by_name, level_and_uniform, made

LEVEL = [0.10, 0.20, 0.30, 0.20, 0.15]
UNIFORM = [0.20, 0.22, 0.35, 0.18, 0.30]


def errors(n_datasets: int = 1) -> dict[tuple[str, str], list[float]]:
    """Return errors on data sets on which level is a little better from one to the next."""
    found = {}
    for number in range(n_datasets):
        found[f"d{number}", "level"] = [value - 0.01 * number for value in LEVEL]
        found[f"d{number}", "uniform"] = UNIFORM
    return found


@pytest.fixture(scope="module")
def one_data_set(tmp_path_factory):
    results = made(tmp_path_factory.mktemp("one"), errors())
    return compare_results(results, results, level_and_uniform)


def test_a_pair_has_the_corrected_interval_test_and_posterior(one_data_set):
    (found,) = one_data_set.pairs
    differences = np.subtract(LEVEL, UNIFORM)
    scale = differences.std(ddof=1) * math.sqrt(1 / 5 + N_TEST / N_TRAIN)
    t = stats.t(4, loc=differences.mean(), scale=scale)
    assert found.losses.difference == pytest.approx(differences.mean())
    assert (found.losses.first, found.losses.second) == pytest.approx((0.19, 0.25))
    assert (found.losses.low, found.losses.high) == pytest.approx(t.interval(0.95))
    statistic = abs(differences.mean()) / scale
    assert found.p_value == pytest.approx(2 * stats.t.sf(statistic, 4))
    assert found.posterior == pytest.approx((t.cdf(-ROPE), t.cdf(ROPE) - t.cdf(-ROPE), t.sf(ROPE)))
    assert (found.first, found.second, found.n_splits) == ("level", "uniform", 5)
    assert found.first_setting == {"C": 1.0}
    assert "objective" not in found.measures


def test_a_naive_test_would_be_too_sure(one_data_set):
    naive = stats.ttest_rel(LEVEL, UNIFORM).pvalue
    assert one_data_set.pairs[0].p_value > naive


def test_a_wide_region_of_equivalence_holds_all_of_the_posterior(tmp_path):
    results = made(tmp_path, errors())
    (found,) = compare_results(results, results, level_and_uniform, rope=10.0).pairs
    assert found.posterior.equivalent == pytest.approx(1.0, abs=1e-4)


def test_p_values_of_several_data_sets_are_adjusted_by_holm(tmp_path):
    results = made(tmp_path, errors(2))
    pairs = compare_results(results, results, level_and_uniform).pairs
    p_values = sorted(one.p_value for one in pairs)
    expected = np.minimum(1.0, np.maximum.accumulate(np.array([2, 1]) * p_values))
    assert sorted(one.p_holm for one in pairs) == pytest.approx(expected)


def test_one_split_has_no_test(tmp_path):
    found = {key: row[:1] for key, row in errors().items()}
    results = made(tmp_path, found, split_names=("s0",))
    (found,) = compare_results(results, results, level_and_uniform).pairs
    assert found.losses.difference == pytest.approx(-0.1)
    assert np.isnan([found.p_value, found.losses.low, found.posterior.equivalent]).all()


def test_equal_differences_by_chance_make_nothing_certain(tmp_path):
    found = {("heart", "level"): [0.10, 0.20, 0.15], ("heart", "uniform"): [0.15, 0.25, 0.20]}
    results = made(tmp_path, found, split_names=("s0", "s1", "s2"))
    (shifted,) = compare_results(results, results, level_and_uniform).pairs
    assert shifted.losses.difference == pytest.approx(-0.05)
    assert np.isnan([shifted.p_value, shifted.losses.low, shifted.posterior.below]).all()
    (same, _) = compare_results(results, results, by_name).pairs
    assert (same.losses.low, same.losses.high, same.p_value) == (0.0, 0.0, 1.0)
    assert same.posterior.equivalent == 1.0


@pytest.mark.parametrize("n_datasets", [5, 6])
def test_data_sets_together_are_tested_only_where_the_test_can_find_something(n_datasets):
    differences = [-0.06 - 0.01 * number for number in range(n_datasets)]
    pairs = [pair(0.3 + d, 0.3, dataset=f"d{n}") for n, d in enumerate(differences)]
    (over,) = over_data_sets(pairs)
    assert over.datasets == tuple(f"d{number}" for number in range(n_datasets))
    assert over.median_difference == pytest.approx(np.median(differences))
    if n_datasets == 5:
        assert math.isnan(over.p_value)
    else:
        assert over.p_value == pytest.approx(stats.wilcoxon(differences).pvalue)
        assert over.p_holm == over.p_value < 0.05
    assert over.posterior.below > 0.99


def test_losses_of_other_units_are_compared_as_shares_of_the_second():
    pairs = [pair(0.9 * size, size, dataset=f"d{size:g}", loss="rmse") for size in (1.0, 50.0, 4e6)]
    (over,) = over_data_sets(pairs)
    assert over.median_difference == pytest.approx(-0.1)
    assert over_data_sets(pairs[:1]) == ()


def test_sizes_of_one_data_set_are_not_data_sets():
    sizes = [
        pair(0.2 - 0.01 * n, 0.3, dataset=f"wdbc-{n}", series="wdbc", n_train=100.0 * n)
        for n in range(1, 7)
    ]
    assert over_data_sets(sizes) == ()
    (over,) = over_data_sets([*sizes, pair(0.1, 0.3)])
    assert over.datasets == ("wdbc-6", "heart")
    assert over.median_difference == pytest.approx(np.median([-0.16, -0.2]))


@pytest.mark.slow
def test_one_method_in_two_sweeps_is_compared_on_the_splits_of_both(tmp_path):
    first = made(tmp_path / "a", errors())
    changed = {key: row[::-1][:3] for key, row in errors().items()}
    second = made(tmp_path / "b", changed, split_names=("s4", "s3", "s2"))
    found = compare_results(first, second, by_name)
    assert [one.first for one in found.pairs] == ["level", "uniform"]
    for one in found.pairs:
        assert (one.n_splits, one.left_out) == (3, (2, 0))
        assert one.losses.difference == pytest.approx(0.0)
        assert one.equal_settings is not None
        assert one.measures["objective"].difference == 0.0
