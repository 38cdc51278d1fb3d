"""HessianMKL, GMKL and Newton steps on kernel weights."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel

from mkldist.bank.requests import Matvec, Quadratic
from mkldist.methods.gmkl import MeanDuals
from mkldist.methods.weight_newton import ORTHANT, SIMPLEX, DampedNewton, hessian_root
from mkldist.solvers.progress import StopReason
from mkldist.solvers.svm import solve_svm
from tests.methods import instances
from tests.methods.plain_bank import solve
from tests.methods.references.simplex_svm import simplex_optimum
from tests.variants import quick


@instances.every_instance
def test_a_few_newton_steps_suffice(make):
    instance = make()
    solution = solve("hessianmkl", instance.grams, instance.y, C=instance.C, tol=1e-8)
    assert solution.converged
    assert solution.counters.outer_iterations <= 12


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_on_kernels_of_rank_one_it_trains_at_most_twice_the_machines_of_level(C):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 40))
    y = np.sign(x[:, :5].sum(axis=1) + rng.normal(size=150))
    grams = np.einsum("im,jm->mij", x, x)
    ours, level = (solve(name, grams, y, C=C) for name in ("hessianmkl", "level"))
    assert ours.converged
    assert ours.counters.svm_solves <= 2 * level.counters.svm_solves


def test_as_printed_every_step_takes_all_kernels_and_is_newtons():
    instance, seen = instances.more_kernels_than_points(), []
    settings = {"C": instance.C, "tol": 1e-6, "acceleration": "none"}
    solution = solve(
        "hessianmkl", instance.grams, instance.y, lambda r, _: seen.append(r), **settings
    )
    products = [r for r in seen if isinstance(r, Matvec)]
    assert solution.converged
    assert len(products) == solution.counters.outer_iterations - 1  # all but the last, which stops
    assert all(len(r.kernels) == len(instance.grams) for r in products)


def test_an_iteration_takes_one_pass_and_its_products_visit_few_kernels():
    instance = instances.more_kernels_than_points()
    seen = []
    solution = solve(
        "hessianmkl",
        instance.grams,
        instance.y,
        lambda request, _: seen.append(request),
        C=instance.C,
        tol=1e-8,
    )
    products = [r for r in seen if isinstance(r, Matvec)]
    assert solution.counters.outer_iterations == sum(isinstance(r, Quadratic) for r in seen)
    assert min(len(r.kernels) for r in products) <= len(instance.grams) / 4
    assert len(products[-1].kernels) < len(instance.grams) / 3


@pytest.mark.slow
@pytest.mark.parametrize("C", [1e-4, 1.0, 100.0, 1e4])
def test_kernels_of_rank_one_whose_machines_are_not_unique(C):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(50) < 25, 1.0, -1.0)
    x = rng.normal(size=(50, 12))
    x[:, 0] += 0.8 * y
    grams = np.array([linear_kernel(x[:, [j]]) for j in range(12)])
    grams /= np.trace(grams, axis1=1, axis2=2)[:, None, None]
    instance = instances.Instance("rank one", grams, y, C)
    solution = solve("hessianmkl", grams, y, C=C, tol=1e-8)
    assert solution.stop_reason is StopReason.CONVERGED
    expected = simplex_optimum(instance, y, {"C": C})
    assert solution.objective == pytest.approx(expected, rel=1e-6)


def test_points_of_both_classes_leave_no_margin():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    x = rng.normal(size=(20, 3))
    x = np.vstack([x, x])
    grams = np.array([np.exp(-((x[:, None, j] - x[None, :, j]) ** 2) / 2) for j in range(3)])
    solution = solve("hessianmkl", grams, y, C=10.0, tol=1e-8)
    assert solution.converged
    assert solution.objective == pytest.approx(400.0)  # f = 0: every hinge is 1


def test_a_price_too_high_leaves_no_kernel_and_the_majority_class():
    instance = instances.unbalanced()
    solution = solve("gmkl", instance.grams, instance.y, C=1.0, sigma=1e3, tol=1e-8)
    assert solution.converged
    assert not solution.kernel_weights.any()
    assert solution.objective == pytest.approx(2.0 * 9)  # nine positives, hinge 2 each
    assert np.sign(solution.bias) == -1


@pytest.mark.parametrize("newton", [0.0, 0.5, 10.0])
def test_gradient_and_newton_steps_reach_the_same_optimum(newton):
    instance = instances.duplicated_kernels()
    solution = solve("gmkl", instance.grams, instance.y, C=instance.C, newton=newton, tol=1e-9)
    other = solve("gmkl", instance.grams, instance.y, C=instance.C, tol=1e-9)
    assert solution.converged
    assert solution.objective == pytest.approx(other.objective, rel=1e-8)


@pytest.mark.parametrize("newton", [0.0, 0.5])
def test_an_iteration_takes_one_pass_and_the_papers_needs_no_products(newton):
    instance = instances.more_kernels_than_points()
    seen = []
    solution = solve(
        "gmkl",
        instance.grams,
        instance.y,
        lambda request, _: seen.append(request),
        C=instance.C,
        newton=newton,
        tol=1e-6,
    )
    assert solution.counters.outer_iterations == sum(isinstance(r, Quadratic) for r in seen)
    assert solution.counters.svm_solves >= solution.counters.outer_iterations
    assert newton > 0 or not any(isinstance(r, Matvec) for r in seen)


def test_weights_that_vanish_on_the_way_come_back():
    instance = instances.zero_kernel()
    for newton in (0.0, 0.5, 10.0):
        for sigma in (1e-3, 1.0, 50.0, 60.0, 70.0):
            params = {"C": instance.C, "sigma": sigma, "newton": newton}
            solution = solve("gmkl", instance.grams, instance.y, tol=1e-6, **params)
            assert solution.converged


def test_no_kernel_at_all_has_no_second_derivative():
    grams = np.array([np.zeros((37, 37)), 150.0 * np.eye(37) + 1e3])
    y = np.where(np.arange(37) < 9, 1.0, -1.0)
    solution = solve("gmkl", grams, y, C=0.02, sigma=0.05, tol=1e-6, newton=10.0)
    assert solution.converged
    assert solution.kernel_weights[0] == 0.0


def test_what_a_rest_of_the_balance_costs_lowers_the_bound():
    rng = np.random.default_rng(0)
    alpha, q = rng.uniform(0.1, 1.0, 12), rng.uniform(0.5, 2.0, 5)
    total = float(alpha.sum())
    exact, point = MeanDuals(5, 10.0, 1.0).lower_bound(alpha, total, q)
    assert point.sum() == pytest.approx(exact)
    assert exact == pytest.approx(np.sqrt(2.0 / q.max()) * total)
    for height in (0.9 * total, -0.1):
        bound = MeanDuals(5, 10.0, 1.0).lower_bound(alpha, height, q).value
        assert bound == pytest.approx(max(height, 0.0) / total * exact)


def newton(domain, n_kernels: int, svm_at=None) -> DampedNewton:
    return DampedNewton(domain, n_kernels, 1e-6, svm_at)


@pytest.mark.parametrize("domain", [SIMPLEX, ORTHANT], ids=["simplex", "orthant"])
@pytest.mark.parametrize("seed", range(5))
def test_the_minimiser_is_that_of_a_conic_solver(domain, seed):
    rng = np.random.default_rng(seed)
    d = rng.dirichlet(np.ones(9))
    working = np.flatnonzero(rng.random(9) < 0.8)
    d[np.setdiff1d(np.arange(9), working)] = 0.0
    d /= d.sum()
    root, gradient = rng.normal(size=(12, len(working))), rng.normal(size=len(working))
    end = newton(domain, 9).minimiser(d, working, gradient, root, size=1.0)
    x = cp.Variable(len(working))
    step = x - d[working]
    constraints = [x >= 0, cp.sum(x) == 1] if domain is SIMPLEX else [x >= 0]
    steepest = np.abs(gradient - (d[working] @ gradient if domain is SIMPLEX else 0.0)).max()
    ridge = max(1e-10 * (root**2).sum(axis=0).max(), steepest / 10)  # of a model not yet damped
    model = gradient @ step + 0.5 * cp.sum_squares(root @ step) + 0.5 * ridge * cp.sum_squares(step)
    cp.Problem(cp.Minimize(model), constraints).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(end[working], x.value, atol=1e-6)
    assert not end[np.setdiff1d(np.arange(9), working)].any()


STEP = 1e-5


def machine_value_curvature(instance, d, C):
    K = np.einsum("m,mij->ij", d, instance.grams)
    return K, solve_svm(K, instance.y, C, tol=1e-13)


def quadratics(instance, svm):
    return np.einsum("i,mij,j->m", svm.signed, instance.grams, svm.signed)


@pytest.mark.parametrize("make", quick([instances.balanced, instances.unbalanced]))
@pytest.mark.parametrize("C", [5.0, 20.0, 1e6])
def test_derivatives_are_those_of_finite_differences(make, C):
    instance = make()
    M = len(instance.grams)
    d = np.random.default_rng(1).dirichlet(np.ones(M))
    K, svm = machine_value_curvature(instance, d, C)
    root = hessian_root(K, svm.alpha, C, instance.grams @ svm.signed)
    hessian, gradient = root.T @ root, -0.5 * quadratics(instance, svm)
    values, gradients = np.empty((M, 2)), np.empty((M, M, 2))
    for m in range(M):
        for side, sign in enumerate((1.0, -1.0)):
            moved = d.copy()
            moved[m] += sign * STEP * d[m]
            _, there = machine_value_curvature(instance, moved, C)
            values[m, side] = there.dual_objective
            gradients[m, :, side] = -0.5 * quadratics(instance, there)
    width = 2 * STEP * d
    numeric = (values[:, 0] - values[:, 1]) / width
    np.testing.assert_allclose(numeric, gradient, atol=1e-4 * np.abs(gradient).max())
    numeric = (gradients[..., 0] - gradients[..., 1]) / width[:, None]
    np.testing.assert_allclose(numeric, hessian, atol=1e-3 * np.abs(hessian).max())


def test_no_free_vector_means_no_curvature():
    instance = instances.balanced()
    alpha = np.full(60, 1e-6)
    root = hessian_root(instance.grams[0], alpha, 1e-6, instance.grams @ (alpha * instance.y))
    assert root.shape == (0, len(instance.grams))
