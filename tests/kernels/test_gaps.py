"""Points that lack features: kernels are zero there, and as on complete points elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.gaps import Presence, gaps_of
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

VIEWS = {"left": (0, 1), "right": (2, 3, 4)}


def kernels_on_views() -> KernelList:
    features = ["all", "each", "views", {"count": 5}]
    entries = [
        {"function": "gaussian", "widths": [0.5, 2.0], "features": features},
        {"function": "polynomial", "degrees": 2, "features": features},
        {"function": "linear", "features": "views"},
        {"function": "laplacian-rbf", "widths": 1.0, "features": "all"},
    ]
    spec = BankSpec.model_validate({"kernels": entries})
    return kernel_list(spec, 5, tuple("abcde"), VIEWS, 0, VIEWS)


def points_with_gaps(n: int = 12) -> np.ndarray:
    """Points of which some lack the left view, some the right one, and one lacks both."""
    points = np.random.default_rng(3).normal(size=(n, 5))
    points[[1, 4, 7], :2] = np.nan
    points[[2, 4], 2:] = np.nan
    return points


def by_hand(kernels: KernelList, rows: np.ndarray, cols: np.ndarray, *, cosine: bool) -> np.ndarray:
    """Kernel by kernel, on the points that have all of its features."""
    found = np.zeros((len(kernels), len(rows), len(cols)))
    for m in range(len(kernels)):
        own = kernels.features_of(m)
        some, others = (np.flatnonzero(~np.isnan(p[:, own]).any(axis=1)) for p in (rows, cols))
        left, right = np.nan_to_num(rows[some]), np.nan_to_num(cols[others])
        [values] = evaluate(kernels.select([m]), left, right, cosine=cosine)
        found[m][np.ix_(some, others)] = values
    return found


@pytest.mark.parametrize("cosine", [False, True])
def test_kernels_are_zero_where_points_lack_a_feature_and_unchanged_elsewhere(cosine):
    kernels, points = kernels_on_views(), points_with_gaps()
    expected = by_hand(kernels, points, points, cosine=cosine)
    found = evaluate(kernels, points, points, cosine=cosine)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert_array_equal(found[:, 4], 0.0)
    assert (found[:, 0, 0] > 0.0).all()
    between = evaluate(kernels, points[:5], points[3:], cosine=cosine)
    expected = by_hand(kernels, points[:5], points[3:], cosine=cosine)
    np.testing.assert_allclose(between, expected, rtol=1e-12, atol=1e-15)


def test_gram_matrices_of_points_with_gaps_are_positive_semi_definite():
    grams = evaluate(kernels_on_views(), points := points_with_gaps(), points)
    lowest = np.linalg.eigvalsh(grams)[:, 0]
    assert (lowest > -1e-12 * np.trace(grams, axis1=1, axis2=2)).all()


@pytest.mark.parametrize("product_entries", [1, 2**20])
def test_presence_says_which_points_have_all_features_of_a_kernel(monkeypatch, product_entries):
    monkeypatch.setattr("mkldist.kernels.gaps.PRODUCT_ENTRIES", product_entries)
    kernels, points = kernels_on_views(), points_with_gaps()
    presence = Presence.of(kernels, points)
    assert presence is not None
    for m in range(len(kernels)):
        expected = ~np.isnan(points[:, kernels.features_of(m)]).any(axis=1)
        assert_array_equal(presence[m], expected)
    assert len(presence.patterns) == 3  # the left view, the right one, both
    some = np.array([0, 4, 7])
    for index in (None, some):
        chosen = presence[:] if index is None else presence[:][:, index]
        assert_array_equal(presence.counts(index), chosen.sum(axis=1))


def test_complete_points_have_no_gaps():
    points = np.random.default_rng(0).normal(size=(4, 5))
    assert Presence.of(kernels_on_views(), points) is None
    assert gaps_of(np.array([[np.inf, -np.inf]])) is None


def test_presence_of_several_lists_of_kernels_is_joined_in_order():
    one = Presence(np.array([[True, False], [True, True]]), np.array([1, 0]))
    other = Presence(np.array([[False, True]]), np.array([0]))
    parts = [(one, 2), (None, 1), (other, 1)]
    found = Presence.joined(parts, 2)
    assert found is not None
    assert found[:].tolist() == [[True, True], [True, False], [True, True], [False, True]]
    assert Presence.joined([(None, 3), (None, 1)], 2) is None
    for order in itertools.permutations(parts):
        joined = Presence.joined(list(order), 2)
        assert joined is not None
        assert len(joined.of_kernel) == 4
