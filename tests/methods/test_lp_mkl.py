"""Lp-norm MKL: its acceleration, its limits in p and the map from SMO-MKL."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mkldist.methods.lp_mkl import normalised, updated
from mkldist.methods.registry import METHODS
from mkldist.solvers.log_weights import Anderson
from mkldist.solvers.svm import solve_svm
from tests.methods import instances, plain_bank
from tests.methods.references.recorded import optimum_of


def solve(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


@pytest.mark.parametrize("p", [1.1, 2.0, 5.0])
def test_update_is_the_minimiser_at_fixed_norms(p):
    rng = np.random.default_rng(0)
    d, q = rng.uniform(0.1, 1, 4), rng.uniform(0.1, 2, 4)
    squares = d**2 * q
    found = minimize(
        lambda log_d: 0.5 * (squares / np.exp(log_d - np.log(np.exp(p * log_d).sum()) / p)).sum(),
        np.zeros(4),
        method="BFGS",
        options={"gtol": 1e-10},
    ).x
    expected = np.exp(found - np.log(np.exp(p * found).sum()) / p)
    moved = np.exp(updated(np.log(d), q, p))
    assert np.linalg.norm(moved, ord=p) == pytest.approx(1.0)
    np.testing.assert_allclose(moved, expected, rtol=1e-4)


def test_kernels_of_no_use_leave_and_may_return():
    log_d = normalised(np.array([0.0, 0.0, -np.inf]), 2.0)
    moved = np.exp(updated(log_d, np.array([1.0, 0.0, 0.5]), 2.0))
    assert moved[1] == 0.0
    assert moved[2] > 0.0


@pytest.mark.parametrize("p", [1.05, 2.0])
def test_acceleration_reaches_the_papers_solution_in_fewer_iterations(p):
    instance = instances.balanced()
    settings = {"C": instance.C, "p": p, "tol": 1e-8}
    plain = solve("lp_mkl", instance.grams, instance.y, accelerate=False, **settings)
    mixed = solve("lp_mkl", instance.grams, instance.y, **settings)
    assert plain.converged
    assert mixed.converged
    assert mixed.objective == pytest.approx(plain.objective, rel=2e-8)
    assert 2 * mixed.counters.outer_iterations < plain.counters.outer_iterations


def test_plain_updates_descend_at_every_iteration():
    instance = instances.more_kernels_than_points()
    values = []

    def watch(request, answer):
        weights = getattr(request, "weights", None)
        if weights is not None:
            values.append(solve_svm(answer.copy(), instance.y, instance.C, tol=1e-12).objective)

    solve("lp_mkl", instance.grams, instance.y, watch, C=instance.C, accelerate=False, tol=1e-7)
    assert (np.diff(values) <= 1e-9 * values[0]).all()


def test_large_p_is_the_machine_on_the_sum_of_kernels():
    instance = instances.balanced()
    solution = solve("lp_mkl", instance.grams, instance.y, C=10.0, p=1e6, tol=1e-8)
    svm = solve_svm(instance.grams.sum(axis=0), instance.y, 10.0, tol=1e-10)
    assert solution.objective == pytest.approx(svm.objective, rel=1e-5)


def test_p_near_one_is_the_simplex():
    make = instances.balanced
    instance = make()
    solution = solve("lp_mkl", instance.grams, instance.y, C=instance.C, p=1.0001, tol=1e-6)
    assert solution.converged
    assert solution.objective == pytest.approx(optimum_of("level", make), rel=1e-3)


@pytest.mark.parametrize(("p", "lam"), [(1.1, 1.0), (2.0, 0.3), (4.0, 5.0)])
def test_penalised_weights_are_bounded_weights_at_another_C(p, lam):
    instance = instances.unbalanced()
    C = 7.0
    penalised = solve("smo_mkl", instance.grams, instance.y, C=C, p=p, lam=lam, tol=1e-10)
    d = penalised.kernel_weights
    theta = np.linalg.norm(d, ord=p)
    bounded = solve("lp_mkl", instance.grams, instance.y, C=theta * C, p=p, tol=1e-10)
    # The machine's value at C and K_d is that at theta C and K_d / theta, divided by theta.
    machine = penalised.objective - 0.5 * lam * theta**2
    assert bounded.objective == pytest.approx(theta * machine, rel=1e-8)
    np.testing.assert_allclose(bounded.kernel_weights, d / theta, atol=1e-3)


def test_scaling_kernels_up_and_C_down_scales_the_objective():
    instance = instances.balanced()
    plain = solve("lp_mkl", instance.grams, instance.y, C=100.0, tol=1e-9)
    scaled = solve("lp_mkl", 100.0 * instance.grams, instance.y, C=1.0, tol=1e-9)
    assert 100.0 * scaled.objective == pytest.approx(plain.objective, rel=1e-7)


def test_an_iteration_reads_the_bank_for_its_machine_and_for_its_forms():
    instance = instances.balanced()
    seen = []
    solution = solve(
        "lp_mkl", instance.grams, instance.y, lambda request, _: seen.append(request), C=10.0
    )
    counters = solution.counters
    assert counters.combines == counters.svm_solves == counters.outer_iterations == len(seen) / 2
    assert counters.passes == len(seen)  # no weight is zero


def test_anderson_solves_a_linear_fixed_point_in_as_many_steps_as_dimensions():
    rng = np.random.default_rng(2)
    A, b = 0.3 * rng.normal(size=(4, 4)), rng.normal(size=4)
    anderson, x = Anderson(), np.zeros(4)
    for _ in range(6):
        x = anderson.mix(x, A @ x + b, np.ones(4))
    np.testing.assert_allclose(x, np.linalg.solve(np.eye(4) - A, b), rtol=1e-7)
    anderson.forget()
    assert len(anderson) == 0
