"""Systems of a diagonal plus thin factors against the dense bordered system."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.optim import thin_system
from mkldist.optim.thin_system import ThinSystem
from tests.variants import quick

RNG = np.random.default_rng(0)
N = 60
DIAGONAL = 10.0 ** RNG.uniform(-3, 2, size=N)
FACTORS = [RNG.normal(size=(N, rank)) * 0.8 ** np.arange(rank) for rank in (20, 0, 7)]
WEIGHTS = np.array([2.0, 1.0, 0.5])
GRADIENT = RNG.normal(size=N)


def dense() -> np.ndarray:
    products = [w * G @ G.T for w, G in zip(WEIGHTS, FACTORS, strict=True)]
    return np.diag(DIAGONAL) + sum(products)


def bordered(H: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the minimiser of ``1/2 x'Hx + g'x`` over vectors of sum zero."""
    n = len(H)
    system = np.block([[H, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(-gradient, 0.0))[:n]


@pytest.mark.parametrize("columns", [1, 3, 12, 600])
def test_the_minimiser_is_that_of_the_dense_system_with_any_preconditioner(monkeypatch, columns):
    monkeypatch.setattr(thin_system, "COLUMNS", columns)
    system = ThinSystem(DIAGONAL, WEIGHTS, FACTORS)
    found = system.minimiser(GRADIENT, 1e-10)
    assert abs(found.sum()) <= 1e-12
    assert_allclose(found, bordered(dense(), GRADIENT), atol=1e-7)
    assert_allclose(system @ found, dense() @ found, atol=1e-9)


def test_gradients_side_by_side_are_solved_for_as_each_is_alone():
    system = ThinSystem(DIAGONAL, WEIGHTS, FACTORS)
    gradients = np.column_stack([GRADIENT, DIAGONAL**2, 1e6 * DIAGONAL])
    found = system.minimiser(gradients, 1e-10)
    expected = np.column_stack([bordered(dense(), gradient) for gradient in gradients.T])
    scales = np.abs(expected).max(axis=0)
    assert_allclose(found / scales, expected / scales, atol=1e-7)


def test_more_columns_of_the_preconditioner_take_fewer_steps(monkeypatch):
    steps = []
    for columns in (1, 8, 16, 27):
        monkeypatch.setattr(thin_system, "COLUMNS", columns)
        system = ThinSystem(DIAGONAL, WEIGHTS, FACTORS)
        system.minimiser(GRADIENT, 1e-6)
        steps.append(system.steps)
    assert steps[0] > steps[1] > steps[2] > steps[3]
    assert steps[3] <= 2


def test_columns_of_equal_weight_do_not_fill_the_preconditioner(monkeypatch):
    monkeypatch.setattr(thin_system, "COLUMNS", 5)
    factors = [np.eye(N), np.zeros((N, 3)), np.eye(N)]  # as of narrow kernels and of one of zeros
    system = ThinSystem(np.ones(N), np.ones(3), factors)
    assert system._heaviest().shape == (N, 5)
    expected = bordered(3.0 * np.eye(N), GRADIENT)
    assert_allclose(system.minimiser(GRADIENT, 1e-10), expected, atol=1e-8)


def test_the_preconditioner_promises_at_least_the_gain(monkeypatch):
    monkeypatch.setattr(thin_system, "COLUMNS", 5)
    system = ThinSystem(DIAGONAL, WEIGHTS, FACTORS)
    best = bordered(dense(), GRADIENT)
    gain = -0.5 * float(GRADIENT @ best)
    assert 0.5 * float(GRADIENT @ system.preconditioned(GRADIENT)) >= gain


@pytest.mark.parametrize("constant", [1e6, 1e12, 1e18])
@pytest.mark.parametrize("share", [1e-2, 1e-10])
def test_constant_kernels_change_nothing_whatever_their_weight(constant, share):
    weights, factors = np.append(WEIGHTS, constant), [*FACTORS, np.ones((N, 1))]
    gradient = GRADIENT - GRADIENT.mean()
    found = ThinSystem(DIAGONAL, weights, factors).minimiser(gradient, share)
    expected = bordered(dense(), gradient)
    assert_allclose(found, expected, atol=10 * share * np.abs(expected).max())


@pytest.mark.parametrize("first", quick(range(0, 200, 40)))
def test_a_gradient_that_is_rounding_of_a_constant_leaves_rounding(first):
    for seed in range(first, first + 40):
        rng = np.random.default_rng(seed)
        factors = [np.ones((5, 1)), rng.normal(size=(5, 3))]
        diagonal = np.full(5, 10.0 ** rng.uniform(-12, 6))
        system = ThinSystem(diagonal, 10.0 ** rng.uniform(-12, 12, size=2), factors)
        gradient = 1e6 + 1e-10 * rng.normal(size=5)
        found = system.minimiser(gradient, 1e-5)
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 1e-7 / diagonal.min()


def test_a_system_without_factors_is_diagonal():
    system = ThinSystem(DIAGONAL, np.empty(0), [])
    found = system.minimiser(GRADIENT, 1e-12)
    assert_allclose(found, bordered(np.diag(DIAGONAL), GRADIENT), atol=1e-9)


def test_a_gradient_of_equal_entries_leaves_nothing_to_gain():
    system = ThinSystem(DIAGONAL, WEIGHTS, FACTORS)
    assert_allclose(system.minimiser(np.full(N, 3.0), 1e-6), 0.0, atol=1e-9)


@pytest.mark.parametrize("least", [1e-16, 1e-60, 1e-300])
def test_diagonals_of_any_size_leave_directions_of_descent(least):
    diagonal = np.where(np.arange(N) % 2, least, 1.0)
    system = ThinSystem(diagonal, WEIGHTS, FACTORS)
    found = system.minimiser(GRADIENT, 1e-2)
    assert np.isfinite(found).all()
    assert found @ GRADIENT <= 0.0
