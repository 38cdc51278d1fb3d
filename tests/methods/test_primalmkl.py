"""PrimalMKL: special cases, requests, single steps, weight steps, certificate."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import mkldist
from mkldist.bank.requests import Combine, Matvec
from mkldist.core.arrays import Target
from mkldist.errors import SpecError
from mkldist.methods import primalmkl
from mkldist.methods.primalmkl import (
    PrimalMKLParams,
    ValueModel,
    alternate_by_single_steps,
    alternating_objective,
    dual_value,
    energy,
    machine_of,
    primal_value,
)
from mkldist.methods.registry import METHODS
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import Counters, Problem, Solution
from mkldist.solvers.grids import expand
from mkldist.solvers.primal_newton import SupportSystem
from mkldist.solvers.progress import StopReason
from tests.benchmarks import problems
from tests.methods import instances, plain_bank
from tests.methods.primal_machines import (
    differences,
    every_loss,
    loss_of,
    machine,
    targets,
)
from tests.methods.references import real_values
from tests.variants import quick


def solve(grams: np.ndarray, y: np.ndarray, watch=None, **params) -> Solution:
    return plain_bank.solve("primalmkl", grams, y, watch, **params)


@every_loss
@pytest.mark.parametrize(
    ("inner", "norm"), quick([("pcg", 1.5), ("truncated-newton", 1.5), ("truncated-newton", 1.0)])
)
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


def test_the_model_of_J_converges_in_few_iterations_where_lam_is_small():
    instance = instances.not_normalised()
    solution = solve(instance.grams, instance.y, C=1000.0, tol=1e-8)
    assert solution.converged
    assert solution.counters.outer_iterations <= 20


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


def test_labels_of_known_outliers_do_not_matter_to_one_class():
    instance = instances.balanced()
    inside = np.flatnonzero(instance.y > 0)
    with_all = solve(instance.grams, instance.y, loss="one-class", C=100.0, tol=1e-9)
    grams = instance.grams[:, inside][:, :, inside]
    alone = solve(grams, np.ones(len(inside)), loss="one-class", C=100.0, tol=1e-9)
    assert with_all.objective == pytest.approx(alone.objective, rel=1e-8)
    np.testing.assert_allclose(with_all.coefficients[inside], alone.coefficients, atol=1e-5)


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


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("C", quick([1e30, 1e-30, 1e15], 2))
def test_a_c_beyond_the_precision_of_the_kernels_ends_without_noise(name, C):
    instance = instances.balanced()
    solution = solve(instance.grams, targets(name, instance), loss=name, C=C, tol=1e-3, max_iter=20)
    assert np.isfinite([solution.objective, solution.dual_objective, solution.bias]).all()
    assert np.isfinite(solution.coefficients).all()
    assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 1e-3)


def solve_one_step(grams: np.ndarray, y: np.ndarray, **params) -> tuple[Solution, list[np.ndarray]]:
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
    solution, _ = solve_one_step(
        instance.grams, y, loss="squared", C=50.0, inner="newton", max_iter=1
    )
    centring = np.eye(len(y)) - 1.0 / len(y)
    centred = centring @ K @ centring
    ridge = KernelRidge(alpha=0.02, kernel="precomputed").fit(centred, y - y.mean())
    found = K @ solution.coefficients + solution.bias
    np.testing.assert_allclose(found, ridge.predict(centred) + y.mean(), atol=1e-8)


@pytest.mark.parametrize("inner", ["truncated-newton", "pcg"])
def test_weights_minimise_the_objective_at_the_coefficients_of_one_step(inner):
    instance, lam = instances.not_normalised(), 1.0
    grams, y = instance.grams, instance.y
    first, _ = solve_one_step(grams, y, C=1 / lam, inner=inner, max_iter=1, tol=1e-8)
    _, weights = solve_one_step(grams, y, C=1 / lam, inner=inner, max_iter=2, tol=1e-8)
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
    solution, weights = solve_one_step(
        instance.grams, instance.y, inner=inner, tol=1e-6, max_iter=30, trace=True
    )
    n_iterations = solution.counters.outer_iterations
    assert getattr(solution.counters, counter) == len(weights) == n_iterations == 30
    assert (np.diff(solution.trace["objective"]) <= 0).all()


def test_the_papers_stop_is_a_short_gradient_and_no_proof():
    instance = instances.not_normalised()
    usual, _ = solve_one_step(instance.grams, instance.y, tol=1e-6)
    early, _ = solve_one_step(instance.grams, instance.y, tol=1e-6, chi_2=10.0)
    assert usual.stop_reason is StopReason.CONVERGED
    assert early.stop_reason is StopReason.STALLED
    assert early.gap > 1e-6
    assert early.counters.outer_iterations < usual.counters.outer_iterations
    K = np.einsum("m,mij->ij", early.kernel_weights, instance.grams)
    residual = instance.y * np.maximum(0, 1 - instance.y * (K @ early.coefficients + early.bias))
    assert np.linalg.norm(K @ (early.coefficients - residual)) < 10.0


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_random_first_weights_lead_to_the_same_optimum(norm):
    instance = instances.not_normalised()
    equal, _ = solve_one_step(instance.grams, instance.y, tol=1e-6, norm=norm)
    found, weights = solve_one_step(instance.grams, instance.y, tol=1e-6, norm=norm, start="random")
    assert np.linalg.norm(weights[0], norm) == pytest.approx(1.0)
    assert np.ptp(weights[0]) > 0.1
    assert found.objective == pytest.approx(equal.objective, rel=2e-6)


def test_chi_2_is_of_the_printed_algorithm():
    with pytest.raises(SpecError, match='machine = "one-step"'):
        expand(METHODS["primalmkl"], "methods.primalmkl", {"chi_2": 0.1}, None)


N, LAM = 40, 1e-8


def cancelling(seed):
    """Return a Gram matrix, targets, and coefficients near its null space."""
    rng = np.random.default_rng(seed)
    half = 1e4 * (1.0 + 1e-6 * rng.normal(size=(N, 2)))
    v = rng.normal(size=N)
    v -= half @ np.linalg.lstsq(half, v, rcond=None)[0]
    return half @ half.T, rng.normal(size=N), 1e3 * v


def form(K, v):
    """Return ``v'K v`` with the digits of a long double."""
    wide = v.astype(np.longdouble)
    return wide @ (K.astype(np.longdouble) @ wide)


@pytest.mark.parametrize("seed", range(30))
def test_values_bound_those_without_rounding(seed):
    K, y, alpha = cancelling(seed)
    machine = machine_of(PrimalMKLParams(C=1 / LAM, loss="squared"), Problem(y, 1), Counters())
    z = machine.point(K, alpha, K @ alpha, 0.0)
    # What the machine knows of f is rounded too: the form alone is compared.
    exact = z.value + 0.5 * LAM * (form(K, alpha) - np.longdouble(alpha @ z.f))
    assert exact <= primal_value(machine, K, z) <= exact + LAM * 1e-12 * energy(K, alpha)
    r = machine.loss.feasible(LAM * alpha)
    a = r / LAM
    q = np.array([a @ (K @ a)])
    value = dual_value(machine, WeightSet(1.0), r, 0.0, q, energy(K, a))
    unrounded = machine.loss.dual_value(r, 0.0) - 0.5 * LAM * form(K, a)
    assert unrounded - LAM * 1e-12 * energy(K, a) <= value <= unrounded


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize(("coupled", "tol"), [(True, 1e-2), (True, 1e-7), (False, 1e-3)])
def test_the_working_set_leaves_the_optimum_where_it_is(name, coupled, tol):
    instance = instances.more_kernels_than_points()
    y = targets(name, instance)
    settings = {"C": 100.0, "loss": name, "max_iter": 5000}
    plain = solve(instance.grams, y, acceleration="none", tol=1e-9, **settings)
    found = solve(instance.grams, y, coupled=coupled, trace=True, tol=tol, **settings)
    assert plain.converged
    assert found.converged
    slack = 1e-8 * abs(plain.objective)
    assert plain.objective <= found.objective + slack
    assert found.gap <= tol
    assert (found.trace["dual_objective"] <= plain.objective + slack).all()
    assert (np.diff(found.trace["dual_objective"]) >= 0).all()


@pytest.mark.slow
def test_the_working_set_saves_passes():
    grams, y = problems.grams(None), problems.xu2008(None).y
    passes = {}
    for acceleration in ("none", "working-set"):
        solution = mkldist.solve("primalmkl", grams, y, C=1000.0, acceleration=acceleration)
        passes[acceleration] = solution.counters.passes
    assert passes["working-set"] <= 0.75 * passes["none"]


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
    model = ValueModel.of(
        SupportSystem(K[np.ix_(sv, sv)], lam), lam, G[sv], np.maximum(G.T @ a, 0), (K @ a)[sv]
    )
    np.testing.assert_allclose(model(d)[1], gradient(d), rtol=1e-9)
    hessian = differences(gradient, d, 1e-5)
    np.testing.assert_allclose(model.B.T @ model.B, hessian, atol=1e-3 * np.abs(hessian).max())


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_minimum_over_the_set_is_the_conic_one(p):
    rng = np.random.default_rng(0)
    B, target = rng.normal(size=(12, 8)), 3.0 * rng.normal(size=12)
    weights = WeightSet(p)
    model = ValueModel(rng.normal(size=8), B, target)
    found = model.minimum(weights, weights.uniform(8), share=1e-9)
    assert (found >= 0).all()
    assert weights.length(found) <= 1 + 1e-12
    d = cp.Variable(8, nonneg=True)
    bound = cp.sum(d) == 1 if p == 1 else cp.pnorm(d, p) <= 1
    value = model.gradient @ d + 0.5 * cp.sum_squares(B @ d - target)
    problem = cp.Problem(cp.Minimize(value), [bound])
    problem.solve(solver=cp.CLARABEL)
    assert model(found)[0] == pytest.approx(problem.value, rel=1e-6)


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
