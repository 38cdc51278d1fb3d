"""Points that kernel functions do not take are told by row and column."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import DataError, GramError, SpecError
from mkldist.kernels.evaluate import check_custom, check_points, check_scale, evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

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
