"""Kernel machines with squared losses, and systems of their support vectors."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.l2_svm import best_bias, solve_l2_svm
from mkldist.solvers.primal_newton import SupportSystem, ThinSupportSystem, support_system
from mkldist.solvers.squared_losses import SquaredLoss, root_on_line
from tests.methods import instances
from tests.methods.primal_machines import (
    INNERS,
    differences,
    every_loss,
    loss_of,
    machine,
    targets,
)


@every_loss
def test_gradient_and_hessian_in_z_are_those_of_finite_differences(name):
    instance = instances.not_normalised()
    K, lam, n = instance.grams[0], 0.1, len(instance.y)
    loss = loss_of(name, targets(name, instance))
    solver = machine(loss, lam)
    rng = np.random.default_rng(0)
    z = np.append(0.1 * rng.normal(size=n), 0.2)

    def value(z: np.ndarray) -> float:
        return solver.point(K, z[:n], K @ z[:n], z[n]).value

    def gradient(z: np.ndarray) -> np.ndarray:
        at = solver.point(K, z[:n], K @ z[:n], z[n])
        return np.append(at.Ks, loss.slope - at.r.sum())

    np.testing.assert_allclose(gradient(z), differences(value, z), atol=1e-7)
    sv = loss.active(solver.point(K, z[:n], K @ z[:n], z[n]).r)
    I_sv, ones = np.diag(sv.astype(float)), np.ones((n, 1))
    left = np.block([[I_sv @ K + lam * np.eye(n), I_sv @ ones], [ones.T @ I_sv @ K, sv.sum()]])
    P = np.block([[K, 0 * ones], [0 * ones.T, 1.0]])
    np.testing.assert_allclose(P @ left, differences(gradient, z, 1e-7), atol=1e-5)


@pytest.mark.slow
@every_loss
@instances.every_instance
@pytest.mark.parametrize("lam", [1e-2, 1.0])
def test_the_three_ways_to_the_minimum_of_z_agree(name, make, lam):
    instance = make()
    K, loss = instance.grams.mean(axis=0), loss_of(name, targets(name, instance))
    points = [machine(loss, lam, inner, 1e-18)(K, np.zeros(len(K))) for inner in INNERS]
    for z in points:
        assert z.value == pytest.approx(points[0].value, rel=1e-12)
        np.testing.assert_allclose(z.f + z.b, points[0].f + points[0].b, atol=1e-6)
        np.testing.assert_allclose(lam * z.alpha, z.r, atol=1e-5)


@every_loss
@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("inner", INNERS)
def test_an_operator_has_the_minimum_of_its_matrix(name, lam, inner):
    rng = np.random.default_rng(0)
    instance = instances.balanced()
    G = rng.normal(size=(60, 15)) * 0.7 ** np.arange(15)
    K = FactoredMatrix(np.array([2.0]), [G], (G**2).sum(axis=1)[None], 60)
    loss = loss_of(name, targets(name, instance))
    found = machine(loss, lam, inner, 1e-12)(K, np.zeros(60))
    expected = machine(loss, lam, inner, 1e-12)(2.0 * G @ G.T, np.zeros(60))
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(found.f + found.b, expected.f + expected.b, atol=1e-4)


def test_the_gap_of_a_machine_is_primal_minus_dual():
    instance = instances.balanced()
    K, lam = instance.grams[0], 0.01
    loss = loss_of("squared-hinge", instance.y)
    solver = machine(loss, lam)
    alpha = np.random.default_rng(0).normal(size=len(K))
    z = solver.point(K, alpha, K @ alpha)
    dual = loss.dual_value(z.r, z.b) - float(z.r @ K @ z.r) / (2 * lam)
    assert solver.gap(z) == pytest.approx(z.value - dual, rel=1e-10)


@instances.every_instance
@pytest.mark.parametrize("lam", [1e-8, 1e-2, 1.0, 1e8])
def test_the_squared_hinge_machine_is_the_l2_svm(make, lam):
    instance = make()
    K = instance.grams.mean(axis=0)
    z = machine(loss_of("squared-hinge", instance.y), lam)(K, np.zeros(len(K)))
    svm = solve_l2_svm(K, instance.y, lam, tol=1e-10)
    assert z.value == pytest.approx(lam * svm.objective, rel=1e-8)


RNG = np.random.default_rng(0)
G = RNG.normal(size=(30, 8))
SV = RNG.random(30) < 0.6
LAM = 0.05


def system(thin: bool) -> SupportSystem | ThinSupportSystem:
    K = FactoredMatrix(np.array([0.5]), [G], (G**2).sum(axis=1)[None], 30)
    return support_system(K if thin else 0.5 * G @ G.T, SV, LAM)


def bordered() -> np.ndarray:
    block = 0.5 * G[SV] @ G[SV].T + LAM * np.eye(SV.sum())
    ones = np.ones((len(block), 1))
    return np.block([[block, ones], [ones.T, np.zeros((1, 1))]])


@pytest.mark.parametrize("thin", [True, False])
def test_the_solution_is_that_of_the_bordered_matrix(thin):
    right = RNG.normal(size=SV.sum())
    x, b = system(thin).solve(right, 0.7)
    expected = np.linalg.solve(bordered(), np.append(right, 0.7))
    np.testing.assert_allclose(np.append(x, b), expected, atol=1e-4 * np.abs(expected).max())
    assert x.sum() == pytest.approx(0.7)


@pytest.mark.parametrize("thin", [True, False])
def test_projected_columns_have_the_products_of_the_inverse(thin):
    columns = RNG.normal(size=(SV.sum(), 3))
    B = system(thin).projected(columns)
    inverse = np.linalg.inv(bordered())[:-1, :-1]
    expected = columns.T @ inverse @ columns
    np.testing.assert_allclose(B.T @ B, expected, atol=1e-4 * np.abs(expected).max())


def test_a_singular_support_system_is_regularised_until_it_factorises():
    singular = SupportSystem(np.ones((4, 4)), 1e-30)
    x, b = singular.solve(np.ones(4), 1.0)
    assert np.isfinite([*x, b]).all()
    assert x.sum() == pytest.approx(1.0)


# Squared losses: their minima on lines, and the bounds that their residuals give.


@every_loss
@pytest.mark.parametrize("seed", range(10))
def test_best_bias_and_best_step_minimise_on_their_lines(name, seed):
    rng = np.random.default_rng(seed)
    instance = instances.not_normalised()
    loss = loss_of(name, targets(name, instance))
    u, change = rng.normal(size=(2, len(instance.y)))

    def along_bias(b: float) -> float:
        return loss.value(loss.residual(u + b), b)

    found = along_bias(loss.best_bias(u))
    assert found <= minimize_scalar(along_bias, bracket=(-1, 1), tol=1e-12).fun + 1e-9

    def along(s: float) -> float:
        r = loss.residual(u + s * change)
        return 0.3 * s + 0.5 * 0.2 * s**2 + 0.5 * float(r @ r)

    found = along(loss.best_step(u, change, 0.3, 0.2))
    assert found <= minimize_scalar(along, bracket=(-1, 1), tol=1e-12).fun + 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_roots_lie_in_the_middle_of_those_by_sorting_equal_kinks(seed):
    rng = np.random.default_rng(seed)
    u, change = rng.integers(-3, 4, size=(2, 12)).astype(float)
    lower = np.where(rng.random(12) < 0.7, rng.integers(-2, 1, 12), -np.inf)
    upper = np.where(rng.random(12) < 0.7, rng.integers(0, 3, 12), np.inf)
    constant = float(rng.integers(-2, 3))

    def value(s: float) -> float:
        at = u + s * change
        return constant - float((np.clip(at, lower, upper) - at) @ change)

    moving = change != 0
    ends = np.concatenate([(end - u)[moving] / change[moving] for end in (lower, upper)])
    kinks = np.unique(ends[np.isfinite(ends)])
    values = np.array([value(s) for s in kinks])
    found = root_on_line(u, change, lower, upper, constant, 0.0)
    if np.any(values == 0.0) and values[0] < 0.0 < values[-1]:
        flat = kinks[values == 0.0]
        assert found == pytest.approx(0.5 * (flat[0] + flat[-1]))
    elif values[0] < 0.0 < values[-1]:
        assert value(found) == pytest.approx(0.0, abs=1e-12)


def test_a_flat_loss_takes_the_middle_bias():
    loss = SquaredLoss(np.array([-1.0, -2.0]), np.array([3.0, 1.0]))
    assert loss.best_bias(np.zeros(2)) == pytest.approx(0.0)
    assert loss.value(loss.residual(np.zeros(2)), 0.0) == 0.0


@every_loss
@pytest.mark.parametrize("seed", range(5))
def test_any_residual_made_feasible_bounds_the_primal_from_below(name, seed):
    rng = np.random.default_rng(seed)
    instance = instances.not_normalised()
    loss, K, lam = loss_of(name, targets(name, instance)), instance.grams[0], 0.1
    z = machine(loss, lam)(K, np.zeros(len(K)))
    r = loss.feasible(loss.residual(rng.normal(size=len(K))))
    assert r.sum() == pytest.approx(loss.slope, abs=1e-12)
    assert (r[~np.isfinite(loss.upper)] >= 0).all()
    assert (r[~np.isfinite(loss.lower)] <= 0).all()
    norm = float(r @ K @ r) / (2 * lam)
    for b in (0.0, 2.5):
        assert loss.dual_value(r, b) == pytest.approx(loss.dual_value(r, 0.0), abs=1e-10)
    assert loss.dual_value(r, 0.0) - norm <= z.value
    r = loss.feasible(z.r)
    best = loss.dual_value(r, z.b) - float(r @ K @ r) / (2 * lam)
    assert best == pytest.approx(z.value, rel=1e-12)


# The l2-SVM against a conic solver, and its bias against a scalar search.


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
