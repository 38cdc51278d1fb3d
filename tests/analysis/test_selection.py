"""Kernels and settings that are selected, and the bias of the selection."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from mkldist.analysis.selection import (
    is_selected,
    kernel_shares,
    nested_selection,
    selection_bias,
    selection_frequency,
    selection_table,
    weight_shares,
    weights_at_best,
    within_one_standard_error,
)
from mkldist.analysis.statistics import selection_stability
from mkldist.errors import InputError
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


# Three splits, two values of C and two of p.  With 100 points, the standard error of 0.2 is 0.04.
VALIDATION = np.array(
    [[[0.20, 0.30], [0.23, 0.24]], [[0.25, 0.20], [0.40, 0.30]], [[0.10, 0.50], [0.50, 0.50]]]
)
TEST = VALIDATION + np.array([0.03, 0.05, -0.01])[:, None, None]
KERNELS = np.array([[[9, 1], [4, 2]]] * 3)
N_TRAIN, N_TEST = 100, 50


def tree(task: str = "classification", *, failed: bool = False, **attrs: str) -> xr.DataTree:
    dims = ("split", "C", "p")
    names = ("validation_rmse", "rmse") if task == "regression" else ("validation_error",
                                                                      "test_error")  # fmt: skip
    state = np.full(VALIDATION.shape, "complete", object)
    state[0, 0, 0] = "failed" if failed else "complete"
    sizes = {"n_train": N_TRAIN, "n_test": N_TEST, "n_unlabelled": 0}
    node = xr.Dataset(
        {
            "run_id": (dims, np.full(VALIDATION.shape, "x", object)),
            "state": (dims, state),
            names[0]: (dims, VALIDATION),
            names[1]: (dims, TEST),
            "active_kernels": (dims, KERNELS.astype(float)),
        },
        {
            "split": [0, 1, 2],
            "C": [1.0, 10.0],
            "p": [1.5, 2.0],
            **{name: ("split", np.full(3, size)) for name, size in sizes.items()},
        },
        attrs={"task": task, **attrs},
    )
    return xr.DataTree.from_dict({"/d/level": node}, name="sweep")


def test_the_best_has_the_least_validation_error_and_its_test_error_is_another():
    table = nested_selection(tree())
    best = table[table["rule"] == "best"]
    assert best["C"].tolist() == [1.0, 1.0, 1.0]
    assert best["p"].tolist() == [1.5, 2.0, 1.5]
    assert best["validation"].tolist() == pytest.approx([0.2, 0.2, 0.1])
    assert best["test"].tolist() == pytest.approx([0.23, 0.25, 0.09])
    assert best["optimism"].tolist() == pytest.approx([0.03, 0.05, -0.01])
    assert (best["n_settings"] == 4).all()
    assert (best["loss"] == "test_error").all()


def test_the_sparsest_has_the_fewest_kernels_within_one_standard_error():
    table = nested_selection(tree())
    sparsest = table[table["rule"] == "sparsest"]
    # Within 0.24 of the first split: 9, 4 and 2 kernels; of the second: 1; of the third: 9.
    assert sparsest["active_kernels"].tolist() == [2, 1, 9]
    assert sparsest["validation"].tolist() == pytest.approx([0.24, 0.2, 0.1])


def test_the_standard_error_is_that_of_a_share():
    least, n = 0.3, 40
    limit = least + stats.bernoulli(least).std() / math.sqrt(n)
    errors = np.array([limit + 1e-9, np.nan, limit - 1e-9, least])
    assert within_one_standard_error(errors, n).tolist() == [False, False, True, True]


def test_the_interval_of_the_optimism_is_corrected_for_overlap():
    found = selection_bias(tree()).set_index("rule").loc["best"]
    optimism = np.array([0.03, 0.05, -0.01])
    scale = optimism.std(ddof=1) * math.sqrt(1 / 3 + N_TEST / N_TRAIN)
    low, high = stats.t(2, loc=optimism.mean(), scale=scale).interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((low, high))
    assert found["optimism"] == pytest.approx(found["test"] - found["validation"])
    assert found["least_test"] <= found["test"]
    assert (found["n_splits"], found["n_settings"]) == (3, 4)


def test_runs_that_failed_are_not_selected():
    first = nested_selection(tree(failed=True)).iloc[0]
    assert (first["validation"], first["n_settings"]) == (0.23, 3)


def test_real_values_have_the_best_alone():
    assert set(nested_selection(tree("regression"))["rule"]) == {"best"}


def test_results_that_cannot_tell_are_refused():
    bare = tree()["d/level"].to_dataset().drop_vars("validation_error")
    with pytest.raises(InputError, match=r"without inner folds"):
        nested_selection(xr.DataTree.from_dict({"/d/level": bare}))
    with pytest.raises(InputError, match="halving"):
        selection_bias(tree(rungs="tol"))
