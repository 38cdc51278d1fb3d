"""Shares of weights and of the decision's variance, held to hand-computed and plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from mkldist.analysis.explanation import (
    DecisionParts,
    decision_shares,
    groupings_of,
    largest_kernels,
    stability_of_choice,
)
from mkldist.analysis.kernel_selection import weight_shares
from mkldist.analysis.stability import selection_stability

WEIGHTS = xr.DataArray(
    [[2.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 3.0]],
    dims=("split", "kernel"),
    coords={
        "kernel": ["a", "b", "c", "d"],
        "features": ("kernel", ["all", "x", "x", "all"]),
        "width": ("kernel", [0.5, 2.0, 0.5, np.nan]),
        "function": ("kernel", ["gaussian"] * 3 + ["linear"]),
        "feature_group": ("kernel", ["one"] * 4),
    },
)


def test_shares_of_weights_sum_to_one():
    expected = [[0.5, 0.25, 0.25, 0.0], [0.0, 0.25, 0.0, 0.75]]
    np.testing.assert_allclose(weight_shares(WEIGHTS), expected)
    np.testing.assert_array_equal(weight_shares(0.0 * WEIGHTS), np.zeros((2, 4)))


def test_shares_of_the_decision_are_covariances_with_the_whole():
    draw = np.random.default_rng(0)
    values = draw.normal(size=(50, 3, 1))
    (row,) = decision_shares([DecisionParts(np.array([0, 3, 4]), values)], n_kernels=5)
    whole = values[:, :, 0].sum(axis=1)
    expected = [np.cov(values[:, m, 0], whole)[0, 1] / whole.var(ddof=1) for m in range(3)]
    np.testing.assert_allclose(row[[0, 3, 4]], expected)
    assert row.sum() == pytest.approx(1.0)
    assert (row[[1, 2]] == 0.0).all()


def test_independent_parts_share_by_their_variances_and_an_opposite_part_is_negative():
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
    parts = np.stack([3.0 * signs[:, 0], 1.0 * signs[:, 1]], axis=1)[:, :, None]
    found = decision_shares([DecisionParts(np.arange(2), parts)], 2)
    np.testing.assert_allclose(found, [[0.9, 0.1]])
    against = np.stack([2.0 * signs[:, 0], -signs[:, 0]], axis=1)[:, :, None]
    np.testing.assert_allclose(
        decision_shares([DecisionParts(np.arange(2), against)], 2), [[2.0, -1.0]]
    )


def test_classes_count_by_their_variance():
    f = np.array([1.0, -1.0])
    values = np.zeros((2, 2, 2))
    values[:, 0, 0], values[:, 1, 1] = 2.0 * f, f  # kernel 0 makes class 0, kernel 1 class 1
    np.testing.assert_allclose(
        decision_shares([DecisionParts(np.arange(2), values)], 2), [[0.8, 0.2]]
    )


def test_a_constant_decision_has_no_shares():
    assert np.isnan(decision_shares([DecisionParts(np.arange(2), np.ones((3, 2, 1)))], 2)).all()


def test_shares_are_summed_by_features_width_and_function():
    decision = np.array([[0.4, 0.3, 0.3, 0.0], [0.0, 0.2, 0.0, 0.8]])
    found = {one.coordinate: one for one in groupings_of(WEIGHTS, decision)}
    assert found.keys() == {"features", "width", "function"}  # feature_group has one value
    everything, x = found["features"].shares
    assert (everything.name, x.name) == ("all", "x")
    assert (everything.weight, x.weight) == pytest.approx((0.625, 0.375))
    assert everything.weight_sd == pytest.approx(np.std([0.5, 0.75], ddof=1))
    assert (everything.decision, x.decision) == pytest.approx((0.6, 0.4))
    assert (everything.n_kernels, everything.frequency, x.frequency) == (2, 1.0, 1.0)
    narrow, wide = found["width"].shares
    assert (narrow.name, narrow.weight, narrow.frequency) == (0.5, pytest.approx(0.375), 0.5)
    assert (wide.name, wide.weight, wide.frequency) == (2.0, pytest.approx(0.25), 1.0)
    chosen = np.array([[True, True], [False, True]])
    assert found["width"].stability.mean == selection_stability(chosen).mean


def test_groups_that_are_the_features_are_not_told_twice():
    def told(groups: list[str]) -> set[str]:
        weights = WEIGHTS.assign_coords(feature_group=("kernel", groups))
        return {one.coordinate for one in groupings_of(weights, None)}

    assert told(["all", "x", "x", "all"]) == {"features", "width", "function"}
    assert told(["one", "x", "x", "one"]) == {"feature_group", "features", "width", "function"}


def test_without_parts_the_decision_is_unknown():
    features = groupings_of(WEIGHTS, None)[0]
    assert all(math.isnan(share.decision) for share in features.shares)


def test_the_largest_kernels_are_named_by_falling_weight():
    found = largest_kernels(WEIGHTS, None)
    assert [(one.name, one.weight) for one in found] == [
        ("d", pytest.approx(0.375)),
        ("a", pytest.approx(0.25)),
        ("b", pytest.approx(0.25)),
        ("c", pytest.approx(0.125)),
    ]
    assert [one.frequency for one in found] == [0.5, 0.5, 1.0, 0.5]


def test_one_split_has_no_stability():
    assert math.isnan(stability_of_choice(np.array([[True, False]])).mean)
