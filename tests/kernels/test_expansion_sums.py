"""The compiled loop over support points, held to products of evaluated kernels."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import WIDE, expansion_sums, takes

RNG = np.random.default_rng(0)
G, P, L, R = (
    FUNCTIONS[name].code for name in ("gaussian", "polynomial", "linear", "laplacian-rbf")
)


def kernel_list(functions: list[int], subsets: list[list[int]]) -> KernelList:
    """Return every function on every subset, with parameters of its own."""
    n = len(functions) * len(subsets)
    function = np.tile(functions, len(subsets))
    width = RNG.uniform(0.3, 3.0, n)
    return KernelList(
        function=function,
        parameter=np.where(function == P, 3.0, np.where(function == L, 1.0, width)),
        offset=np.where(function == P, 1.0, 0.0),
        subset=np.repeat(np.arange(len(subsets)), len(functions)),
        subset_indptr=np.cumsum([0, *map(len, subsets)]),
        subset_indices=np.concatenate(subsets),
    )


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("n_functions", [1, 4])
@pytest.mark.parametrize("n_support", [1, 7, 64])
@pytest.mark.parametrize(
    ("functions", "subsets"),
    [([G], [[0, 1, 2, 3, 4]]), ([G, G, P, L, R], [[0, 1, 2, 3, 4], [2], [4, 0]]), ([L, P], [[3]])],
    ids=["gaussian", "all", "products"],
)
def test_sums_are_those_of_evaluated_kernels(functions, subsets, n_support, n_functions, own):
    kernels = kernel_list(functions, subsets)
    points, x = RNG.normal(size=(n_support, 5)), RNG.normal(size=(13, 5))
    weights = RNG.random(len(kernels))
    shape = (len(kernels), n_support, n_functions) if own else (n_support, n_functions)
    coefficients = RNG.normal(size=shape)
    values = evaluate(kernels, x, points)
    expected = (weights[:, None, None] * (values @ coefficients)).sum(axis=0)
    found = expansion_sums(kernels, points, weights, coefficients, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_far_points_have_no_share():
    kernels = kernel_list([G, R], [[0, 1]])
    points = np.zeros((3, 2))
    found = expansion_sums(kernels, points, np.ones(2), np.ones((3, 1)), np.full((1, 2), 1e6))
    assert 0.0 <= found[0, 0] < 1e-300


def test_no_new_points_have_no_sums():
    kernels = kernel_list([G], [[0]])
    found = expansion_sums(kernels, np.ones((2, 1)), np.ones(1), np.ones((2, 3)), np.ones((0, 1)))
    assert found.shape == (0, 3)


def test_kernels_on_many_features_are_left_to_products_of_matrices():
    assert takes(kernel_list([G], [list(range(WIDE))]))
    assert not takes(kernel_list([G], [[0], list(range(WIDE + 1))]))
