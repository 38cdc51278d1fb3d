"""Level and SILP, their cuts, and what the methods with weights in the simplex have in common."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from mkldist.bank.requests import Combine, Quadratic
from mkldist.methods.cut_bundle import DualCuts
from mkldist.methods.level import PATIENCE
from mkldist.methods.registry import METHODS
from mkldist.methods.silp import stands_still
from mkldist.optim import cutting_planes
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import Clock, StopReason
from tests.methods import instances, plain_bank
from tests.methods.test_drawn_problems import mixture

EVERY_ACCELERATION = pytest.mark.parametrize("acceleration", ["none", "working-set"])


def solve(grams, y, watch=None, **params):
    return plain_bank.solve("level", grams, y, watch, **params)


@dataclass
class Seen:
    """Weights asked about, and the values at the simplex's vertices of the cuts of the answers."""

    weights: list[np.ndarray]
    cuts: list[np.ndarray]

    def watch(self, request, answer):
        if isinstance(request, Combine):
            self.weights.append(request.weights)
        if isinstance(request, Quadratic):
            self.cuts.append(np.abs(request.vectors).sum() - 0.5 * answer[:, 0])

    def lower(self, n_cuts: int) -> float:
        """Return the minimum over the simplex of the largest of the first cuts."""
        cuts, M = np.array(self.cuts[:n_cuts]), len(self.weights[0])
        found = linprog(
            np.r_[np.zeros(M), 1.0],
            A_ub=np.column_stack([cuts, -np.ones(n_cuts)]),
            b_ub=np.zeros(n_cuts),
            A_eq=np.r_[np.ones(M), 0.0][None],
            b_eq=[1.0],
            bounds=[(0, None)] * M + [(None, None)],
        )
        return float(found.fun)

    def projected(self, i: int, level: float) -> np.ndarray:
        """Return the projection of the i-th weights onto the level set of the first i+1 cuts."""
        p, cuts = cp.Variable(len(self.weights[i])), np.array(self.cuts[: i + 1])
        inside = [p >= 0, cp.sum(p) == 1, cuts @ p <= level]
        problem = cp.Problem(cp.Minimize(cp.sum_squares(p - self.weights[i])), inside)
        problem.solve(solver=cp.CLARABEL)
        return p.value


def test_weights_are_projections_onto_the_level_sets_of_the_cuts():
    instance, seen = instances.more_kernels_than_points(), Seen([], [])
    settings = {"C": instance.C, "tol": 1e-9, "max_iter": 9, "acceleration": "none"}
    solution = solve(instance.grams, instance.y, seen.watch, trace=True, **settings)
    assert len(seen.weights) == len(seen.cuts) == 9
    np.testing.assert_allclose(seen.weights[0], 1.0 / len(instance.grams))
    for i in range(8):
        upper, lower = solution.trace["objective"][i], seen.lower(i + 1)
        assert solution.trace["dual_objective"][i] == pytest.approx(lower, rel=1e-8)
        assert (upper - lower) / upper > 0.01  # or the share of the upper bound would be another
        level, p = 0.9 * upper + 0.1 * lower, seen.weights[i + 1]
        nearest = seen.projected(i, level)
        distance = np.linalg.norm(nearest - seen.weights[i])
        slack = 1.01e-3 * (upper - lower)
        assert p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0)
        assert (np.array(seen.cuts[: i + 1]) @ p).max() <= level + slack
        assert np.linalg.norm(p - seen.weights[i]) <= distance * (1 + 1e-5)
        assert np.linalg.norm(p - nearest) <= 0.05 * distance


def own_gap(solution, grams) -> float:
    """Return the relative gap of the dual point returned: its machine's value and its cut's."""
    beta = solution.coefficients
    q = np.einsum("i,mij,j->m", beta, grams, beta)
    return (solution.objective - (np.abs(beta).sum() - 0.5 * q.max())) / solution.objective


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (M, n, n) kernels of unit trace on random features, and labels."""
    rng = np.random.default_rng(seed)
    n, M = rng.integers(10, 40), rng.integers(3, 60)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    x = rng.normal(size=(M, n, 2)) + 0.5 * y[:, None] * rng.random((M, 1, 1))
    squares = ((x[:, :, None] - x[:, None]) ** 2).sum(axis=3)
    grams = np.exp(-squares * rng.uniform(0.1, 5.0, size=(M, 1, 1)))
    return grams / n, y


@pytest.mark.slow
@EVERY_ACCELERATION
def test_the_papers_rule_leaves_the_bounds_sorted_and_states_the_iterates_own_value(acceleration):
    another = 0
    for seed in range(20):
        grams, y = random_problem(seed)
        settings = {"C": 50.0, "tol": 0.03, "acceleration": acceleration, "trace": True}
        solution = solve(grams, y, stop="point", **settings)
        upper, lower = solution.trace["objective"], solution.trace["dual_objective"]
        assert (np.diff(upper) <= 0).all()
        assert (np.diff(lower) >= 0).all()
        f = np.einsum("m,mij->ij", solution.kernel_weights, grams) @ solution.coefficients
        hinge = np.maximum(0.0, 1.0 - y * (f + solution.bias)).sum()
        value = 0.5 * solution.coefficients @ f + 50.0 * hinge
        assert solution.objective == pytest.approx(value, rel=1e-9)
        assert solution.gap <= 0.03
        another += solution.objective > upper[-1]
    assert another  # or the instances would not tell the two values apart


@pytest.mark.slow
def test_a_working_set_that_grows_to_all_kernels_is_still_right():
    rng = np.random.default_rng(0)
    grams = np.zeros((48, 96, 96))
    for m in range(48):  # each sees two points of its own, so that all are needed
        x, here = (1 + m / 20) * rng.standard_normal((2, 3)), slice(2 * m, 2 * m + 2)
        grams[m, here, here] = x @ x.T + 0.1 * np.eye(2)
    y = np.where(rng.random(96) < 0.5, 1.0, -1.0)
    seen = []
    solution = solve(grams, y, lambda request, _: seen.append(request), C=100.0, tol=1e-4)
    plain = solve(grams, y, C=100.0, tol=1e-6, acceleration="none")
    assert (solution.kernel_weights > 0).all()
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.dual_objective <= plain.objective
    assert plain.dual_objective <= solution.objective
    assert sum(isinstance(r, Quadratic) and r.kernels is None for r in seen) <= 12


@pytest.mark.slow
@EVERY_ACCELERATION
def test_a_gap_within_the_tolerance_at_the_last_iteration_is_convergence(acceleration):
    instance = instances.more_kernels_than_points()
    settings = {"C": instance.C, "near": 0.99, "stop": "point", "acceleration": acceleration}
    whole = solve(instance.grams, instance.y, tol=1e-6, trace=True, **settings)
    upper, lower = whole.trace["objective"], whole.trace["dual_objective"]
    gaps = (upper - lower) / upper
    last = len(gaps) - 2  # where the bounds are closer than the iterate's own gap needs
    tol = 1.0001 * gaps[last]
    ended = solve(instance.grams, instance.y, tol=tol / 5.0, max_iter=last + 1, **settings)
    assert ended.stop_reason is StopReason.MAX_ITER
    assert ended.gap > tol / 5.0
    ended = solve(instance.grams, instance.y, tol=tol, max_iter=last + 1, **settings)
    assert ended.stop_reason is StopReason.CONVERGED
    assert ended.gap <= tol


@pytest.mark.parametrize("acceleration", ["working-set", "none"])
def test_level_says_that_rounding_allows_no_more(acceleration):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 3)), np.where(np.arange(12) % 2, 1.0, -1.0)
    gram = x @ x.T
    grams = (1e13 / np.trace(gram) * gram)[None]
    found = solve(grams, y, C=1e3, tol=1e-9, acceleration=acceleration)
    assert found.stop_reason is StopReason.STALLED
    # rounding narrows the bounds now and then, which begins a new count: 26 to 38 iterations
    assert found.counters.outer_iterations <= 4 * PATIENCE


@pytest.mark.slow
def test_a_level_near_the_upper_bound_converges_by_exact_machines():
    # The level asks for 1 % of the bounds' distance, less than the gap of machines of a tolerance.
    for seed in (6, 13, 14, 23, 38, 39):  # 500 iterations did not do before
        grams, y, C, _ = mixture(seed)
        found = solve(grams, y, C=C, tol=1e-4, near=0.99, acceleration="none")
        assert found.converged, seed


def random_cuts(seed: int, n_cuts: int = 7, n_kernels: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 10.0, n_cuts), rng.lognormal(1.0, 2.0, (n_cuts, n_kernels))


def bundle(heights: np.ndarray, q: np.ndarray, *, multiples: bool = True) -> DualCuts:
    cuts = DualCuts(q.shape[1], multiples=multiples)
    for height, row in zip(heights, q, strict=True):
        cuts.add(height, row)
    return cuts


def value(heights: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
    """Return the largest ``max_{0 <= t <= 1} t h - t^2/2 q'p``."""
    t = np.minimum(1.0, heights / (q @ p))
    return float((t * heights - 0.5 * t**2 * (q @ p)).max())


def needed(heights: np.ndarray, level: float) -> np.ndarray:
    """Return what ``q'p`` must be at least for a cut not to exceed a level."""
    high = level >= heights / 2  # then t = 1 is best there
    return np.where(high, 2 * (heights - level), heights**2 / (2 * level))


def minimum(heights: np.ndarray, q: np.ndarray) -> float:
    """Return the least value on the simplex, by bisection of linear programmes."""
    low, high = 0.0, value(heights, q, np.full(q.shape[1], 1.0 / q.shape[1]))
    ones = np.ones((1, q.shape[1]))
    for _ in range(60):
        level = 0.5 * (low + high)
        right = -needed(heights, level)
        found = linprog(np.zeros(q.shape[1]), A_ub=-q, b_ub=right, A_eq=ones, b_eq=[1.0])
        low, high = (low, level) if found.status == 0 else (level, high)
    return high


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_minimum_is_that_of_all_multiples(seed):
    heights, q = random_cuts(seed)
    expected = minimum(heights, q)
    upper = expected * (1.0 + 1e-6)
    found = bundle(heights, q).minimum(upper)
    assert_allclose(found.bound, expected, rtol=1e-5)
    cuts = bundle(heights, q[:, :3])
    cuts.minimum(np.inf)
    cuts.widen(q[:, 3:])  # kernels that come later change no minimum
    assert_allclose(cuts.minimum(upper).bound, expected, rtol=1e-5)
    assert_allclose(value(heights, q, found.weights), expected, rtol=1e-4)
    t = found.multiples
    assert ((t > 0.0) & (t <= 1.0)).all()
    # The mixture of the multiples' cuts is linear, and as high at its lowest vertex.
    mixture = found.shares @ (t * heights)[:, None] - found.shares @ (0.5 * (t**2)[:, None] * q)
    assert_allclose(mixture.min(), found.bound, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_projection_is_the_nearest_point_of_the_level_set(seed):
    heights, q = random_cuts(seed)
    rng = np.random.default_rng(100 + seed)
    centre = rng.dirichlet(np.ones(q.shape[1]))
    lowest = minimum(heights, q)
    level = lowest + 0.3 * (value(heights, q, centre) - lowest)
    p = cp.Variable(q.shape[1])
    inside = [p >= 0, cp.sum(p) == 1, q @ p >= needed(heights, level)]
    cp.Problem(cp.Minimize(cp.sum_squares(p - centre)), inside).solve(solver="CLARABEL")
    found = bundle(heights, q).project(centre, level, slack=1e-9 * level)
    assert found is not None
    assert value(heights, q, found) <= level * (1.0 + 1e-6)
    assert_allclose(found, p.value, atol=1e-5)


def solve_silp(grams, y, watch=None, **params):
    return plain_bank.solve("silp", grams, y, watch, **params)


@pytest.mark.parametrize("iterations", [1, 4, 12])
def test_bound_is_the_programme_of_the_machines_met(iterations):
    instance, seen = instances.more_kernels_than_points(), Seen([], [])
    settings = {"C": instance.C, "tol": 1e-9, "max_iter": iterations, "acceleration": "none"}
    solution = solve_silp(instance.grams, instance.y, seen.watch, **settings)
    assert len(seen.cuts) == iterations
    assert solution.dual_objective == pytest.approx(seen.lower(iterations), rel=1e-8)


def test_weights_are_vertices_of_the_model():
    instance, seen = instances.more_kernels_than_points(), Seen([], [])
    settings = {"C": instance.C, "tol": 1e-6, "acceleration": "none"}
    solve_silp(instance.grams, instance.y, seen.watch, **settings)
    supports = [np.count_nonzero(weights) for weights in seen.weights]
    # A basic solution over j cuts has at most j positive weights.
    assert all(support <= max(j, 1) for j, support in enumerate(supports[1:], start=1))


def thousand_kernels():
    """Return 1,200 Gaussian kernels of unit trace on single features and pairs, and labels."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    x = rng.normal(size=(40, 30)) + 0.5 * y[:, None] * (np.arange(30) < 4)
    grams = []
    for _ in range(1200):
        chosen = x[:, rng.choice(30, size=2, replace=False)] / rng.uniform(0.5, 4.0)
        distances = ((chosen[:, None] - chosen[None]) ** 2).sum(axis=2)
        grams.append(np.exp(-distances) / len(y))
    return np.array(grams), y


@pytest.mark.slow
def test_the_working_set_leaves_the_optimum_where_it_is_in_fewer_passes():
    grams, y = thousand_kernels()
    plain, fast = (
        solve_silp(grams, y, C=100.0, tol=1e-4, acceleration=acceleration)
        for acceleration in ("none", "working-set")
    )
    assert plain.converged
    assert fast.converged
    assert max(plain.dual_objective, fast.dual_objective) <= min(plain.objective, fast.objective)
    assert plain.counters.passes == plain.counters.outer_iterations + 1  # the first weights too
    assert fast.counters.passes < plain.counters.passes / 5


def family_of_many_features():
    """Return 403 kernels of unit trace, 13 on all of 30 features and on each, and labels."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(60) < 30, 1.0, -1.0)
    x = rng.normal(size=(60, 30)) + 0.4 * y[:, None] * (np.arange(30) < 10)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    grams = []
    for part in (x, *x.T[:, :, None]):
        distances, products = ((part[:, None] - part) ** 2).sum(axis=2), part @ part.T
        grams += [np.exp(-0.5 * distances / w**2) for w in (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)]
        grams += [(products + 1.0) ** degree for degree in (1, 2, 3)]
    return np.array([K / np.trace(K) for K in grams]), y


@pytest.mark.slow
def test_a_programme_goes_on_from_its_basis_when_kernels_join(monkeypatch):
    """Each programme once began anew then, gave up, and left the next one no basis either.

    On these kernels, as on half of sonar, a machine then took 287 pivots on average in place of 13,
    and every fourth one a call of a general solver.
    """
    pivots, given_up = [], []
    exchanged, by_general_solver = (
        cutting_planes._exchanged,
        cutting_planes._solve_by_general_solver,
    )
    monkeypatch.setattr(
        cutting_planes, "_exchanged", lambda *given: pivots.append(1) or exchanged(*given)
    )
    monkeypatch.setattr(
        cutting_planes,
        "_solve_by_general_solver",
        lambda *given: given_up.append(1) or by_general_solver(*given),
    )
    grams, y = family_of_many_features()
    fast = solve_silp(grams, y, C=1000.0, tol=0.01, max_iter=1500)
    n_pivots, n_given_up = len(pivots), len(given_up)
    plain = solve_silp(grams, y, C=1000.0, tol=0.01, acceleration="none")
    assert fast.converged
    assert plain.converged
    assert n_given_up == 0
    assert n_pivots < 40 * fast.counters.svm_solves
    assert fast.counters.svm_solves < 2 * plain.counters.svm_solves
    assert fast.counters.passes < plain.counters.passes / 20


@pytest.mark.parametrize(
    ("following", "lower", "stalled"),
    [([0.5, 0.5], 0.0, True), ([0.5, 0.5], 0.5, False), ([0.4, 0.6], 0.0, False)],
)
def test_silp_stalls_at_the_same_weights_where_its_bound_no_longer_rises(following, lower, stalled):
    weights = np.array([0.5, 0.5])
    assert stands_still(weights, np.array(following), 0.0, lower, 1.0) == stalled


@EVERY_ACCELERATION
@pytest.mark.parametrize(("name", "tol"), [("level", 1e-3), ("silp", 0.05)])
def test_by_point_it_ends_at_an_iterate_whose_own_gap_is_within_the_tolerance(
    name, tol, acceleration
):
    instance = instances.duplicated_kernels()
    settings = {"C": instance.C, "tol": tol, "acceleration": acceleration, "stop": "point"}
    solution = plain_bank.solve(name, instance.grams, instance.y, **settings)
    assert solution.converged
    assert own_gap(solution, instance.grams) <= tol
    assert solution.gap > tol / 10  # the bounds alone would not have ended the search


@pytest.mark.parametrize(("name", "tol"), [("level", 1e-3), ("silp", 0.01)])
def test_much_tighter_bounds_end_the_working_set_and_not_the_papers_algorithm(name, tol):
    instance = instances.more_kernels_than_points()
    settings = {"C": instance.C, "tol": tol}
    for acceleration in ("working-set", "none"):
        by_bounds, by_point = (
            plain_bank.solve(
                name, instance.grams, instance.y, acceleration=acceleration, stop=stop, **settings
            )
            for stop in ("bounds", "point")
        )
        assert by_point.converged
        assert by_point.gap <= tol / 10
        assert (own_gap(by_point, instance.grams) <= tol) == (acceleration == "none")
        assert by_point.counters.outer_iterations > by_bounds.counters.outer_iterations


class HurriedClock(Clock):
    """A clock that advances by half an hour each time it is read."""

    looks = 0

    @property
    def elapsed(self) -> float:
        self.looks += 1
        return 1800.0 * self.looks


def test_time_limit_ends_a_search_that_drops_one_kernel_after_another():
    instance = instances.more_kernels_than_points()
    method = METHODS["simplemkl"]
    problem = Problem(instance.y, len(instance.grams), HurriedClock())
    settings = {"tol": 1e-12, "time_limit": 3601.0, "acceleration": "none"}
    params = method.params(C=instance.C, **settings)
    solution = plain_bank.run(method.solve(problem, params), instance.grams)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.counters.outer_iterations == 2
    assert solution.counters.svm_solves < 10


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("level", {"acceleration": "none"}),
        ("silp", {"acceleration": "none"}),
        ("simplemkl", {"curvature": False}),
        ("hessianmkl", {}),
    ],
)
def test_a_trace_tells_the_iterates_from_the_best_so_far(name, settings):
    instance = instances.balanced()
    words = {"C": instance.C, "tol": 1e-3, "trace": True, **settings}
    trace = plain_bank.solve(name, instance.grams, instance.y, **words).trace
    own, best = trace["iterate_objective"], trace["objective"]
    np.testing.assert_allclose(np.minimum.accumulate(own), best, rtol=1e-12)
    assert (trace["iterate_gap"] >= (own - trace["dual_objective"]) / own - 1e-12).all()
    assert (own > best).any() == (name in ("level", "silp"))  # these two do not descend


@pytest.mark.parametrize("classes", [1, 2])
def test_a_state_is_renewed_on_kernels_that_have_changed(classes):
    instance = instances.INSTANCES[0]()
    y = instance.y if classes == 1 else np.column_stack([instance.y, np.roll(instance.y, 3)])
    method = METHODS["level"]
    state = plain_bank.solve("level", instance.grams, y, C=instance.C).state
    grown = instance.grams + 0.5 * np.roll(instance.grams, 1, axis=0)
    steps = method.renewal.renewed(plain_bank.problem(grown, y), state)
    renewed = plain_bank.run(steps, grown)
    assert len(renewed.binding) == len(state.binding) > 0
    for point, before in zip(renewed.binding, state.binding, strict=True):
        signed = (before.alpha * y).reshape(len(y), -1)
        q = np.einsum("nk,mnl,lk->m", signed, grown[state.kernels], signed)
        np.testing.assert_allclose(point.q, q)
        np.testing.assert_array_equal(point.alpha, before.alpha)
    np.testing.assert_array_equal(renewed.weights, state.weights)
