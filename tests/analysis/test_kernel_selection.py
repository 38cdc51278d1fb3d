"""Kernels that methods select."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis.kernel_selection import (
    is_selected,
    selection_table,
    weight_by,
    weights_at_best,
)
from mkldist.analysis.stability import selection_stability
from tests.report.made_up import N_SPLITS, made_up


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("sweep"), damaged=False, datasets=("heart",))


def test_weights_are_those_of_the_setting_of_least_mean_loss(facts):
    (compared,) = facts.compared
    for place, weights in weights_at_best(facts.tree):
        setting = compared.settings[place["method"]]
        whole = facts.tree[f"heart/{place['method']}"].kernel_weights
        np.testing.assert_array_equal(weights, whole.sel(setting))
        assert weights.dims == ("split", "kernel")


def test_the_table_has_counts_and_stability(facts):
    table = selection_table(facts.tree).set_index("method")
    for place, weights in weights_at_best(facts.tree):
        row = table.loc[place["method"]]
        chosen = weights.to_numpy() / weights.to_numpy().sum(axis=1, keepdims=True) > 1e-3
        np.testing.assert_array_equal(is_selected(weights), chosen)
        assert row["n_splits"] == N_SPLITS
        assert row["selected_mean"] == chosen.sum(axis=1).mean()
        assert row["always"] == chosen.all(axis=0).sum()
        assert row["stability"] == pytest.approx(selection_stability(chosen).mean, nan_ok=True)


def test_shares_by_a_coordinate_sum_to_one(facts):
    _, weights = weights_at_best(facts.tree)[0]
    shares = weight_by(weights, "width")
    assert shares.sum() == pytest.approx(1.0)
    assert shares.index.tolist() == sorted(np.unique(weights["width"].to_numpy()))
    kernel = weights["width"].to_numpy() == shares.index[0]
    own = weights.to_numpy() / weights.to_numpy().sum(axis=1, keepdims=True)
    assert shares.iloc[0] == pytest.approx(own[:, kernel].sum(axis=1).mean())
