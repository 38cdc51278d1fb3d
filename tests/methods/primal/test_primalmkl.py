"""PrimalMKL, with `primalmkl`, `steps`, `certificate`, `params`: special cases, requests."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.core.arrays import Target
from mkldist.methods import primalmkl
from mkldist.methods.primalmkl import METHOD, PrimalMKLParams
from mkldist.solvers.base import Solution
from mkldist.solvers.l2_svm import solve_l2_svm
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.primal_machines import (
    INNERS,
    every_instance,
    every_loss,
    targets,
)
from tests.methods.references import real_values
from tests.variants import quick


def solve(grams: np.ndarray, y: np.ndarray, watch=None, **params) -> Solution:
    steps = METHOD.solve(plain_bank.problem(grams, y), PrimalMKLParams(**params))
    return plain_bank.run(steps, grams, watch)


@every_instance
def test_the_squared_hinge_on_the_simplex_is_the_l2_svm_at_the_weights_found(make):
    instance = make()
    solution = solve(instance.grams, instance.y, C=100.0, tol=1e-9)
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    svm = solve_l2_svm(K, instance.y, 0.01, tol=1e-11)
    assert solution.objective == pytest.approx(0.01 * svm.objective, rel=1e-9)
    scaled = 0.01 * svm.alpha
    np.testing.assert_allclose(solution.dual_variables, scaled, atol=1e-4 * scaled.max())


@every_loss
@pytest.mark.parametrize("norm", quick([1.5, 1.0]))
@pytest.mark.parametrize("inner", INNERS)
def test_every_inner_solver_leads_to_the_same_optimum(name, norm, inner):
    instance = instances.more_kernels_than_points()
    y, params = targets(name, instance), {"loss": name, "norm": norm, "C": 100.0, "tol": 1e-8}
    solution = solve(instance.grams, y, inner=inner, **params)
    exact = solve(instance.grams, y, inner="newton", **params)
    assert solution.converged
    assert solution.objective == pytest.approx(exact.objective, rel=2e-8)
    np.testing.assert_allclose(solution.kernel_weights, exact.kernel_weights, atol=1e-3)


@every_loss
@pytest.mark.parametrize("norm", quick([2.0, 1.0]))
def test_the_papers_alternation_reaches_the_same_optimum_in_more_passes(name, norm):
    instance = instances.not_normalised()
    y, params = targets(name, instance), {"loss": name, "norm": norm, "C": 1.0, "tol": 1e-6}
    plain = solve(instance.grams, y, coupled=False, **params)
    coupled = solve(instance.grams, y, **params)
    assert plain.converged
    assert coupled.converged
    assert plain.objective == pytest.approx(coupled.objective, rel=2e-6)
    assert coupled.counters.outer_iterations < plain.counters.outer_iterations


def test_the_papers_alternation_descends():
    instance = instances.not_normalised()
    values = [
        solve(instance.grams, instance.y, coupled=False, tol=1e-12, max_iter=count).objective
        for count in (1, 2, 4, 8, 16)
    ]
    assert (np.diff(values) < 0).all()


def test_the_model_of_J_converges_in_few_iterations_where_lam_is_small():
    instance = instances.not_normalised()
    solution = solve(instance.grams, instance.y, C=1000.0, tol=1e-8)
    assert solution.converged
    assert solution.counters.outer_iterations <= 20


def test_kernel_ridge_regression_with_one_kernel():
    instance = instances.balanced()
    K, y = instance.grams[0], real_values(instance)
    solution = solve(K[None], y, loss="squared", C=50.0, tol=1e-10)
    found = K @ solution.coefficients + solution.bias
    # A free bias centres features and targets.
    centring = np.eye(len(y)) - 1.0 / len(y)
    centred = centring @ K @ centring
    ridge = KernelRidge(alpha=0.02, kernel="precomputed").fit(centred, y - y.mean())
    np.testing.assert_allclose(found, ridge.predict(centred) + y.mean(), atol=1e-8)


def test_targets_far_from_zero_cost_no_accuracy():
    instance = instances.balanced()
    y = real_values(instance)
    near = solve(instance.grams, y, loss="squared", C=100.0, tol=1e-9)
    far = solve(instance.grams, y + 1e5, loss="squared", C=100.0, tol=1e-8)
    assert far.converged
    assert far.objective == pytest.approx(near.objective, rel=1e-8)
    assert far.bias == pytest.approx(near.bias + 1e5, rel=1e-12)


@pytest.mark.parametrize("name", ["squared", "epsilon-squared"])
def test_constant_targets_are_met_exactly(name):
    instance = instances.balanced()
    solution = solve(instance.grams, np.full(60, 3.3), loss=name)
    assert solution.converged
    assert solution.objective == 0.0
    assert solution.bias == pytest.approx(3.3)


def test_epsilon_zero_is_ridge_regression():
    instance = instances.balanced()
    y = real_values(instance)
    ridge = solve(instance.grams, y, loss="squared", C=100.0, tol=1e-9)
    tube = solve(instance.grams, y, loss="epsilon-squared", epsilon=0.0, C=100.0, tol=1e-9)
    assert tube.objective == pytest.approx(ridge.objective, rel=1e-8)


def test_one_class_rejects_what_lies_far_away_and_accepts_the_bulk():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(size=(60, 2)), rng.normal(size=(20, 2)) + 6.0
    x = np.vstack([inside, outside])
    grams = np.array([rbf_kernel(x, gamma=gamma) for gamma in (0.05, 0.2, 1.0)])
    y = np.concatenate([np.ones(60), -np.ones(20)])
    shares = []
    for C in (1000.0, 100.0, 10.0):
        solution = solve(grams, y, loss="one-class", C=C, tol=1e-6)
        assert solution.converged
        assert (solution.coefficients[60:] == 0.0).all()
        f = np.einsum("m,mij->ij", solution.kernel_weights, grams) @ solution.coefficients
        decision = f + solution.bias
        assert (decision[60:] < decision[:60].min()).mean() >= 0.9
        shares.append((decision[:60] < 0).mean())
    assert shares == sorted(shares)  # less regularisation leaves fewer points below rho
    assert shares[0] < 0.5


def test_labels_of_known_outliers_do_not_matter_to_one_class():
    instance = instances.balanced()
    inside = np.flatnonzero(instance.y > 0)
    with_all = solve(instance.grams, instance.y, loss="one-class", C=100.0, tol=1e-9)
    grams = instance.grams[:, inside][:, :, inside]
    alone = solve(grams, np.ones(len(inside)), loss="one-class", C=100.0, tol=1e-9)
    assert with_all.objective == pytest.approx(alone.objective, rel=1e-8)
    np.testing.assert_allclose(with_all.coefficients[inside], alone.coefficients, atol=1e-5)


@every_loss
@pytest.mark.parametrize("norm", [1.0, 1.5])
def test_scaling_kernels_and_lam_together_changes_nothing(name, norm):
    instance = instances.balanced()
    y = targets(name, instance)
    plain = solve(instance.grams, y, loss=name, norm=norm, C=100.0, tol=1e-9)
    scaled = solve(1e3 * instance.grams, y, loss=name, norm=norm, C=0.1, tol=1e-9)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-8)
    np.testing.assert_allclose(scaled.kernel_weights, plain.kernel_weights, atol=1e-4)


def test_smaller_norms_of_weights_are_nested():
    instance = instances.balanced()
    values = [
        solve(instance.grams, instance.y, C=100.0, norm=norm, tol=1e-8).objective
        for norm in (1.0, 1.2, 1.5, 2.0, 4.0, 100.0)
    ]
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
def test_more_kernels_than_are_kept_one_by_one(norm, monkeypatch):
    instance = instances.more_kernels_than_points()
    keep = np.r_[:6, 20:26]
    grams = instance.grams[:, keep][:, :, keep]
    y = instance.y[keep]
    whole = solve(grams, y, C=100.0, norm=norm, tol=1e-8)
    monkeypatch.setattr(primalmkl, "COLUMNS", 5)
    parts = solve(grams, y, C=100.0, norm=norm, tol=1e-8)
    assert parts.converged
    assert parts.objective == pytest.approx(whole.objective, rel=2e-8)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("coupled", [True, False])
def test_counters_count_the_requests(norm, coupled):
    instance = instances.balanced()
    seen = []
    solution = solve(
        instance.grams,
        instance.y,
        lambda request, _: seen.append(request),
        norm=norm,
        coupled=coupled,
        C=10.0,
        tol=1e-4,
    )
    M = len(instance.grams)
    combines = [request for request in seen if isinstance(request, Combine)]
    passes = sum(bool((request.weights > 0).all()) for request in combines)
    passes += sum(isinstance(request, Quadratic) for request in seen)
    passes += sum(isinstance(r, Matvec) and len(r.kernels) == M for r in seen)
    assert solution.counters.combines == len(combines)
    assert solution.counters.passes == passes
    assert solution.counters.svm_solves >= solution.counters.outer_iterations
    assert solution.counters.newton_steps >= solution.counters.outer_iterations


def test_a_weight_step_asks_only_for_kernels_that_matter():
    instance = instances.more_kernels_than_points()
    seen = []
    settings = {"C": 100.0, "tol": 1e-8, "acceleration": "none"}
    solve(instance.grams, instance.y, lambda r, _: seen.append(r), **settings)
    asked = [len(request.kernels) for request in seen if isinstance(request, Matvec)]
    assert asked[0] == len(instance.grams)
    assert sum(asked[1:]) < 2 * len(instance.grams)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("squared-hinge", Target.CLASSES),
        ("squared", Target.VALUES),
        ("epsilon-squared", Target.VALUES),
        ("one-class", Target.ONE_CLASS),
    ],
)
def test_the_loss_decides_what_labels_may_be(name, target):
    assert PrimalMKLParams(loss=name).target is target


@every_loss
@pytest.mark.parametrize("C", quick([1e30, 1e-30, 1e15], 2))
def test_a_c_beyond_the_precision_of_the_kernels_ends_without_noise(name, C):
    instance = instances.balanced()
    solution = solve(instance.grams, targets(name, instance), loss=name, C=C, tol=1e-3, max_iter=20)
    assert np.isfinite([solution.objective, solution.dual_objective, solution.bias]).all()
    assert np.isfinite(solution.coefficients).all()
    assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 1e-3)
