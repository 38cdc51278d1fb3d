"""R-MKL beside the conformance suite: its gradient, its radii and its report of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from mkldist.bank.bank import MemoryBank
from mkldist.bank.requests import Combine, Quadratic, Radii
from mkldist.bank.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.l2_svm import best_bias
from mkldist.solvers.lockstep import Job, drive
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.balls import squared_radii, squared_radius
from tests.methods.references.simplex_svm import ridged_optimum

RMKL = METHODS["rmkl"]


def solve(grams: np.ndarray, y: np.ndarray, watch=None, **params) -> Solution:
    steps = RMKL.solve(plain_bank.problem(grams, y), RMKL.params(**params))
    return plain_bank.run(steps, grams, watch)


def value(grams: np.ndarray, y: np.ndarray, C: float, mu: np.ndarray) -> float:
    """J(mu) by a conic solver."""
    combined = np.einsum("m,mij->ij", mu, grams)[None]
    return ridged_optimum(combined, np.array([mu @ squared_radii(grams) / C]), y)


def cosine(grams: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.diagonal(grams, axis1=1, axis2=2))
    return grams / lengths[:, :, None] / lengths[:, None, :]


def paper_bank() -> tuple[np.ndarray, np.ndarray]:
    """Polynomials and Gaussians, cosine-normalised, as in the paper's first experiment."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 6))
    y = np.where(x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)
    grams = [polynomial_kernel(x, degree=k, gamma=1) for k in (1, 2, 3)]
    grams += [rbf_kernel(x, gamma=1 / (2 * s**2)) for s in range(1, 18)]
    return cosine(np.array(grams)), y


def test_gradient_is_the_derivative_of_the_conic_solvers_value():
    instance = instances.not_normalised()
    grams, y, C = instance.grams, instance.y, 0.3
    start = solve(grams, y, C=C, tol=1e-9, max_iter=1)
    a = start.coefficients
    q = np.einsum("i,mij,j->m", a, grams, a) + squared_radii(grams) / C * (a @ a)
    step, mu = 1e-3, np.full(4, 0.25)
    for k in range(1, 4):
        direction = step * (np.eye(4)[k] - np.eye(4)[0])
        difference = value(grams, y, C, mu + direction) - value(grams, y, C, mu - direction)
        assert difference / (2 * step) == pytest.approx(-0.5 * (q[k] - q[0]), rel=1e-4)
    assert start.objective == pytest.approx(value(grams, y, C, mu), rel=1e-8)


def test_one_kernel_is_an_l2_svm_with_its_radius_as_ridge():
    instance = instances.balanced()
    K = instance.grams[:1]
    solution = solve(K, instance.y, C=10.0, tol=1e-9)
    assert solution.kernel_weights.tolist() == [1.0]
    assert solution.objective == pytest.approx(value(K, instance.y, 10.0, np.ones(1)), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e5, 1e12])
def test_scaling_kernels_scales_the_objective_inversely_and_moves_no_weight(scale):
    instance = instances.balanced()
    plain = solve(instance.grams, instance.y, C=10.0, tol=1e-8)
    scaled = solve(scale * instance.grams, instance.y, C=10.0, tol=1e-8)
    assert scaled.converged
    assert scale * scaled.objective == pytest.approx(plain.objective, rel=1e-7)
    np.testing.assert_allclose(scaled.kernel_weights, plain.kernel_weights, atol=1e-3)
    assert scaled.extra["radius_error"] == pytest.approx(plain.extra["radius_error"], rel=1e-2)


def test_kernels_of_radius_zero_get_no_weight():
    instance = instances.balanced()
    n = len(instance.y)
    flat = np.stack([np.zeros((n, n)), np.full((n, n), 3.0), np.full((n, n), 1e-3)])
    plain = solve(instance.grams, instance.y, C=10.0, tol=1e-8)
    for grams in (np.concatenate([flat, instance.grams]), np.concatenate([instance.grams, flat])):
        solution = solve(grams, instance.y, C=10.0, tol=1e-8)
        assert solution.converged
        assert solution.objective == pytest.approx(plain.objective, rel=1e-7)
        assert solution.kernel_weights[squared_radii(grams) == 0].max() < 1e-6


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e6])
def test_only_radii_of_zero_give_the_constant_of_least_squared_slack(constant):
    y = np.array([1.0, 1.0, 1.0, -1.0])
    solution = solve(np.full((2, 4, 4), constant), y, C=2.0, tol=1e-6)
    assert solution.stop_reason is StopReason.CONVERGED
    # C/2 sum of squared slacks at the bias 1/2: 3 (1/2)^2 + (3/2)^2 = 3
    assert solution.objective == pytest.approx(3.0, rel=1e-5)
    assert solution.bias == pytest.approx(0.5, abs=1e-3)
    assert best_bias(np.zeros(4), y) == pytest.approx(0.5)
    assert solution.extra["radius_error"] == 0.0
    assert solution.extra["bound_holds"] == 1.0


@pytest.mark.parametrize("curvature", [True, False])
def test_radii_of_the_paper_are_reported(curvature):
    grams, y = paper_bank()
    solution = solve(grams, y, C=10.0, tol=0.01, curvature=curvature)
    assert solution.converged
    mu, radii = solution.kernel_weights, squared_radii(grams)
    combined = np.einsum("m,mij->ij", mu, grams)
    extra = solution.extra
    assert extra["squared_radius"] == pytest.approx(squared_radius(combined), rel=1e-9)
    assert extra["mean_squared_radius"] == pytest.approx(mu @ radii, rel=1e-9)
    assert extra["largest_part"] == pytest.approx((mu * radii).max(), rel=1e-9)
    assert extra["largest_squared_radius"] == pytest.approx(radii.max(), rel=1e-9)
    assert extra["radius_error"] == pytest.approx(mu @ radii / squared_radius(combined) - 1)
    assert 0 <= extra["radius_error"] < 0.1  # the paper measures 0.0056 on average
    assert extra["bound_holds"] == 1.0
    assert radii.max() < 1.0


def test_margin_term_with_the_true_radius_is_below_its_bound():
    grams, y = paper_bank()
    C = 10.0
    solution = solve(grams, y, C=C, tol=1e-6)
    combined = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    f = combined @ solution.coefficients
    slack = np.maximum(0.0, 1.0 - y * (f + solution.bias))
    cost = 0.5 * solution.coefficients @ f * squared_radius(combined) + 0.5 * C * slack @ slack
    assert solution.extra["radius_margin"] == pytest.approx(cost, rel=1e-9)
    mean = solution.extra["mean_squared_radius"]
    assert cost <= mean * solution.objective <= solution.objective


def test_radii_are_asked_for_once_and_forms_once_an_iteration():
    grams, y = paper_bank()
    seen = []
    solution = solve(grams, y, lambda request, _: seen.append(request), C=10.0, tol=1e-6)
    assert sum(isinstance(request, Radii) for request in seen) == 1
    forms = sum(isinstance(request, Quadratic) for request in seen)
    assert solution.counters.outer_iterations == forms


def jobs_for(bank, splits, y):
    views = make_views(bank, splits, ("trace",))
    for split, (view, rows) in enumerate(zip(views, splits, strict=True)):
        for C in (0.1, 1.0, 10.0, 100.0):
            problem = Problem(y=y[rows], n_kernels=bank.n_kernels)
            steps = RMKL.solve(problem, RMKL.params(C=C, tol=1e-5))
            yield Job(f"{split}, C={C:g}", view, problem, steps)


def run_all(bank, splits, y):
    outcomes = {}

    def done(key, outcome, spent):
        outcomes[key] = outcome
        assert spent.pass_seconds > 0

    drive(bank, jobs_for(bank, splits, y), done)
    return outcomes


@pytest.mark.slow
def test_values_of_C_share_the_radii_of_their_split():
    grams, y = paper_bank()
    rng = np.random.default_rng(1)
    splits = [np.sort(rng.choice(60, 45, replace=False)) for _ in range(3)]
    bank = MemoryBank.from_grams(grams)
    outcomes = run_all(bank, splits, y)
    assert len(outcomes) == 12
    assert bank.counter.radii == 3
    run_all(bank, splits, y)
    assert bank.counter.radii == 3
    part = grams[:, splits[1]][:, :, splits[1]]
    part = part / np.trace(part, axis1=1, axis2=2)[:, None, None]
    alone = solve(part, y[splits[1]], C=10.0, tol=1e-5)
    assert outcomes["1, C=10"].objective == pytest.approx(alone.objective, rel=2e-5)


def test_the_radius_error_at_random_weights_is_that_of_a_conic_solver():
    grams, y = paper_bank()
    drawn = []

    def watch(request, _):
        if isinstance(request, Combine):
            drawn.append(request.weights)

    solution = solve(grams, y, watch, C=1.0, random_weights=5)
    weights = np.array(drawn[-5:])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights > 0.0).all()
    assert len(np.unique(weights, axis=0)) == 5
    radii = squared_radii(grams)
    errors = [mu @ radii / squared_radius(np.einsum("m,mij->ij", mu, grams)) - 1 for mu in weights]
    assert solution.extra["random_radius_error"] == pytest.approx(np.mean(errors), rel=1e-6)
    plain = solve(grams, y, C=1.0)
    assert "random_radius_error" not in plain.extra
    assert plain.objective == solution.objective
