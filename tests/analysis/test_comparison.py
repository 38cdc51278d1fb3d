"""Comparisons of the methods in a tree of results."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mkldist.analysis.comparison import compare_methods, compare_over_data_sets, compared_losses
from tests.report.made_up import N_SPLITS, made_up


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("sweep"), damaged=False, datasets=("a", "b", "c"))


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


def test_one_data_set_is_not_compared_over_data_sets(tmp_path):
    one = made_up(tmp_path, damaged=False, datasets=("a",))
    assert compare_over_data_sets(one.tree) is None
