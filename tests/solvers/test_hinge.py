"""Bounds of machines where C magnifies rounding: exact fractions, and the same problem in units."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from cvxpy.error import SolverError
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel

from mkldist.methods.registry import METHODS
from mkldist.solvers.svm import slack_spread, solve_svm
from tests.methods import instances, plain_bank
from tests.methods.references.simplex_svm import simplex_optimum


def points(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    y = instances._labels(rng, n, n // 2)
    return instances._points(rng, y, 3), y


def unscaled(factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return polynomial and linear kernels of points in large units, and labels."""
    x, y = points()
    kernels = [polynomial_kernel(factor * x, degree=d, gamma=1.0) for d in (2, 3)]
    return np.array([*kernels, linear_kernel(factor * x)]), y


def exact_primal(K: np.ndarray, y: np.ndarray, C: float, beta: np.ndarray, bias: float) -> Fraction:
    """Return ``1/2 beta'K beta + C sum_i hinge_i`` in fractions."""
    exact = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])
    b, f = exact(beta), exact(K) @ exact(beta)
    hinges = (
        max(Fraction(0), 1 - int(s) * (v + Fraction(bias))) for s, v in zip(y, f, strict=True)
    )
    return sum(b * f) / 2 + Fraction(C) * sum(hinges)


@pytest.mark.parametrize("factor", [1.0, 100.0, 1e3, 1e4])
def test_an_enlarged_function_is_worth_no_more_than_its_upper_bound(factor):
    grams, y = unscaled(factor)
    K = np.ascontiguousarray(grams.mean(axis=0))
    svm = solve_svm(K, y, 1.0, tol=1e-12)
    exact = exact_primal(K, y, 1.0, svm.coefficients, float(svm.bias))
    # svm.rounding allows 1.3e-11 of the objective at the larger factors
    assert exact <= Fraction(svm.objective) * (1 + Fraction(1, 10**11))
    assert svm.gap <= 1e-8
    assert svm.scale >= 1.0
    np.testing.assert_allclose(svm.values, K @ svm.coefficients + svm.bias, rtol=0, atol=1e-9)
    if factor >= 1e3:  # the plain function costs C times its rounding
        assert svm.scale > 1.0
        plain = exact_primal(K, y, 1.0, svm.signed, float(svm.bias))
        assert plain > 1.5 * Fraction(svm.objective)


PLAIN = {"acceleration": "none"}


def optimum_without_bounds(grams: np.ndarray, y: np.ndarray, largest: float) -> float:
    """Return the conic optimum at a C that exceeds all dual variables, of which one is `largest`.

    On some processors rounding makes Clarabel give up at one C and not at its neighbour.
    """
    for factor in (2.0, 2.5, 1.5):
        C = factor * largest
        with suppress(SolverError, TypeError):
            return simplex_optimum(instances.Instance("unit", grams, y, C), y, {"C": C})
    raise AssertionError("Clarabel gave up at every C")


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("level", {}), ("level", PLAIN), ("silp", {}), ("silp", PLAIN), ("simplemkl", {}),
        ("hessianmkl", {}),
    ],
)  # fmt: skip
def test_wrappers_converge_on_unscaled_kernels(name, own):
    """With kernels t K and bound C, the optimum is 1/t times that of K and t C."""
    grams, y = unscaled(1e3)
    t = float(np.trace(grams.mean(axis=0)))
    params = METHODS[name].params(C=1.0, tol=1e-4, **own)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS[name].solve(problem, params), grams)
    assert solution.converged
    assert solution.gap <= 1e-4
    # t C is out of reach of a conic solver
    optimum = optimum_without_bounds(grams / t, y, t * np.abs(solution.dual_variables).max()) / t
    assert solution.dual_objective <= optimum * (1 + 1e-6)
    assert solution.objective >= optimum * (1 - 1e-6)


def test_the_spread_is_that_of_points_below_their_bounds():
    slack, beta = np.array([3.0, 1.0, -2.0, 9.0]), np.array([0.0, 0.5, -1.0, 1.0])
    lower, upper = np.array([0.0, 0.0, -1.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0])
    assert slack_spread(slack, beta, lower, upper) == 3.0 - 1.0
    assert slack_spread(slack[3:], beta[3:], lower[3:], upper[3:]) == 0.0
