"""PrimalMKL's four losses with weights in the simplex or an lp ball, by their conic duals."""

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, solid_factors
from tests.methods.references import Case, Params, conic_value, decision, real_values

EPSILON = 0.1


def primal_mkl_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of the dual; the residuals of one class sum to 1, not to 0."""
    if params["loss"] != "one-class":
        u = min(1.0 / params["C"], 1.0)
        r = cp.Variable(len(y))
        gain, signs = _gain(params["loss"], y, r)
        return _dual_optimum(instance.grams, params, r, gain, [*signs, cp.sum(r) == 0], u)
    inside = np.flatnonzero(y > 0)
    r = cp.Variable(len(inside), nonneg=True)
    grams = instance.grams[:, inside][:, :, inside]
    return _dual_optimum(grams, params, r, cp.Constant(0.0), [cp.sum(r) == 1])


def _gain(loss: str, y: np.ndarray, r: cp.Variable) -> tuple[cp.Expression, list[Any]]:
    """Return the linear part of the dual in the residuals r and their signs."""
    if loss == "squared-hinge":
        return y @ r, [cp.multiply(y, r) >= 0]
    gain = (y - y.mean()) @ r
    return (gain if loss == "squared" else gain - EPSILON * cp.norm1(r)), []


def _dual_optimum(
    grams: np.ndarray,
    params: Params,
    r: cp.Variable,
    gain: cp.Expression,
    feasible: list[Any],
    u: float = 1.0,
) -> float:
    """Optimum of gain - 1/2 ||r||^2 - C/2 ||(r'K_m r)_m||, by the dual norm.

    In the norms ``s_m >= sqrt(r'K_m r)`` of well-scaled cones, the last norm is squared.  The
    residuals are u r, and all is divided by u.
    """
    dual_norm = np.inf if params["norm"] == 1 else 2 * params["norm"] / (params["norm"] - 1)
    roots = [np.sqrt(u * params["C"]) * root for root in solid_factors(grams)]
    s = cp.Variable(len(roots), nonneg=True)
    bounds = [cp.norm(root @ r) <= s[m] for m, root in enumerate(roots)]
    dual = gain - 0.5 * (u * cp.sum_squares(r) + cp.square(cp.pnorm(s, dual_norm)))
    return u * conic_value(cp.Problem(cp.Maximize(dual), feasible + bounds))


def primal_mkl_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """F = 1/2 (1/C a'K a + sum of losses) at the returned point; -rho = b for one class."""
    u = decision(instance, solution)
    norm = solution.coefficients @ (u - solution.bias)
    losses = {
        "squared-hinge": np.maximum(0, 1 - y * u),
        "squared": y - u,
        "epsilon-squared": np.maximum(0, np.abs(y - u) - EPSILON),
        "one-class": np.maximum(0, -u) * (y > 0),
    }
    linear = solution.bias if params["loss"] == "one-class" else 0.0
    return 0.5 * (norm / params["C"] + (losses[params["loss"]] ** 2).sum()) + linear


def _case(loss: str, C: float, norm: float) -> Case:
    parameters = {"loss": loss, "C": C, "norm": norm}
    regression = loss in ("squared", "epsilon-squared")
    return Case(
        "primalmkl",
        primal_mkl_optimum,
        primal_mkl_value,
        lambda instance: parameters,
        label=f"{loss}-{norm:g}-{C:g}",
        labels=real_values if regression else lambda instance: instance.y,
        extremes=({"C": 1e8}, {"C": 1e-8}),
    )


CASES = [
    _case(loss, C, norm)
    for loss in ("squared-hinge", "squared", "epsilon-squared", "one-class")
    for norm in (1.0, 1.5, 2.0)
    for C in (100.0, 1.0)
]

PRINTED = {"coupled": False, "machine": "one-step"}
CASES += [
    Case(
        "primalmkl",
        primal_mkl_optimum,
        primal_mkl_value,
        lambda instance, inner=inner: (
            {"loss": "squared-hinge", "C": 1.0, "norm": 1.0, "inner": inner} | PRINTED
        ),
        label=f"printed-{inner}",
        extremes=({"C": 1e-8},),  # the alternation takes thousands of steps where C is large
        tol=5e-7,
    )
    for inner in ("truncated-newton", "pcg")
]
