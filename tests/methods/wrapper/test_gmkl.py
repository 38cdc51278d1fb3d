"""GMKL: its map to simplex-weighted MKL, scaling laws, the price at which kernels leave."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.requests import Matvec, Quadratic
from mkldist.methods.gmkl import MeanDuals
from mkldist.methods.registry import METHODS
from tests.methods import instances, plain_bank

SIGMAS = (0.1, 1.0, 20.0)


def solve(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("make", [instances.balanced, instances.more_kernels_than_points])
def test_weights_of_total_s_are_s_times_those_of_the_simplex_at_s_times_C(make, sigma):
    instance = make()
    gmkl = solve("gmkl", instance.grams, instance.y, C=instance.C, sigma=sigma, tol=1e-10)
    s = float(gmkl.kernel_weights.sum())
    simplex = solve("hessianmkl", instance.grams, instance.y, C=s * instance.C, tol=1e-10)
    assert gmkl.objective == pytest.approx(simplex.objective / s + sigma * s, rel=1e-8)
    np.testing.assert_allclose(gmkl.kernel_weights / s, simplex.kernel_weights, atol=1e-4)
    # s minimises J(s p) + sigma s: J(s p) alone falls by sigma times s.
    penalty = (
        simplex.coefficients
        @ np.einsum("m,mij->ij", simplex.kernel_weights, instance.grams)
        @ simplex.coefficients
    )
    assert 0.5 * penalty / s == pytest.approx(sigma * s, rel=1e-4)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_weights_are_the_norms_of_the_components(sigma):
    instance = instances.balanced()
    solution = solve("gmkl", instance.grams, instance.y, C=instance.C, sigma=sigma, tol=1e-11)
    a, d = solution.coefficients, solution.kernel_weights
    norms = d * np.sqrt(np.einsum("i,mij,j->m", a, instance.grams, a))
    np.testing.assert_allclose(d, norms / np.sqrt(2 * sigma), atol=1e-5 * d.max())


def test_scaling_kernels_and_price_together_scales_the_weights():
    instance = instances.balanced()
    plain = solve("gmkl", instance.grams, instance.y, C=50.0, sigma=2.0, tol=1e-10)
    scaled = solve("gmkl", 10.0 * instance.grams, instance.y, C=50.0, sigma=20.0, tol=1e-10)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_allclose(10.0 * scaled.kernel_weights, plain.kernel_weights, rtol=1e-4)


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
