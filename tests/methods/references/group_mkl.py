"""Hinge loss over groups of kernels: the norms of groups, with factors of all their kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, factors
from tests.methods.references import Case, Params, in_its_own_unit, norms
from tests.methods.references.lp_norm_svm import FAR, dual_norm, p_norm
from tests.methods.references.simplex_svm import EXTREMES, svm_value


def groups_of(n_kernels: int) -> np.ndarray:
    """Return groups of 1, 2, 3 and more kernels, in no order."""
    sizes = np.sqrt(2.0 * np.arange(n_kernels)).astype(int)
    return np.random.default_rng(n_kernels).permutation(sizes)


def squared_sizes(groups: np.ndarray, scale: str) -> np.ndarray:
    """Return s_g^2 for every kernel, (M,)."""
    sizes = np.array([(groups == g).sum() for g in groups], dtype=float)
    return sizes if scale == "mean" else np.ones(len(groups))


def optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'a - 1/2 ||s^2||_{p*}, s_g >= ||(F_m (a*y) / s_g)_{m in g}||."""
    C, n = params["C"], len(y)
    groups = groups_of(len(instance.grams))
    shares = squared_sizes(groups, params["scale"])
    scaled = [root / np.sqrt(s) for root, s in zip(factors(instance.grams), shares, strict=True)]
    stacked = [np.vstack([scaled[m] for m in np.flatnonzero(groups == g)]) for g in set(groups)]
    stacked = [root for root in stacked if len(root)] or [np.zeros((1, n))]

    def solve(unit: float) -> float:
        u = unit / n
        a, s = cp.Variable(n), cp.Variable(len(stacked))
        constraints = [a >= 0, y @ a == 0, *([a <= C / u] if C / u < FAR else [])]
        for g, root in enumerate(stacked):
            constraints.append(u / np.sqrt(unit) * cp.norm(root @ cp.multiply(y, a)) <= s[g])
        norm = cp.norm_inf(s) if params["p"] == 1.0 else dual_norm(s, params)
        problem = cp.Problem(cp.Maximize(cp.sum(a) / n - 0.5 * norm**2), constraints)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="pnorm with p")
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
        return unit * float(problem.value)

    return in_its_own_unit(solve, min(C, 1.0) * n)


def value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """C sum of hinge + 1/2 ||f||^2 at the returned weights, which groups share."""
    d, groups = solution.kernel_weights, groups_of(len(instance.grams))
    e = d * squared_sizes(groups, params["scale"])
    for g in set(groups):
        np.testing.assert_allclose(e[groups == g], e[groups == g][0], rtol=1e-12)
    assert p_norm(np.array([e[groups == g][0] for g in set(groups)]), params["p"]) <= 1 + 1e-12
    return svm_value(instance, y, params, solution)


def group_norm_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """C sum of hinge + 1/2 (sum_g s_g^r ||f_g||^r)^(2/r) at the returned functions."""
    groups, r = groups_of(len(instance.grams)), 2 * params["p"] / (params["p"] + 1)
    squares = squared_sizes(groups, params["scale"]) * norms(instance, solution) ** 2
    lengths = np.array([np.sqrt(squares[groups == g].sum()) for g in set(groups)])
    f = np.einsum("m,mij,j->i", solution.kernel_weights, instance.grams, solution.coefficients)
    hinge = np.maximum(0, 1 - y * (f + solution.bias)).sum()
    return params["C"] * hinge + 0.5 * (lengths**r).sum() ** (2 / r)


def with_norm(p: float, scale: str) -> Callable[[Instance], Params]:
    return lambda instance: {"C": instance.C, "p": p, "scale": scale}


CASES = [
    Case(
        "group_mkl",
        optimum,
        value,
        with_norm(p, scale),
        label=f"p={p:.3g},{scale}",
        extremes=EXTREMES,
        groups=groups_of,
    )
    for p, scale in ((1.0, "mean"), (1.0, "sum"), (2.0, "mean"))
]
