"""A bank by products with vectors: its operators against matrices, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.passes import answer
from mkldist.bank.recomputed import PointBank
from mkldist.bank.requests import Combine, Diagonal, Matvec, Quadratic
from mkldist.bank.sources import ArraySource, FeatureSource
from mkldist.kernels.evaluate import evaluate
from mkldist.solvers.svm import solve_svm
from tests.kernels.few_lists import gaussians

N = 150
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 3))
KERNELS = gaussians([0.5, 1.0, 2.0], [[0, 1, 2], [1]])
GRAMS = evaluate(KERNELS, POINTS, POINTS)
WEIGHTS = np.array([0.0, 0.5, 0.0, 1.0, 2.0, 0.0])
Y = np.where(POINTS[:, 0] * POINTS[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)


def bank():
    return PointBank(FeatureSource(POINTS, KERNELS), threads=2)


def operator(of, weights=WEIGHTS):
    [found] = answer(of, [Combine(weights, thin=True)])
    return found


def values(of):
    return of.counter.bytes_computed // 8


def test_operators_are_the_sums_of_matrices():
    K, total = operator(bank()), np.tensordot(WEIGHTS, GRAMS, axes=1)
    assert_allclose(K.diagonal, np.diagonal(total))
    assert_allclose(K @ Y, total @ Y, atol=1e-12)
    points = RNG.permutation(N)[:40]
    assert_allclose(K.block(points), total[np.ix_(points, points)], atol=1e-12)
    [named] = answer(bank(), [Combine(np.array([2.0, 0.5]), np.array([4, 1]), thin=True)])
    assert_allclose(named @ Y, (2.0 * GRAMS[4] + 0.5 * GRAMS[1]) @ Y, atol=1e-12)


def test_the_next_product_costs_what_has_changed():
    of = bank()
    vector = RNG.normal(size=N)
    operator(of) @ vector
    assert values(of) == 3 * N * N
    vector[[3, 8]] += 1.0
    others = np.where(np.arange(6) == 0, 1.0, WEIGHTS)
    found = operator(of, others) @ vector
    assert_allclose(found, np.tensordot(others, GRAMS, axes=1) @ vector, atol=1e-12)
    assert values(of) == 3 * N * N + 3 * N * 2 + N * N  # a kernel more


def test_steps_are_not_computed_again_in_their_sum():
    of, beta = bank(), RNG.normal(size=N)
    K = operator(of)
    K @ beta
    before = values(of)
    for points in ([1, 2], [2, 5, 6], [1]):
        step = np.zeros(N)
        moved = beta.copy()
        moved[points] += RNG.normal(size=len(points))
        step[points] = moved[points] - beta[points]
        assert_allclose(K @ step, np.tensordot(WEIGHTS, GRAMS, axes=1) @ step, atol=1e-12)
        beta = moved
    assert values(of) == before + 3 * N * 6
    assert_allclose(K @ beta, np.tensordot(WEIGHTS, GRAMS, axes=1) @ beta, atol=1e-12)
    assert values(of) == before + 3 * N * 6
    beta[:20] = 0.0  # without steps
    assert_allclose(K @ beta, np.tensordot(WEIGHTS, GRAMS, axes=1) @ beta, atol=1e-12)
    assert values(of) == before + 3 * N * 26


def test_vectors_may_change_after_their_products():
    K, total = operator(bank()), np.tensordot(WEIGHTS, GRAMS, axes=1)
    first, step = Y + 2.0, np.zeros(N)
    K @ first
    step[:5] = 1.0
    K @ step
    step[5:9] = 2.0
    assert_allclose(K @ (first + step), total @ (first + step), atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_products_are_those_of_matrices_though_vectors_change_in_place(seed):
    rng, of = np.random.default_rng(seed), bank()
    vectors = [np.zeros(N) for _ in range(3)]
    for _ in range(40):
        vector = vectors[rng.integers(3)]
        changed = rng.permutation(N)[: rng.choice([1, 4, 20, N])]
        vector[changed] = rng.normal(size=len(changed)) * rng.integers(2)
        if rng.integers(2):
            vector[:] = vectors[rng.integers(3)] + vector
        weights = rng.random(6) * rng.integers(2, size=6)
        total = np.tensordot(weights, GRAMS, axes=1)
        tolerance = 1e-12 * (1.0 + np.abs(vector).max())
        assert_allclose(operator(of, weights) @ vector, total @ vector, atol=tolerance)


def test_forms_of_a_known_product_cost_nothing():
    of, vector = bank(), RNG.normal(size=N)
    operator(of) @ vector
    before = values(of)
    expected = np.einsum("i,mij,j->m", vector, GRAMS, vector)
    some = np.array([4, 1])
    [found] = answer(of, [Quadratic(vector[:, None], some)])
    assert_allclose(found, expected[some, None], rtol=1e-12)
    assert values(of) == before
    [found] = answer(of, [Quadratic(vector)])
    assert_allclose(found, expected, rtol=1e-12)
    assert values(of) == before + 3 * N * (N + 1) // 2
    two = RNG.normal(size=(N, 2))
    [found] = answer(of, [Quadratic(two, some)])
    assert_allclose(found, np.einsum("ir,mij,jr->mr", two, GRAMS[some], two), rtol=1e-12)


def test_other_requests_are_answered_as_of_any_bank():
    of = bank()
    [product] = answer(of, [Matvec(np.array([5, 0]), Y)])
    assert_allclose(product, GRAMS[[5, 0]] @ Y, atol=1e-12)
    [diagonals] = answer(of, [Diagonal(np.ones((N, 1)))])
    assert_array_equal(diagonals, np.full((6, 1), float(N)))
    [matrix] = answer(of, [Combine(WEIGHTS)])
    assert_allclose(matrix, np.tensordot(WEIGHTS, GRAMS, axes=1), atol=1e-12)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_machines_on_operators_are_those_on_matrices(C):
    of = bank()
    expected = solve_svm(np.tensordot(WEIGHTS, GRAMS, axes=1), Y, C, tol=1e-8)
    found = solve_svm(operator(of), Y, C, tol=1e-8)
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    before = values(of)
    again = solve_svm(operator(of), Y, C, tol=1e-7, start=found.alpha)
    assert again.objective == pytest.approx(expected.objective, rel=1e-6)
    assert values(of) == before  # points stay at their bounds


def test_kernels_without_loops_are_refused():
    with pytest.raises(ValueError, match="neither a loop nor a device knows"):
        PointBank(ArraySource(GRAMS))
