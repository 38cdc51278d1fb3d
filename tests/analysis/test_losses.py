"""Methods compared by their losses on the splits of each data set."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from mkldist.analysis.losses import (
    Compared,
    best_setting,
    compare_methods,
    compare_over_data_sets,
    compared_losses,
    inference,
    only_shifted,
    overlap_of,
    pairs_of,
    ranks_of,
)
from mkldist.analysis.statistics import Overlap
from mkldist.core.metrics import NOTHING, p_value_text
from tests.report.made_up import N_SPLITS, made_up


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("sweep"), damaged=False, datasets=("a", "b", "c"))


@pytest.mark.slow
def test_each_method_is_compared_at_its_setting_of_least_mean_loss(facts):
    found = compared_losses(facts.tree)
    assert [compared.dataset for compared in found] == ["a", "b", "c"]
    for compared in found:
        assert not compared.validated
        rows = facts.runs[facts.runs["dataset"] == compared.dataset]
        for method in ("level", "simplemkl", "uniform"):
            own = rows[rows["method"] == method]
            means = own.groupby(["C", "variant"], dropna=False)["test_error"].mean()
            assert compared.losses[method].mean() == pytest.approx(means.min())
        assert compared.overlap.variance_factor(N_SPLITS) == pytest.approx(1 / 5 + 20 / 80)


def test_pairs_have_the_corrected_test(facts):
    table = compare_methods(facts.tree)
    assert len(table) == 9
    row = table.iloc[0]
    losses = compared_losses(facts.tree)[0].losses
    difference = (losses[row["first"]] - losses[row["second"]]).to_numpy()
    plain = stats.ttest_1samp(difference, 0).statistic
    statistic = plain * np.sqrt((1 / 5) / (1 / 5 + 20 / 80))
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(statistic), 4))
    assert row["difference"] == pytest.approx(difference.mean())
    total = row[["first_better", "equivalent", "second_better"]].sum()
    assert total == pytest.approx(1.0)
    for _, some in table.groupby("dataset"):
        assert some["p_holm"].min() == pytest.approx(min(1.0, 3 * some["p_value"].min()))


def test_over_data_sets_means_are_ranked(facts):
    over = compare_over_data_sets(facts.tree)
    assert over.losses.shape == (3, 3)
    ranks = over.losses.rank(axis=1).mean()
    assert over.ranks.mean_ranks.to_dict() == pytest.approx(ranks.to_dict())
    assert len(over.pairs) == 3


def test_methods_without_all_splits_are_not_ranked():
    easy = {"level": [0.3, 0.1, 0.2], "uniform": [0.4, 0.2, 0.3], "align": [np.nan, 0.0, np.nan]}
    tables = [pd.DataFrame(easy), pd.DataFrame(easy).fillna(0.0)]
    failed_all = pd.DataFrame({name: [0.5, np.nan] for name in easy}).iloc[::-1]
    own = [
        Compared(name, name, "test_error", table, Overlap(60, 30), {}, validated=True)
        for name, table in zip("abc", [*tables, failed_all], strict=True)
    ]
    over = ranks_of(own)
    assert over.losses.columns.tolist() == ["level", "uniform"]
    assert over.losses["level"].tolist() == pytest.approx([0.2, 0.2, 0.5])
    assert over.left_out == ("align",)
    nothing = [replace(one, losses=pd.DataFrame({"level": [0.1, np.nan], "uniform": [np.nan, 0.2]}))
               for one in own[:2]]  # fmt: skip
    assert ranks_of(nothing) is None


def of_sizes(facts, names):
    """Return a copy of a tree whose data sets, by name, are sizes of one of the names given."""
    tree = facts.tree.copy()
    for node in tree.subtree:
        if "method" in node.attrs:
            node.attrs["dataset_series"] = names[node.path.split("/")[1]]
    return tree


def test_sizes_of_one_data_set_count_once_by_the_largest(facts):
    tree = of_sizes(facts, {"a": "wdbc", "b": "wdbc", "c": "c"})
    for node in tree["b"].subtree:
        if "n_train" in node.coords:
            node.coords["n_train"] = node.coords["n_train"] + 1
    over = compare_over_data_sets(tree)
    assert over.losses.index.tolist() == ["b", "c"]
    assert compare_over_data_sets(of_sizes(facts, dict.fromkeys("abc", "wdbc"))) is None


def test_equal_differences_on_all_splits_have_no_test():
    table = pd.DataFrame({"level": [0.1, 0.2, 0.3], "uniform": [0.15, 0.25, 0.35]})
    one = Compared("a", "a", "test_error", table, Overlap(60, 30), {}, validated=True)
    (row,) = pairs_of([one]).to_dict("records")
    assert row["difference"] == pytest.approx(-0.05)
    assert np.isnan([row["p_value"], row["p_holm"], row["first_better"]]).all()


def test_losses_of_real_values_are_equivalent_within_a_hundredth_of_the_second():
    losses = np.array([200.0, 210.0, 190.0])
    table = pd.DataFrame({"first": losses + np.array([1.0, -0.5, 0.2]), "second": losses})
    one = Compared("a", "a", "rmse", table, Overlap(60, 30), {}, validated=True)
    (row,) = pairs_of([one]).to_dict("records")
    scale = np.std([1.0, -0.5, 0.2], ddof=1) * np.sqrt(1 / 3 + 0.5)
    t = stats.t(2, loc=0.7 / 3, scale=scale)
    assert row["equivalent"] == pytest.approx(t.cdf(2.0) - t.cdf(-2.0))


def test_one_data_set_is_not_compared_over_data_sets(tmp_path):
    one = made_up(tmp_path, damaged=False, datasets=("a",))
    assert compare_over_data_sets(one.tree) is None


def test_a_setting_does_not_win_by_splits_that_others_lack():
    # C = 1 has all splits, C = 10 is better on the two splits that both have.
    losses = np.array([[0.3, 0.2], [0.3, 0.2], [0.0, np.nan], [0.0, np.nan]])
    state = np.where(np.isnan(losses), "waiting", "complete")
    dims = ("split", "C")
    data = xr.Dataset(
        {"test_error": (dims, losses), "state": (dims, state), "run_id": (dims, state)},
        {"split": np.arange(4), "C": [1.0, 10.0]},
    )
    found, setting = best_setting(xr.DataTree(data), "test_error")
    assert setting == {"C": 10.0}
    np.testing.assert_array_equal(found, losses[:, 1])
    # Without a split that both have, the one of most splits counts.
    apart = np.array([[0.3, np.nan], [0.3, np.nan], [0.3, np.nan], [np.nan, 0.1]])
    data["test_error"] = (dims, apart)
    data["state"] = (dims, np.where(np.isnan(apart), "waiting", "complete"))
    assert best_setting(xr.DataTree(data), "test_error")[1] == {"C": 1.0}


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "< 0.001"), (9.9e-4, "< 0.001"), (1e-3, "0.001"), (1.0, "1.000"), (math.nan, NOTHING)],
)
def test_p_values_have_three_decimals(value, text):
    assert p_value_text(value) == text
