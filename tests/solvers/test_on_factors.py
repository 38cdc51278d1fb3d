"""Solutions on factors that grow until they hold for the kernels."""

from contextlib import suppress
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist import KernelBank, solve
from mkldist.bank import factored_kernels
from mkldist.bank.factored_kernels import FactoredKernels, FactorLimits, begin_factors
from mkldist.bank.requests import Quadratic
from mkldist.bank.sources import ArraySource, FeatureSource
from mkldist.kernels.evaluate import evaluate
from mkldist.methods.registry import METHODS
from mkldist.optim.pivoted_cholesky import factor_bytes
from mkldist.solvers import on_factors
from mkldist.solvers.base import Problem
from mkldist.solvers.on_factors import ExactForms, solve_on_factors
from mkldist.solvers.progress import DualBound, StopReason
from tests.kernels.made_up import gaussians
from tests.methods.instances import Instance
from tests.methods.references import block_norm
from tests.methods.test_drawn_problems import HARD_FOR_CONES, conic_optimum, instance
from tests.variants import quick

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=N) > 0, 1.0, -1.0)
GRAMS = np.array([rbf_kernel(X, gamma=g) for g in (0.02, 0.2, 2.0, 20.0)]
                 + [rbf_kernel(X[:, [i]], gamma=1.0) for i in range(3)])  # fmt: skip
NARROW = np.array([rbf_kernel(X, gamma=g) for g in (0.05, 1.0, 30.0, 300.0)])


def kernels_of(grams, **limits):
    return begin_factors(ArraySource(grams), FactorLimits(**limits))


def solved(kernels, name="level", y=Y, **params):
    method = METHODS[name]
    problem = Problem(y, kernels.source.n_kernels)
    found = solve_on_factors(kernels, method, problem, method.params(**params))
    assert found.times.wall_seconds >= found.times.pass_seconds > 0.0
    return found.solution, found.limit


def ranks(kernels):
    return np.array([factor.rank for factor in kernels.factors.factors])


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 5)


@cache
def optimum_at(C):
    """Return the optimum of Level with all kernels."""
    return conic_optimum(GRAMS, Y, C)


@pytest.mark.parametrize("seed", quick(sorted(set(range(12)) - HARD_FOR_CONES), 2))
def test_factors_grow_until_the_optimum_is_that_of_the_kernels(seed):
    grams, y, rng = instance(seed)
    C, tol = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.choice([-2.0, -3.0])
    solution, limit = solved(kernels_of(grams), y=y, C=C, tol=tol)
    optimum = conic_optimum(grams, y, C)
    assert not limit
    assert solution.exact_gap <= tol
    assert solution.exact_dual_objective <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= solution.objective <= optimum * (1 + 1.01 * tol)


@pytest.mark.slow
@pytest.mark.parametrize("C", quick([3.0, 30.0]))
def test_only_kernels_that_matter_get_long_factors(C, monkeypatch):
    monkeypatch.setattr(on_factors, "FEW", 1.0)  # of so few kernels most are active at first
    kernels = kernels_of(GRAMS)
    solution, limit = solved(kernels, C=C, tol=1e-3)
    found = ranks(kernels)
    assert not limit
    assert solution.exact_gap <= 1e-3
    assert solution.gap <= 0.5e-3
    assert solution.extra["largest_rank"] == found.max() > 5
    assert (found == 5).any()
    assert abs(solution.objective / optimum_at(C) - 1.0) <= 1.01e-3


@pytest.mark.slow
def test_passes_over_all_kernels_are_spent_on_certificates_alone(monkeypatch):
    seen, exactly = [], FactoredKernels.exactly

    def spy(self, request):
        seen.append((type(request).__name__, self.source.n_kernels))
        return exactly(self, request)

    monkeypatch.setattr(FactoredKernels, "exactly", spy)
    monkeypatch.setattr(on_factors, "FEW", 1.0)  # of so few kernels most are active at first
    solution, _ = solved(kernels_of(GRAMS), C=30.0, tol=1e-3)
    active = np.count_nonzero(solution.kernel_weights)
    of_all = [kind for kind, n in seen if n == len(GRAMS)]
    assert of_all.count("Quadratic") <= 2
    assert active < len(GRAMS)
    assert len(seen) > 2 * of_all.count("Quadratic")  # the others were over active kernels


def test_the_machine_on_equal_weights_holds_too():
    solution, limit = solved(kernels_of(GRAMS), "uniform", C=30.0, tol=1e-3)
    optimum = conic_optimum(GRAMS.mean(axis=0)[None], Y, 30.0)
    assert not limit
    assert solution.exact_gap <= 1e-3
    assert abs(solution.objective / optimum - 1.0) <= 1.01e-3


@pytest.mark.slow
def test_classes_that_share_weights_hold_together():
    y = np.column_stack([Y, np.where(X[:, 2] > 0, 1.0, -1.0)])[:60]
    grams = GRAMS[:, :60, :60]
    solution, limit = solved(kernels_of(grams), y=y, C=3.0, tol=1e-2)
    exact, _ = solved(kernels_of(grams), y=y, C=3.0, tol=1e-3)
    assert not limit
    assert solution.exact_gap <= 1e-2
    assert exact.exact_dual_objective <= solution.objective
    assert solution.exact_dual_objective <= exact.objective


def test_duplicates_and_kernels_of_low_rank_need_no_more_columns_than_they_have():
    repeated = X[np.arange(N) // 5]
    grams = np.array([rbf_kernel(repeated, gamma=0.5), X @ X.T, np.ones((N, N))])
    kernels = kernels_of(grams)
    solution, limit = solved(kernels, C=1.0, tol=1e-4)
    assert not limit
    assert (ranks(kernels) <= [N // 5, 3, 1]).all()
    assert solution.exact_gap <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "params", "said"),
    [
        ({"rank": 8}, {}, "rank"),
        ({"n_bytes": 70 * factor_bytes(N, 1)}, {}, "memory"),
        ({}, {"time_limit": 1e-9}, "time_limit"),
    ],
)
def test_the_limit_that_ends_the_growth_is_said(limits, params, said):
    solution, limit = solved(kernels_of(GRAMS, **limits), C=30.0, tol=1e-3, **params)
    assert said in (limit, solution.stop_reason)
    assert solution.exact_gap > 1e-3
    optimum = optimum_at(30.0)
    assert solution.exact_dual_objective <= optimum <= solution.objective * (1 + 1e-6)


@pytest.mark.slow
def test_a_solver_that_stops_early_is_certified_as_it_is():
    kernels = kernels_of(GRAMS)
    solution, limit = solved(kernels, C=30.0, tol=1e-6, max_iter=1)
    assert (limit, str(solution.stop_reason)) == ("", "max_iter")
    assert (ranks(kernels) == 5).all()
    optimum = optimum_at(30.0)
    assert solution.exact_dual_objective <= optimum <= solution.objective * (1 + 1e-6)


@pytest.mark.slow
def test_work_of_all_rounds_is_counted():
    solution, _ = solved(kernels_of(GRAMS), C=30.0, tol=1e-3)
    alone, _ = solved(kernels_of(GRAMS, tolerance=0.0, rank=5), C=30.0, tol=1e-3)
    assert solution.counters.svm_solves > alone.counters.svm_solves


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params", "unit"),
    [
        ("level", {"C": 3.0}, 1.0),
        ("primalmkl", {"C": 3.3333333333333335}, 0.3),
        ("spicymkl", {"loss": "logistic", "C": 10.0}, None),
        ("elastmkl", {"loss": "squared", "C": 10.0}, None),
    ],
)
def test_norms_in_the_objective_are_slopes_of_the_loss_times_the_function(name, params, unit):
    solution, _ = solved(kernels_of(GRAMS), name, tol=1e-7, **params)
    slopes, coefficients = np.abs(solution.dual_variables), np.abs(solution.coefficients)
    np.testing.assert_allclose(slopes, on_factors.unit_of_norms(solution) * coefficients, rtol=1e-3)
    assert unit is None or on_factors.unit_of_norms(solution) == pytest.approx(unit, rel=1e-3)


def ending(level, **changes):
    """Solve by a method that ends otherwise than `level`."""
    kernels, problem = kernels_of(GRAMS), Problem(Y, len(GRAMS))
    return solve_on_factors(kernels, replace(level, **changes), problem, level.params(C=0.3))


def test_a_stalled_solution_grows_too_and_has_converged_within_the_tolerance():
    level = METHODS["level"]

    def stalling(problem, params):
        solution = yield from level.solve(problem, params)
        return replace(solution, stop_reason=StopReason.STALLED)

    found = ending(level, solve=stalling)
    assert found.solution.exact_gap <= 0.01
    assert (found.solution.converged, found.limit) == (True, "")


def test_a_solution_beyond_the_tolerance_has_not_converged_where_factors_lack_nothing():
    def half(problem, params, solution):
        yield from ()
        return DualBound(0.5 * solution.objective, solution.dual_variables)

    found = ending(METHODS["level"], exact_bound=half)
    assert found.solution.stop_reason is StopReason.STALLED
    assert found.limit == "rounding"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss", "C"), [("spicymkl", "hinge", 10.0), ("elastmkl", "logistic", 2.0)]
)
def test_kernels_below_the_largest_grow_where_a_threshold_makes_them_active(name, loss, C):
    y = np.where(X[:60, 0] > 0, 1.0, -1.0)
    strong = 0.2 * np.outer(X[:60, 0], X[:60, 0])
    grams = np.array([strong, *[np.eye(60) / 60] * 6])
    params = {"C": C, "loss": loss, "regularizer": "elastic-net", "mix": block_norm.MIX}
    kernels = kernels_of(grams)
    solution, limit = solved(kernels, name, y, tol=1e-3, **params)
    optimum = block_norm.optimum(Instance("", grams, y, C), y, params)
    assert (solution.converged, limit) == (True, "")
    assert solution.exact_gap <= 1e-3
    assert solution.exact_dual_objective <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= solution.objective <= optimum * (1 + 1.01e-3)


@pytest.mark.slow
def test_a_sample_shows_which_factors_to_make_longer_before_a_pass_is_spent(monkeypatch):
    seen, certified = [], on_factors.certified_exactly

    def spy(kernels, bound, problem, params, solution, sample):
        seen.append(sample)
        return certified(kernels, bound, problem, params, solution, sample)

    monkeypatch.setattr(on_factors, "certified_exactly", spy)
    monkeypatch.setattr(on_factors, "DRAWN", 20)
    monkeypatch.setattr(on_factors, "SAMPLE_PAYS", 0.0)
    solution, limit = solved(kernels_of(GRAMS), C=30.0, tol=1e-2)
    assert (limit, seen[0].n_drawn, seen[-1]) == ("", 20, None)
    assert sum(sample is None for sample in seen) < len(seen) / 2
    assert solution.exact_gap <= 1e-2
    assert solution.exact_dual_objective <= optimum_at(30.0) * (1 + 1e-6)
    assert "sampled_points" not in solution.extra


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick(range(5), 2))
def test_where_a_pass_is_too_dear_the_certificate_is_statistical_and_says_so(seed, monkeypatch):
    visited, exactly = [], FactoredKernels.exactly

    def spy(self, request):
        if isinstance(request, Quadratic):
            visited.append(self.source.n_kernels)
        return exactly(self, request)

    monkeypatch.setattr(FactoredKernels, "exactly", spy)
    monkeypatch.setattr(on_factors, "DRAWN", 60)
    monkeypatch.setattr(on_factors, "FEW", 0.0)
    kernels = replace(kernels_of(GRAMS, pass_values=0.0), seed=seed)
    solution, _ = solved(kernels, C=3.0, tol=1e-2)
    active = np.count_nonzero(solution.kernel_weights)
    assert visited[-1] == active < len(GRAMS)
    assert max(visited) < len(GRAMS)
    assert solution.extra["sampled_points"] == 60
    assert solution.exact_dual_objective <= optimum_at(3.0) * (1 + 1e-6)
    assert solution.exact_gap <= 1e-2


def test_a_choice_from_some_kernels_has_not_converged_however_small_its_gap():
    solution, limit = solved(kernels_of(GRAMS), "best_single", C=1.0, time_limit=1e-9)
    assert (solution.stop_reason, limit) == (StopReason.TIME_LIMIT, "")


@pytest.fixture
def many(monkeypatch):
    """Count as many points already those of this file."""
    monkeypatch.setattr(on_factors, "MANY", 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "C"),
    [("level", 3.0), ("level", 0.5), ("uniform", 3.0), ("silp", 0.5), ("simplemkl", 3.0),
     ("hessianmkl", 0.5)],
)  # fmt: skip
def test_narrow_kernels_have_their_diagonals_and_the_bounds_are_those_of_the_kernels(many, name, C):
    kernels = kernels_of(NARROW)
    solution, limit = solved(kernels, name, C=C, tol=1e-2)
    grams = NARROW.mean(axis=0)[None] if name == "uniform" else NARROW
    optimum = conic_optimum(grams, Y, C)
    assert (solution.converged, limit) == (True, "")
    assert solution.exact_gap <= 1e-2
    assert C < 1.0 or solution.kernel_weights[2:].sum() > 0.01
    assert solution.exact_dual_objective <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= solution.objective <= optimum * 1.0101


WIDTHS = (3.0, 0.7, 0.13, 0.04)  # of the narrow kernels


def from_points(y=Y, cosine=False, rank=N, **limits):
    """Return the narrow kernels by their points, whose sums are computed where `rank` is None."""
    points = X[: len(y)]
    source = FeatureSource(points, gaussians(WIDTHS, [[0, 1, 2]]), cosine)
    return begin_factors(source, FactorLimits(rank, **limits))


@pytest.mark.slow
@pytest.mark.parametrize("rank", quick([None, N]))
@pytest.mark.parametrize(
    ("acceleration", "C", "tol"),
    [("working-set", 3.0, 1e-2), ("none", 0.5, 1e-2), ("none", 30.0, 1e-2),
     ("working-set", 3.0, 1e-4)],
)  # fmt: skip
def test_a_solver_goes_on_by_points_and_factors_stay_as_they_are(many, acceleration, C, tol, rank):
    kernels = from_points(rank=rank)
    solution, limit = solved(kernels, C=C, tol=tol, acceleration=acceleration)
    optimum = conic_optimum(evaluate(kernels.source.kernels, X, X), Y, C)
    assert (solution.converged, limit) == (True, "")
    assert (ranks(kernels) <= 5).all()
    assert solution.extra["largest_rank"] == 5
    assert solution.gap == solution.exact_gap <= tol
    assert solution.exact_dual_objective <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= solution.objective <= optimum * (1 + 1.01 * tol)


def drawn_points(seed):
    """Return points, labels, Gaussians of any width and a generator."""
    _, y, rng = instance(seed)
    points = rng.normal(size=(len(y), 3))
    return points, y, gaussians(10.0 ** rng.uniform(-2, 1, 4), [[0, 1, 2], [1], [0, 2]]), rng


def assert_true_by_points(seed, name="level"):
    """Solve a drawn problem from its points, and hold the bounds to the conic optimum."""
    points, y, listed, rng = drawn_points(seed)
    C, scale = 10.0 ** rng.uniform(-3, 2), 10.0 ** rng.uniform(-2, 2, len(listed))
    limits = FactorLimits(rank=len(y) if seed % 2 else None)  # which has some sums computed
    kernels = begin_factors(FeatureSource(points, listed), limits, seed=seed, threads=2)
    solution, _ = solved(replace(kernels, scale=scale), name, y=y, C=C, tol=1e-3)
    grams = scale[:, None, None] * evaluate(listed, points, points)
    optimum = conic_optimum(grams, y, C)
    assert solution.exact_gap <= 1e-3
    assert solution.exact_dual_objective <= optimum * (1 + 1e-6) + 1e-8 * C
    assert optimum * (1 - 1e-6) - 1e-8 * C <= solution.objective


@pytest.mark.parametrize("seed", quick(sorted(set(range(12)) - HARD_FOR_CONES), 2))
def test_bounds_by_points_hold_on_drawn_problems(many, seed):
    assert_true_by_points(seed)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "first"), [("level", 2000), ("silp", 2050), ("simplemkl", 2100)])
def test_bounds_by_points_and_diagonals_hold_on_many(many, name, first):
    compared = 0
    for seed in range(first, first + 25):
        with suppress(cp.SolverError):  # the conic solver misses its own tolerance on a few
            assert_true_by_points(seed, name)
            compared += 1
    assert compared >= 22


BLOCK_NORMS = [
    ("spicymkl", "logistic", "block1"),
    ("spicymkl", "hinge", "block1"),
    ("elastmkl", "hinge", "elastic-net"),
    ("elastmkl", "squared", "elastic-net"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "loss", "regularizer"), BLOCK_NORMS)
def test_bounds_of_block_norms_hold_on_many(name, loss, regularizer):
    compared = 0
    for seed in range(3000, 3025):
        points, y, listed, rng = drawn_points(seed)
        grams, C = evaluate(listed, points, points), 10.0 ** -rng.uniform(-2, 1)
        params = {"C": C, "loss": loss, "regularizer": regularizer, "mix": block_norm.MIX}
        solution, _ = solved(kernels_of(grams), name, y, tol=1e-3, **params)
        with suppress(cp.SolverError):
            optimum = block_norm.optimum(Instance("", grams, y, C), y, params)
            assert solution.exact_gap <= 1e-3
            assert solution.exact_dual_objective <= optimum * (1 + 1e-5) + 1e-8
            assert optimum * (1 - 1e-5) - 1e-8 <= solution.objective
            compared += 1
    assert compared >= 22


def test_the_value_by_points_is_that_of_the_expansion(many):
    solution, _ = solved(from_points(), C=3.0, tol=1e-2)
    d, v = solution.kernel_weights, solution.coefficients
    f = np.tensordot(d, evaluate(gaussians(WIDTHS, [[0, 1, 2]]), X, X), axes=1) @ v
    value = 0.5 * v @ f + 3.0 * np.maximum(0.0, 1.0 - Y * (f + solution.bias)).sum()
    assert solution.objective == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(solution.training_values, f + solution.bias, atol=1e-10)
    own = solution.kernel_coefficients
    assert np.array_equal(own, np.broadcast_to(v, (np.count_nonzero(d), N)))


@pytest.mark.slow
@pytest.mark.parametrize("params", quick([{"time_limit": 1e-9}, {"max_iter": 1}]))
def test_a_limit_before_or_among_products_leaves_true_bounds(many, params):
    kernels = from_points()
    optimum = conic_optimum(evaluate(kernels.source.kernels, X, X), Y, 3.0)
    solution, _ = solved(kernels, C=3.0, tol=1e-6, **params)
    assert not solution.converged
    assert 0.0 < solution.exact_dual_objective <= optimum <= solution.objective * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["few points", "classes", "dear", "no path", "no loops"])
def test_where_products_do_not_pay_factors_grow(many, monkeypatch, case):
    def none(self):
        raise AssertionError("went on by points")

    monkeypatch.setattr(on_factors._Growing, "solved_by_points", none)
    kernels, name, y = from_points(), "level", Y
    match case:
        case "few points":
            monkeypatch.setattr(on_factors, "MANY", N + 1)
        case "classes":
            y = np.column_stack([Y, np.where(X[:, 2] > 0, 1.0, -1.0)])
        case "dear":
            kernels = replace(kernels, limits=FactorLimits(N, pass_values=20_000.0))
        case "no path":
            name = "simplemkl"
        case "no loops":
            kernels = kernels_of(NARROW)
    solution, _ = solved(kernels, name, y=y, C=3.0, tol=1e-2)
    assert solution.exact_gap <= 1e-2


@pytest.mark.slow
def test_diagonals_take_what_narrow_kernels_lack_before_ranks_grow(many, monkeypatch):
    monkeypatch.setattr(on_factors, "HOPELESS", 0.0)
    seen, with_diagonals = [], FactoredKernels.with_diagonals

    def spy(self, times):
        found = with_diagonals(self, times)
        seen.append((times, ranks(found)))
        return found

    monkeypatch.setattr(FactoredKernels, "with_diagonals", spy)
    solved(kernels_of(NARROW), C=3.0, tol=1e-3)
    assert 1 <= len(seen) <= on_factors.MOST_CHANGES
    assert (seen[0][0] == 1.0).all()
    assert len(seen) == 1 or (seen[1][0] != 1.0).any()
    assert seen[-1][1][3] == 5  # the narrowest kernel


@pytest.mark.slow
def test_methods_of_other_objectives_have_no_diagonals(many):
    params = {"loss": "logistic", "C": 10.0}
    solution, _ = solved(kernels_of(NARROW), "spicymkl", tol=1e-2, **params)
    assert solution.exact_gap <= 1e-2
    assert (np.count_nonzero(solution.kernel_coefficients, axis=1) < N).any()  # on pivots


def test_decisions_with_diagonals_are_those_of_the_kernels_themselves(many):
    entries = [{"function": "gaussian", "widths": [0.05, 0.7, 3], "features": ["all"]}]
    with KernelBank(X, entries, backend="factors") as bank:
        solution = solve("level", bank, Y, C=3.0 * N)
        found = solution.decision_function(bank.on(X))
        apart = bank.expansion(solution).values(X)
    own = solution.kernel_coefficients
    assert np.array_equal(own, np.broadcast_to(solution.coefficients, own.shape))
    np.testing.assert_allclose(found, solution.training_values, atol=1e-9)
    np.testing.assert_allclose(np.ravel(apart), found, atol=1e-9)


def solution(weights, coefficients=(1.0, 0.0, 2.0), slopes=(0.5, 0.0, 1.0)):
    return SimpleNamespace(
        kernel_weights=np.array(weights),
        coefficients=np.array(coefficients),
        dual_variables=np.array(slopes),
    )


def forms(exact, found, of_rests=None):
    exact, found = (np.array(one, dtype=float)[:, None] for one in (exact, found))
    rests = np.zeros_like(exact) if of_rests is None else np.array(of_rests, dtype=float)[:, None]
    return ExactForms(exact, found, rests)


def factor(rank, left=0.0):
    return SimpleNamespace(rank=rank, left=left)


def test_ranks_grow_by_the_root_of_what_is_lacking_within_limits():
    factors = [factor(10), factor(10), factor(100), factor(0)]
    wanted = on_factors.longer(factors, np.array([0, 1, 2, 3]), np.array([1.0, 4.0, 100.0, 9.0]))
    assert wanted == {0: 16, 1: 21, 2: 401, 3: 4}


def test_norms_that_lack_little_together_blame_no_kernel():
    one = solution([0.5, 0.5])
    assert on_factors.unit_of_norms(one) == pytest.approx(0.5)
    # 0.5 * 0.5 * 0.5 * lack: shares of 0.125 and 0.0125
    lack, active = np.array([1.0, 0.1]), np.arange(2)
    assert not on_factors.lacked_by_norms(one, active, lack, allowed=0.1375).any()
    ratios = on_factors.lacked_by_norms(one, active, lack, allowed=0.1)
    np.testing.assert_allclose(ratios, [2.5, 0.0])


def test_kernels_in_use_and_those_of_larger_forms_are_to_blame():
    # The largest form found is 4: kernel 2 would exceed it, kernel 1 would not.
    both = forms([4.4, 3.0, 5.0], [4.0, 1.0, 3.0])
    blame = on_factors.error_by_kernel(solution([1.0, 0.0, 0.0]), both, tol=0.01)
    np.testing.assert_allclose(blame, [0.1, 0.0, 0.5])
    assert on_factors.largest_errors(blame, 0.01).tolist() == [0, 2]


def test_where_those_lack_nothing_all_may_be_to_blame():
    both = forms([4.0, 3.0, 2.0], [4.0, 1.0, 2.0])
    blame = on_factors.error_by_kernel(solution([1.0, 0.0, 0.0]), both, tol=0.01)
    np.testing.assert_allclose(blame, [0.0, 0.5, 0.0])


def test_factors_without_any_form_are_to_blame_alike():
    blame = on_factors.error_by_kernel(solution([0.5, 0.5]), forms([1.0, 1.0], [0.0, 0.0]), 0.01)
    assert (blame > 1e100).all()


def test_diagonals_take_the_form_that_is_lacking_of_some_kernels():
    times = np.array([1.0, 1.0, 2.0, 1.0])
    both = forms([3.0, 3.0, 9.0, 0.5], [2.0, 2.0, 1.0, 1.0], of_rests=[0.5, 0.5, 1.0, 0.25])
    corrected = on_factors.corrected_diagonals(times, both, {0, 2, 3})
    np.testing.assert_allclose(corrected, [3.0, 1.0, 8.0, 0.0])


def test_narrow_kernels_are_known_by_what_their_factors_lack():
    assert on_factors.is_narrow(factor(5, left=0.3))
    assert not on_factors.is_narrow(factor(5, left=0.1))
    assert on_factors.may_help(factor(5, left=0.3))
    assert not on_factors.may_help(factor(5, left=0.95))
    assert not on_factors.may_help(factor(10**6, left=0.3))


def test_points_count_that_any_machine_uses():
    assert on_factors.used_points(solution([1.0])) == 2
    classes = solution([1.0], coefficients=[[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    assert on_factors.used_points(classes) == 2


def test_a_share_of_the_loss_is_that_of_weight_and_rest():
    blame = on_factors.error_by_diagonals(
        solution([0.5, 0.5, 0.0]), [factor(1, 0.3), factor(1, 0.1), factor(1, 0.9)]
    )
    np.testing.assert_allclose(blame, [0.75, 0.25, 0.0])
    nothing = on_factors.error_by_diagonals(solution([1.0]), [factor(1, 0.0)])
    np.testing.assert_allclose(nothing, [0.0])
