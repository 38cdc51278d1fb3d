"""Newton systems of free variables against numpy's solution of each, and after variables left."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.optim import box_qp as free_system
from mkldist.optim.box_qp import FEW_ROWS, MANY_ROWS, FreeSystem


def matrix_of(size: int, rank: int | None = None) -> np.ndarray:
    """Return a positive semi-definite matrix of some rank; of full rank if None."""
    half = np.random.default_rng(size).normal(size=(size, rank or size))
    return half @ half.T + (0.1 * np.eye(size) if rank is None else 0.0)


def by_numpy(K: np.ndarray, free: np.ndarray, residual: np.ndarray) -> np.ndarray:
    system = np.ones((len(free) + 1, len(free) + 1))
    system[:-1, :-1], system[-1, -1] = K[np.ix_(free, free)], 0.0
    return np.linalg.solve(system, np.append(residual, 0.0))[:-1]


@pytest.mark.parametrize("size", [5, FEW_ROWS + 1, MANY_ROWS, MANY_ROWS + 60])
def test_directions_as_variables_leave(size):
    K, draw = matrix_of(size), np.random.default_rng(0)
    system, free = FreeSystem(K), np.arange(size)
    while len(free) > 0.7 * size:
        residual = draw.normal(size=len(free))
        found = system.direction(free, residual)
        np.testing.assert_allclose(found, by_numpy(K, free, residual), rtol=1e-7, atol=1e-8)
        assert not system.renew(found, K[np.ix_(free, free)] @ found, residual)
        free = np.delete(free, draw.choice(len(free), 2, replace=False))


def test_one_factorisation_serves_while_few_have_left(monkeypatch):
    K, counts = matrix_of(MANY_ROWS + 60), []
    own = FreeSystem._factorised
    monkeypatch.setattr(
        FreeSystem, "_factorised", lambda s, free: counts.append(len(free)) or own(s, free)
    )
    system = FreeSystem(K)
    for n_free in range(len(K), MANY_ROWS, -1):
        system.direction(np.arange(n_free), np.ones(n_free) + np.arange(n_free))
    assert counts == [len(K), 207]


def test_few_variables_have_systems_of_their_own():
    K, draw = matrix_of(MANY_ROWS + 2), np.random.default_rng(0)
    system = FreeSystem(K)
    for n_free in (MANY_ROWS + 2, MANY_ROWS + 1, MANY_ROWS - 1):
        free, residual = np.arange(n_free), draw.normal(size=n_free)
        found = system.direction(free, residual)
        np.testing.assert_allclose(found, by_numpy(K, free, residual), rtol=1e-7, atol=1e-8)
    wrong = 2.0 * found  # as no factor has given it, none is to blame
    assert not system.renew(wrong, K[np.ix_(free, free)] @ wrong, residual)


def test_a_direction_that_is_not_accurate_is_made_anew():
    size = MANY_ROWS + 20
    K = matrix_of(size, size // 2)
    K[1], K[:, 1] = K[0], K[:, 0]  # twice the same point, one of which leaves
    K[1, 1] = K[0, 0]
    system, free, draw = FreeSystem(K), np.arange(size), np.random.default_rng(3)
    system.direction(free, draw.normal(size=size))
    free = np.delete(free, [1, 5, 9])
    residual = K[np.ix_(free, free)] @ draw.normal(size=len(free))
    found = system.direction(free, residual)
    if system.renew(found, K[np.ix_(free, free)] @ found, residual):
        found = system.direction(free, residual)
        assert not system.renew(found, K[np.ix_(free, free)] @ found, residual)
    left = residual - K[np.ix_(free, free)] @ found
    assert np.ptp(left) <= 1e-4 * np.ptp(residual)


def test_there_is_no_direction_where_a_matrix_is_not_definite():
    for size in (FEW_ROWS + 5, MANY_ROWS + 5):
        K = np.eye(size)
        K[-1, -1] = -1.0
        assert FreeSystem(K).direction(np.arange(size), np.arange(size, dtype=float)) is None


@pytest.mark.parametrize("size", [2, 7, FEW_ROWS, FEW_ROWS + 1, 60])
def test_systems_are_solved_by_loops_and_by_lapack(size):
    rng = np.random.default_rng(size)
    half, rights = rng.normal(size=(size, size)), rng.normal(size=(size, 2))
    matrix = half @ half.T + 0.1 * np.eye(size)
    solved = free_system._solved(matrix.copy(), rights)
    np.testing.assert_allclose(solved, np.linalg.solve(matrix, rights), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("size", [FEW_ROWS, FEW_ROWS + 1])
def test_systems_that_are_not_positive_definite_have_no_solution(size):
    matrix = np.eye(size)
    matrix[-1, -1] = -1e-9
    assert free_system._solved(matrix, np.ones((size, 2))) is None
