"""Hinge loss with a price on kernel weights: max 1'a with every ||F_m (a*y)||^2 <= 2 sigma."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, factors
from tests.methods.references import Case, Params, decision, with_C

SIGMA = 1.0


def priced_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of the dual, with a in units in which the norms' bounds are about 1."""
    sigma = params.get("sigma", SIGMA)
    traces = np.trace(instance.grams, axis1=1, axis2=2)
    unit = min(np.sqrt(2 * sigma * len(y) / (traces.max() or 1.0)), params["C"])
    a = cp.Variable(len(y))
    constraints = [a >= 0, a <= params["C"] / unit, y @ a == 0]
    constraints += [
        cp.norm(root @ cp.multiply(y, a)) <= np.sqrt(2 * sigma) / unit
        for root in factors(instance.grams)
        if len(root)
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(a)), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return unit * float(problem.value)


def priced_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """C sum of hinge + 1/2 sum_m ||f_m||^2 / d_m + sigma sum_m d_m."""
    d, a = solution.kernel_weights, solution.coefficients
    squares = d**2 * np.einsum("i,mij,j->m", a, instance.grams, a)
    norm = float((squares[d > 0] / d[d > 0]).sum())
    hinge = np.maximum(0, 1 - y * decision(instance, solution)).sum()
    return 0.5 * norm + params["C"] * hinge + params.get("sigma", SIGMA) * d.sum()


EXTREMES = ({"C": 1e-8}, {"C": 1e8}, {"sigma": 1e-8}, {"sigma": 1e8})


def _case(label: str, **settings: float) -> Case:
    return Case(
        "gmkl",
        priced_optimum,
        priced_value,
        lambda instance: with_C(instance) | settings,
        label=label,
        extremes=EXTREMES,
    )


CASES = [_case(""), _case("dear", sigma=30.0), _case("gradient steps", newton=0.0)]
