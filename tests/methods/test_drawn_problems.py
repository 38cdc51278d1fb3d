"""Certificates of all methods on drawn problems and on awkward mixtures."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods import plain_bank
from tests.methods.instances import solid_factors
from tests.methods.references import conic_value
from tests.variants import quick

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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return plain_bank.solve(name, grams, y, **params)


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted(set(range(25)) - HARD_FOR_CONES))
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 208))
def test_kernels_sixteen_decades_apart_are_no_hindrance(seed):
    grams, y, rng = instance(seed)
    grams = grams * 10.0 ** rng.uniform(-8, 8, len(grams))[:, None, None]
    for C in (1e-4, 1.0, 100.0):
        found = [
            solve(name, grams, y, C=C, tol=1e-5) for name in ("level", "simplemkl", "hessianmkl")
        ]
        lower = max(solution.dual_objective for solution in found)
        for solution in found:
            assert solution.converged
            assert lower <= solution.objective <= lower * (1 + 3e-5)
        for more in ({"loss": "hinge", "regularizer": "block-q"}, {"loss": "hinge"}, {}):
            assert solve("spicymkl", grams, y, C=C, tol=1e-4, **more).converged


TOL = 1e-7
ROUNDING = 1e-4


def kernel_awkward_mixtures(
    rng: np.random.Generator, y: np.ndarray, others: list[np.ndarray]
) -> np.ndarray:
    n, kind, columns = len(y), rng.integers(0, 7), rng.integers(1, 5)
    x = rng.normal(size=(n, columns))
    if rng.random() < 0.3:
        x = np.round(x)
    if rng.random() < 0.3:
        x[:, 0] += y
    match kind:
        case 0:
            return x @ x.T
        case 1:
            return np.exp(-((x[:, None] - x[None]) ** 2).sum(-1))
        case 2:
            return np.zeros((n, n))
        case 4:
            return (1 + x @ x.T) ** 3
        case 5 if others:
            return others[rng.integers(len(others))].copy()
        case 6:
            return np.ones((n, n))
        case _:
            return np.eye(n)


def mixture(seed: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return kernels, labels, C and sigma."""
    rng = np.random.default_rng(seed)
    n, n_kernels = rng.integers(2, 50), rng.integers(1, 25)
    y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    grams: list[np.ndarray] = []
    for _ in range(n_kernels):
        grams.append(kernel_awkward_mixtures(rng, y, grams))
    stack = np.array(grams)
    if rng.random() < 0.5:
        traces = np.trace(stack, axis1=1, axis2=2)
        stack /= np.where(traces > 0, traces, 1)[:, None, None]
    stack *= 10.0 ** rng.choice([0, 0, 0, -8, 6])
    return stack, y, 10.0 ** rng.uniform(-3, 4), 10.0 ** rng.uniform(-3, 3)


@pytest.mark.parametrize(
    "seed", quick([0, 1, 133, 134, 144, 196, 285, 318, 17, 73, 136, 292, 501, 886, *range(2, 6)], 8)
)
def test_bounds_meet_and_methods_agree(seed):
    grams, y, C, sigma = mixture(seed)
    solutions = {}
    for name in ("silp", "hessianmkl", "gmkl"):
        price = {"sigma": sigma} if name == "gmkl" else {}
        solutions[name] = plain_bank.solve(name, grams, y, C=C, tol=TOL, **price)
        # Kernels of 1e6 times a large C leave rounding of this size in the sum of slacks.
        assert solutions[name].converged or solutions[name].gap <= ROUNDING
    tol = max(TOL, *(2 * solution.gap for solution in solutions.values()))
    cuts, newton = solutions["silp"], solutions["hessianmkl"]
    assert relative_gap(cuts.objective, newton.dual_objective) <= tol
    assert relative_gap(newton.objective, cuts.dual_objective) <= tol
    # gmkl of total weight s is the simplex problem at s C: any s bounds its optimum from above.
    priced = solutions["gmkl"]
    assert priced.dual_objective <= (newton.objective + sigma) * (1 + tol)
