"""Sums of thin factors, a `symmetric_operator`, against the matrices multiplied out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.optim.factored_matrix import (
    FactoredMatrix,
    block_of,
    centred_inner,
    diagonal_of,
    moved,
    ridged,
    scaled,
)

RNG = np.random.default_rng(0)
FACTORS = [RNG.normal(size=(30, rank)) for rank in (3, 1, 0, 12)]
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.0])


@pytest.mark.parametrize("kept", [slice(0, 4), slice(0, 1), slice(0, 0)])
def test_products_diagonal_and_blocks_are_those_of_the_sum(kept):
    weights, factors = WEIGHTS[kept], FACTORS[kept]
    full = sum((w * G @ G.T for w, G in zip(weights, factors, strict=True)), np.zeros((30, 30)))
    diagonals = np.array([(G**2).sum(axis=1) for G in factors]).reshape(len(factors), 30)
    K = FactoredMatrix(weights, factors, diagonals, 30)
    vectors = RNG.normal(size=(30, 5))
    points = RNG.permutation(30)[:7]
    assert_allclose(K @ vectors, full @ vectors, atol=1e-12)
    assert_allclose(K @ vectors[:, 0], full @ vectors[:, 0], atol=1e-12)
    assert_allclose(K.diagonal, np.diagonal(full), atol=1e-12)
    assert_allclose(K.block(points), full[np.ix_(points, points)], atol=1e-12)
    part = K.on(points)
    assert_allclose(part @ vectors[:7], full[np.ix_(points, points)] @ vectors[:7], atol=1e-12)
    assert_allclose(part.diagonal, np.diagonal(full)[points], atol=1e-12)


def operator(weights: np.ndarray, chosen: list[int]) -> tuple[FactoredMatrix, np.ndarray]:
    """Return an operator of some factors, and its matrix."""
    factors = [FACTORS[s] for s in chosen]
    diagonals = np.array([(G**2).sum(axis=1) for G in factors]).reshape(len(factors), 30)
    full = sum((w * G @ G.T for w, G in zip(weights, factors, strict=True)), np.zeros((30, 30)))
    return FactoredMatrix(weights, factors, diagonals, 30), full


@pytest.mark.parametrize(("chosen", "others"), [([0, 3], [3, 1]), ([], [1]), ([2], []), ([], [])])
def test_sums_and_ridges_are_those_of_the_matrices(chosen, others):
    K, full = operator(RNG.uniform(1, 2, len(chosen)), chosen)
    D, change = operator(RNG.normal(size=len(others)), others)
    total, expected = ridged(moved(K, -0.3, D), 0.5), full - 0.3 * change + 0.5 * np.eye(30)
    points, vectors = RNG.permutation(30)[:7], RNG.normal(size=(30, 5))
    assert isinstance(total, FactoredMatrix)
    assert len(total.factors) == len(set(chosen) | set(others))
    assert_allclose(total @ vectors, expected @ vectors, atol=1e-12)
    assert_allclose(diagonal_of(total), np.diagonal(expected), atol=1e-12)
    assert_allclose(block_of(total, points), expected[np.ix_(points, points)], atol=1e-12)
    dense = ridged(moved(full, -0.3, change), 0.5)
    assert_allclose(dense, expected, atol=1e-12)
    assert_allclose(block_of(dense, points), expected[np.ix_(points, points)], atol=1e-12)


def test_an_operator_and_a_matrix_have_no_sum():
    K, full = operator(np.ones(1), [0])
    with pytest.raises(TypeError, match="no sum"):
        moved(K, 1.0, full)


def test_ridges_may_differ_from_point_to_point():
    ridge, vectors, points = RNG.uniform(size=30), RNG.normal(size=(30, 5)), RNG.permutation(30)[:7]
    K, full = operator(np.array([1.0, -0.5]), [0, 3])
    K, full = ridged(K, ridge), full + np.diag(ridge)
    assert isinstance(K, FactoredMatrix)
    assert_allclose(K @ vectors, full @ vectors, atol=1e-12)
    assert_allclose(K @ vectors[:, 0], full @ vectors[:, 0], atol=1e-12)
    assert_allclose(K.diagonal, np.diagonal(full), atol=1e-12)
    assert_allclose(K.block(points), full[np.ix_(points, points)], atol=1e-12)
    part = K.on(points)
    assert_allclose(part @ vectors[:7], full[np.ix_(points, points)] @ vectors[:7], atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.7, RNG.uniform(size=30)])
def test_inner_products_of_centred_operators_are_those_of_the_matrices(ridge):
    K, full = operator(np.array([1.0, 0.3]), [0, 3])
    L, other = operator(np.array([2.0]), [1])
    H = np.eye(30) - 1.0 / 30.0
    K, full = ridged(K, ridge), full + ridge * np.eye(30)
    for one, matrix in ((K, full), (L, other)):
        expected = float((H @ full @ H * matrix).sum())
        assert centred_inner(K, one) == pytest.approx(expected, rel=1e-10)
        assert centred_inner(one, K) == pytest.approx(expected, rel=1e-10)


def test_a_multiple_of_an_operator_is_that_of_its_matrix():
    K, full = operator(np.array([1.0, 0.3]), [0, 3])
    vectors = RNG.normal(size=(30, 2))
    expected = 0.25 * (full + 0.5 * np.eye(30)) @ vectors
    assert_allclose(scaled(ridged(K, 0.5), 0.25) @ vectors, expected, atol=1e-12)
    assert_allclose(scaled(ridged(full, 0.5), 0.25) @ vectors, expected, atol=1e-12)
