"""R-MKL: squared slacks over the kernels K_k + (R_k^2 / C) I, weights in the simplex."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.balls import squared_radii
from tests.methods.instances import Instance, factors
from tests.methods.references import Case, Params, decision, with_C

TOLERANCE = 1e-9


def rmkl_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of the dual, with the ridges R_k^2 / C; of radii that are all zero, with 1 / C."""
    squared = squared_radii(instance.grams)
    ridges = squared if squared.any() else np.ones(len(squared))
    return ridged_optimum(instance.grams, ridges / params["C"], y)


def ridged_optimum(grams: np.ndarray, ridges: np.ndarray, y: np.ndarray) -> float:
    """Optimum of max 1'a - max_k 1/2 (||F_k (a*y)||^2 + ridge_k ||a||^2), a >= 0, y'a = 0.

    The second term is quadratic in the length of a, so the optimum is (1'v)^2 / 4 at the v of
    largest sum whose norms sqrt(...) are at most 1: a second-order cone program.
    """
    size = _size(grams, ridges, y)
    v = cp.Variable(len(y))
    constraints = [v >= 0, y @ v == 0]
    for root, ridge in zip(factors(grams), ridges, strict=True):
        rows = np.vstack([root * y, np.sqrt(ridge) * np.eye(len(y))])
        constraints.append(cp.norm(np.sqrt(0.5 * size) * np.linalg.qr(rows, mode="r") @ v) <= 1)
    problem = cp.Problem(cp.Maximize(cp.sum(v)), constraints)
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE)
    problem.solve(solver=cp.CLARABEL, **tolerances)
    return size * float(problem.value) ** 2 / 4.0


def _size(grams: np.ndarray, ridges: np.ndarray, y: np.ndarray) -> float:
    """Return the sum of the best multiple of a vector of equal class totals."""
    a = np.where(y > 0, 1.0 / (y > 0).sum(), 1.0 / (y < 0).sum())
    q = np.einsum("i,mij,j->m", a * y, grams, a * y) + ridges * (a @ a)
    return float(a.sum() ** 2 / q.max())


def rmkl_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """1/2 ||f||^2 + C / (2 sum mu R^2) sum of squared slacks at the returned weights."""
    f = decision(instance, solution)
    norm = solution.coefficients @ (f - solution.bias)
    squared = squared_radii(instance.grams)
    radius = solution.kernel_weights @ (squared if squared.any() else np.ones(len(squared)))
    slack = np.maximum(0.0, 1.0 - y * f)
    return float(0.5 * norm + params["C"] / (2.0 * radius) * slack @ slack)


CASES = [Case("rmkl", rmkl_optimum, rmkl_value, with_C, extremes=({"C": 1e-8}, {"C": 1e8}))]
