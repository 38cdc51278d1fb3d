"""Algorithm 1 of PrimalMKL as printed: its steps by independent solvers, and its stops."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from mkldist.bank.requests import Combine
from mkldist.errors import SpecError
from mkldist.methods.primalmkl import PrimalMKLParams, alternate_by_single_steps
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution
from mkldist.solvers.grids import expand
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.references import real_values


def solve(grams: np.ndarray, y: np.ndarray, **params) -> tuple[Solution, list[np.ndarray]]:
    """Return the solution and the weights that it asked about."""
    printed = PrimalMKLParams(coupled=False, machine="one-step", **params)
    steps = alternate_by_single_steps(plain_bank.problem(grams, y), printed)
    weights = []
    solution = plain_bank.run(
        steps,
        grams,
        lambda request, _: isinstance(request, Combine) and weights.append(request.weights),
    )
    return solution, weights


def test_a_newton_step_on_a_squared_loss_is_kernel_ridge_regression_on_the_mean_kernel():
    instance = instances.balanced()
    K, y = instance.grams.mean(axis=0), real_values(instance)
    solution, _ = solve(instance.grams, y, loss="squared", C=50.0, inner="newton", max_iter=1)
    centring = np.eye(len(y)) - 1.0 / len(y)
    centred = centring @ K @ centring
    ridge = KernelRidge(alpha=0.02, kernel="precomputed").fit(centred, y - y.mean())
    found = K @ solution.coefficients + solution.bias
    np.testing.assert_allclose(found, ridge.predict(centred) + y.mean(), atol=1e-8)


@pytest.mark.parametrize("inner", ["truncated-newton", "pcg"])
def test_weights_minimise_the_objective_at_the_coefficients_of_one_step(inner):
    instance, lam = instances.not_normalised(), 1.0
    grams, y = instance.grams, instance.y
    first, _ = solve(grams, y, C=1 / lam, inner=inner, max_iter=1, tol=1e-8)
    _, weights = solve(grams, y, C=1 / lam, inner=inner, max_iter=2, tol=1e-8)
    alpha, b = first.coefficients, first.bias
    G = (grams @ alpha).T

    def objective(d):
        return 0.5 * (
            lam * (G.T @ alpha) @ d + cp.sum_squares(cp.pos(1 - cp.multiply(y, G @ d + b)))
        )

    d = cp.Variable(len(grams), nonneg=True)
    least = cp.Problem(cp.Minimize(objective(d)), [cp.sum(d) == 1]).solve(solver=cp.CLARABEL)
    assert objective(weights[1]).value == pytest.approx(least, rel=1e-6)
    assert objective(weights[0]).value > least * (1 + 1e-3)


@pytest.mark.parametrize(
    ("inner", "counter"),
    [("truncated-newton", "newton_steps"), ("newton", "newton_steps"), ("pcg", "cg_steps")],
)
def test_an_iteration_has_one_step_and_never_climbs(inner, counter):
    instance = instances.not_normalised()
    solution, weights = solve(
        instance.grams, instance.y, inner=inner, tol=1e-6, max_iter=30, trace=True
    )
    n_iterations = solution.counters.outer_iterations
    assert getattr(solution.counters, counter) == len(weights) == n_iterations == 30
    assert (np.diff(solution.trace["objective"]) <= 0).all()


def test_the_papers_stop_is_a_short_gradient_and_no_proof():
    instance = instances.not_normalised()
    usual, _ = solve(instance.grams, instance.y, tol=1e-6)
    early, _ = solve(instance.grams, instance.y, tol=1e-6, chi_2=10.0)
    assert usual.stop_reason is StopReason.CONVERGED
    assert early.stop_reason is StopReason.STALLED
    assert early.gap > 1e-6
    assert early.counters.outer_iterations < usual.counters.outer_iterations
    K = np.einsum("m,mij->ij", early.kernel_weights, instance.grams)
    residual = instance.y * np.maximum(0, 1 - instance.y * (K @ early.coefficients + early.bias))
    assert np.linalg.norm(K @ (early.coefficients - residual)) < 10.0


def test_chi_2_is_of_the_printed_algorithm():
    with pytest.raises(SpecError, match='machine = "one-step"'):
        expand(METHODS["primalmkl"], "methods.primalmkl", {"chi_2": 0.1}, None)
