"""Quadratic programmes over the simplex and the orthant against a conic solver and their KKT."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.optim import simplex_qp
from mkldist.optim.simplex_qp import LowRankQuadratic, minimise_over_orthant, minimise_over_simplex

NONE = np.empty(0, dtype=np.intp)
RIDGE = 1e-3


def program(k: int, size: int, seed: int, coarse: bool, ridge: float = RIDGE) -> LowRankQuadratic:
    rng = np.random.default_rng(seed)
    root, linear = rng.normal(size=(k, size)), rng.normal(size=size)
    if coarse:  # ties, duplicates, zero columns
        root, linear = np.round(root), np.round(linear)
    return LowRankQuadratic(root, linear, ridge)


def conic_value(objective: LowRankQuadratic, *, simplex: bool) -> float:
    x = cp.Variable(len(objective.linear), nonneg=True)
    value = 0.5 * cp.sum_squares(objective.root @ x) + objective.linear @ x
    value += 0.5 * objective.ridge * cp.sum_squares(x)
    problem = cp.Problem(cp.Minimize(value), [cp.sum(x) == 1] if simplex else [])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


programs = st.builds(
    program, st.integers(0, 6), st.integers(1, 25), st.integers(0, 10_000), st.booleans()
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(programs, st.integers(0, 10_000))
def test_simplex_minimiser(objective, seed):
    size = len(objective.linear)
    guess = np.flatnonzero(np.random.default_rng(seed).random(size) < 0.5)
    x = minimise_over_simplex(objective, guess)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1.0, abs=1e-13)
    gradient = objective.root.T @ (objective.root @ x) + objective.ridge * x + objective.linear
    # The distance to optimality of a convex function on the simplex.
    scale = 1 + np.abs(gradient).max()
    assert gradient @ x - gradient.min() <= 1e-10 * scale
    expected = conic_value(objective, simplex=True)
    assert objective.value(x) == pytest.approx(expected, abs=1e-7 * scale)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(programs, st.integers(0, 10_000))
def test_orthant_minimiser(objective, seed):
    size = len(objective.linear)
    guess = np.flatnonzero(np.random.default_rng(seed).random(size) < 0.5)
    x = minimise_over_orthant(objective, guess)
    gradient = objective.root.T @ (objective.root @ x) + objective.ridge * x + objective.linear
    scale = (1 + np.abs(objective.linear).max()) * (1 + x.max())
    assert (x >= 0).all()
    assert (gradient >= -1e-9 * scale).all()
    assert np.abs(gradient * x).max() <= 1e-9 * scale * (1 + x.max())
    expected = conic_value(objective, simplex=False)
    assert objective.value(x) == pytest.approx(expected, abs=1e-6 * scale)


def test_more_variables_than_rank_and_no_ridge():
    objective = program(3, 200, 5, coarse=False, ridge=0.0)
    x = minimise_over_simplex(objective, NONE)
    gradient = objective.gradient(x)
    assert gradient @ x - gradient.min() <= 1e-8
    assert (x > 0).sum() <= 4


def test_alike_variables_share_alike():
    root = np.array([[1.0, 1.0, 2.0]])
    x = minimise_over_simplex(LowRankQuadratic(root, np.zeros(3), 1e-6), NONE)
    assert x[0] == pytest.approx(x[1], rel=1e-6)
    assert x[2] == 0.0


def test_flat_objective_goes_to_the_least_vertex():
    linear = np.array([3.0, -1.0, 2.0])
    x = minimise_over_simplex(LowRankQuadratic(np.empty((0, 3)), linear), NONE)
    assert x.tolist() == [0.0, 1.0, 0.0]


def test_a_model_touches_its_function():
    rng = np.random.default_rng(0)
    point, gradient, root = rng.random(7), rng.normal(size=7), rng.normal(size=(4, 7))
    model = LowRankQuadratic.around(point, gradient, root, 0.3)
    np.testing.assert_allclose(model.gradient(point), gradient, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.1, 100.0])
def test_thousands_of_variables_enter_and_leave_in_few_systems(ridge, monkeypatch):
    objective = program(20, 2000, 0, coarse=False, ridge=ridge)
    systems, solve = [], simplex_qp._newton_step
    monkeypatch.setattr(
        simplex_qp, "_newton_step", lambda *a, **k: systems.append(1) or solve(*a, **k)
    )
    for guess in (NONE, np.arange(2000)):
        systems.clear()
        x = minimise_over_simplex(objective, guess)
        assert len(systems) < 200
        gradient = objective.root.T @ (objective.root @ x) + ridge * x + objective.linear
        assert gradient @ x - gradient.min() <= 1e-9 * (1 + np.abs(gradient).max())
        assert x.sum() == pytest.approx(1.0, abs=1e-13)
