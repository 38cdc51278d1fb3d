"""Block-norm MKL as a cone program: max -h(rho) - sum_m psi*(||F_m rho||) s.t. 1'rho = 0."""

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, solid_factors
from tests.methods.references import Case, Params, conic_value, decision, norms, real_values

EPSILON, MIX, Q = 0.1, 0.4, 1.5
FAR = 1e-6  # unit below which the bounds of rho are so far away that they would cost digits


def loss_conjugate(loss: str, rho: cp.Variable, y: np.ndarray, u: float) -> tuple[Any, list[Any]]:
    """Return h(u rho) / u, where h(rho) = l*(-rho), and its domain."""
    t = cp.multiply(y, rho)
    match loss:
        case "logistic":
            return -(cp.sum(cp.entr(u * t)) + cp.sum(cp.entr(1 - u * t))) / u, []
        case "hinge":
            return -cp.sum(t), [t >= 0, *([t <= 1 / u] if u > FAR else [])]
        case "squared":
            return 0.5 * u * cp.sum_squares(rho) - y @ rho, []
        case "epsilon":
            return EPSILON * cp.norm1(rho) - y @ rho, [cp.abs(rho) <= 1 / u] if u > FAR else []
    raise ValueError(loss)


def penalty_conjugate(
    regularizer: str, lam: float, excess: cp.Variable
) -> tuple[Any, float, float]:
    """Return sum psi*, the threshold c and the unit u: dual norms are at most lam (c + u e)."""
    match regularizer:
        case "block1":
            return 0.0, 1.0, 1.0
        case "elastic-net":
            return cp.sum_squares(excess) / (2 * MIX), 1 - MIX, lam**-0.5
        case "block-q":
            p = Q / (Q - 1)
            return cp.sum(cp.power(excess, p)) / p, 0.0, lam ** (-1 / p)
        case "uniform":
            return cp.sum_squares(excess) / 2, 0.0, lam**-0.5
    raise ValueError(regularizer)


def optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max -h(rho) - sum_m psi*(||F_m rho||), 1'rho = 0."""
    loss, regularizer, lam = params["loss"], params["regularizer"], 1.0 / params["C"]
    u = min(lam, 1.0)  # of rho
    rho = cp.Variable(len(y))
    roots = solid_factors(instance.grams)
    excess = cp.Variable(len(roots), nonneg=True)
    h, constraints = loss_conjugate(loss, rho, y, u)
    penalty, threshold, unit = penalty_conjugate(regularizer, lam / u, excess)
    if regularizer == "block1":
        constraints.append(excess == 0)
    for m, root in enumerate(roots):
        constraints.append(u / lam * cp.norm(root @ rho) <= threshold + unit * excess[m])
    problem = cp.Problem(cp.Maximize(-h - penalty), [*constraints, cp.sum(rho) == 0])
    value = u * conic_value(problem)
    assert u > FAR or (u * np.abs(rho.value) < 1.0).all()
    return value


def value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """Sum of losses + sum of psi(||f_m||) at the returned predictor."""
    f, s, lam = decision(instance, solution), norms(instance, solution), 1.0 / params["C"]
    losses = {
        "logistic": np.logaddexp(0, -y * f),
        "hinge": np.maximum(0, 1 - y * f),
        "squared": 0.5 * (y - f) ** 2,
        "epsilon": np.maximum(0, np.abs(y - f) - EPSILON),
    }
    penalties = {
        "block1": lam * s,
        "elastic-net": lam * ((1 - MIX) * s + MIX / 2 * s**2),
        "block-q": lam / Q * s**Q,
        "uniform": lam / 2 * s**2,
    }
    return losses[params["loss"]].sum() + penalties[params["regularizer"]].sum()


def case(method: str, loss: str, regularizer: str, acceleration: str = "working-set") -> Case:
    params = {
        "C": 20.0,
        "loss": loss,
        "regularizer": regularizer,
        "epsilon": EPSILON,
        "mix": MIX,
        "q": Q,
    }
    if acceleration == "none":
        params["acceleration"] = "none"
    return Case(
        method,
        optimum,
        value,
        lambda instance: params,
        label=f"{loss}-{regularizer}" + "-printed" * (acceleration == "none"),
        labels=(lambda i: i.y) if loss in ("logistic", "hinge") else real_values,
        # Clarabel's entropies have too few digits below 1e-4.
        extremes=({"C": 1e4 if loss == "logistic" else 1e8}, {"C": 1e-4}),
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
# As the papers print the algorithms.
CASES += [case("spicymkl", loss, "block1", "none") for loss in LOSSES]
CASES += [case("spicymkl", "logistic", "elastic-net", "none")]
CASES += [case("elastmkl", loss, "elastic-net", "none") for loss in LOSSES]
