"""Deformed kernels against their definition and the formula off the points."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods import deformed
from mkldist.methods.deformed import Deformation, inverse_root, pivoted_factor
from mkldist.solvers.base import ArrayCache
from tests.methods.manifolds import grams_between, manifold


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("gamma_a", "gamma_i"), [(1.0, 1.0), (1e-3, 2.0), (5.0, 1e-3), (0.3, 0.0)])
def test_block_and_coefficients_are_those_of_the_definition(gamma_a, gamma_i, dense):
    shape = manifold("moons", n=40)
    K, L = positive_definite(40), shape.laplacian.toarray()
    labelled = np.flatnonzero(shape.y)
    given = L if dense else shape.laplacian
    kernel = Deformation(given, gamma_a, gamma_i, labelled)(K)
    expected = np.linalg.inv(gamma_a * np.linalg.inv(K) + gamma_i * L)
    np.testing.assert_allclose(kernel.block(), expected[np.ix_(labelled, labelled)], rtol=1e-8)
    c = np.linspace(-1, 1, len(labelled))
    right = np.zeros(40)
    right[labelled] = c
    a = np.linalg.solve(gamma_a * np.eye(40) + gamma_i * L @ K, right)
    np.testing.assert_allclose(kernel.coefficients(c), a, rtol=1e-7, atol=1e-9 * abs(a).max())


@pytest.mark.parametrize("dense", [True, False])
def test_kept_factors_serve_other_labels_and_weights_and_no_other_kernel_or_graph(
    dense, monkeypatch
):
    shape, factored = manifold("moons", n=40), []
    given = shape.laplacian.toarray() if dense else shape.laplacian
    plain = deformed.pivoted_factor
    monkeypatch.setattr(deformed, "pivoted_factor", lambda K: factored.append(K) or plain(K))
    kept, labelled = ArrayCache(2**24), np.flatnonzero(shape.y)

    def holds(K, L, gamma_a, gamma_i, some):
        block = Deformation(L, gamma_a, gamma_i, some, kept)(K).block()
        dense_L = L if isinstance(L, np.ndarray) else L.toarray()
        expected = np.linalg.inv(gamma_a * np.linalg.inv(K) + gamma_i * dense_L)
        np.testing.assert_allclose(block, expected[np.ix_(some, some)], rtol=1e-8)

    for K in (positive_definite(40), positive_definite(40, seed=1)):
        for some in (labelled, labelled[::2]):  # another fold
            for gammas in ((1.0, 1.0), (1e-2, 2.0), (1e-2, 1e-3)):
                holds(K, given, *gammas, some)
    assert len(factored) == 2  # one for each kernel
    holds(positive_definite(40), 2.0 * given, 1.0, 1.0, labelled)
    assert len(factored) == 2  # the graph has no part in the factor, but in all else


def test_predictor_off_the_points_is_the_formula_of_sindhwani_niyogi_and_belkin():
    shape = manifold("circles", n=60)
    gamma_a, gamma_i = 0.1, 0.7
    labelled = np.flatnonzero(shape.y)
    new = np.random.default_rng(3).normal(size=(25, 2))
    c = np.array([0.3, -0.2, 0.5, -0.6])
    for K, k_new in zip(shape.grams, grams_between(new, shape.x), strict=True):
        a = Deformation(shape.laplacian, gamma_a, gamma_i, labelled)(K).coefficients(c)
        M = gamma_i / gamma_a * shape.laplacian.toarray()
        inner = np.linalg.solve(np.eye(60) + M @ K, M @ K[:, labelled])
        deformed = (k_new[:, labelled] - k_new @ inner) / gamma_a
        np.testing.assert_allclose(k_new @ a, deformed @ c, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_kernels_of_low_rank_deform_to_kernels(rank):
    rng = np.random.default_rng(rank)
    shape = manifold("moons", n=30)
    X = rng.normal(size=(30, rank))
    K = X @ X.T
    labelled = np.flatnonzero(shape.y)
    kernel = Deformation(shape.laplacian, 1e-4, 1.0, labelled)(K)
    system = 1e-4 * np.eye(rank) + X.T @ (shape.laplacian @ X)
    expected = X[labelled] @ np.linalg.solve(system, X[labelled].T) if rank else np.zeros((4, 4))
    np.testing.assert_allclose(kernel.block(), expected, rtol=1e-7, atol=1e-10)
    c = np.array([1.0, -1.0, 0.5, -0.5])
    f = K @ kernel.coefficients(c)
    np.testing.assert_allclose(f[labelled], expected @ c, rtol=1e-6, atol=1e-8)


def test_factor_multiplies_back_to_the_matrix():
    K = grams_between(*[manifold("moons", n=80).x] * 2)[3]  # numerically of low rank
    F = pivoted_factor(K)
    assert F.shape[1] < 80
    np.testing.assert_allclose(F @ F.T, K, atol=1e-14)


def test_inverse_root_takes_negative_rounding_for_zero():
    system = np.diag([2.0, 0.0, -1e-9])
    root = inverse_root(system, 1e-12)
    inverse = root @ root.T
    np.testing.assert_allclose(np.sort(np.diagonal(inverse)), [0.5, 1e12, 1e12], rtol=1e-9)


def test_penalty_is_the_two_norms():
    shape = manifold("moons", n=20)
    K = positive_definite(20)
    a = np.random.default_rng(0).normal(size=20)
    deformation = Deformation(shape.laplacian, 0.3, 0.6, np.flatnonzero(shape.y))
    expected = 0.3 * a @ K @ a + 0.6 * (K @ a) @ shape.laplacian.toarray() @ (K @ a)
    assert deformation.penalty(a, K @ a) == pytest.approx(expected)
