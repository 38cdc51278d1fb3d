"""The l2-SVM against a conic solver, and its bias against a scalar search."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.solvers.l2_svm import best_bias, solve_l2_svm


def problem(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    x = rng.normal(size=(n, 3)) + 0.5 * y[:, None]
    return x, y


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("n", [2, 7, 40])
def test_objective_is_the_conic_optimum(n, ridge):
    x, y = problem(n, n)
    w, b = cp.Variable(3), cp.Variable()
    slack = cp.pos(1 - cp.multiply(y, x @ w + b))
    primal = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + cp.sum_squares(slack) / (2 * ridge)))
    primal.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    svm = solve_l2_svm(x @ x.T, y, ridge, tol=1e-10)
    assert svm.gap <= 1e-10
    assert svm.objective == pytest.approx(primal.value, rel=1e-6)


def test_a_start_from_elsewhere_ends_at_the_same_optimum():
    x, y = problem(3, 40)
    cold = solve_l2_svm(x @ x.T, y, 0.1, tol=1e-10)
    start = np.random.default_rng(0).normal(size=40)
    warm = solve_l2_svm(x @ x.T, y, 0.1, tol=1e-10, start=start)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
    again = solve_l2_svm(x @ x.T, y, 0.1, tol=1e-10, start=cold.alpha)
    assert again.iterations <= cold.iterations


@pytest.mark.parametrize("seed", range(30))
def test_bias_minimises_the_squared_hinge(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    _, y = problem(seed, n)
    f = rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])

    def squared_hinge(b: float) -> float:
        return float((np.maximum(0, 1 - y * (f + b)) ** 2).sum())

    found = squared_hinge(best_bias(f, y))
    assert found <= minimize_scalar(squared_hinge, bracket=(-1, 1), tol=1e-12).fun + 1e-9


def test_bounds_enclose_the_optimum_where_rounding_exceeds_the_ridge():
    # Both classes have the same points: beta'K beta = 0, and the dual is 2 s - ridge s^2 2/5 / 2
    # for the sum s of a class.
    y = np.repeat([1.0, -1.0], 5)
    for scale in (1.0, 1e4, 1e8):
        for ridge in (1e-4, 1e-2, 1.0):
            svm = solve_l2_svm(np.full((10, 10), scale), y, ridge, tol=1e-9)
            optimum = 2.0 / (0.4 * ridge)
            assert svm.dual_objective <= optimum * (1 + 1e-15) <= svm.objective * (1 + 2e-15)
