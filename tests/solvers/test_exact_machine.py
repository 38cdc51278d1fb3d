"""Machines of the kernels themselves, by plain sums, and estimates of their values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.sources import ArraySource
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem
from mkldist.solvers.exact_certificate import estimated_value, with_expansions, with_kernels
from mkldist.solvers.lockstep import Job, solve_alone

N, C = 90, 3.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=N) > 0, 1.0, -1.0)
TWO = np.column_stack([Y, np.where(X[:, 2] > 0, 1.0, -1.0)])
GRAMS = np.array([rbf_kernel(X, gamma=g) for g in (0.05, 1.0, 30.0)])


def on_factors(y, weights=None, scale=1.0):
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


@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_that_of_the_expansion_at_its_best_bias(y, weighted):
    weights = RNG.uniform(0.5, 2.0, N) if weighted else None
    kernels, problem, solution = on_factors(y, weights, scale=7.0)
    found, bounds = with_kernels(kernels, problem, C, solution), problem.bound(C)
    expected, f = value_at(solution, y, bounds, found.bias)
    assert found.objective == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(found.training_values, f + found.bias, atol=1e-10)
    others = [value_at(solution, y, bounds, found.bias + by)[0] for by in (-0.1, 0.1)]
    assert min(others) >= expected - 1e-9
    assert abs(found.objective / solution.objective - 1.0) > 1e-4


@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_of_expansions_is_that_of_their_functions_at_the_best_bias(y, weighted):
    weights = RNG.uniform(0.5, 2.0, N) if weighted else None
    kernels, problem, solution = on_factors(y, weights, scale=7.0)
    d, bounds = np.array([0.7, 0.0, 0.3]), problem.bound(C)
    solution = replace(solution, kernel_weights=d)
    own = np.array([solution.coefficients * RNG.uniform(0.5, 1.5, y.shape) for _ in range(2)])
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
    kernels, problem, solution = on_factors(Y)
    found = estimated_value(kernels, problem, C, solution, np.arange(N))
    assert found == pytest.approx(value_at(solution, Y, C, solution.bias)[0], rel=1e-6)
    some = RNG.integers(N, size=4000)
    assert estimated_value(kernels, problem, C, solution, some) == pytest.approx(found, rel=0.02)
