"""Random instances at any scale: bounds enclose a conic solver's optimum, or the objective itself.

Kernels of full and of low rank, zero, constant, duplicated, of points that coincide; one label
against the rest; kernels scaled by 1e-12 to 1e12.  Nothing may warn, and no claim may be false.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods import plain_bank
from tests.methods.instances import solid_factors
from tests.methods.references import conic_value
from tests.variants import quick

pytestmark = pytest.mark.slow

SIMPLEX = ("level", "simplemkl", "silp", "hessianmkl", "skm")
HARD_FOR_CONES = {21}  # seeds at which the conic solver misses its own tolerance
LARGEST_C = 1e4  # of unit kernels, beyond which rounding alone may keep bounds apart


def kernel(rng: np.random.Generator, y: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    n, x = len(y), rng.normal(size=(len(y), rng.integers(1, 5)))
    x[:, 0] += y * (rng.random() < 0.4)
    match rng.integers(0, 8):
        case 0:
            return np.outer(x[:, 0], x[:, 0])
        case 1:
            return np.zeros((n, n))
        case 2:
            return np.ones((n, n))
        case 3 if others:
            return others[rng.integers(len(others))]
        case 4:
            return np.round(x) @ np.round(x).T
        case 5:
            return (1 + x @ x.T) ** 3
        case _:
            return np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) * 10 ** rng.uniform(-3, 2))


def instance(seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return kernels of unit mean diagonal, or zero, and labels."""
    rng = np.random.default_rng(seed)
    n, n_kernels = rng.integers(2, 30), rng.integers(1, 40)
    y = np.where(rng.random(n) < rng.choice([0.5, 0.3, 0.0]), 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    grams: list[np.ndarray] = []
    for _ in range(n_kernels):
        grams.append(kernel(rng, y, grams))
    stack = np.array(grams)
    if seed % 3 == 0 and n > 4:  # points that coincide, some with the other label
        twins = np.arange(n)
        twins[n // 2 : 2 * (n // 2)] = twins[: n // 2]
        stack = stack[:, twins][:, :, twins]
    means = np.trace(stack, axis1=1, axis2=2) / n
    return stack / np.where(means > 0, means, 1.0)[:, None, None], y, rng


def solve(name: str, grams: np.ndarray, y: np.ndarray, **params) -> Solution:
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return plain_bank.run(steps, grams)


def conic_optimum(grams: np.ndarray, y: np.ndarray, C: float) -> float:
    a, t = cp.Variable(len(y)), cp.Variable()
    roots = [root for root in solid_factors(grams) if len(root)]
    balls = [0.5 * C * cp.sum_squares(root @ cp.multiply(y, a)) <= t for root in roots]
    box = [a >= 0, a <= 1, y @ a == 0, t >= 0]
    return C * conic_value(cp.Problem(cp.Maximize(cp.sum(a) - t), box + balls))


def evaluated(solution: Solution, grams: np.ndarray, y: np.ndarray, C: float) -> float:
    """Return the primal value of a predictor, in extended precision."""
    d, a = solution.kernel_weights, solution.coefficients.astype(np.longdouble)
    f = sum(d[m] * (grams[m].astype(np.longdouble) @ a) for m in range(len(d)))
    hinge = np.maximum(0.0, 1.0 - y * (f + np.longdouble(solution.bias)))
    return float(0.5 * (a @ f) + C * hinge.sum())


def assert_sound(solution: Solution, tol: float) -> None:
    numbers = [solution.objective, solution.dual_objective, solution.bias]
    assert np.isfinite(numbers).all()
    assert all(np.isfinite(v).all() for v in (solution.coefficients, solution.kernel_weights))
    assert (solution.kernel_weights >= 0.0).all()
    assert solution.kernel_weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= tol)
    assert solution.counters.outer_iterations <= 500


@pytest.mark.parametrize("seed", quick(sorted(set(range(25)) - HARD_FOR_CONES), 5))
def test_bounds_enclose_the_conic_optimum_at_any_scale(seed):
    grams, y, rng = instance(seed)
    C, scale = 10.0 ** rng.uniform(-3, 2), 10.0 ** rng.uniform(-12, 12)
    tol = 10.0 ** rng.choice([-2.0, -4.0, -6.0])
    optimum = conic_optimum(grams, y, C) / scale
    slack = 1e-5 * optimum
    for name in SIMPLEX:
        solution = solve(name, scale * grams, y, C=C / scale, tol=tol)
        assert_sound(solution, tol)
        assert solution.stop_reason is StopReason.CONVERGED
        assert solution.dual_objective <= optimum + slack
        assert solution.objective >= optimum - slack


@pytest.mark.parametrize("seed", quick(range(100, 125), 5))
def test_extreme_parameters_leave_claims_true(seed):
    grams, y, rng = instance(seed)
    C, tol = 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.choice([-2.0, -6.0, -10.0])
    solutions = {name: solve(name, grams, y, C=C, tol=tol, max_iter=200) for name in SIMPLEX}
    lower = max(solution.dual_objective for solution in solutions.values())
    for solution in solutions.values():
        assert_sound(solution, tol)
        assert C > LARGEST_C or tol < 1e-6 or solution.converged
        assert lower <= solution.objective * (1 + 1e-7)
        assert evaluated(solution, grams, y, C) <= solution.objective * (1 + 1e-7)
