"""PrimalMKL: its derivatives, its machine, its weight steps, and what it equals where."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.gram.requests import Combine, Matvec, Quadratic
from mkldist.machines.counters import Counters
from mkldist.machines.l2_svm import solve_l2_svm
from mkldist.machines.primal_newton import PrimalMachine, SupportSystem
from mkldist.machines.squared_losses import SquaredLoss
from mkldist.methods.primalmkl import METHOD, PrimalMKLParams, squared_loss
from mkldist.optim.lp_ball import WeightSet, lp_norm, project_onto_lp_ball
from mkldist.solvers import kernel_cache
from mkldist.solvers.base import Solution, StopReason
from mkldist.solvers.weight_step import (
    SecondOrderModel,
    alternating_objective,
    nesterov,
    suboptimality,
)
from mkldist.target import Target
from tests.benchmarks import problems
from tests.methods import instances, plain_bank
from tests.methods.references import real_values

LOSSES = ("squared-hinge", "squared", "epsilon-squared", "one-class")
INNERS = ("truncated-newton", "pcg", "newton")
every_loss = pytest.mark.parametrize("name", LOSSES)
every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def targets(name: str, instance: instances.Instance) -> np.ndarray:
    regression = name in ("squared", "epsilon-squared")
    return real_values(instance) if regression else instance.y


def loss_of(name: str, y: np.ndarray) -> SquaredLoss:
    return squared_loss(PrimalMKLParams(loss=name), y)


def solve(grams: np.ndarray, y: np.ndarray, watch=None, **params) -> Solution:
    steps = METHOD.solve(plain_bank.problem(grams, y), PrimalMKLParams(**params))
    return plain_bank.run(steps, grams, watch)


def machine(loss: SquaredLoss, lam: float, inner="newton", share=1e-20) -> PrimalMachine:
    return PrimalMachine(loss, lam, inner, share, Counters())


def differences(function, point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Return central differences of a scalar or vector function, one row a coordinate."""
    rows = []
    for unit in np.eye(len(point)):
        up, down = function(point + step * unit), function(point - step * unit)
        rows.append((up - down) / (2 * step))
    return np.array(rows)


# Losses


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


# The z-step


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


@every_loss
@every_instance
@pytest.mark.parametrize("lam", [1e-2, 1.0])
def test_the_three_ways_to_the_minimum_of_z_agree(name, make, lam):
    instance = make()
    K, loss = instance.grams.mean(axis=0), loss_of(name, targets(name, instance))
    points = [machine(loss, lam, inner, 1e-18)(K, np.zeros(len(K))) for inner in INNERS]
    for z in points:
        assert z.value == pytest.approx(points[0].value, rel=1e-12)
        np.testing.assert_allclose(z.f + z.b, points[0].f + points[0].b, atol=1e-6)
        np.testing.assert_allclose(lam * z.alpha, z.r, atol=1e-5)


def test_the_gap_of_a_machine_is_primal_minus_dual():
    instance = instances.balanced()
    K, lam = instance.grams[0], 0.01
    loss = loss_of("squared-hinge", instance.y)
    solver = machine(loss, lam)
    alpha = np.random.default_rng(0).normal(size=len(K))
    z = solver.point(K, alpha, K @ alpha)
    dual = loss.dual_value(z.r, z.b) - float(z.r @ K @ z.r) / (2 * lam)
    assert solver.gap(z) == pytest.approx(z.value - dual, rel=1e-10)


@every_instance
@pytest.mark.parametrize("lam", [1e-8, 1e-2, 1.0, 1e8])
def test_the_squared_hinge_machine_is_the_l2_svm(make, lam):
    instance = make()
    K = instance.grams.mean(axis=0)
    z = machine(loss_of("squared-hinge", instance.y), lam)(K, np.zeros(len(K)))
    svm = solve_l2_svm(K, instance.y, lam, tol=1e-10)
    assert z.value == pytest.approx(lam * svm.objective, rel=1e-8)


def test_a_singular_support_system_is_regularised_until_it_factorises():
    K = np.ones((4, 4))
    system = SupportSystem(K, np.ones(4, dtype=bool), 1e-30)
    x, b = system.solve(np.ones(4), 1.0)
    assert np.isfinite([*x, b]).all()
    assert x.sum() == pytest.approx(1.0)


# The d-step


@pytest.mark.parametrize("p", [1.0, 1.01, 1.3, 1.5, 2.0, 3.0, 7.0, 64.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_projections_satisfy_their_variational_inequality(p, scale):
    weights = WeightSet(p)
    z = scale * np.random.default_rng(0).normal(size=30)
    x = weights.project(z)
    assert (x >= 0).all()
    assert weights.length(x) <= 1 + 1e-12
    # (z - x)'(y - x) <= 0 for every y of the set: the maximum is a dual norm.
    assert suboptimality(weights, x, x - z) <= 1e-12 * max(scale, 1.0)


def test_points_inside_the_ball_stay_and_negative_ones_go_to_zero():
    np.testing.assert_array_equal(project_onto_lp_ball(np.array([0.1, -3.0]), 1.5), [0.1, 0.0])
    assert lp_norm(np.array([3e200, 4e200]), 2.0) == pytest.approx(5e200)
    assert lp_norm(np.zeros(3), 1.5) == 0.0


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
def test_nesterovs_method_finds_the_conic_minimum(p):
    rng = np.random.default_rng(0)
    B, target = rng.normal(size=(12, 8)), 3.0 * rng.normal(size=12)
    weights = WeightSet(p)

    def f(d: np.ndarray) -> tuple[float, np.ndarray]:
        error = B @ d - target
        return 0.5 * float(error @ error), B.T @ error

    found = nesterov(f, weights, weights.uniform(8), gap=1e-9)
    d = cp.Variable(8, nonneg=True)
    bound = cp.sum(d) == 1 if p == 1 else cp.pnorm(d, p) <= 1
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(B @ d - target)), [bound])
    problem.solve(solver=cp.CLARABEL)
    assert f(found)[0] == pytest.approx(problem.value, rel=1e-6)


@every_loss
def test_gradient_in_d_of_the_alternation_is_that_of_finite_differences(name):
    instance = instances.not_normalised()
    loss = loss_of(name, targets(name, instance))
    rng = np.random.default_rng(1)
    alpha, b, lam = rng.normal(size=len(instance.y)), 0.3, 0.1
    G = (instance.grams @ alpha).T
    F = alternating_objective(G, G.T @ alpha, lam, loss, b)
    d = np.array([0.1, 0.2, 0.3, 0.4])
    K = np.einsum("m,mij->ij", d, instance.grams)
    at = machine(loss, lam).point(K, alpha, K @ alpha, b)
    assert F(d)[0] == pytest.approx(at.value, rel=1e-12)
    expected = differences(lambda d: F(d)[0], d, 1e-6)
    np.testing.assert_allclose(F(d)[1], expected, rtol=1e-6, atol=1e-6)


@every_loss
def test_gradient_and_hessian_of_J_are_those_of_finite_differences(name):
    instance = instances.balanced()
    loss, lam = loss_of(name, targets(name, instance)), 0.05
    solver = machine(loss, lam)

    def at(d: np.ndarray):
        return solver(np.einsum("m,mij->ij", d, instance.grams), np.zeros(len(instance.y)))

    def gradient(d: np.ndarray) -> np.ndarray:
        a = at(d).r / lam
        return -0.5 * lam * np.einsum("i,mij,j->m", a, instance.grams, a)

    d = np.full(len(instance.grams), 1.0 / len(instance.grams))
    expected = differences(lambda d: at(d).value, d, 1e-5)
    np.testing.assert_allclose(gradient(d), expected, rtol=1e-5)
    z = at(d)
    a, sv = z.r / lam, loss.active(z.r)
    K = np.einsum("m,mij->ij", d, instance.grams)
    G = (instance.grams @ a).T
    model = SecondOrderModel.of(
        SupportSystem(K, sv, lam), lam, G[sv], np.maximum(G.T @ a, 0), (K @ a)[sv]
    )
    np.testing.assert_allclose(model(d)[1], gradient(d), rtol=1e-9)
    hessian = differences(gradient, d, 1e-5)
    np.testing.assert_allclose(model.B.T @ model.B, hessian, atol=1e-3 * np.abs(hessian).max())


# The method


@every_instance
def test_the_squared_hinge_on_the_simplex_is_the_l2_svm_at_the_weights_found(make):
    instance = make()
    solution = solve(instance.grams, instance.y, lam=0.01, tol=1e-9)
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    svm = solve_l2_svm(K, instance.y, 0.01, tol=1e-11)
    assert solution.objective == pytest.approx(0.01 * svm.objective, rel=1e-9)
    scaled = 0.01 * svm.alpha
    np.testing.assert_allclose(solution.dual_variables, scaled, atol=1e-4 * scaled.max())


@every_loss
@pytest.mark.parametrize("norm", [1.0, 1.5])
@pytest.mark.parametrize("inner", INNERS)
def test_every_inner_solver_leads_to_the_same_optimum(name, norm, inner):
    instance = instances.more_kernels_than_points()
    y, params = targets(name, instance), {"loss": name, "norm": norm, "lam": 0.01, "tol": 1e-8}
    solution = solve(instance.grams, y, inner=inner, **params)
    exact = solve(instance.grams, y, inner="newton", **params)
    assert solution.converged
    assert solution.objective == pytest.approx(exact.objective, rel=2e-8)
    np.testing.assert_allclose(solution.kernel_weights, exact.kernel_weights, atol=1e-3)


@every_loss
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_papers_alternation_reaches_the_same_optimum_in_more_passes(name, norm):
    instance = instances.not_normalised()
    y, params = targets(name, instance), {"loss": name, "norm": norm, "lam": 1.0, "tol": 1e-6}
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
    solution = solve(instance.grams, instance.y, lam=1e-3, tol=1e-8)
    assert solution.converged
    assert solution.counters.outer_iterations <= 20


def test_kernel_ridge_regression_with_one_kernel():
    instance = instances.balanced()
    K, y = instance.grams[0], real_values(instance)
    solution = solve(K[None], y, loss="squared", lam=0.02, tol=1e-10)
    found = K @ solution.coefficients + solution.bias
    # A free bias centres features and targets.
    centring = np.eye(len(y)) - 1.0 / len(y)
    centred = centring @ K @ centring
    ridge = KernelRidge(alpha=0.02, kernel="precomputed").fit(centred, y - y.mean())
    np.testing.assert_allclose(found, ridge.predict(centred) + y.mean(), atol=1e-8)


def test_targets_far_from_zero_cost_no_accuracy():
    instance = instances.balanced()
    y = real_values(instance)
    near = solve(instance.grams, y, loss="squared", lam=0.01, tol=1e-9)
    far = solve(instance.grams, y + 1e5, loss="squared", lam=0.01, tol=1e-8)
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
    ridge = solve(instance.grams, y, loss="squared", lam=0.01, tol=1e-9)
    tube = solve(instance.grams, y, loss="epsilon-squared", epsilon=0.0, lam=0.01, tol=1e-9)
    assert tube.objective == pytest.approx(ridge.objective, rel=1e-8)


def test_one_class_rejects_what_lies_far_away_and_accepts_the_bulk():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(size=(60, 2)), rng.normal(size=(20, 2)) + 6.0
    x = np.vstack([inside, outside])
    grams = np.array([rbf_kernel(x, gamma=gamma) for gamma in (0.05, 0.2, 1.0)])
    y = np.concatenate([np.ones(60), -np.ones(20)])
    shares = []
    for lam in (1e-3, 1e-2, 1e-1):
        solution = solve(grams, y, loss="one-class", lam=lam, tol=1e-6)
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
    with_all = solve(instance.grams, instance.y, loss="one-class", lam=0.01, tol=1e-9)
    grams = instance.grams[:, inside][:, :, inside]
    alone = solve(grams, np.ones(len(inside)), loss="one-class", lam=0.01, tol=1e-9)
    assert with_all.objective == pytest.approx(alone.objective, rel=1e-8)
    np.testing.assert_allclose(with_all.coefficients[inside], alone.coefficients, atol=1e-5)


@every_loss
@pytest.mark.parametrize("norm", [1.0, 1.5])
def test_scaling_kernels_and_lam_together_changes_nothing(name, norm):
    instance = instances.balanced()
    y = targets(name, instance)
    plain = solve(instance.grams, y, loss=name, norm=norm, lam=0.01, tol=1e-9)
    scaled = solve(1e3 * instance.grams, y, loss=name, norm=norm, lam=10.0, tol=1e-9)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-8)
    np.testing.assert_allclose(scaled.kernel_weights, plain.kernel_weights, atol=1e-4)


def test_smaller_norms_of_weights_are_nested():
    instance = instances.balanced()
    values = [
        solve(instance.grams, instance.y, lam=0.01, norm=norm, tol=1e-8).objective
        for norm in (1.0, 1.2, 1.5, 2.0, 4.0, 100.0)
    ]
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
def test_more_kernels_than_are_kept_one_by_one(norm, monkeypatch):
    instance = instances.more_kernels_than_points()
    keep = np.r_[:6, 20:26]
    grams = instance.grams[:, keep][:, :, keep]
    y = instance.y[keep]
    whole = solve(grams, y, lam=0.01, norm=norm, tol=1e-8)
    monkeypatch.setattr(kernel_cache, "COLUMNS", 5)
    parts = solve(grams, y, lam=0.01, norm=norm, tol=1e-8)
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
        lam=0.1,
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
    settings = {"lam": 0.01, "tol": 1e-8, "acceleration": "none"}
    solve(instance.grams, instance.y, lambda r, _: seen.append(r), **settings)
    asked = [len(request.kernels) for request in seen if isinstance(request, Matvec)]
    assert asked[0] == len(instance.grams)
    assert sum(asked[1:]) < 2 * len(instance.grams)


@every_loss
@pytest.mark.parametrize(("coupled", "tol"), [(True, 1e-2), (True, 1e-7), (False, 1e-3)])
def test_the_working_set_leaves_the_optimum_where_it_is(name, coupled, tol):
    instance = instances.more_kernels_than_points()
    y = targets(name, instance)
    settings = {"lam": 0.01, "loss": name, "max_iter": 5000}
    plain = solve(instance.grams, y, acceleration="none", tol=1e-9, **settings)
    found = solve(instance.grams, y, coupled=coupled, trace=True, tol=tol, **settings)
    assert plain.converged
    assert found.converged
    slack = 1e-8 * abs(plain.objective)
    assert plain.objective <= found.objective + slack
    assert found.gap <= tol
    assert (found.trace["dual_objective"] <= plain.objective + slack).all()
    assert (np.diff(found.trace["dual_objective"]) >= 0).all()


def test_the_working_set_saves_passes():
    grams, y = problems.grams(None), problems.xu2008(None).y
    passes = {}
    for acceleration in ("none", "working-set"):
        solution = mkldist.solve("primalmkl", grams, y, lam=1e-3, acceleration=acceleration)
        passes[acceleration] = solution.counters.passes
    assert passes["working-set"] <= 0.75 * passes["none"]


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
@pytest.mark.parametrize("lam", [1e-30, 1e-15, 1e30])
def test_lam_beyond_the_precision_of_the_kernels_ends_without_noise(name, lam):
    instance = instances.balanced()
    solution = solve(
        instance.grams, targets(name, instance), loss=name, lam=lam, tol=1e-3, max_iter=20
    )
    assert np.isfinite([solution.objective, solution.dual_objective, solution.bias]).all()
    assert np.isfinite(solution.coefficients).all()
    assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 1e-3)
