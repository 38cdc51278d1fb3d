"""Block-norm MKL as a cone program: max -h(rho) - sum_m psi*(||F_m rho||) s.t. 1'rho = 0."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import INSTANCES, Instance, factors
from tests.methods.references import Case, Params, conic_value, decision, norms, real_values

EPSILON, MIX, Q = 0.1, 0.4, 1.5


def loss_conjugate(loss: str, rho: cp.Variable, y: np.ndarray) -> tuple[Any, list[Any]]:
    """Return h(rho) = l*(-rho) and its domain."""
    t = cp.multiply(y, rho)
    match loss:
        case "logistic":
            return -cp.sum(cp.entr(t)) - cp.sum(cp.entr(1 - t)), []
        case "hinge":
            return -cp.sum(t), [t >= 0, t <= 1]
        case "squared":
            return 0.5 * cp.sum_squares(rho) - y @ rho, []
        case "epsilon":
            return EPSILON * cp.norm1(rho) - y @ rho, [rho <= 1, rho >= -1]
    raise ValueError(loss)


def penalty_conjugate(regularizer: str, C: float, excess: cp.Variable) -> tuple[Any, float]:
    """Return sum psi* and the threshold c, where the dual norms are at most C (c + excess)."""
    match regularizer:
        case "block1":
            return 0.0, 1.0
        case "elastic-net":
            return C / (2 * MIX) * cp.sum_squares(excess), 1 - MIX
        case "block-q":
            p = Q / (Q - 1)
            return C / p * cp.sum(cp.power(excess, p)), 0.0
        case "uniform":
            return C / 2 * cp.sum_squares(excess), 0.0
    raise ValueError(regularizer)


@cache
def conic_optimum(name: str, loss: str, regularizer: str, C: float) -> float:
    instance = next(found for make in INSTANCES if (found := make()).name == name)
    y = instance.y if loss in ("logistic", "hinge") else real_values(instance)
    rho = cp.Variable(len(y))
    roots = [root for root in factors(instance.grams) if len(root)]
    excess = cp.Variable(len(roots), nonneg=True)
    h, constraints = loss_conjugate(loss, rho, y)
    penalty, threshold = penalty_conjugate(regularizer, C, excess)
    if regularizer == "block1":
        constraints.append(excess == 0)
    for m, root in enumerate(roots):
        constraints.append(cp.norm(root @ rho) / C <= threshold + excess[m])
    problem = cp.Problem(cp.Maximize(-h - penalty), [*constraints, cp.sum(rho) == 0])
    return conic_value(problem)


def optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    return conic_optimum(instance.name, params["loss"], params["regularizer"], params["C"])


def value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """Sum of losses + sum of psi(||f_m||) at the returned predictor."""
    f, s, C = decision(instance, solution), norms(instance, solution), params["C"]
    losses = {
        "logistic": np.logaddexp(0, -y * f),
        "hinge": np.maximum(0, 1 - y * f),
        "squared": 0.5 * (y - f) ** 2,
        "epsilon": np.maximum(0, np.abs(y - f) - EPSILON),
    }
    penalties = {
        "block1": C * s,
        "elastic-net": C * ((1 - MIX) * s + MIX / 2 * s**2),
        "block-q": C / Q * s**Q,
        "uniform": C / 2 * s**2,
    }
    return losses[params["loss"]].sum() + penalties[params["regularizer"]].sum()


def case(method: str, loss: str, regularizer: str) -> Case:
    params = {
        "C": 0.05,
        "loss": loss,
        "regularizer": regularizer,
        "epsilon": EPSILON,
        "mix": MIX,
        "q": Q,
    }
    return Case(
        method,
        optimum,
        value,
        lambda instance: params,
        label=f"{loss}-{regularizer}",
        labels=(lambda i: i.y) if loss in ("logistic", "hinge") else real_values,
        extremes=({"C": 1e-8}, {"C": 1e4}),
    )


LOSSES = ("logistic", "hinge", "squared", "epsilon")
CASES = [
    case("spicymkl", loss, regularizer)
    for loss in LOSSES
    for regularizer in ("block1", "elastic-net", "block-q", "uniform")
]
CASES += [
    case("elastmkl", loss, regularizer)
    for loss in LOSSES
    for regularizer in ("elastic-net", "block-q")
]
