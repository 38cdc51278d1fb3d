"""Solutions by `on_factors` that take from points or diagonals what short factors lack."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from mkldist import KernelBank, solve
from mkldist.bank import factored_kernels
from mkldist.bank.factored_kernels import FactoredKernels, FactorLimits, begin_factors
from mkldist.bank.sources import FeatureSource
from mkldist.kernels.evaluate import evaluate
from mkldist.solvers import on_factors
from tests.kernels.few_lists import gaussians
from tests.methods.instances import Instance
from tests.methods.references import block_norm
from tests.methods.test_random_instances import HARD_FOR_CONES, conic_optimum, instance
from tests.solvers.grown_factors import NARROW, N, X, Y, kernels_of, ranks, solved
from tests.variants import quick


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 5)


@pytest.fixture
def many(monkeypatch):
    """Count as many points already those of this file."""
    monkeypatch.setattr(on_factors, "MANY", 1)


@pytest.mark.parametrize("name", quick(["level", "uniform", "silp", "simplemkl", "hessianmkl"], 2))
@pytest.mark.parametrize("C", quick([3.0, 0.5]))
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


def from_points(y=Y, cosine=False, **limits):
    """Return the narrow kernels by their points."""
    points = X[: len(y)]
    source = FeatureSource(points, gaussians(WIDTHS, [[0, 1, 2]]), cosine)
    return begin_factors(source, FactorLimits(**limits))


@pytest.mark.parametrize("acceleration", quick(["working-set", "none"]))
@pytest.mark.parametrize(("C", "tol"), quick([(3.0, 1e-2), (0.5, 1e-2), (30.0, 1e-2), (3.0, 1e-4)]))
def test_a_solver_goes_on_by_points_and_factors_stay_as_they_are(many, acceleration, C, tol):
    kernels = from_points()
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
    kernels = begin_factors(FeatureSource(points, listed), FactorLimits(), seed=seed, threads=2)
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
@pytest.mark.parametrize("name", ["level", "silp", "simplemkl"])
@pytest.mark.parametrize("first", range(2000, 2150, 50))
def test_bounds_by_points_and_diagonals_hold_on_hundreds(many, name, first):
    compared = 0
    for seed in range(first, first + 50):
        with suppress(cp.SolverError):  # the conic solver misses its own tolerance on a few
            assert_true_by_points(seed, name)
            compared += 1
    assert compared >= 45


BLOCK_NORMS = [
    ("spicymkl", "logistic", "block1"),
    ("spicymkl", "hinge", "block1"),
    ("elastmkl", "hinge", "elastic-net"),
    ("elastmkl", "squared", "elastic-net"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "loss", "regularizer"), BLOCK_NORMS)
@pytest.mark.parametrize("first", range(3000, 3100, 50))
def test_bounds_of_block_norms_hold_on_hundreds(name, loss, regularizer, first):
    compared = 0
    for seed in range(first, first + 50):
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
    assert compared >= 45


def test_the_value_by_points_is_that_of_the_expansion(many):
    solution, _ = solved(from_points(), C=3.0, tol=1e-2)
    d, v = solution.kernel_weights, solution.coefficients
    f = np.tensordot(d, evaluate(gaussians(WIDTHS, [[0, 1, 2]]), X, X), axes=1) @ v
    value = 0.5 * v @ f + 3.0 * np.maximum(0.0, 1.0 - Y * (f + solution.bias)).sum()
    assert solution.objective == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(solution.training_values, f + solution.bias, atol=1e-10)
    own = solution.kernel_coefficients
    assert np.array_equal(own, np.broadcast_to(v, (np.count_nonzero(d), N)))


@pytest.mark.parametrize("params", quick([{"time_limit": 1e-9}, {"max_iter": 1}]))
def test_a_limit_before_or_among_products_leaves_true_bounds(many, params):
    kernels = from_points()
    optimum = conic_optimum(evaluate(kernels.source.kernels, X, X), Y, 3.0)
    solution, _ = solved(kernels, C=3.0, tol=1e-6, **params)
    assert not solution.converged
    assert 0.0 < solution.exact_dual_objective <= optimum <= solution.objective * (1 + 1e-6)


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
            kernels = replace(kernels, limits=FactorLimits(pass_values=20_000.0))
        case "no path":
            name = "simplemkl"
        case "no loops":
            kernels = kernels_of(NARROW)
    solution, _ = solved(kernels, name, y=y, C=3.0, tol=1e-2)
    assert solution.exact_gap <= 1e-2


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
