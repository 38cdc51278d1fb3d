"""Hinge loss with weights in the simplex: min over d of the support vector machine's value.

Hinge loss with weights bounded or penalised in the p-norm.

Hinge loss with a price on kernel weights: max 1'a with every ||F_m (a*y)||^2 <= 2 sigma.

R-MKL: squared slacks over the kernels K_k + (R_k^2 / C) I, weights in the simplex.

Hinge loss with at most k kernels: the least optimum of all supports of k kernels.

Every feasible alpha bounds the optimum on a support S from below by ``1'alpha - 1/2 max_{m in S}
q_m``.  Supports are solved by increasing bounds, and the alpha of each improves the bounds of the
others, until the least bound is no less than the least optimum found.

Hinge loss over groups of kernels: the norms of groups, with factors of all their kernels.
"""

import itertools
import warnings
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.special import kl_div

from tests.methods.instances import Instance, factors, solid_factors
from tests.methods.plain_bank import squared_radii
from tests.methods.references import (
    TOL,
    Case,
    Params,
    conic_value,
    decision,
    in_its_own_unit,
    norms,
    with_C,
)


def simplex_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of max 1'a - t, t >= 1/2 ||F_m (a*y)||^2 for all m."""
    return simplex_point(instance, y, params)[0]


def simplex_point(instance: Instance, y: np.ndarray, params: Params) -> tuple[float, np.ndarray]:
    """Return the optimum and a (n,) that attains it, clipped to its bounds."""
    C, n = params["C"], len(y)
    roots = solid_factors(instance.grams)
    found = np.zeros(n)

    def solve(unit: float) -> float:
        nonlocal found
        u = unit / n  # of the dual variables
        a, t = cp.Variable(n), cp.Variable()
        constraints = [a >= 0, a <= C / u, y @ a == 0, t >= 0]
        constraints += [0.5 * u * cp.sum_squares(root @ cp.multiply(y, a)) <= t for root in roots]
        problem = cp.Problem(cp.Maximize(cp.sum(a) - t), constraints)
        with warnings.catch_warnings():  # of less accuracy, on ill-conditioned kernels
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
        found = np.clip(u * a.value, 0.0, C)
        return u * float(problem.value)

    return in_its_own_unit(solve, min(C, 1.0) * n), found


def uniform_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    mean = Instance("mean", instance.grams.mean(axis=0)[None], y, instance.C)
    return simplex_optimum(mean, y, params)


def svm_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """C sum of hinge + 1/2 ||f||^2 at the returned weights."""
    f = decision(instance, solution)
    norm = solution.coefficients @ (f - solution.bias)
    return 0.5 * norm + params["C"] * np.maximum(0, 1 - y * f).sum()


EXTREMES = ({"C": 1e-8}, {"C": 1e8})
CASES = [
    Case(name, simplex_optimum, svm_value, with_C, extremes=EXTREMES)
    for name in ("level", "simplemkl", "silp", "hessianmkl", "skm")
]


# As the papers print the algorithms.
PRINTED: dict[str, Params] = {
    "level": {"acceleration": "none", "near": 0.99, "stop": "point"},
    "silp": {"acceleration": "none", "stop": "point"},
    "simplemkl": {"curvature": False, "line_search": "golden-section"},
    "hessianmkl": {"acceleration": "none"},
}


# Values of J, which golden section compares, have half the digits of its slopes.
LEAST_TOL = {"simplemkl": 1e-7}


CASES += [
    Case(
        name,
        simplex_optimum,
        svm_value,
        lambda instance, printed=printed: with_C(instance) | printed,
        label="printed",
        extremes=EXTREMES,
        tol=LEAST_TOL.get(name, TOL),
    )
    for name, printed in PRINTED.items()
]


CASES.append(Case("uniform", uniform_optimum, svm_value, with_C, extremes=EXTREMES))


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
    """Optimum of max 1'alpha - Psi(q), that of the p-norm or of the divergence."""
    if params.get("penalty") == "kl":
        return diverging_optimum(instance, y, **params)
    return conic_optimum(
        instance,
        y,
        params["C"],
        lambda s, unit: unit / (8 * params["lam"]) * cp.power(dual_norm(s, params), 4),
    )


def diverging_optimum(
    instance: Instance, y: np.ndarray, C: float, lam: float, penalty: str
) -> float:
    """Optimum of max 1'alpha - lam mean_m (exp(q_m / (2 lam)) - 1), q_m = 2 lam u_m."""
    roots = [root / np.sqrt(2 * lam) for root in solid_factors(instance.grams)]
    for size in (0.1, 1.0, 10.0):  # of alpha, in units of a: Clarabel fails on some
        a, u = cp.Variable(len(y)), cp.Variable(len(roots))
        constraints = [a >= 0, a <= C / size, y @ a == 0]
        for m, root in enumerate(roots):
            constraints.append(cp.sum_squares(size * root @ cp.multiply(y, a)) <= u[m])
        cost = lam / size / len(instance.grams) * (cp.sum(cp.exp(u)) - len(roots))
        with suppress(cp.SolverError):
            return size * conic_value(cp.Problem(cp.Maximize(cp.sum(a) - cost), constraints))
    raise cp.SolverError("Clarabel fails in all units")


def p_norm(d: np.ndarray, p: float) -> float:
    """Return ||d||_p of weights, also where powers of them would underflow."""
    assert (d >= 0).all()
    return d.max() * ((d / d.max()) ** p).sum() ** (1 / p) if d.any() else 0.0


def penalised_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    d, lam, machine = (
        solution.kernel_weights,
        params["lam"],
        svm_value(instance, y, params, solution),
    )
    if params.get("penalty") == "kl":
        return machine + lam * float(kl_div(d, 1 / len(d)).sum())
    return machine + lam / 2 * p_norm(d, params["p"]) ** 2


def ball_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    d, p = solution.kernel_weights, params["p"]
    assert p_norm(d, p) <= 1 + 1e-12
    return svm_value(instance, y, params, solution)


def with_p(p: float, **others: float) -> Callable[[Instance], Params]:
    return lambda instance: {"C": instance.C, "p": p, **others}


CASES += [
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
CASES += [
    Case(
        "smo_mkl",
        penalised_optimum,
        penalised_value,
        lambda instance, lam=lam: {"C": instance.C, "penalty": "kl", "lam": lam},
        label=f"kl,lam={lam}",
        extremes=({"lam": 1e-2}, {"lam": 1e3}),  # Clarabel loses digits beyond
    )
    for lam in (0.1, 10.0)
]


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


EXTREMES_GMKL = ({"C": 1e-8}, {"C": 1e8}, {"sigma": 1e-8}, {"sigma": 1e8})


def _gmkl(label: str, **settings: float) -> Case:
    return Case(
        "gmkl",
        priced_optimum,
        priced_value,
        lambda instance: with_C(instance) | settings,
        label=label,
        extremes=EXTREMES_GMKL,
    )


CASES += [_gmkl(""), _gmkl("dear", sigma=30.0), _gmkl("gradient steps", newton=0.0)]


TOLERANCE = 1e-9


def rmkl_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Optimum of the dual, with the ridges R_k^2 / C; of radii that are all zero, with 1 / C."""
    squared = squared_radii(instance.grams)
    ridges = squared if squared.any() else np.ones(len(squared))
    return ridged_optimum(instance.grams, ridges / params["C"], y)


def ridged_optimum(grams: np.ndarray, ridges: np.ndarray, y: np.ndarray) -> float:
    """Optimum of max 1'a - max_k 1/2 (||F_k (a*y)||^2 + ridge_k ||a||^2), a >= 0, y'a = 0.

    The second term is quadratic in the length of a, so the optimum is (1'v)^2 / 4 at the v of
    largest sum whose norms sqrt(...) are at most 1: a second-order cone program.
    """
    size = _size(grams, ridges, y)
    v = cp.Variable(len(y))
    constraints = [v >= 0, y @ v == 0]
    for root, ridge in zip(factors(grams), ridges, strict=True):
        rows = np.vstack([root * y, np.sqrt(ridge) * np.eye(len(y))])
        constraints.append(cp.norm(np.sqrt(0.5 * size) * np.linalg.qr(rows, mode="r") @ v) <= 1)
    problem = cp.Problem(cp.Maximize(cp.sum(v)), constraints)
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE)
    problem.solve(solver=cp.CLARABEL, **tolerances)
    return size * float(problem.value) ** 2 / 4.0


def _size(grams: np.ndarray, ridges: np.ndarray, y: np.ndarray) -> float:
    """Return the sum of the best multiple of a vector of equal class totals."""
    a = np.where(y > 0, 1.0 / (y > 0).sum(), 1.0 / (y < 0).sum())
    q = np.einsum("i,mij,j->m", a * y, grams, a * y) + ridges * (a @ a)
    return float(a.sum() ** 2 / q.max())


def rmkl_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    """1/2 ||f||^2 + C / (2 sum mu R^2) sum of squared slacks at the returned weights."""
    f = decision(instance, solution)
    norm = solution.coefficients @ (f - solution.bias)
    squared = squared_radii(instance.grams)
    radius = solution.kernel_weights @ (squared if squared.any() else np.ones(len(squared)))
    slack = np.maximum(0.0, 1.0 - y * f)
    return float(0.5 * norm + params["C"] / (2.0 * radius) * slack @ slack)


CASES += [Case("rmkl", rmkl_optimum, rmkl_value, with_C, extremes=({"C": 1e-8}, {"C": 1e8}))]


K = 2
EVERYTHING = 1000  # no fewer than the kernels of any instance
MILDER = ({"C": 1e-8}, {"C": 1e4})  # Clarabel fails on single pairs of kernels at C = 1e8


def best_support(instance: Instance, y: np.ndarray, params: Params) -> tuple[float, np.ndarray]:
    """Return the optimum over all supports, and one that attains it."""
    grams = instance.grams
    k = min(params["k"], len(grams))
    supports = np.array(list(itertools.combinations(range(len(grams)), k)))
    bounds = np.full(len(supports), -np.inf)
    least, best = np.inf, supports[0]
    while bounds.min() < least:
        i = int(bounds.argmin())
        part = Instance("part", grams[supports[i]], y, instance.C)
        optimum, alpha = simplex_point(part, y, params)
        if optimum < least:
            least, best = optimum, supports[i]
        q = np.einsum("i,mij,j->m", alpha * y, grams, alpha * y)
        bounds = np.maximum(bounds, alpha.sum() - 0.5 * q[supports].max(axis=1))
        bounds[i] = np.inf
    return least, best


def best_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    return best_support(instance, y, params)[0]


def _l0_mkl(label: str, k: int, extremes: tuple[Params, ...], **about: Any) -> Case:
    return Case(
        "l0_mkl",
        best_optimum,
        svm_value,
        lambda instance: with_C(instance) | {"k": k},
        label=label,
        extremes=extremes,
        **about,
    )


CASES += [_l0_mkl("all", EVERYTHING, EXTREMES), _l0_mkl("two", K, MILDER, relaxed=True)]


def groups_of(n_kernels: int) -> np.ndarray:
    """Return groups of 1, 2, 3 and more kernels, in no order."""
    sizes = np.sqrt(2.0 * np.arange(n_kernels)).astype(int)
    return np.random.default_rng(n_kernels).permutation(sizes)


def squared_sizes(groups: np.ndarray, scale: str) -> np.ndarray:
    """Return s_g^2 for every kernel, (M,)."""
    sizes = np.array([(groups == g).sum() for g in groups], dtype=float)
    return sizes if scale == "mean" else np.ones(len(groups))


def group_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
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


def group_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
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


CASES += [
    Case(
        "group_mkl",
        group_optimum,
        group_value,
        with_norm(p, scale),
        label=f"p={p:.3g},{scale}",
        extremes=EXTREMES,
        groups=groups_of,
    )
    for p, scale in ((1.0, "mean"), (1.0, "sum"), (2.0, "mean"))
]
