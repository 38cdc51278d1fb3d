"""GLKS, RLS and LapRLS: closed forms and special cases."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.kernel_ridge import KernelRidge

import mkldist
from mkldist.errors import ConvergenceWarning, SpecError
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods import plain_bank
from tests.methods.manifolds import Manifold, manifold

NORMS = {"gamma_a": 1e-2, "gamma_i": 0.05}


def solve(shape, method="glks", grams=None, **params):
    kernels = shape.grams if grams is None else grams
    return mkldist.solve(method, kernels, shape.y, laplacian=shape.laplacian, **params)


def test_at_the_time_limit_dual_variables_are_residuals_too():
    shape = manifold("moons", per_class=6)
    late = {"laplacian": shape.laplacian, "time_limit": 1e-9, **NORMS}
    solution = plain_bank.solve("glks", shape.grams, shape.y, **late)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    residuals = np.where(shape.y == 0, 0.0, shape.y - solution.decision_function(shape.grams))
    assert (residuals < 0).any()
    np.testing.assert_allclose(solution.dual_variables, residuals)


@pytest.mark.parametrize("gamma_i", [0.0, 0.05])
def test_one_kernel_at_a_time_meets_the_fast_path(gamma_i):
    shape = manifold("moons", per_class=6)
    settings = {"gamma_a": 1e-2, "gamma_i": gamma_i, "tol": 1e-3, "max_iter": 5000}
    plain = solve(shape, acceleration="none", trace=True, **settings)
    fast = solve(shape, **settings)
    assert plain.converged
    assert fast.converged
    assert max(plain.dual_objective, fast.dual_objective) <= min(plain.objective, fast.objective)
    f = plain.decision_function(shape.grams)
    labelled = shape.y != 0
    np.testing.assert_allclose(f[labelled], fast.decision_function(shape.grams)[labelled], atol=0.1)
    residuals = np.where(labelled, shape.y - f, 0.0)
    np.testing.assert_allclose(plain.dual_variables, residuals, atol=1e-9)


@pytest.mark.parametrize("gammas", [(1e-3, 0.0), (1e-2, 0.05)])
@pytest.mark.parametrize("unit_norm", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_unit_norms_and_no_bias_are_the_minimum_over_mixtures(gammas, unit_norm, bias):
    shape = manifold("moons", n=60, per_class=6)
    solution = solve(
        shape, gamma_a=gammas[0], gamma_i=gammas[1], bias=bias, unit_norm=unit_norm, tol=1e-6,
        max_iter=20_000,
    )  # fmt: skip
    assert solution.converged
    # The kernels of the problem, by dense inverses.
    gamma_a, gamma_i = gammas
    L, n = shape.laplacian.toarray(), len(shape.y)
    labelled = np.flatnonzero(shape.y)
    deformed = [K @ np.linalg.inv(gamma_a * np.eye(n) + gamma_i * L @ K) for K in shape.grams]
    blocks = [G[np.ix_(labelled, labelled)] for G in deformed]
    if unit_norm:
        blocks = [block / (gamma_a * np.linalg.norm(block)) for block in blocks]
    y, ones = shape.y[labelled], np.ones(len(labelled))

    def value(d):
        inverse = np.linalg.inv(np.einsum("m,mij->ij", d, blocks) + np.eye(len(y)))
        c = inverse @ y
        if bias:
            c -= inverse @ ones * (ones @ c) / (ones @ inverse @ ones)
        return 0.5 * float(y @ c)

    start = np.full(len(blocks), 1 / len(blocks))
    best = optimize.minimize(
        value, start, bounds=[(0, 1)] * len(blocks), method="SLSQP", options={"ftol": 1e-14},
        constraints={"type": "eq", "fun": lambda d: d.sum() - 1},
    ).fun  # fmt: skip
    assert value(solution.kernel_weights) == pytest.approx(best, rel=1e-5)
    assert solution.dual_objective <= best * (1 + 1e-9)
    assert best <= solution.objective * (1 + 1e-9)
    assert solution.objective == pytest.approx(best, rel=1e-5)
    if not bias:
        assert solution.bias == 0
        residuals = np.where(shape.y, shape.y - solution.decision_function(shape.grams), 0.0)
        np.testing.assert_allclose(solution.dual_variables, residuals, atol=1e-6)


def test_acceleration_has_no_effect_without_a_bias():
    shape = manifold("moons", n=20)
    with pytest.raises(SpecError, match="acceleration with bias = false"):
        solve(shape, bias=False, acceleration="none")


def test_a_kernel_of_zeros_keeps_its_norm():
    shape = manifold("moons", n=40)
    grams = np.array([np.zeros_like(shape.grams[0]), shape.grams[0]])
    settings = {"bias": False, "unit_norm": True, "tol": 1e-6, **NORMS}
    both, one = solve(shape, grams=grams, **settings), solve(shape, grams=grams[1:], **settings)
    assert both.objective == pytest.approx(one.objective, rel=1e-5)


def test_each_iteration_of_the_paper_brings_one_kernel_in():
    shape = manifold("moons", per_class=6)
    first = solve_quietly(shape, max_iter=1).kernel_weights
    second = solve_quietly(shape, max_iter=2).kernel_weights
    grown = np.flatnonzero(second > first)
    assert len(grown) == 1
    others = np.delete(np.arange(len(first)), grown)
    share = second[others] / first[others]
    np.testing.assert_allclose(share, share[0])
    assert share[0] < 1


def solve_quietly(shape, **params):
    with pytest.warns(ConvergenceWarning):
        return solve(shape, acceleration="none", tol=1e-9, gamma_a=1e-2, gamma_i=0.0, **params)


@pytest.mark.parametrize("gamma_a", [1e-3, 1.0, 50.0])
def test_rls_without_bias_is_kernel_ridge_regression(gamma_a):
    shape = manifold("circles", per_class=12)
    labelled = np.flatnonzero(shape.y)
    mean = shape.grams.mean(axis=0)
    ridge = KernelRidge(alpha=gamma_a, kernel="precomputed")
    ridge.fit(mean[np.ix_(labelled, labelled)], shape.y[labelled])
    solution = mkldist.solve("rls", shape.grams, shape.y, gamma_a=gamma_a, bias=False)
    assert solution.bias == 0.0
    expected = ridge.predict(mean[:, labelled])
    np.testing.assert_allclose(solution.decision_function(shape.grams), expected, atol=1e-7)


def solve_laprls(shape: Manifold, **params) -> Solution:
    return mkldist.solve("laprls", shape.grams, shape.y, laplacian=shape.laplacian, **params)


def test_laprls_without_bias_is_the_closed_form_of_the_paper():
    shape = manifold("moons", n=60)
    K, L, n = shape.grams.mean(axis=0), shape.laplacian.toarray(), 60
    J = np.diag((shape.y != 0).astype(float))
    alpha = np.linalg.solve(J @ K + 0.1 * np.eye(n) + 0.02 * L @ K, shape.y)
    solution = solve_laprls(shape, gamma_a=0.1, gamma_i=0.02, bias=False)
    np.testing.assert_allclose(solution.decision_function(shape.grams), K @ alpha, atol=1e-9)


@pytest.mark.parametrize("gammas", [(1e-8, 1e-2), (1e-6, 1.0), (1e-4, 100.0)])
@pytest.mark.parametrize("bias", [True, False])
def test_laprls_is_the_least_squares_fit_of_its_rows_where_labels_are_nearly_met(gammas, bias):
    shape = manifold("moons", n=60)
    gamma_a, gamma_i = gammas
    values, vectors = np.linalg.eigh(shape.grams.mean(axis=0))
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    edges = np.linalg.cholesky(shape.laplacian.toarray() + 1e-13 * np.eye(60)).T
    labelled = shape.y != 0
    rows = [np.sqrt(gamma_a) * np.eye(60), np.sqrt(gamma_i) * edges @ F, F[labelled]]
    ones = np.concatenate([np.zeros(120), np.ones(labelled.sum())])
    system = np.column_stack([np.vstack(rows), ones]) if bias else np.vstack(rows)
    right = np.concatenate([np.zeros(120), shape.y[labelled]])
    fit = np.linalg.lstsq(system, right, rcond=None)[0]
    expected = 0.5 * ((system @ fit - right) ** 2).sum()
    params = {"gamma_a": gamma_a, "gamma_i": gamma_i, "bias": bias, "tol": 1e-6}
    solution = solve_laprls(shape, **params)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.objective == pytest.approx(expected, rel=1e-5)
