"""Hinge loss with weights in the simplex: min over d of the support vector machine's value."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, solid_factors
from tests.methods.references import TOL, Case, Params, decision, in_its_own_unit, with_C


def simplex_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'a - t, t >= 1/2 ||F_m (a*y)||^2 for all m."""
    return simplex_point(instance, y, params)[0]


def simplex_point(instance: Instance, y: np.ndarray, params: Params) -> tuple[float, np.ndarray]:
    """Return the optimum and a (n,) that attains it, clipped to its bounds."""
    C, n = params["C"], len(y)
    roots = solid_factors(instance.grams)
    found = np.zeros(n)

    def solve(unit: float) -> float:
        nonlocal found
        u = unit / n  # of the dual variables
        a, t = cp.Variable(n), cp.Variable()
        constraints = [a >= 0, a <= C / u, y @ a == 0, t >= 0]
        constraints += [0.5 * u * cp.sum_squares(root @ cp.multiply(y, a)) <= t for root in roots]
        problem = cp.Problem(cp.Maximize(cp.sum(a) - t), constraints)
        with warnings.catch_warnings():  # of less accuracy, on ill-conditioned kernels
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
        found = np.clip(u * a.value, 0.0, C)
        return u * float(problem.value)

    return in_its_own_unit(solve, min(C, 1.0) * n), found


def uniform_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    mean = Instance("mean", instance.grams.mean(axis=0)[None], y, instance.C)
    return simplex_optimum(mean, y, params)


def svm_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """C sum of hinge + 1/2 ||f||^2 at the returned weights."""
    f = decision(instance, solution)
    norm = solution.coefficients @ (f - solution.bias)
    return 0.5 * norm + params["C"] * np.maximum(0, 1 - y * f).sum()


EXTREMES = ({"C": 1e-8}, {"C": 1e8})

CASES = [
    Case(name, simplex_optimum, svm_value, with_C, extremes=EXTREMES)
    for name in ("level", "simplemkl", "silp", "hessianmkl", "skm")
]
# As the papers print the algorithms.
PRINTED: dict[str, Params] = {
    "level": {"acceleration": "none", "near": 0.99, "stop": "point"},
    "silp": {"acceleration": "none", "stop": "point"},
    "simplemkl": {"curvature": False, "line_search": "golden-section"},
    "hessianmkl": {"acceleration": "none"},
}
# Values of J, which golden section compares, have half the digits of its slopes.
LEAST_TOL = {"simplemkl": 1e-7}
CASES += [
    Case(
        name,
        simplex_optimum,
        svm_value,
        lambda instance, printed=printed: with_C(instance) | printed,
        label="printed",
        extremes=EXTREMES,
        tol=LEAST_TOL.get(name, TOL),
    )
    for name, printed in PRINTED.items()
]
CASES.append(Case("uniform", uniform_optimum, svm_value, with_C, extremes=EXTREMES))
