"""Hinge loss with weights bounded or penalised in the p-norm."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, factors
from tests.methods.references import Case, Params
from tests.methods.references.simplex_svm import EXTREMES, svm_value


def conic_optimum(
    instance: Instance,
    y: np.ndarray,
    C: float,
    unit: float,
    penalty: Callable[[cp.Expression], cp.Expression],
) -> float:
    """Optimum of max 1'a - penalty(s), s_m >= ||F_m (a*y)|| sqrt(C / unit), times C.

    The unit is to make s of about unit size, or Clarabel loses digits.
    """
    roots = [np.sqrt(C / unit) * root for root in factors(instance.grams) if len(root)]
    a, s = cp.Variable(len(y)), cp.Variable(len(roots))
    constraints = [a >= 0, a <= 1, y @ a == 0]
    constraints += [cp.norm(root @ cp.multiply(y, a)) <= s[m] for m, root in enumerate(roots)]
    problem = cp.Problem(cp.Maximize(cp.sum(a) - penalty(s)), constraints)
    with warnings.catch_warnings():
        # cvxpy advises power cones for norms of many cones; Clarabel loses digits on those.
        warnings.filterwarnings("ignore", message="pnorm with p")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    return C * float(problem.value)


def dual_norm(s: cp.Expression, params: Params) -> cp.Expression:
    """Return ``||s^2||_{p*}^(1/2)`` by second-order cones, exact for the p of the cases."""
    exponent = Fraction(2 * params["p"] / (params["p"] - 1)).limit_denominator(100)
    return cp.pnorm(s, float(exponent), max_denom=1024, approx=True)


def ball_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'alpha - 1/2 ||q||_{p*}."""
    unit = len(y) / 5
    return conic_optimum(
        instance, y, params["C"], unit, lambda s: 0.5 * unit * dual_norm(s, params) ** 2
    )


def penalised_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'alpha - ||q||_{p*}^2 / (8 lam)."""
    C, lam = params["C"], params["lam"]
    unit = np.sqrt(len(y) * lam / C)
    return conic_optimum(
        instance,
        y,
        C,
        unit,
        lambda s: C * unit**2 / (8 * lam) * cp.power(dual_norm(s, params), 4),
    )


def penalised_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    d, p = solution.kernel_weights, params["p"]
    assert (d >= 0).all()
    norm = d.max() * ((d / d.max()) ** p).sum() ** (1 / p)
    return svm_value(instance, y, params, solution) + params["lam"] / 2 * norm**2


def ball_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    d, p = solution.kernel_weights, params["p"]
    assert (d >= 0).all()
    assert d.max() * ((d / d.max()) ** p).sum() ** (1 / p) <= 1 + 1e-12
    return svm_value(instance, y, params, solution)


def with_p(p: float, **others: float) -> Callable[[Instance], Params]:
    return lambda instance: {"C": instance.C, "p": p, **others}


CASES = [
    Case(
        "lp_mkl",
        ball_optimum,
        ball_value,
        with_p(p),
        label=f"p={p:.3g}",
        extremes=(*EXTREMES, {"p": 1.001}, {"p": 1e6}),
    )
    for p in (1.05, 4 / 3, 2.0, 4.0)
]
CASES += [
    Case(
        "smo_mkl",
        penalised_optimum,
        penalised_value,
        with_p(p, lam=lam),
        label=f"p={p:.3g},lam={lam}",
        extremes=(*EXTREMES, {"p": 1.001}, {"p": 1e6}, {"lam": 1e-6}, {"lam": 1e6}),
    )
    for p, lam in ((1.05, 1.0), (4 / 3, 10.0), (2.0, 1.0), (4.0, 0.1))
]
