"""Values of kernels on points, and checks of these."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import DataError, GramError, SpecError
from mkldist.kernel_functions.bases import INNER_PRODUCT, SQUARED_DISTANCE, Tile
from mkldist.kernels.evaluate import check_custom, check_points, check_scale, evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec
from tests.kernels.by_scikit_learn import bank, by_scikit_learn


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
