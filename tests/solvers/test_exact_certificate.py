"""Certificates of solutions on factors with the kernels themselves."""

import tracemalloc
from contextlib import suppress
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist import KernelBank
from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.sources import ArraySource
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.lockstep import Job, solve_alone
from mkldist.solvers.on_factors import (
    certified_exactly,
    estimated_value,
    with_expansions,
    with_kernels,
)
from tests.methods.test_drawn_problems import conic_optimum, instance

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=120) > 0, 1.0, -1.0)
ENTRIES = [{"function": "gaussian", "widths": [0.1, 0.5, 2], "features": ["all", "each"]}]


def on_factors(
    name: str, grams: np.ndarray, y: np.ndarray, rank: int, dtype: str = "float64", **params
) -> Solution:
    """Solve on factors of given matrices, and certify with the matrices."""
    method, limits = METHODS[name], FactorLimits(rank, tolerance=0.0)
    kernels = begin_factors(ArraySource(grams), limits, dtype=dtype)
    settings, problem = method.params(**params), Problem(y, len(grams))
    job = Job(name, kernels.view, problem, method.solve(problem, settings))
    solution = solve_alone(kernels.factors, job)
    found, forms = certified_exactly(kernels, method, problem, settings, solution)
    rounding = 1e-9 if dtype == "float64" else 1e-2
    limit = forms.exact * (1 + rounding) + rounding * (1.0 + forms.exact.max())
    assert (forms.found <= limit).all()
    return found


def assert_true(
    solution: Solution, grams: np.ndarray, y: np.ndarray, C: float, *, fixed: bool = False
) -> None:
    """Hold the bounds to the conic optimum with the kernels, and the objective to its function.

    The optimum is that over the simplex, or at the solution's weights if these are `fixed`.
    """
    summed = np.tensordot(solution.kernel_weights, grams, 1)[None]
    optimum = conic_optimum(summed if fixed else grams, y, C)
    slack = 1e-6 * optimum
    assert solution.exact_dual_objective is not None
    assert solution.exact_dual_objective <= optimum + slack
    assert solution.objective >= optimum - slack
    true_gap = (solution.objective - optimum) / solution.objective
    assert solution.exact_gap >= true_gap - 1e-6
    d, own = solution.kernel_weights, solution.kernel_coefficients
    kernels = np.flatnonzero(d)
    products = [grams[m] @ a for m, a in zip(kernels, own, strict=True)]
    f = sum((d[m] * p for m, p in zip(kernels, products, strict=True)), np.zeros(len(y)))
    norm = sum(d[m] * a @ p for m, a, p in zip(kernels, own, products, strict=True))
    value = 0.5 * norm + C * np.maximum(0.0, 1.0 - y * (f + solution.bias)).sum()
    assert value <= solution.objective * (1 + 1e-6)


def value_of(solution: Solution, grams: np.ndarray, y: np.ndarray, C: float) -> np.longdouble:
    """Return the value of the expansions of a solution, in extended precision."""
    d = solution.kernel_weights.astype(np.longdouble)
    f, norm = np.zeros(len(y), np.longdouble), np.longdouble(0)
    for m, own in zip(np.flatnonzero(d), solution.kernel_coefficients, strict=True):
        product = grams[m].astype(np.longdouble) @ own
        f, norm = f + d[m] * product, norm + d[m] * own @ product
    return norm / 2 + C * np.maximum(0, 1 - y * (f + np.longdouble(solution.bias))).sum()


def rounded_factors(seed: int, log_C: tuple[float, float]) -> tuple:
    """Return a solution on factors in single precision with its problem, by any of the methods."""
    grams, y, rng = instance(seed)
    C, rank = 10.0 ** rng.uniform(*log_C), int(rng.integers(1, 40))
    method = str(rng.choice(["level", "simplemkl", "uniform", "align"]))
    tol = 10.0 ** rng.choice([-2.0, -4.0])
    solution = on_factors(method, grams, y, rank, "float32", C=C, tol=tol)
    assert solution.gap == solution.exact_gap
    return solution, grams, y, C, method in ("uniform", "align")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 50, 10))
def test_a_value_with_factors_in_single_precision_is_not_below_that_of_its_function(first):
    for seed in range(first, first + 10):
        solution, grams, y, C, _ = rounded_factors(seed, (-3, 4))
        assert value_of(solution, grams, y, C) <= solution.objective
        assert solution.exact_dual_objective <= solution.objective


@pytest.mark.slow
@pytest.mark.parametrize("first", [1000, 1025])
def test_factors_in_single_precision_leave_the_bounds_true(first):
    compared = 0
    for seed in range(first, first + 25):
        with suppress(cp.SolverError):
            solution, grams, y, C, fixed = rounded_factors(seed, (-2, 2))
            assert_true(solution, grams, y, C, fixed=fixed)
            compared += 1
    assert compared >= 22


def test_the_bounds_of_factors_in_single_precision_are_not_those_of_the_factors():
    seed, C, rank = 11, 25.8, 20  # whose factors give an objective below that of the kernels
    grams, y, _ = instance(seed)
    limits = FactorLimits(rank, tolerance=0.0)
    kernels = begin_factors(ArraySource(grams), limits, dtype="float32")
    left = [gram - one.values @ one.values.T
            for gram, one in zip(grams, kernels.factors.factors, strict=True)]  # fmt: skip
    assert min(np.linalg.eigvalsh(one)[0] for one in left) < -1e-8
    assert not kernels.factors.lies_below
    solution = on_factors("level", grams, y, rank, "float32", C=C, tol=1e-5)
    assert_true(solution, grams, y, C)


def test_the_decision_function_is_that_of_the_factors():
    with KernelBank(X, ENTRIES, backend="factors", rank=30) as bank:
        solution = mkldist.solve("level", bank, Y, C=50.0, tol=0.9)
        found = solution.decision_function(bank.on(X))
        apart = bank.expansion(solution)
    np.testing.assert_allclose(found, solution.training_values, atol=1e-7)
    np.testing.assert_allclose(np.ravel(apart.values(X)), found, atol=1e-7)
    assert "exact" in repr(solution)


@pytest.mark.slow
def test_no_matrix_of_all_points_is_made():
    n = 4000
    points = np.random.default_rng(0).normal(size=(n, 2))
    y = np.where(points[:, 0] * points[:, 1] > 0.0, 1.0, -1.0)
    kernels = [{"function": "gaussian", "widths": [1, 2], "features": ["all"]}]
    tracemalloc.start()
    with KernelBank(points, kernels, backend="factors") as bank:
        solution = mkldist.solve("level", bank, y, C=1000.0)
        values = solution.decision_function(bank.on(points[:50]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.converged
    assert np.mean(np.sign(values) == y[:50]) > 0.8
    assert peak < 8 * n * n


def test_a_solution_on_the_kernels_themselves_has_one_gap():
    with KernelBank(X, ENTRIES) as bank:
        solution = mkldist.solve("level", bank, Y, C=50.0)
    assert solution.exact_gap == solution.gap
    assert solution.exact_dual_objective is None


N, C = 90, 3.0
RNG_90 = np.random.default_rng(0)
X_90 = RNG_90.normal(size=(N, 3))
Y_90 = np.where(X_90[:, 0] * X_90[:, 1] + 0.2 * RNG_90.normal(size=N) > 0, 1.0, -1.0)
TWO = np.column_stack([Y_90, np.where(X_90[:, 2] > 0, 1.0, -1.0)])
GRAMS = np.array([rbf_kernel(X_90, gamma=g) for g in (0.05, 1.0, 30.0)])


def solved_with_diagonals(y, weights=None, scale=1.0):
    """Return kernels of half the given scale, a problem on them, and its solution on factors."""
    begun = begin_factors(ArraySource(2.0 * GRAMS / scale), FactorLimits(rank=8))
    kernels = begun.with_diagonals(np.ones(len(GRAMS)))
    kernels.scale[:] = 0.5 * scale
    method, problem = METHODS["level"], Problem(y, len(GRAMS), weights=weights)
    steps = method.solve(problem, method.params(C=C, tol=0.01))
    return (
        kernels,
        problem,
        solve_alone(kernels.factors, Job("level", kernels.view, problem, steps)),
    )


def value_at(solution, y, bounds, bias):
    v, d = solution.coefficients, solution.kernel_weights
    f = np.einsum("m,mij,j...->i...", d, GRAMS, v)
    losses = np.maximum(0.0, 1.0 - y * (f + bias))
    return 0.5 * float((v * f).sum()) + float((bounds * losses.T).sum()), f


@pytest.mark.parametrize("y", [Y_90, TWO], ids=["one", "two"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_that_of_the_expansion_at_its_best_bias(y, weighted):
    weights = RNG_90.uniform(0.5, 2.0, N) if weighted else None
    kernels, problem, solution = solved_with_diagonals(y, weights, scale=7.0)
    found, bounds = with_kernels(kernels, problem, C, solution), problem.bound(C)
    expected, f = value_at(solution, y, bounds, found.bias)
    assert found.objective == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(found.training_values, f + found.bias, atol=1e-10)
    others = [value_at(solution, y, bounds, found.bias + by)[0] for by in (-0.1, 0.1)]
    assert min(others) >= expected - 1e-9
    assert abs(found.objective / solution.objective - 1.0) > 1e-4


@pytest.mark.parametrize("y", [Y_90, TWO], ids=["one", "two"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_of_expansions_is_that_of_their_functions_at_the_best_bias(y, weighted):
    weights = RNG_90.uniform(0.5, 2.0, N) if weighted else None
    kernels, problem, solution = solved_with_diagonals(y, weights, scale=7.0)
    d, bounds = np.array([0.7, 0.0, 0.3]), problem.bound(C)
    solution = replace(solution, kernel_weights=d)
    own = np.array([solution.coefficients * RNG_90.uniform(0.5, 1.5, y.shape) for _ in range(2)])
    found = with_expansions(kernels, problem, C, solution, own)
    products = [GRAMS[m].astype(np.longdouble) @ a for m, a in zip((0, 2), own, strict=True)]
    f = d[0] * products[0] + d[2] * products[1]
    norm = sum(d[m] * (a * p).sum() for m, a, p in zip((0, 2), own, products, strict=True))

    def value(bias):
        losses = np.maximum(0.0, 1.0 - y * (f + bias))
        return norm / 2 + (bounds * losses.T).sum()

    assert value(found.bias) <= found.objective <= value(found.bias) * (1 + 1e-9)
    assert min(value(found.bias + by) for by in (-0.1, 0.1)) >= value(found.bias) - 1e-9
    np.testing.assert_allclose(found.training_values, (f + found.bias).astype(float), atol=1e-10)
    assert found.kernel_coefficients is own


def test_an_estimate_from_all_points_is_the_value_at_the_old_bias():
    kernels, problem, solution = solved_with_diagonals(Y_90)
    found = estimated_value(kernels, problem, C, solution, np.arange(N))
    assert found == pytest.approx(value_at(solution, Y_90, C, solution.bias)[0], rel=1e-6)
    some = RNG_90.integers(N, size=4000)
    assert estimated_value(kernels, problem, C, solution, some) == pytest.approx(found, rel=0.02)
