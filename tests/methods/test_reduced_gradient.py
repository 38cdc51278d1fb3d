"""SimpleMKL, R-MKL and their descent by reduced gradients."""

import math

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from mkldist.bank.bank import MemoryBank
from mkldist.bank.requests import Combine, Matvec, Quadratic, Radii
from mkldist.bank.view import make_views
from mkldist.errors import SpecError
from mkldist.methods.cut_bundle import WrapperBounds
from mkldist.methods.reduced_gradient import (
    CombinedKernel,
    LineSearch,
    QuasiNewton,
    SimplexPath,
    descend,
    reference_kernel,
    steepest_direction,
)
from mkldist.methods.registry import METHODS
from mkldist.methods.simplemkl import SimpleMKLParams
from mkldist.solvers.base import Counters, Problem, Solution
from mkldist.solvers.grids import expand
from mkldist.solvers.l2_svm import best_bias
from mkldist.solvers.lockstep import Job, drive
from mkldist.solvers.progress import StopReason
from mkldist.solvers.svm import InnerSvm, solve_svm
from mkldist.solvers.working_set import WorkingSet
from tests.methods import instances, plain_bank
from tests.methods.plain_bank import squared_radii, squared_radius
from tests.methods.references.recorded import optimum_of
from tests.methods.references.simplex_svm import ridged_optimum

SIMPLEMKL = METHODS["simplemkl"]


def run(instance: instances.Instance, **params):
    """Return the solution and the requests."""
    seen = []
    own = instance.grams, instance.y, lambda request, _: seen.append(request)
    return plain_bank.solve("simplemkl", *own, C=instance.C, **params), seen


@pytest.mark.parametrize("make", [instances.balanced, instances.not_normalised])
@pytest.mark.parametrize("curvature", [True, False])
def test_the_first_step_is_along_the_reduced_gradient(make, curvature):
    instance = make()
    M, K = len(instance.grams), instance.grams.mean(axis=0)
    _, seen = run(instance, curvature=curvature, max_iter=2, tol=1e-8)
    np.testing.assert_allclose(seen[0].weights, 1 / M)
    svc = SVC(C=instance.C, kernel="precomputed", tol=1e-10).fit(K, instance.y)
    a = np.zeros(len(K))
    a[svc.support_] = svc.dual_coef_[0]
    gradient = -0.5 * np.einsum("i,mij,j->m", a, instance.grams, a)
    D = gradient[0] - gradient  # all weights are equal, so the first is the largest
    D[0] = -D[1:].sum()
    if not curvature:  # the plain algorithm asks for the weights where the first kernel vanishes
        D *= 1 / M / -D.min()
    asked = seen[2].weights if curvature else seen[2].weights - 1 / M
    np.testing.assert_allclose(asked, D, rtol=1e-3, atol=1e-3 * np.abs(D).max())


def test_plain_descent_lowers_the_value_at_every_iteration_and_needs_no_products():
    instance = instances.more_kernels_than_points()
    solution, seen = run(instance, curvature=False, max_iter=30, tol=1e-8, trace=True)
    assert (np.diff(solution.trace["objective"]) < 0).all()
    assert not any(isinstance(request, Matvec) for request in seen)
    weights = [r.weights for r in seen if isinstance(r, Combine)]
    assert all(d.min() >= 0 for d in weights)
    assert all(d.sum() == pytest.approx(1.0, abs=1e-12) for d in weights)


def test_plain_descent_drops_a_kernel_for_every_machine_while_the_value_falls():
    instance = instances.more_kernels_than_points()
    _, seen = run(instance, curvature=False, max_iter=1, tol=1e-8)
    first = [r.weights for r in seen if isinstance(r, Combine)]
    dropped = [int((d == 0).sum()) for d in first]
    assert dropped == list(range(len(first)))
    assert len(first) > 2


@pytest.mark.slow
def test_curvature_saves_iterations():
    instance = instances.more_kernels_than_points()
    plain, _ = run(instance, curvature=False, tol=1e-4)
    scaled, _ = run(instance, tol=1e-4)
    assert plain.converged
    assert 2 * scaled.counters.outer_iterations < plain.counters.outer_iterations
    assert scaled.objective == pytest.approx(plain.objective, rel=2e-4)


@pytest.mark.slow
def test_golden_section_takes_a_kink_at_which_slopes_stall():
    instance = instances.ill_conditioned()
    by_slope, _ = run(instance, curvature=False, tol=1e-4)
    by_value, _ = run(instance, curvature=False, tol=1e-4, line_search="golden-section")
    assert not by_slope.converged
    assert by_value.converged
    assert by_value.objective == pytest.approx(
        optimum_of("simplemkl", instances.ill_conditioned), rel=1e-4
    )


def test_golden_section_is_of_the_plain_algorithm():
    grid = {"C": 1.0, "line_search": "golden-section"}
    with pytest.raises(SpecError, match="curvature = false"):
        expand(SIMPLEMKL, "methods.simplemkl", grid, None)


SEEDS = (12, 14, 19, 51, 63, 81, 95, 98, 104, 117, 170, 185, 213, 251, 286, 293)


def low_rank(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    """Return a kernel of few directions, often along points or labels."""
    n, x = len(y), rng.normal(size=len(y))
    match rng.integers(0, 6):
        case 0:
            return np.outer(y, y)
        case 1:
            return np.diag(rng.random(n) < 0.3).astype(float)
        case 2:
            return np.ones((n, n))
        case 3:
            return np.eye(n)
        case 4:
            return np.outer(np.round(x), np.round(x))
        case _:
            return np.outer(x, x)


def instance(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    n, n_kernels = rng.integers(3, 20), rng.integers(3, 30)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    grams = np.array([low_rank(rng, y) for _ in range(n_kernels)])
    traces = np.trace(grams, axis1=1, axis2=2)
    scale = 10.0 ** rng.uniform(-1, 1, size=n_kernels)
    return grams * (scale / np.where(traces > 0, traces, 1.0))[:, None, None], y, 30.0


def solve(name: str, seed: int):
    grams, y, C = instance(seed)
    return plain_bank.solve(name, grams, y, C=C, tol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_descent_goes_on_from_kinks(seed):
    descent, cuts = solve("simplemkl", seed), solve("silp", seed)
    assert descent.stop_reason is cuts.stop_reason is StopReason.CONVERGED
    assert descent.objective == pytest.approx(cuts.objective, rel=2e-4)
    assert descent.dual_objective <= cuts.objective * (1 + 1e-9)


def weights_and_gradient(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights in the simplex, some of them zero, and any gradient."""
    rng = np.random.default_rng(seed)
    d = rng.dirichlet(np.ones(8)) * (rng.random(8) < 0.7)
    d[seed % 8] += 0.1
    return d / d.sum(), rng.normal(size=8)


@pytest.mark.parametrize("seed", range(8))
def test_steepest_direction_is_the_papers(seed):
    d, gradient = weights_and_gradient(seed)
    mu = reference_kernel(d, None)
    assert d[mu] == d.max()
    expected = np.zeros(8)
    for m in range(8):  # the three cases of (12)
        if m != mu and not (d[m] == 0 and gradient[m] - gradient[mu] > 0):
            expected[m] = gradient[mu] - gradient[m]
    expected[mu] = sum(gradient[m] - gradient[mu] for m in range(8) if m != mu and expected[m])
    direction = steepest_direction(d, gradient, mu)
    np.testing.assert_allclose(direction, expected, atol=1e-12)
    assert direction @ gradient < 0


@pytest.mark.parametrize("seed", range(10))
def test_scaled_directions_descend_within_the_simplex_and_beat_steepest_ones(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(8, 8)) * 10.0 ** rng.uniform(-2, 0, size=8)
    H, centre = A.T @ A, rng.dirichlet(np.ones(8))

    def value(d: np.ndarray) -> float:
        return 0.5 * float((d - centre) @ H @ (d - centre))

    left = {}
    for scaled in (True, False):
        quasi_newton, d = QuasiNewton(), np.full(8, 1 / 8)
        mu = 0
        for _ in range(30):
            gradient = H @ (d - centre)
            D = steepest_direction(d, gradient, mu)
            if scaled:
                D = quasi_newton.path(d, gradient, mu).direction(0)
            assert D.sum() == pytest.approx(0.0, abs=1e-12 * np.abs(D).max())
            assert (D[d <= 0] >= 0).all()
            assert D @ gradient <= 0
            if not D @ gradient < 0:
                break
            shrinking = D < 0
            reach = (d[shrinking] / -D[shrinking]).min()
            d = np.maximum(d + min(-(D @ gradient) / (D @ H @ D), reach) * D, 0.0)
        left[scaled] = value(d)
    assert left[True] <= left[False]


def noisy_bank(n_kernels: int) -> tuple[np.ndarray, np.ndarray]:
    """One kernel of the labels' cause and many of noise, which all leave along one direction."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, n_kernels))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    grams = np.exp(-((x[:, None] - x[None]) ** 2) / 2).transpose(2, 0, 1)
    grams[0] = np.outer(y, y) + 0.1 * grams[0]
    return np.ascontiguousarray(grams), y


@pytest.mark.parametrize("n_kernels", [4, 64, 512])
def test_kernels_that_leave_together_cost_few_machines(n_kernels):
    grams, y = noisy_bank(n_kernels)
    d = np.full(n_kernels, 1.0 / n_kernels)
    solved: list[float] = []

    def machine(kernel: CombinedKernel):
        svm = solve_svm(kernel.matrix, y, 10.0, tol=1e-6)
        solved.append(svm.objective)
        return svm

    kernel = CombinedKernel(np.einsum("m,mij->ij", d, grams), 0.0)
    svm = machine(kernel)
    q = np.einsum("i,mij,j->m", svm.signed, grams, svm.signed)
    D = 0.5 * (q - q[0])
    D[0] = -D[1:].sum()
    kernels = WorkingSet(n_kernels, everything=True)
    lines = LineSearch(machine, kernels, np.zeros(n_kernels), lambda: False)
    steps = lines.search(SimplexPath(d, D, 0), kernel, svm)
    moved = plain_bank.run(steps, grams)
    left = int((moved == 0.0).sum())
    assert left > 0.5 * n_kernels
    assert len(solved) <= 2 * math.log2(left) + 10
    assert solve_svm(np.einsum("m,mij->ij", moved, grams), y, 10.0).objective < 0.9 * solved[0]


@pytest.mark.parametrize("seed", range(60))
def test_weights_stay_on_the_simplex_along_directions_of_unlike_scales(seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 12)
    d = rng.dirichlet(np.ones(size)) * (rng.random(size) < 0.7)
    d[reference := int(d.argmax())] += 0.1
    d /= d.sum()
    D = rng.normal(size=size) * 10.0 ** rng.uniform(-10.0, 20.0, size)
    D[(d == 0.0) & (D < 0.0)] = 0.0
    D[reference] = 0.0
    D[reference] = -D.sum()
    path = SimplexPath(d, D, reference)
    for knot in range(len(path.knots)):
        weights = path.weights(knot)
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)


def wide_bank(seed: int, n_kernels: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Gaussians of one feature each, of which few tell the classes apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, n_kernels))
    y = np.where(x[:, 0] + 0.7 * x[:, 1] + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)
    widths = rng.uniform(0.3, 3.0, size=(n_kernels, 1, 1))
    distances = (x[:, None] - x[None]).transpose(2, 0, 1) ** 2
    return np.exp(-distances / (2 * widths**2)) / len(y), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed", "C"), [("simplemkl", 0, 1.0), ("rmkl", 1, 100.0), ("simplemkl", 2, 1e4)]
)
def test_the_working_set_leaves_the_optimum_where_it_is_in_fewer_passes(name, seed, C):
    grams, y = wide_bank(seed)

    def solved(acceleration):
        asked = []
        params = {"C": C, "tol": 1e-6, "acceleration": acceleration}
        own = grams, y, lambda request, _: asked.append(request)
        solution = plain_bank.solve(name, *own, **params)
        return solution, sum(getattr(request, "kernels", None) is None for request in asked)

    (plain, of_all), (fast, fewer) = solved("none"), solved("working-set")
    assert plain.converged
    assert fast.converged
    lower = max(plain.dual_objective, fast.dual_objective)
    assert lower <= min(plain.objective, fast.objective) * (1 + 1e-12)
    assert of_all >= 2 * plain.counters.outer_iterations
    assert fewer < of_all / 4


def low_rank_bank(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Many kernels of few directions, on which the value has kinks."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(rng.integers(5, 20)) % 2, 1.0, -1.0)
    grams = np.array([low_rank(rng, y) for _ in range(rng.integers(45, 120))])
    grams = np.array([np.eye(len(y)) if (np.outer(y, y) == K).all() else K for K in grams])
    traces = np.trace(grams, axis1=1, axis2=2)
    scale = 10.0 ** rng.uniform(-1, 1, size=len(grams))
    return grams * (scale / np.where(traces > 0, traces, 1.0))[:, None, None], y


@pytest.mark.parametrize("seed", range(8))
def test_kinks_on_a_working_set_are_left_too(seed):
    grams, y = low_rank_bank(seed)
    descent, cuts = (
        plain_bank.solve(name, grams, y, C=30.0, tol=1e-4) for name in ("simplemkl", "silp")
    )
    assert descent.converged
    assert descent.objective == pytest.approx(cuts.objective, rel=2e-4)
    assert descent.dual_objective <= cuts.objective * (1 + 1e-9)


def descended(grams: np.ndarray, ridges: np.ndarray, y: np.ndarray) -> WrapperBounds:
    params, counters = SimpleMKLParams(C=30.0, tol=1e-6), Counters()
    problem = plain_bank.problem(grams, y)
    svm_at, bounds = InnerSvm(y, 30.0, 1e-6, counters), WrapperBounds(problem, params, counters)

    def machine(kernel):
        return svm_at(kernel.matrix + kernel.ridge * np.eye(len(y)))

    stop = plain_bank.run(descend(problem, params, machine, ridges, bounds), grams)
    assert stop is StopReason.CONVERGED
    return bounds


def test_ridges_are_parts_of_the_kernels():
    instance = instances.balanced()
    ridges = np.random.default_rng(0).uniform(0.0, 0.1, len(instance.grams))
    ridged = instance.grams + ridges[:, None, None] * np.eye(len(instance.y))
    apart = descended(instance.grams, ridges, instance.y)
    within = descended(ridged, np.zeros(len(ridges)), instance.y)
    assert apart.upper == pytest.approx(within.upper, rel=1e-6)
    assert max(apart.lower, within.lower) <= min(apart.upper, within.upper)
    assert apart.upper < descended(instance.grams, np.zeros(len(ridges)), instance.y).upper


RMKL = METHODS["rmkl"]


def solve_rmkl(grams: np.ndarray, y: np.ndarray, watch=None, **params) -> Solution:
    return plain_bank.solve("rmkl", grams, y, watch, **params)


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
    start = solve_rmkl(grams, y, C=C, tol=1e-9, max_iter=1)
    a = start.coefficients
    q = np.einsum("i,mij,j->m", a, grams, a) + squared_radii(grams) / C * (a @ a)
    step, mu = 1e-3, np.full(4, 0.25)
    for k in range(1, 4):
        direction = step * (np.eye(4)[k] - np.eye(4)[0])
        difference = value(grams, y, C, mu + direction) - value(grams, y, C, mu - direction)
        assert difference / (2 * step) == pytest.approx(-0.5 * (q[k] - q[0]), rel=1e-4)
    assert start.objective == pytest.approx(value(grams, y, C, mu), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e5, 1e12])
def test_scaling_kernels_scales_the_objective_inversely_and_moves_no_weight(scale):
    instance = instances.balanced()
    plain = solve_rmkl(instance.grams, instance.y, C=10.0, tol=1e-8)
    scaled = solve_rmkl(scale * instance.grams, instance.y, C=10.0, tol=1e-8)
    assert scaled.converged
    assert scale * scaled.objective == pytest.approx(plain.objective, rel=1e-7)
    np.testing.assert_allclose(scaled.kernel_weights, plain.kernel_weights, atol=1e-3)
    assert scaled.extra["radius_error"] == pytest.approx(plain.extra["radius_error"], rel=1e-2)


def test_kernels_of_radius_zero_get_no_weight():
    instance = instances.balanced()
    n = len(instance.y)
    flat = np.stack([np.zeros((n, n)), np.full((n, n), 3.0), np.full((n, n), 1e-3)])
    plain = solve_rmkl(instance.grams, instance.y, C=10.0, tol=1e-8)
    for grams in (np.concatenate([flat, instance.grams]), np.concatenate([instance.grams, flat])):
        solution = solve_rmkl(grams, instance.y, C=10.0, tol=1e-8)
        assert solution.converged
        assert solution.objective == pytest.approx(plain.objective, rel=1e-7)
        assert solution.kernel_weights[squared_radii(grams) == 0].max() < 1e-6


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e6])
def test_only_radii_of_zero_give_the_constant_of_least_squared_slack(constant):
    y = np.array([1.0, 1.0, 1.0, -1.0])
    solution = solve_rmkl(np.full((2, 4, 4), constant), y, C=2.0, tol=1e-6)
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
    solution = solve_rmkl(grams, y, C=10.0, tol=0.01, curvature=curvature)
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
    solution = solve_rmkl(grams, y, C=C, tol=1e-6)
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
    solution = solve_rmkl(grams, y, lambda request, _: seen.append(request), C=10.0, tol=1e-6)
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
    alone = solve_rmkl(part, y[splits[1]], C=10.0, tol=1e-5)
    assert outcomes["1, C=10"].objective == pytest.approx(alone.objective, rel=2e-5)


def test_the_radius_error_at_random_weights_is_that_of_a_conic_solver():
    grams, y = paper_bank()
    drawn = []

    def watch(request, _):
        if isinstance(request, Combine):
            drawn.append(request.weights)

    solution = solve_rmkl(grams, y, watch, C=1.0, random_weights=5)
    weights = np.array(drawn[-5:])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights > 0.0).all()
    assert len(np.unique(weights, axis=0)) == 5
    radii = squared_radii(grams)
    errors = [mu @ radii / squared_radius(np.einsum("m,mij->ij", mu, grams)) - 1 for mu in weights]
    assert solution.extra["random_radius_error"] == pytest.approx(np.mean(errors), rel=1e-6)
    plain = solve_rmkl(grams, y, C=1.0)
    assert "random_radius_error" not in plain.extra
    assert plain.objective == solution.objective
