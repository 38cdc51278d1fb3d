"""MK-LSVM and LSVM by the conic form of their primals, in the kernels' feature coordinates."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, solid_factors
from tests.methods.references import Case, Params, conic_value, in_its_own_unit
from tests.methods.references.manifold import heat_laplacian, some_labels


def optimum(grams: np.ndarray, L: np.ndarray, y: np.ndarray, params: Params) -> float:
    """Return the least objective; with gamma_sigma over the weights, else at weight 1."""
    n, classes = len(y), y.reshape(len(y), -1)
    k = classes.shape[1]
    # Weights in units of gamma_sigma^-1/2 and components in units that make their terms' factors 1.
    unit = params["gamma_a"] * np.sqrt(params.get("gamma_sigma", 1.0))
    roots = [root / np.sqrt(unit) for root in solid_factors(grams)]
    components = [cp.Variable((len(root), k)) for root in roots]
    b = cp.Variable((1, k))
    f = sum(root.T @ w for root, w in zip(roots, components, strict=True))
    if "gamma_sigma" in params:
        d = cp.Variable(len(roots), nonneg=True)
        norms = [cp.quad_over_lin(w, d[m]) for m, w in enumerate(components)]
        objective = cp.sum_squares(d)
    else:
        norms = [cp.sum_squares(w) for w in components]
        objective = 0.0
    values, vectors = np.linalg.eigh(L)
    edges = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    objective += sum(norms)
    objective += params["gamma_i"] / n**2 * cp.sum_squares(edges @ f)
    for c in range(k):
        known = np.flatnonzero(classes[:, c])
        slack = cp.pos(1 - cp.multiply(classes[known, c], f[known, c] + b[0, c]))
        objective += cp.sum(slack) / len(known)
    return in_its_own_unit(
        lambda unit: unit * conic_value(cp.Problem(cp.Minimize(objective / unit))), 1.0
    )


def value(grams: np.ndarray, L: np.ndarray, y: np.ndarray, params: Params, solution: Any) -> float:
    """Return the objective at the returned weights, coefficients and biases."""
    n, classes = len(y), y.reshape(len(y), -1)
    d, alpha = solution.kernel_weights, solution.coefficients.reshape(n, -1)
    f = np.einsum("m,mij->ij", d, grams) @ alpha
    total = params.get("gamma_sigma", 0.0) * d @ d
    total += params["gamma_a"] * (alpha * f).sum()
    total += params["gamma_i"] / n**2 * (f * (L @ f)).sum()
    for c, b in enumerate(np.atleast_1d(solution.bias)):
        known = classes[:, c] != 0
        total += np.maximum(0, 1 - classes[known, c] * (f[known, c] + b)).mean()
    return float(total)


def _mklsvm(label: str, **params: float) -> Case:
    return Case(
        "mklsvm",
        lambda instance, y, given: optimum(
            instance.grams, heat_laplacian(instance.grams), y, given
        ),
        _value,
        lambda instance: params,
        label=label,
        labels=some_labels,
        laplacian=heat_laplacian,
        extremes=tuple({name: size} for name in params for size in (1e-8, 1e8)),
    )


def _lsvm(label: str, **params: float) -> Case:
    def of_mean(instance: Instance, y: np.ndarray, given: Params) -> float:
        mean = instance.grams.mean(axis=0)[None]
        return optimum(mean, heat_laplacian(instance.grams), y, given)

    return Case(
        "lsvm",
        of_mean,
        _value,
        lambda instance: params,
        label=label,
        labels=some_labels,
        laplacian=heat_laplacian,
        extremes=tuple({name: size} for name in params for size in (1e-8, 1e8)),
    )


def _value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    return value(instance.grams, heat_laplacian(instance.grams), y, params, solution)


CASES = [
    _mklsvm("smooth", gamma_a=1e-4, gamma_i=0.1, gamma_sigma=1e-5),
    _mklsvm("rough", gamma_a=1e-2, gamma_i=1e-4, gamma_sigma=1e-4),
    _mklsvm("no-graph", gamma_a=1e-3, gamma_i=0.0, gamma_sigma=1e-2),
    _lsvm("smooth", gamma_a=1e-4, gamma_i=0.1),
    _lsvm("rough", gamma_a=1e-2, gamma_i=1e-4),
]
