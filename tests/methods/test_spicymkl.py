"""SpicyMKL and ElastMKL on solved problems, their working set, pace, states and exact bound."""

import cvxpy as cp
import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose

import mkldist
from mkldist.bank.view import make_views
from mkldist.errors import ConvergenceWarning, GramError, SpecError
from mkldist.methods import block_norm
from mkldist.methods.block_norm import MOST_LEFT, Pace, dual_value, exact_bound, renewed
from mkldist.methods.registry import METHODS
from mkldist.methods.regularizers import Concave
from mkldist.solvers.base import Problem
from mkldist.solvers.lockstep import Job, solve_alone
from mkldist.solvers.progress import StopReason
from tests.benchmarks.problems import Points, built
from tests.methods import instances, plain_bank
from tests.methods.instances import factors
from tests.methods.references import conic_value, real_values
from tests.methods.test_factors import GRAMS, GROWN, Y, solution_on
from tests.variants import quick


@pytest.mark.parametrize("make", [instances.duplicated_kernels, instances.zero_kernel])
def test_a_tiny_C_is_solved_though_nothing_is_gained_until_the_penalty_is_large(make):
    instance, lam = make(), 1e-9
    grams, y = instance.grams, instance.y
    solution = mkldist.solve("spicymkl", grams, y, C=1 / lam, loss="hinge")
    assert solution.converged
    a, d = solution.coefficients, solution.kernel_weights
    norms = d * np.sqrt(np.einsum("i,mij,j->m", a, grams, a))
    margins = y * solution.decision_function(grams)
    value = np.maximum(0.0, 1.0 - margins).sum() + lam * norms.sum()
    assert value == pytest.approx(solution.objective, rel=1e-6)


def hinge_newton_steps() -> int:
    """Return the Newton steps that the hinge loss takes on 100 kernels at three values of C."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 100))
    grams = np.einsum("if,jf->fij", x, x) + np.exp(-np.square(x.T[:, :, None] - x.T[:, None]))
    grams = grams / np.trace(grams, axis1=1, axis2=2)[:, None, None]
    y = np.where(x[:, :5].sum(axis=1) + rng.normal(size=150) > 0, 1.0, -1.0)
    found = [
        mkldist.solve("spicymkl", grams, y, C=1 / lam, loss="hinge") for lam in (0.1, 0.01, 0.001)
    ]
    assert all(solution.gap <= 0.01 for solution in found)
    return sum(solution.counters.newton_steps for solution in found)


@pytest.mark.slow
def test_an_entropy_saves_newton_steps_of_the_hinge_loss(monkeypatch):
    rounded = hinge_newton_steps()
    monkeypatch.setattr(block_norm, "COOLING", 0.0)
    assert rounded < 0.85 * hinge_newton_steps()


@pytest.mark.slow
def test_rules_of_polyhedral_losses_save_newton_steps_of_the_hinge_loss(monkeypatch):
    own = hinge_newton_steps()
    monkeypatch.setattr(block_norm, "POLYHEDRAL_SHARE", block_norm.INNER_SHARE)
    monkeypatch.setattr(block_norm, "POLYHEDRAL_HURRY", block_norm.HURRY)
    monkeypatch.setattr(block_norm, "POLYHEDRAL_EFFORT", 1.0)
    monkeypatch.setattr(block_norm, "MOST_LEFT_POLYHEDRAL", MOST_LEFT)
    assert own < 0.75 * hinge_newton_steps()


def test_a_regularizer_of_ones_own():
    # psi(s) = 2 lam (sqrt(1 + s^2) - 1), between the squared norm and the norm.
    instance, lam = instances.duplicated_kernels(), 0.1
    y, n = instance.y, len(instance.y)
    between = Concave(
        lam,
        lambda u: 2 * (np.sqrt(1 + u) - 1),
        lambda u: 1 / np.sqrt(1 + u),
        lambda u: -0.5 * (1 + u) ** -1.5,
        largest_of_g=2.0,
    )
    solution = mkldist.solve(
        "spicymkl", instance.grams, y, loss="hinge", regularizer=between, tol=1e-8
    )
    roots = factors(instance.grams)
    w = [cp.Variable(len(root)) for root in roots]
    b = cp.Variable()
    f = sum(root.T @ v for root, v in zip(roots, w, strict=True)) + b
    penalty = sum(2 * lam * (cp.norm(cp.hstack([1, v])) - 1) for v in w)
    loss = cp.sum(cp.pos(1 - cp.multiply(y, f)))
    assert solution.stop_reason is StopReason.CONVERGED
    expected = conic_value(cp.Problem(cp.Minimize(loss + penalty)))
    assert solution.objective == pytest.approx(expected, rel=1e-6)
    assert n == len(solution.coefficients)


def test_smooth_losses_take_few_outer_iterations_and_one_pass_each_at_most():
    instance = instances.more_kernels_than_points()
    for loss, y in (("logistic", instance.y), ("squared", real_values(instance))):
        solution = mkldist.solve("elastmkl", instance.grams, y, C=20.0, loss=loss, tol=0.01)
        assert solution.stop_reason is StopReason.CONVERGED
        assert solution.counters.outer_iterations <= 4
        assert solution.counters.passes <= solution.counters.outer_iterations + 1


def test_counters_count_what_was_asked_for():
    instance = instances.more_kernels_than_points()
    asked = []
    own = instance.grams, instance.y, lambda request, _: asked.append(request)
    solution = plain_bank.solve("spicymkl", *own, C=20.0, tol=1e-6)
    names = [type(request).__name__ for request in asked]
    counters = solution.counters
    passes = [r for r in asked if type(r).__name__ == "Quadratic" and r.kernels is None]
    radii = [r for r in passes if (r.vectors == 1.0).all()]
    assert len(passes) == counters.passes
    assert len(radii) == (solution.extra["screened"] > 0) == 1
    assert counters.passes + solution.extra["partial_passes"] <= counters.outer_iterations + 2
    assert names.count("Combine") == counters.combines == counters.newton_steps
    # Between passes only the kernels of the working set are touched.
    inside = [r for r in asked if type(r).__name__ == "Matvec" and r.vectors.ndim == 1]
    assert len({int(m) for r in inside for m in r.kernels}) < len(instance.grams)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("tol", [1e-2, 1e-7])
def test_the_working_set_leaves_the_optimum_where_it_is(loss, tol):
    rng = np.random.default_rng(7)
    factors = rng.normal(size=(150, 40, 6))
    grams = factors @ factors.transpose(0, 2, 1)
    y = np.where(factors[3, :, 0] + 0.3 * rng.normal(size=40) > 0, 1.0, -1.0)
    options = {"C": 2.0, "loss": loss, "tol": tol}
    plain = mkldist.solve("spicymkl", grams, y, acceleration="none", **options)
    fast = mkldist.solve("spicymkl", grams, y, **options)
    assert plain.stop_reason is fast.stop_reason is StopReason.CONVERGED
    assert max(plain.dual_objective, fast.dual_objective) <= min(plain.objective, fast.objective)
    assert fast.objective == pytest.approx(plain.objective, rel=2 * tol)
    assert plain.counters.passes > plain.counters.outer_iterations + 1  # line searches too
    assert fast.counters.passes < plain.counters.passes / 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"regularizer": "block1"}, "block1, whose dual is not smooth; expected elastic-net"),
        ({"mix": 0.0}, "elastic-net with mix = 0, whose dual is not smooth"),
        ({"regularizer": "block2"}, 'found "block2"; expected one of "block1"'),
        ({"loss": "huber"}, 'found "huber"; expected one of "logistic"'),
        ({"q": 2.5}, "at most 2"),
    ],
)
def test_what_cannot_work_is_refused_by_name(params, message):
    instance = instances.balanced()
    with pytest.raises(SpecError, match=message):
        mkldist.solve("elastmkl", instance.grams, instance.y, **params)


def test_losses_of_classes_refuse_real_values():
    instance = instances.balanced()
    with pytest.raises(GramError, match="both classes"):
        mkldist.solve("spicymkl", instance.grams, real_values(instance), loss="hinge")


@pytest.mark.parametrize("method", ["spicymkl", "elastmkl"])
@pytest.mark.parametrize("loss", ["squared", "epsilon"])
@pytest.mark.parametrize("value", [0.0, -1e6])
def test_constant_targets_need_a_bias_only(method, loss, value):
    grams = instances.balanced().grams
    options = {"regularizer": "uniform", "tol": 1e-6}
    solution = mkldist.solve(method, grams, np.full(60, value), loss=loss, **options)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.objective == solution.dual_objective == 0.0
    np.testing.assert_array_equal(solution.decision_function(grams), value)


@pytest.mark.parametrize("loss", ["squared", "epsilon"])
def test_targets_far_from_zero_cost_no_digits(loss):
    instance = instances.balanced()
    y = real_values(instance)
    near, far = (
        mkldist.solve("spicymkl", instance.grams, y + shift, loss=loss, C=1000.0, tol=1e-6)
        for shift in (0.0, 2.0**30)
    )
    assert far.stop_reason is StopReason.CONVERGED
    assert far.objective == pytest.approx(near.objective, rel=2e-6)
    assert far.bias - 2.0**30 == pytest.approx(near.bias, abs=1e-3)


def least_linear_loss(A, y, lam):
    """Return the least logistic loss of ``A w + b`` plus ``lam ||w||``, by a search over both."""

    def value(z):
        return np.logaddexp(0.0, -y * (A @ z[:-1] + z[-1])).sum() + lam * np.linalg.norm(z[:-1])

    def gradient(z):
        slopes = -y * scipy.special.expit(-y * (A @ z[:-1] + z[-1]))
        return np.append(A.T @ slopes + lam * z[:-1] / np.linalg.norm(z[:-1]), slopes.sum())

    found = scipy.optimize.minimize(
        value, np.ones(A.shape[1] + 1), jac=gradient, method="BFGS", options={"gtol": 1e-12}
    )
    assert np.abs(gradient(found.x)).max() < 1e-6  # the value is that exact to the square of it
    return found.fun


@pytest.mark.slow
@pytest.mark.parametrize("acceleration", quick(["working-set", "none"]))
@pytest.mark.parametrize("lam", quick([1e-2, 1e-8, 1e-4, 1e-6], 2))
@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
def test_bounds_enclose_the_optimum_where_norms_are_rounding_errors(lam, acceleration):
    # rho is of size one with ||rho||_K <= lam: next to the null space of a kernel of rank 4.
    A = np.random.default_rng(3).integers(-3, 4, (12, 4)).astype(float)
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    options = {"tol": 1e-9, "acceleration": acceleration}
    solution = mkldist.solve("spicymkl", (A @ A.T)[None], y, C=1 / lam, **options)
    optimum = least_linear_loss(A, y, lam)
    assert solution.dual_objective <= optimum * (1 + 1e-12)
    assert solution.objective >= optimum * (1 - 1e-12)
    assert solution.converged == (solution.gap <= 1e-9)
    assert solution.counters.outer_iterations < 100  # it knows when to stop


@pytest.mark.parametrize("loss", ["epsilon", "squared"])
@pytest.mark.parametrize("lam", [1e-6, 1e-8, 1e-10])
def test_weak_penalties_leave_no_rounding_of_large_dual_points(loss, lam):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))  # of condition number 11
    words = {"loss": loss, "regularizer": "uniform", "tol": 1e-3}
    if loss == "epsilon":
        words["epsilon"] = 0.0
    found = mkldist.solve("elastmkl", K[None], y, C=1 / lam, **words)
    assert found.stop_reason == StopReason.CONVERGED
    a = found.coefficients
    r = y - K @ a - found.bias  # of the size of lam
    value = np.abs(r).sum() if loss == "epsilon" else 0.5 * r @ r
    assert value + 0.5 * lam * a @ K @ a == pytest.approx(found.objective, rel=1e-4)


def solve(points: Points, loss: str, lam: float, acceleration: str = "none"):
    bank = built(points)
    [view] = make_views(bank, [None], ("trace",))
    method = METHODS["spicymkl"]
    problem = Problem(points.y, bank.n_kernels)
    params = method.params(C=1 / lam, loss=loss, tol=0.01, acceleration=acceleration)
    return solve_alone(bank, Job("spicymkl", view, problem, method.solve(problem, params)))


def test_twenty_iterations_without_gain_are_a_stall():
    rules = Pace(1e-6, 1.0)
    for _ in range(block_norm.PATIENCE):
        rules.judge(2.0, 1.0, 1)
        assert not rules.stalled
    rules.judge(2.0, 1.0, 1)
    assert rules.stalled


def test_a_gap_that_rounding_makes_rise_and_fall_is_a_stall():
    rules = Pace(1e-6, 1.0)
    rules.judge(2.0, 1.0, 1)
    for _ in range(block_norm.PATIENCE // 2):
        assert not rules.stalled
        rules.judge(2.0, 0.9, 1)
        rules.judge(2.0, 1.0, 1)
    assert rules.stalled


def test_slow_gains_that_add_up_are_no_stall():
    rules = Pace(1e-6, 1.0)
    for i in range(5 * block_norm.PATIENCE):
        rules.judge(2.0, 1.0 + 0.001 * i, 1)
        assert not rules.stalled


@pytest.mark.parametrize("case", ["spicymkl-logistic", "spicymkl-plain", "elastmkl"])
def test_components_and_bounds_of_block_norms_are_those_of_the_new_kernels(case):
    old = solution_on(case, grown=False).state
    state = plain_bank.run(renewed(Problem(Y, len(GROWN)), old), GROWN)
    before, now = old.iterate, state.iterate
    own, rho = GROWN[now.kernels], now.rho
    lengths = np.sqrt(np.einsum("i,mij,j->m", rho, GRAMS[now.kernels], rho))
    w = before.norms / lengths
    assert_allclose(now.products, own @ rho)
    assert_allclose(now.images, w[:, None] * (own @ rho))
    assert_allclose(now.norms, w * np.sqrt(np.einsum("i,mij,j->m", rho, own, rho)))
    assert (state.candidates is None) == (case == "spicymkl-plain")
    if state.candidates is not None:
        centre = state.candidates.centre
        norms = np.sqrt(np.einsum("i,mij,j->m", centre, GROWN, centre))
        assert (state.candidates.bounds >= norms).all()
        assert_allclose(state.candidates.bounds, norms, rtol=1e-6)
        assert state.candidates.radii is None  # those of the kernels as they were


@pytest.mark.parametrize("regularizer", ["block1", "elastic-net", "block-q"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "epsilon"])
def test_no_multiple_of_the_dual_point_gives_more(loss, regularizer):
    instance = instances.not_normalised()
    y = instance.y if loss in ("logistic", "hinge") else real_values(instance)
    params = METHODS["spicymkl"].params(C=0.5, loss=loss, regularizer=regularizer, tol=1e-6)
    problem = plain_bank.problem(instance.grams, y)
    solution = plain_bank.run(METHODS["spicymkl"].solve(problem, params), instance.grams)
    larger = instance.grams + 0.3 * np.eye(len(y))
    found = plain_bank.run(exact_bound(problem, params, solution), larger).value
    losses, psi, rho = params.make_loss(y), params.make_regularizer(), solution.dual_variables
    norms = np.sqrt(np.einsum("i,mij,j->m", rho, larger, rho))
    values = [dual_value(losses, psi, t * rho, t * norms).value for t in np.linspace(0, 1, 301)]
    assert found >= max(values) - 1e-4 * abs(max(values))
    same = plain_bank.run(exact_bound(problem, params, solution), instance.grams).value
    assert found < same <= solution.objective
    assert same >= solution.objective * (1 - 2e-6)


def test_as_printed_two_iterations_are_those_of_table_1():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    grams = np.einsum("if,jf->fij", x, x) + np.eye(30)
    y = np.where(x[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    lam, bias, alpha = 2.0, 0.0, np.zeros((4, 30))

    def norms(v):
        return np.sqrt(np.einsum("mi,mij,mj->m", v, grams, v))

    def phi(rho):  # Eq. (25) for the logistic loss
        t = y * rho
        h = t @ np.log(t) + (1 - t) @ np.log(1 - t)
        excess = np.maximum(norms(alpha + gamma * rho) - gamma * lam, 0.0)
        return h + (excess @ excess + (bias + gamma * rho.sum()) ** 2) / (2 * gamma)

    inside = [(1e-6, 1 - 1e-6) if one > 0 else (1e-6 - 1, -1e-6) for one in y]
    for gamma in (1.0, 2.0):
        rho = scipy.optimize.minimize(phi, 0.4 * y, bounds=inside, options={"ftol": 1e-15}).x
        moved = alpha + gamma * rho  # Eqs. (11) and (12)
        alpha = np.maximum(1.0 - gamma * lam / norms(moved), 0.0)[:, None] * moved
        bias += gamma * rho.sum()
    settings = {"C": 1 / lam, "tol": 1e-9, "acceleration": "printed", "gamma": 1.0}
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        found = mkldist.solve("spicymkl", grams, y, max_iter=2, **settings)
    weights = norms(alpha) / norms(np.tile(rho, (4, 1)))
    assert_allclose(found.kernel_weights, weights / weights.sum(), atol=1e-4)
    assert_allclose(found.coefficients, weights.sum() * rho, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "epsilon"])
@pytest.mark.parametrize("regularizer", quick(["block1", "elastic-net"]))
@pytest.mark.parametrize("lam", [0.05, 5.0])
def test_the_printed_algorithm_ends_at_the_same_optimum(loss, regularizer, lam):
    instance = instances.balanced()
    y = instance.y if loss in ("logistic", "hinge") else real_values(instance)
    settings = {"C": 1 / lam, "loss": loss, "regularizer": regularizer, "tol": 1e-6}
    ours = mkldist.solve("spicymkl", instance.grams, y, **settings)
    found = mkldist.solve(
        "spicymkl", instance.grams, y, acceleration="printed", gamma=1.0, **settings
    )
    assert found.converged
    assert found.objective == pytest.approx(ours.objective, rel=2e-6)
