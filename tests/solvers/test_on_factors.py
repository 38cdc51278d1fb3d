"""Solutions on factors that grow until they hold for the kernels, against a conic solver."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank import factored_kernels
from mkldist.bank.factored_kernels import FactoredKernels
from mkldist.bank.requests import Quadratic
from mkldist.methods.registry import METHODS
from mkldist.optim.pivoted_cholesky import factor_bytes
from mkldist.solvers import on_factors
from mkldist.solvers.base import Problem
from mkldist.solvers.on_factors import solve_on_factors
from mkldist.solvers.progress import DualBound, StopReason
from tests.methods.instances import Instance
from tests.methods.references import block_norm
from tests.methods.test_random_instances import HARD_FOR_CONES, conic_optimum, instance
from tests.solvers.grown_factors import GRAMS, N, X, Y, kernels_of, ranks, solved
from tests.variants import quick


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


def test_a_solver_that_stops_early_is_certified_as_it_is():
    kernels = kernels_of(GRAMS)
    solution, limit = solved(kernels, C=30.0, tol=1e-6, max_iter=1)
    assert (limit, str(solution.stop_reason)) == ("", "max_iter")
    assert (ranks(kernels) == 5).all()
    optimum = optimum_at(30.0)
    assert solution.exact_dual_objective <= optimum <= solution.objective * (1 + 1e-6)


def test_work_of_all_rounds_is_counted():
    solution, _ = solved(kernels_of(GRAMS), C=30.0, tol=1e-3)
    alone, _ = solved(kernels_of(GRAMS, tolerance=0.0, rank=5), C=30.0, tol=1e-3)
    assert solution.counters.svm_solves > alone.counters.svm_solves


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


@pytest.mark.parametrize(("name", "loss"), [("spicymkl", "hinge"), ("elastmkl", "logistic")])
@pytest.mark.parametrize("C", quick([10.0, 2.0]))
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
