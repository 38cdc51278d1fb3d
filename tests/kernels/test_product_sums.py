"""Compiled products, forms and sums of kernels, held to evaluated kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.loops import WIDTH, kernel_forms, kernel_products, weighted_values
from tests.kernels.few_lists import listed

RNG = np.random.default_rng(0)
FUNCTIONS = ["gaussian", "gaussian", "polynomial", "linear", "laplacian-rbf"]
KERNELS = listed(FUNCTIONS, [[0, 1, 2, 3, 4], [2], [4, 0]], [0.5, 2.0, 3.0, 1.0, 1.5])


@pytest.mark.parametrize("n_support", [1, 7, WIDTH - 1, WIDTH, 2 * WIDTH + 76])
@pytest.mark.parametrize("n_vectors", [1, 3])
def test_products_and_weighted_values_are_those_of_evaluated_kernels(n_support, n_vectors):
    points, x = RNG.normal(size=(n_support, 5)), RNG.normal(size=(13, 5))
    vectors, weights = RNG.normal(size=(n_support, n_vectors)), RNG.random(len(KERNELS))
    values = evaluate(KERNELS, x, points)
    expected = values @ vectors
    found = kernel_products(KERNELS, points, vectors, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    total = np.tensordot(weights, values, axes=1)
    found = weighted_values(KERNELS, weights, points, x)
    np.testing.assert_allclose(found, total, rtol=0, atol=1e-12 * np.abs(total).max())


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, WIDTH + 1, WIDTH + 188])
def test_parts_of_the_triangle_add_up_to_forms(n):
    points, vectors = RNG.normal(size=(n, 5)), RNG.normal(size=(n, 2))
    expected = np.einsum("ir,mij,jr->mr", vectors, evaluate(KERNELS, points, points), vectors)
    cuts = sorted({0, n // 3, n // 2, n})
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
    found = sum(kernel_forms(KERNELS, points, vectors, rows) for rows in parts)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_no_points_have_products_of_zero():
    found = kernel_products(KERNELS, np.zeros((0, 5)), np.zeros((0, 1)), RNG.normal(size=(3, 5)))
    assert found.shape == (len(KERNELS), 3, 1)
    assert not found.any()
