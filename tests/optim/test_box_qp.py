"""Quadratic programs over a box with one equality against a conic solver and a linear system."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mkldist.optim.box_qp import MANY_ROWS, FreeSystem, newton_steps, pair_updates
from tests.variants import quick


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


@pytest.mark.parametrize("rank", quick([5, 400]))
@pytest.mark.parametrize("copies", quick([2, 1]))
def test_steps_of_many_variables_reach_the_optimum(monkeypatch, rank, copies):
    factorised = []
    own = FreeSystem._factorised
    monkeypatch.setattr(
        FreeSystem, "_factorised", lambda s, free: factorised.append(free) or own(s, free)
    )
    n = MANY_ROWS + 40
    K, linear, lower, upper, beta = (np.repeat(part, copies, 0) for part in program(1, n, rank))
    K = np.repeat(K, copies, axis=1)
    total, slack = beta.sum(), linear - K @ beta
    steps = updates = 1
    while updates:
        steps += newton_steps(K, beta, slack, lower, upper)
        updates = pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-7, 400)
    np.testing.assert_allclose(slack, linear - K @ beta, atol=1e-7)
    assert beta.sum() == pytest.approx(total, abs=1e-8)
    assert 0 < len(factorised) < steps / 4
    x = cp.Variable(n * copies)
    root, values, _ = np.linalg.svd(K[::copies, ::copies])
    half = np.repeat(root * np.sqrt(values), copies, axis=0)[:, :rank]
    value = linear @ x - 0.5 * cp.sum_squares(half.T @ x)
    problem = cp.Problem(cp.Maximize(value), [x >= lower, x <= upper, cp.sum(x) == total])
    problem.solve(solver=cp.CLARABEL)
    assert linear @ beta - 0.5 * beta @ K @ beta >= problem.value - 1e-5 * abs(problem.value)


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
