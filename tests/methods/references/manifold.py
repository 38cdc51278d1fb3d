"""Semi-supervised machines by the conic form of their primals, in feature coordinates.

MK-LSVM and LSVM by the conic form of their primals, in the kernels' feature coordinates.
"""

from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance, solid_factors
from tests.methods.references import Case, Params, conic_value, in_its_own_unit


def some_labels(instance: Instance) -> np.ndarray:
    """Return the classes with a zero for two points of three, at least two labels a class left."""
    y = np.zeros(len(instance.y))
    for sign in (-1.0, 1.0):
        of_class = np.flatnonzero(instance.y == sign)
        kept = of_class[: max(len(of_class) // 3, 2)]
        y[kept] = sign
    return y


def heat_laplacian(grams: np.ndarray) -> np.ndarray:
    """Return the Laplacian of all points' heat weights, by the distances of the mean kernel."""
    K = grams.mean(axis=0)
    squared = np.maximum(K.diagonal()[:, None] + K.diagonal() - 2 * K, 0.0)
    W = np.exp(-squared / max(np.median(squared), 1e-300))
    np.fill_diagonal(W, 0.0)
    return np.diag(W.sum(axis=1)) - W


def losses(y: np.ndarray, u: Any, squared: bool) -> Any:
    """Return the sum of squared losses of the labelled points, for numpy or cvxpy decisions."""
    lab = np.flatnonzero(y)
    if isinstance(u, np.ndarray):
        rest = y[lab] - u[lab]
        return (rest**2 if squared else np.maximum(0, y[lab] * rest) ** 2).sum()
    rest = cp.multiply(y[lab], y[lab] - u[lab])
    return cp.sum_squares(rest if squared else cp.pos(rest))


def primal_optimum(grams: np.ndarray, L: np.ndarray, y: np.ndarray, params: Params, squared: bool):
    """Optimum of 1/2 {(sum_m sqrt(gamma_a ||w_m||^2 + gamma_i f_m'L f_m))^2 + losses}.

    With ``f_m = F_m w_m``, ``K_m = F_m F_m'``; the square of the sum of norms is the least of
    ``sum_m norm_m^2 / d_m`` over weights d in the simplex.
    """
    gamma_a, gamma_i = params["gamma_a"], params.get("gamma_i", 0.0)
    values, vectors = np.linalg.eigh(L)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    u, norms = cp.Variable() if params.get("bias", True) else cp.Constant(0.0), []
    u = u * np.ones(len(y))
    for factor in solid_factors(grams):
        w = cp.Variable(len(factor))
        smooth = np.sqrt(gamma_i) * root @ factor.T
        norms.append(cp.norm(cp.hstack([np.sqrt(gamma_a) * w, smooth @ w])))
        u = u + factor.T @ w
    penalty = cp.square(cp.sum(cp.hstack(norms)))
    objective = 0.5 * (penalty + losses(y, u, squared))
    return in_its_own_unit(
        lambda unit: unit * conic_value(cp.Problem(cp.Minimize(objective / unit))), 1.0
    )


def single_optimum(instance: Instance, y: np.ndarray, params: Params, squared: bool) -> float:
    mean = instance.grams.mean(axis=0)[None]
    return primal_optimum(mean, heat_laplacian(instance.grams), y, params, squared)


def value(instance: Instance, y: np.ndarray, params: Params, solution: Any, squared: bool) -> float:
    """F at the returned predictor, with each kernel's own coefficients."""
    L = heat_laplacian(instance.grams)
    kept = np.flatnonzero(solution.kernel_weights)
    own = solution.kernel_coefficients
    u, penalty = np.full(len(y), solution.bias), 0.0
    shared = np.zeros(len(y))
    for s, m in enumerate(kept):
        a = solution.coefficients if own is None else own[s]
        d, f = solution.kernel_weights[m], instance.grams[m] @ a
        u += d * f
        shared += d * f
        penalty += d * params["gamma_a"] * (a @ f)
        if own is not None:
            penalty += d * params.get("gamma_i", 0.0) * (f @ L @ f)
    if own is None:
        penalty += params.get("gamma_i", 0.0) * (shared @ L @ shared)
    return 0.5 * (penalty + losses(y, u, squared))


def _single(method: str, squared: bool, label: str, **params: Any) -> Case:
    return Case(
        method,
        lambda instance, y, given: single_optimum(instance, y, given, squared),
        lambda instance, y, given, solution: value(instance, y, given, solution, squared),
        lambda instance: params,
        label=label,
        labels=some_labels,
        laplacian=heat_laplacian,
        extremes=({"gamma_a": 1e-8}, {"gamma_a": 1e8}, *_intrinsic_extremes(params)),
    )


def _intrinsic_extremes(params: Params) -> tuple[Params, ...]:
    return ({"gamma_i": 1e-8}, {"gamma_i": 1e8}, {"gamma_i": 0.0}) if "gamma_i" in params else ()


def _deformed(method: str, squared: bool, label: str, **params: Any) -> Case:
    return Case(
        method,
        lambda instance, y, given: primal_optimum(
            instance.grams, heat_laplacian(instance.grams), y, given, squared
        ),
        lambda instance, y, given, solution: value(instance, y, given, solution, squared),
        lambda instance: params,
        label=label,
        labels=some_labels,
        laplacian=heat_laplacian,
        extremes=({"gamma_a": 1e-8}, {"gamma_a": 1e8}, *_intrinsic_extremes(params)),
    )


CASES = [
    _deformed("lapmkl", False, "smooth", form="deformed", gamma_a=1e-2, gamma_i=0.1),
    _deformed("lapmkl", False, "rough", form="deformed", gamma_a=1.0, gamma_i=1e-3),
    _deformed("glks", True, "smooth", gamma_a=1e-2, gamma_i=0.1),
    _deformed("glks", True, "rough", gamma_a=1.0, gamma_i=1e-3),
    _single("lapsvm", False, "smooth", gamma_a=1e-2, gamma_i=0.1),
    _single("lapsvm", False, "rough", gamma_a=1.0, gamma_i=1e-3),
    _single("laprls", True, "smooth", gamma_a=1e-2, gamma_i=0.1),
    _single("laprls", True, "no-bias", gamma_a=1e-1, gamma_i=1e-2, bias=False),
    _single("rls", True, "bias", gamma_a=1e-2),
    _single("rls", True, "no-bias", gamma_a=1e-1, bias=False),
]


def mklsvm_optimum(grams: np.ndarray, L: np.ndarray, y: np.ndarray, params: Params) -> float:
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


def mklsvm_value(
    grams: np.ndarray, L: np.ndarray, y: np.ndarray, params: Params, solution: Any
) -> float:
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
        lambda instance, y, given: mklsvm_optimum(
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
        return mklsvm_optimum(mean, heat_laplacian(instance.grams), y, given)

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
    return mklsvm_value(instance.grams, heat_laplacian(instance.grams), y, params, solution)


CASES += [
    _mklsvm("smooth", gamma_a=1e-4, gamma_i=0.1, gamma_sigma=1e-5),
    _mklsvm("rough", gamma_a=1e-2, gamma_i=1e-4, gamma_sigma=1e-4),
    _mklsvm("no-graph", gamma_a=1e-3, gamma_i=0.0, gamma_sigma=1e-2),
    _lsvm("smooth", gamma_a=1e-4, gamma_i=0.1),
    _lsvm("rough", gamma_a=1e-2, gamma_i=1e-4),
]
