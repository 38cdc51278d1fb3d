"""Quadratic programs over a box with one equality against a conic solver and a linear system."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mkldist.optim import box_qp
from mkldist.optim.box_qp import newton_steps, pair_updates


def program(seed: int, n: int, rank: int) -> tuple[np.ndarray, ...]:
    """Return K, linear term, bounds and a feasible point whose sum is not zero."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, rank))
    lower, upper = -rng.random(n), rng.random(n)
    beta = lower + rng.random(n) * (upper - lower)
    return root @ root.T, rng.normal(size=n), lower, upper, beta


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [3, 40])
def test_pair_updates_and_newton_steps_reach_the_optimum(seed, rank):
    K, linear, lower, upper, beta = program(seed, 20, rank)
    total, slack = beta.sum(), linear - K @ beta
    pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-2, 10_000)
    newton_steps(K, beta, slack, lower, upper)
    pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-9, 100_000)
    np.testing.assert_allclose(slack, linear - K @ beta, atol=1e-9)
    assert beta.sum() == pytest.approx(total, abs=1e-10)
    assert ((lower <= beta) & (beta <= upper)).all()
    x = cp.Variable(20)
    value = linear @ x - 0.5 * cp.quad_form(x, cp.psd_wrap(K))
    problem = cp.Problem(cp.Maximize(value), [x >= lower, x <= upper, cp.sum(x) == total])
    problem.solve(solver=cp.CLARABEL)
    assert linear @ beta - 0.5 * beta @ K @ beta >= problem.value - 1e-7


def test_newton_steps_solve_a_program_without_active_bounds_at_once():
    K, linear, _, _, beta = program(0, 8, 20)
    none, total = np.full(8, np.inf), beta.sum()
    slack = linear - K @ beta
    assert newton_steps(K, beta, slack, -none, none) == 1
    system = np.ones((9, 9))
    system[:8, :8], system[8, 8] = K, 0.0
    np.testing.assert_allclose(beta, np.linalg.solve(system, np.append(linear, total))[:8])


def test_a_pair_that_meets_its_bound_stops_exactly_there():
    beta, slack = np.array([0.25, 0.75]), np.array([5.0, -5.0])
    lower, upper = np.zeros(2), np.array([0.9, 1.0])
    assert pair_updates(np.eye(2), np.ones(2), beta, slack, lower, upper, 1e-9, 100) == 1
    assert beta[0] == 0.9
    assert beta[1] == pytest.approx(0.1)


def test_the_limit_on_updates_holds():
    K, linear, lower, upper, beta = program(5, 20, 40)
    slack = linear - K @ beta
    assert pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-12, 3) == 3


@pytest.mark.parametrize("size", [2, 7, box_qp.FEW_ROWS, box_qp.FEW_ROWS + 1, 60])
def test_systems_are_solved_by_loops_and_by_lapack(size):
    rng = np.random.default_rng(size)
    half, rights = rng.normal(size=(size, size)), rng.normal(size=(size, 2))
    matrix = half @ half.T + 0.1 * np.eye(size)
    solved = box_qp._solved(matrix.copy(), rights)
    np.testing.assert_allclose(solved, np.linalg.solve(matrix, rights), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("size", [box_qp.FEW_ROWS, box_qp.FEW_ROWS + 1])
def test_systems_that_are_not_positive_definite_have_no_solution(size):
    matrix = np.eye(size)
    matrix[-1, -1] = -1e-9
    assert box_qp._solved(matrix, np.ones((size, 2))) is None
