"""Shares of weights and of the decision's variance, held to hand-computed and plain numbers."""

import math

import numpy as np
import pytest
import xarray as xr

from mkldist.analysis.explanation import (
    DecisionParts,
    KernelSets,
    decision_shares,
    kernel_sets,
    losses_without,
    set_shares,
    shares_of,
    stability_of_choice,
    weight_shares,
)
from mkldist.analysis.statistics import Overlap, corrected_interval, selection_stability

WEIGHTS = xr.DataArray(
    [[2.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 3.0]],
    dims=("split", "kernel"),
    coords={
        "kernel": ["a", "b", "c", "d"],
        "features": ("kernel", ["all", "x", "x", "all"]),
        "width": ("kernel", [0.5, 2.0, 0.5, np.nan]),
        "function": ("kernel", ["gaussian"] * 3 + ["linear"]),
        "feature_group": ("kernel", ["all", "single", "single", "all"]),
    },
)
DECISION = np.array([[0.4, 0.3, 0.3, 0.0], [0.0, 0.2, 0.0, 0.8]])
OVERLAP = Overlap(80, 20)


def sets_of(weights: xr.DataArray) -> dict[str, KernelSets]:
    return {one.level: one for one in kernel_sets(weights)}


def test_shares_of_weights_sum_to_one():
    expected = [[0.5, 0.25, 0.25, 0.0], [0.0, 0.25, 0.0, 0.75]]
    np.testing.assert_allclose(weight_shares(WEIGHTS), expected)
    np.testing.assert_array_equal(weight_shares(0.0 * WEIGHTS), np.zeros((2, 4)))


def test_shares_of_the_decision_are_covariances_with_the_whole():
    draw = np.random.default_rng(0)
    values = draw.normal(size=(50, 3, 1))
    found = decision_shares([(np.array([0, 3, 4]), values)], n_kernels=5)
    whole = values[:, :, 0].sum(axis=1)
    expected = [np.cov(values[:, m, 0], whole)[0, 1] / whole.var(ddof=1) for m in range(3)]
    np.testing.assert_allclose(found[[0, 3, 4]], expected)
    assert found.sum() == pytest.approx(1.0)
    assert (found[[1, 2]] == 0.0).all()


def test_independent_parts_share_by_their_variances_and_an_opposite_part_is_negative():
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
    parts = np.stack([3.0 * signs[:, 0], 1.0 * signs[:, 1]], axis=1)[:, :, None]
    np.testing.assert_allclose(decision_shares([(np.arange(2), parts)], 2), [0.9, 0.1])
    against = np.stack([2.0 * signs[:, 0], -signs[:, 0]], axis=1)[:, :, None]
    np.testing.assert_allclose(decision_shares([(np.arange(2), against)], 2), [2.0, -1.0])


def test_classes_count_by_their_variance_together_or_one_by_one():
    f = np.array([1.0, -1.0])
    values = np.zeros((2, 2, 2))
    values[:, 0, 0], values[:, 1, 1] = 2.0 * f, f  # kernel 0 makes class 0, kernel 1 class 1
    np.testing.assert_allclose(decision_shares([(np.arange(2), values)], 2), [0.8, 0.2])
    apart = [(np.array([m]), values[:, [m]][:, :, [m]]) for m in range(2)]
    np.testing.assert_allclose(decision_shares(apart, 2), [0.8, 0.2])


def test_a_constant_decision_has_no_shares():
    assert np.isnan(decision_shares([(np.arange(2), np.ones((3, 2, 1)))], 2)).all()


def test_a_set_that_is_left_out_has_the_mean_of_its_part():
    draw = np.random.default_rng(0)
    values, y = draw.normal(size=(40, 3, 1)), draw.choice([-1.0, 1.0], 40)
    parts = DecisionParts(
        np.array([0, 2, 3]), values, np.array([0.3]), lambda f: float((f[:, 0] * y < 0).mean())
    )
    sets = KernelSets("view", ("u", "v", "w"), np.array([0, 1, 2, 0]))
    f = values[:, :, 0]
    whole = f.sum(axis=1) + 0.3
    before = (whole * y < 0).mean()
    u, w = f[:, 0] + f[:, 2], f[:, 1]  # no kernel of v has a weight
    expected = [((whole - one + one.mean()) * y < 0).mean() - before for one in (u, w)]
    np.testing.assert_allclose(
        losses_without(parts, sets, np.ones(3)), [expected[0], 0.0, expected[1]]
    )


def test_features_of_joint_kernels_share_by_what_the_decision_loses_without_them():
    draw = np.random.default_rng(0)
    f, changes = draw.normal(size=(40, 1)), draw.normal(size=(40, 2, 1))
    y = draw.choice([-1.0, 1.0], 40)
    sets = KernelSets(
        "feature", ("x", "y"), np.array([-1, 0]), (np.array([0]), np.array([1])),
        np.array([[True, True], [True, False]]),
    )  # fmt: skip
    found = set_shares(sets, np.ones(2), [np.hstack([f[:, None], changes])])
    expected = [np.cov(changes[:, g, 0], f[:, 0])[0, 1] / f.var(ddof=1) for g in range(2)]
    np.testing.assert_allclose(found, expected)
    parts = DecisionParts(
        np.array([0, 1]), np.stack([0.5 * f, 0.5 * f], axis=1), np.zeros(1),
        lambda values: float((values[:, 0] * y < 0).mean()), {"feature": changes},
    )  # fmt: skip
    without = f - changes[:, 1] + changes[:, 1].mean()
    rise = (without[:, 0] * y < 0).mean() - (f[:, 0] * y < 0).mean()
    assert losses_without(parts, sets, found)[1] == pytest.approx(rise)
    weights = xr.DataArray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dims=("split", "kernel"))
    assert sets.selected(weights).tolist() == [[True, True], [True, False], [True, True]]
    x, y_share = shares_of(sets, weights, OVERLAP, np.array([[0.6, 0.3]] * 3))
    assert (x.weight.mean, x.n_kernels) == (0.5, 1)
    assert math.isnan(y_share.weight.mean)


def test_shares_are_summed_by_features_width_and_function_and_ranked():
    sets = sets_of(WEIGHTS)
    assert sets.keys() == {"feature", "kernel", "width", "function"}
    everything, x = shares_of(sets["feature"], WEIGHTS, OVERLAP, sets["feature"].summed(DECISION))
    assert (everything.name, x.name) == ("(all features)", "x")
    assert (everything.rank, x.rank) == (1, 2)
    assert everything.weight.mean == pytest.approx(0.625)
    assert 0.0 <= everything.weight.low < 0.625 < everything.weight.high <= 1.0
    expected = corrected_interval(DECISION[:, [0, 3]].sum(axis=1), OVERLAP)
    assert [*everything.decision] == pytest.approx([*expected])
    assert (everything.decision.mean, x.decision.mean) == pytest.approx((0.6, 0.4))
    assert (everything.n_kernels, everything.selected.mean, x.selected.mean) == (2, 1.0, 1.0)
    assert math.isnan(everything.p_value)
    narrow, wide = shares_of(sets["width"], WEIGHTS, OVERLAP)  # by weight
    assert (narrow.name, narrow.weight.mean, narrow.selected.mean) == (0.5, 0.375, 0.5)
    assert (wide.name, wide.weight.mean) == (2.0, 0.25)
    chosen = np.array([[True, True], [False, True]])
    expected = selection_stability(chosen)
    assert stability_of_choice(sets["width"], WEIGHTS).mean == expected.mean


def test_equal_shares_have_one_rank():
    uniform = xr.full_like(WEIGHTS, 0.25)
    for shares in (shares_of(one, uniform, OVERLAP) for one in kernel_sets(uniform)):
        if shares[0].level in ("feature", "kernel"):
            assert {share.rank for share in shares} == {1}
    three = KernelSets("view", ("u", "v", "w"), np.array([0, 1, 2, 2]))
    assert [one.rank for one in shares_of(three, uniform, OVERLAP)] == [1, 2, 2]


def test_p_values_count_permutations_of_at_least_the_share():
    sets = sets_of(WEIGHTS)["feature"]
    null = np.array([[0.3, 0.4, 0.0, 0.3], [0.5, 0.2, 0.2, 0.1], [0.2, 0.3, 0.4, 0.1]])
    decision, null = sets.summed(DECISION), sets.summed(null)
    everything, x = shares_of(sets, WEIGHTS, OVERLAP, decision, null=null)
    assert everything.p_value == (1 + 2) / 4  # 0.6 and 0.6 are at least 0.6, 0.3 is not
    assert everything.null == pytest.approx(np.mean([0.6, 0.6, 0.3]))
    assert x.p_value == (1 + 3) / 4  # 0.4, 0.4 and 0.7 are at least 0.4


def test_views_groups_and_features_are_apart_and_told_once():
    def told(**coords: list[str]) -> dict[str, tuple[object, ...]]:
        weights = WEIGHTS.assign_coords({name: ("kernel", own) for name, own in coords.items()})
        return {one.level: one.names for one in kernel_sets(weights)}

    views = told(
        view=["u", "v", "v", ""],
        feature_group=["u", "IFNG", "single", "all"],
        features=["u", "IFNG", "x", "all"],
    )
    assert views["view"] == ("(of no single view)", "u", "v")
    assert views["group"] == ("IFNG",)
    assert views["feature"] == ("(all features)", "x")
    alike = told(view=["u", "u", "v", "v"], feature_group=["u", "u", "v", "v"])
    assert "group" not in alike
    assert "feature" not in alike
    assert "kernel" not in told(feature_group=["single"] * 4, features=list("pqrs"))


def test_without_parts_the_decision_is_unknown():
    features = shares_of(sets_of(WEIGHTS)["feature"], WEIGHTS, OVERLAP)
    assert all(math.isnan(share.decision.mean) for share in features)
    assert [share.rank for share in features] == [1, 2]


def test_ten_kernels_are_named_by_weight():
    many = xr.DataArray(
        np.arange(24.0)[None], {"kernel": [f"k{m}" for m in range(24)]}, ("split", "kernel")
    )
    (kernels,) = kernel_sets(many)
    shares = shares_of(kernels, many, OVERLAP)
    assert [share.name for share in shares] == [f"k{m}" for m in range(23, 13, -1)]
    assert shares[0].weight.mean == pytest.approx(23 / np.arange(24).sum())
    assert math.isnan(shares[0].weight.low)


def test_one_split_has_no_stability():
    assert math.isnan(stability_of_choice(None, WEIGHTS[:1]).mean)
