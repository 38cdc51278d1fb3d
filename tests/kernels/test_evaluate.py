"""Values of kernels on points, and checks of these."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.errors import DataError, GramError, SpecError
from mkldist.kernel_functions.bases import INNER_PRODUCT, SQUARED_DISTANCE, Tile
from mkldist.kernels.evaluate import (
    Presence,
    check_custom,
    check_points,
    check_scale,
    evaluate,
    gaps_of,
)
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec
from tests.kernels.made_up import bank, by_scikit_learn


@pytest.mark.parametrize("cosine", [False, True])
def test_values_equal_scikit_learn(cosine):
    rng = np.random.default_rng(0)
    rows, cols = rng.normal(size=(11, 7)), rng.normal(size=(6, 7))
    kernels = bank()
    values = evaluate(kernels, rows, cols, cosine=cosine)
    assert values.shape == (len(kernels), 11, 6)
    for m in range(len(kernels)):
        expected = by_scikit_learn(kernels, m, rows, cols, cosine=cosine)
        np.testing.assert_allclose(values[m], expected, rtol=1e-10, atol=1e-10)


def test_values_do_not_depend_on_the_order_of_kernels():
    rng = np.random.default_rng(1)
    points, kernels = rng.normal(size=(9, 7)), bank()
    order = rng.permutation(len(kernels))
    np.testing.assert_array_equal(
        evaluate(kernels.select(order), points, points), evaluate(kernels, points, points)[order]
    )


@pytest.mark.parametrize("cosine", [False, True])
def test_gram_matrices_are_exactly_symmetric_with_exact_diagonals(cosine):
    points = 100 + np.random.default_rng(2).normal(size=(40, 7))
    kernels = bank()
    values = evaluate(kernels, points, points, cosine=cosine)
    np.testing.assert_array_equal(values, values.swapaxes(1, 2))
    for m in range(len(kernels)):
        if cosine or kernels.function_of(m).label in {"gaussian", "laplacian-rbf"}:
            np.testing.assert_array_equal(np.diag(values[m]), 1.0)
    copied = evaluate(kernels, points, points.copy(), cosine=cosine, symmetric=True)
    np.testing.assert_array_equal(copied, values)


def test_a_point_of_no_length_has_zero_cosines():
    points = np.array([[0.0], [2.0], [-3.0]])
    kernels = kernel_list(BankSpec(kernels=[{"function": "linear"}]), 1, ["x"], {}, 0)
    expected = [[0, 0, 0], [0, 1, -1], [0, -1, 1]]
    np.testing.assert_array_equal(evaluate(kernels, points, points, cosine=True)[0], expected)


def test_single_precision_output_is_rounded_from_double():
    points = np.random.default_rng(3).normal(size=(8, 7))
    kernels = bank()
    out = np.empty((len(kernels), 8, 8), dtype=np.float32)
    assert evaluate(kernels, points, points, out=out) is out
    np.testing.assert_array_equal(out, evaluate(kernels, points, points).astype(np.float32))


def test_no_rows_give_no_values():
    assert evaluate(bank(), np.empty((0, 7)), np.ones((3, 7))).shape == (len(bank()), 0, 3)


def test_overflow_is_infinite_without_a_warning():
    kernels = kernel_list(
        BankSpec(kernels=[{"function": "polynomial", "degrees": 200}]), 1, ["x"], {}, 0
    )
    assert evaluate(kernels, np.array([[1e3]]), np.array([[1e3]]))[0, 0, 0] == np.inf


def test_bases_are_computed_once_per_feature_subset(monkeypatch):
    calls = []
    compute = Tile._compute

    def counted(tile, base, *args):
        calls.append(base)
        compute(tile, base, *args)

    monkeypatch.setattr(Tile, "_compute", counted)
    points = np.random.default_rng(4).normal(size=(5, 7))
    evaluate(kernel_list(BankSpec(family="xu2008"), 7, ["f"] * 7, {}, 0), points, points)
    assert calls == [SQUARED_DISTANCE, INNER_PRODUCT] * 8


SPEC = BankSpec(
    name="mine",
    kernels=[
        {"function": "gaussian", "widths": 1},
        {"function": "jaccard", "features": "b"},
        {"function": "chi-squared", "widths": 1, "features": "pair"},
    ],
)
NAMES = ["a", "b", "c"]


def kernels(spec: BankSpec = SPEC) -> KernelList:
    return kernel_list(spec, 3, NAMES, {"pair": (1, 2)}, 0)


def test_the_first_negative_value_that_a_kernel_sees_is_told():
    points = np.zeros((4, 3))
    points[:, 0] = -1.0  # no restricted kernel sees it
    points[1, 2] = np.nan
    check_points(kernels(), points, NAMES, "X")
    points[2, 2], points[3, 1] = -0.5, -2.0
    with pytest.raises(DataError) as caught:
        check_points(kernels(), points, NAMES, "X")
    assert str(caught.value) == (
        "X: found -0.5 in row 2 (from 0), column 'c', for a chi-squared kernel; expected numbers "
        'of at least 0. Leave the features as they are, scale = "none", or use another kernel '
        "function."
    )
    with pytest.raises(DataError, match=r"-2 in row 3 .from 0., column x1, for a jaccard kernel"):
        check_points(kernels(), points[[0, 0, 0, 3]], None, "X")


def test_evaluation_refuses_them_too():
    points = np.ones((3, 3))
    assert evaluate(kernels(), points, points).shape == (3, 3, 3)
    with pytest.raises(
        DataError, match="a jaccard kernel: found a feature of -1; expected numbers of"
    ):
        evaluate(kernels(), points, -points)


def test_functions_of_the_user_are_tried_on_a_hundred_points_at_most():
    sizes = []

    def products(left, right):
        sizes.append((len(left), len(right)))
        return left @ right.T

    spec = BankSpec(kernels=[{"function": "linear"}, {"function": products, "features": "each"}])
    points = np.random.default_rng(0).normal(size=(270, 3))
    check_custom(kernels(spec), points)
    check_custom(kernels(spec), points[:7])
    assert sizes == [(100, 100)] * 3 + [(7, 7)] * 3
    distances = BankSpec(kernels=[{"function": lambda x, z: -((x[:, None] - z) ** 2).sum(-1)}])
    with pytest.raises(GramError, match="<lambda>: found an eigenvalue of -"):
        check_custom(kernels(distances), points)


def test_scaling_is_refused_where_kernels_take_no_negative_values():
    check_scale(SPEC, kernels(), "none")
    for scale in ("zscore", "minmax"):
        with pytest.raises(
            SpecError, match=r'banks\.mine: found a jaccard kernel .* scale = "none" under'
        ):
            check_scale(SPEC, kernels(), scale)
    free = BankSpec(kernels=[{"function": "tanimoto"}])
    check_scale(free, kernels(free), "zscore")


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
    monkeypatch.setattr("mkldist.kernels.evaluate.PRODUCT_ENTRIES", product_entries)
    kernels, points = kernels_on_views(), points_with_gaps()
    presence = Presence.of(kernels, points)
    assert presence is not None
    for m in range(len(kernels)):
        expected = ~np.isnan(points[:, kernels.features_of(m)]).any(axis=1)
        assert_array_equal(presence[m], expected)
    assert len(presence.patterns) == 3  # the left view, the right one, both
    for weights in (np.ones(len(points)), np.arange(len(points)) / 2):
        assert_array_equal(presence.counts(weights), presence[:] @ weights)


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
