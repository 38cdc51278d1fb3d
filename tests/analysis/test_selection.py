"""Kernels and settings that are selected, and the bias of the selection."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mkldist.analysis.explanation import (
    is_selected,
    kernel_shares,
    selection_frequency,
    selection_table,
    weight_shares,
    weights_at_best,
)
from mkldist.analysis.statistics import selection_stability
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
        chosen = weights.to_numpy() > 1e-3 * weights.to_numpy().max(axis=1, keepdims=True)
        np.testing.assert_array_equal(is_selected(weights), chosen)
        assert row["n_splits"] == N_SPLITS
        assert row["selected_mean"] == chosen.sum(axis=1).mean()
        assert row["always"] == chosen.all(axis=0).sum()
        assert row["stability"] == pytest.approx(selection_stability(chosen).mean, nan_ok=True)


def test_shares_by_a_coordinate_sum_to_one(facts):
    _, weights = weights_at_best(facts.tree)[0]
    shares = kernel_shares(weights, "width").set_index("width")
    assert shares["share"].sum() == pytest.approx(1.0)
    assert shares.index.tolist() == sorted(np.unique(weights["width"].to_numpy()))
    kernel = weights["width"].to_numpy() == shares.index[0]
    own = weights.to_numpy() / weights.to_numpy().sum(axis=1, keepdims=True)
    assert shares["share"].iloc[0] == pytest.approx(own[:, kernel].sum(axis=1).mean())


# Four splits by five kernels; the last has no width, the split without weights selects nothing.
WEIGHTS = xr.DataArray(
    [[2, 0, 2, 0, 4], [0, 1, 0, 0, 0], [5e-4, 0, 0.9995, 0, 0], [0, 0, 0, 0, 0]],
    {
        "width": ("kernel", [1.0, 1.0, 2.0, 3.0, np.nan]),
        "features": ("kernel", np.array(["a", "b", "a", "b", ""], object)),
        "feature_group": ("kernel", np.array(["single", "g", "single", "g", ""], object)),
        "kernel": list("pqrst"),
    },
    ("split", "kernel"),
)


@pytest.mark.parametrize(
    ("by", "values", "n_kernels", "share", "frequency"),
    [
        ("kernel", list("pqrst"), [1] * 5, [0.250500, 1.0, 1.2495, 0.0, 0.5], [1, 1, 2, 0, 1]),
        ("width", [1.0, 2.0, 3.0], [2, 1, 1], [1.250500, 1.2495, 0.0], [2, 2, 0]),
        ("features", ["a", "b"], [2, 2], [1.5, 1.0], [2, 1]),
        ("feature_group", ["a", "g"], [2, 2], [1.5, 1.0], [2, 1]),
    ],
)
def test_a_group_is_selected_where_one_of_its_kernels_is(by, values, n_kernels, share, frequency):
    table = kernel_shares(WEIGHTS, by)
    assert table[by].tolist() == values
    assert table["n_kernels"].tolist() == n_kernels
    assert table["share"].to_numpy() == pytest.approx(np.array(share) / 4)
    assert table["frequency"].to_numpy() == pytest.approx(np.array(frequency) / 4)


def test_uniform_weights_on_many_kernels_select_all_and_classes_count_one_by_one():
    uniform = xr.DataArray(np.full((3, 2000), 1 / 2000), dims=("split", "kernel"))
    assert is_selected(uniform).all()
    two = np.array([[[1.0, 0.0, 0.0], [0.0, 1e-5, 1e-9]]])
    of_classes = xr.DataArray(two, dims=("split", "class_name", "kernel"))
    assert is_selected(of_classes).tolist() == [[True, True, False]]
    assert weight_shares(of_classes)[0] == pytest.approx([1, 1e-5, 1e-9], rel=1e-4)


def test_frequencies_of_a_tree_are_those_of_each_method(facts):
    table = selection_frequency(facts.tree)
    for place, weights in weights_at_best(facts.tree):
        own = table[table["method"] == place["method"]].set_index("kernel")["frequency"]
        chosen = pd.Series(is_selected(weights).mean(axis=0), weights["kernel"].to_numpy())
        pd.testing.assert_series_equal(own, chosen.sort_index(), check_names=False)
    assert selection_frequency(facts.tree, "no such coordinate").empty
