"""Hinge loss with weights bounded or penalised in the p-norm."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, solid_factors
from tests.methods.references import Case, Params, in_its_own_unit
from tests.methods.references.simplex_svm import EXTREMES, svm_value

MAXIMUM = 1000  # exponent from which a norm is as good as the maximum
FAR = 1e6  # bound of the dual variables that is so far away that it would cost digits


def conic_optimum(
    instance: Instance,
    y: np.ndarray,
    C: float,
    penalty: Callable[[cp.Expression, float], cp.Expression],
) -> float:
    """Optimum of max 1'alpha - unit penalty(s, unit), s_m >= ||F_m (alpha*y)|| / sqrt(unit).

    The dual variables alpha are ``unit / n`` times those of the program.
    """
    n = len(y)

    def solve(unit: float) -> float:
        u = unit / n
        roots = [u / np.sqrt(unit) * root for root in solid_factors(instance.grams)]
        a, s = cp.Variable(n), cp.Variable(len(roots))
        constraints = [a >= 0, y @ a == 0]
        constraints += [a <= C / u] if C / u < FAR else []
        constraints += [cp.norm(root @ cp.multiply(y, a)) <= s[m] for m, root in enumerate(roots)]
        problem = cp.Problem(cp.Maximize(cp.sum(a) / n - penalty(s, unit)), constraints)
        with warnings.catch_warnings():
            # cvxpy advises power cones for norms of many cones; Clarabel loses digits on those.
            warnings.filterwarnings("ignore", message="pnorm with p")
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
        assert C / u < FAR or (u * a.value < C).all()
        return unit * float(problem.value)

    return in_its_own_unit(solve, min(C, 1.0) * n)


def dual_norm(s: cp.Expression, params: Params) -> cp.Expression:
    """Return ``||s^2||_{p*}^(1/2)`` by second-order cones, exact for the p of the cases.

    At p = 1.001 the largest of the s stands for their norm, which exceeds it by less than 0.1 %.
    """
    exponent = Fraction(2 * params["p"] / (params["p"] - 1)).limit_denominator(100)
    if exponent > MAXIMUM:
        return cp.norm_inf(s)
    return cp.pnorm(s, float(exponent), max_denom=1024, approx=True)


def ball_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'alpha - 1/2 ||q||_{p*}."""
    return conic_optimum(instance, y, params["C"], lambda s, unit: 0.5 * dual_norm(s, params) ** 2)


def penalised_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'alpha - ||q||_{p*}^2 / (8 lam)."""
    return conic_optimum(
        instance,
        y,
        params["C"],
        lambda s, unit: unit / (8 * params["lam"]) * cp.power(dual_norm(s, params), 4),
    )


def p_norm(d: np.ndarray, p: float) -> float:
    """Return ||d||_p of weights, also where powers of them would underflow."""
    assert (d >= 0).all()
    return d.max() * ((d / d.max()) ** p).sum() ** (1 / p) if d.any() else 0.0


def penalised_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    d, p = solution.kernel_weights, params["p"]
    return svm_value(instance, y, params, solution) + params["lam"] / 2 * p_norm(d, p) ** 2


def ball_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    d, p = solution.kernel_weights, params["p"]
    assert p_norm(d, p) <= 1 + 1e-12
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
        extreme_accuracy=2e-3,
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
        extreme_accuracy=2e-3,
    )
    for p, lam in ((1.05, 1.0), (4 / 3, 10.0), (2.0, 1.0), (4.0, 0.1))
]
