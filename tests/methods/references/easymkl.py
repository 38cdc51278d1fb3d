"""EasyMKL as two conic programs over pairs of probability vectors."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, factors
from tests.methods.references import Case, Params


def hull_points(K: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    """Return ``Y gamma`` that minimises (1 - lam) gamma'YKY gamma + lam ||gamma||^2.

    Clarabel's solution is made exact on its support by one linear system.
    """
    n, scale = len(y), np.trace(K) / len(y)
    root = factors(K[None] * (n / max(scale * (1 - lam) + lam, 1e-300)))[0]
    g = cp.Variable(n)
    ridge = lam * n / max(scale * (1 - lam) + lam, 1e-300)
    objective = ridge * cp.sum_squares(g)
    if len(root):
        objective += (1 - lam) * cp.sum_squares(root @ cp.multiply(y, g))
    constraints = [g >= 0, cp.sum(g[y > 0]) == 1, cp.sum(g[y < 0]) == 1]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    gamma = np.maximum(g.value, 0)
    return y * _exact(K, y, lam, gamma)


def _exact(K: np.ndarray, y: np.ndarray, lam: float, gamma: np.ndarray) -> np.ndarray:
    """Solve the system of the first-order conditions on the support, if it stays positive."""
    s = np.flatnonzero(gamma > 1e-7)
    A = (1 - lam) * (y[:, None] * K * y)[np.ix_(s, s)] + lam * np.eye(len(s))
    B = np.array([y[s] > 0, y[s] < 0], dtype=float)
    system = np.block([[A, B.T], [B, np.zeros((2, 2))]])
    solved = np.linalg.lstsq(system, np.r_[np.zeros(len(s)), 1, 1], rcond=None)[0][: len(s)]
    if (solved < 0).any():
        return gamma
    exact = np.zeros(len(y))
    exact[s] = solved
    return exact


def weights(grams: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    signed = hull_points(grams.sum(axis=0), y, lam)
    shares = np.einsum("i,mij,j->m", signed, grams, signed)
    total = shares.sum()
    return shares / total if total > 0.0 else np.full(len(grams), 1.0 / len(grams))


def q_value(K: np.ndarray, signed: np.ndarray, lam: float) -> float:
    return float((1 - lam) * signed @ K @ signed + lam * signed @ signed)


def easymkl_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    lam = params["lam"]
    K = np.einsum("m,mij->ij", weights(instance.grams, y, lam), instance.grams)
    return q_value(K, hull_points(K, y, lam), lam)


def easymkl_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    return q_value(K, solution.coefficients, params["lam"])


EXTREMES = ({"lam": 0.0}, {"lam": 1e-8}, {"lam": 1.0})

CASES = [
    Case("easymkl", easymkl_optimum, easymkl_value, lambda i: {"lam": 0.5}, extremes=EXTREMES),
    Case("easymkl", easymkl_optimum, easymkl_value, lambda i: {"lam": 0.01}, label="small lam"),
    Case("easymkl", easymkl_optimum, easymkl_value, lambda i: {"lam": 1.0}, label="means"),
]
