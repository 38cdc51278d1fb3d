"""Objective and lower bound of every method by hand, from the solution and the Gram matrices.

The lower bound is the dual value at the solution's dual variables, by the formula in the method's
docstring and in plain numpy.  Where the method's own bound is that of a mixture of cuts, or of
another bound of the dual value, the dual value is no less; elsewhere both are equal.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.errors import ConvergenceWarning
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution
from tests.methods.instances import Instance
from tests.methods.plain_bank import squared_radii
from tests.methods.references import Case, Params, all_cases
from tests.methods.references.manifold import heat_laplacian, losses
from tests.methods.references.manifold import mklsvm_value as semi_supervised_value
from tests.methods.references.simplex_svm import groups_of, squared_sizes

ROUNDING = 1e-9
Dual = Callable[[Instance, np.ndarray, Params, Solution], float]


def forms(grams: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return ``v'K_m v`` (M,), added up over the columns of v."""
    columns = v.reshape(len(v), -1)
    return np.einsum("ic,mij,jc->m", columns, grams, columns)


def machine_forms(instance: Instance, y: np.ndarray, C: Any, solution: Solution) -> np.ndarray:
    """Return ``q_m(alpha*y)`` of a feasible alpha, 0 <= alpha <= C and y'alpha = 0."""
    alpha = solution.dual_variables
    assert (alpha >= 0.0).all()
    assert (alpha.T <= C * (1.0 + 1e-12)).all()
    assert np.abs((y * alpha).sum(axis=0)).max() <= ROUNDING * max(alpha.sum(), 1e-300)
    return forms(instance.grams, alpha * y)


def on_simplex(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    q = machine_forms(instance, y, params["C"], solution)
    return solution.dual_variables.sum() - 0.5 * q.max()


def at_weights(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    C = params.get("C", solution.extra.get("chosen_C"))
    q = machine_forms(instance, y, C, solution)
    return solution.dual_variables.sum() - 0.5 * solution.kernel_weights @ q


def p_norm(q: np.ndarray, p: float) -> float:
    return float(np.linalg.norm(q, ord=np.inf if p == 1.0 else p / (p - 1.0)))


def in_ball(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    q = machine_forms(instance, y, params["C"], solution)
    return solution.dual_variables.sum() - 0.5 * p_norm(q, params["p"])


def in_groups(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    groups = groups_of(len(instance.grams))
    q = machine_forms(instance, y, params["C"], solution) / squared_sizes(groups, params["scale"])
    of_groups = np.array([q[groups == g].sum() for g in set(groups)])
    return solution.dual_variables.sum() - 0.5 * p_norm(of_groups, params["p"])


def penalised(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    q = machine_forms(instance, y, params["C"], solution)
    height, lam = solution.dual_variables.sum(), params["lam"]
    if params.get("penalty") == "kl":
        return height - lam * np.expm1(q / (2.0 * lam)).mean()
    return height - p_norm(q, params["p"]) ** 2 / (8.0 * lam)


def priced(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    q = machine_forms(instance, y, params["C"], solution)
    assert q.max() <= 2.0 * params.get("sigma", 1.0) * (1.0 + ROUNDING)
    return solution.dual_variables.sum()


def with_radii(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    alpha = solution.dual_variables
    q = machine_forms(instance, y, np.inf, solution)
    q += squared_radii(instance.grams) / params["C"] * (alpha @ alpha)
    return alpha.sum() - 0.5 * q.max()


def majority(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    machine_forms(instance, y, params["C"], solution)
    return solution.dual_variables.sum()


def hulls(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    """Return the tangent at gamma, or the greatest 2 / P over multiples of gamma and biases."""
    gamma, lam = solution.dual_variables, params["lam"]
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    f = (1.0 - lam) * K @ (y * gamma)
    g = y * f + lam * gamma
    assert (gamma >= 0.0).all()
    np.testing.assert_allclose([gamma[y > 0].sum(), gamma[y < 0].sum()], 1.0, rtol=1e-12)
    tangent = 2.0 * (g[y > 0].min() + g[y < 0].min()) - gamma @ g
    if lam in (0.0, 1.0):
        return max(tangent, 0.0)

    def P(s: float) -> float:
        def slope(b: float) -> float:
            return -(y * np.maximum(0.0, 1.0 - y * (s * f + b))).sum()

        b = root(slope, -1.0 - s * np.abs(f).max(), 1.0 + s * np.abs(f).max())
        slacks = np.maximum(0.0, 1.0 - y * (s * f + b))
        return 0.5 * s**2 * (y * gamma) @ f + slacks @ slacks / (2.0 * lam)

    return max(tangent, 2.0 / least(P, 0.0, 4.0 / (gamma @ g)))


def root(slope: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def least(value: Callable[[float], float], low: float, high: float) -> float:
    """Return the least value of a convex function between two numbers."""
    for _ in range(70):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return value(0.5 * (low + high))


def block_norm(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    """Return -h(rho) - sum_m psi*(||rho||_{K_m})."""
    rho, lam, mix = solution.dual_variables, 1.0 / params["C"], params["mix"]
    assert abs(rho.sum()) <= ROUNDING * max(np.abs(rho).sum(), 1e-300)
    lengths, t = np.sqrt(np.maximum(forms(instance.grams, rho), 0.0)), y * rho
    if params["loss"] in ("logistic", "hinge"):
        assert (t >= 0.0).all()
        assert (t <= 1.0).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        entropies = [np.where(u > 0.0, u * np.log(u), 0.0).sum() for u in (t, 1.0 - t)]
    h = {
        "logistic": sum(entropies),
        "hinge": -t.sum(),
        "squared": 0.5 * rho @ rho - t.sum(),
        "epsilon": params["epsilon"] * np.abs(rho).sum() - t.sum(),
    }
    if params["loss"] == "epsilon":
        assert (np.abs(rho) <= 1.0).all()
    if params["regularizer"] == "block1":
        assert lengths.max() <= lam * (1.0 + ROUNDING)
    p = params["q"] / (params["q"] - 1.0)
    conjugates = {
        "block1": 0.0 * lengths,
        "elastic-net": np.maximum(lengths - lam * (1.0 - mix), 0.0) ** 2 / (2.0 * lam * mix),
        "block-q": lam / p * (lengths / lam) ** p,
        "uniform": lengths**2 / (2.0 * lam),
    }
    return -h[params["loss"]] - conjugates[params["regularizer"]].sum()


def primal(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    """Return the gain of r less ``1/2 ||r||^2`` and ``C/2`` times the largest ``r'Kr``."""
    r, C, loss = solution.dual_variables, params["C"], params["loss"]
    slope = 1.0 if loss == "one-class" else 0.0
    if loss == "squared-hinge":
        assert (r >= 0.0).all()
        r = r * y
    assert abs(r.sum() - slope) <= ROUNDING * max(np.abs(r).sum(), slope)
    gain = {
        "squared-hinge": y @ r,
        "squared": (y - y.mean()) @ r,
        "epsilon-squared": (y - y.mean()) @ r - 0.1 * np.abs(r).sum(),
        "one-class": 0.0,
    }[loss]
    if loss == "one-class":
        assert (r >= 0.0).all()
        assert not r[y < 0].any()
    return gain - 0.5 * r @ r - 0.5 * C * p_norm(forms(instance.grams, r), params["norm"])


def deformed(instance: Instance, gamma_a: float, gamma_i: float) -> np.ndarray:
    """Return ``K_m (gamma_a I + gamma_i L K_m)^-1``."""
    L, identity = heat_laplacian(instance.grams), np.eye(len(instance.y))
    inverses = np.linalg.inv(gamma_a * identity + gamma_i * L @ instance.grams)
    return instance.grams @ inverses


def residual(y: np.ndarray, solution: Solution, *, hinge: bool, bias: bool = True) -> np.ndarray:
    """Return the residual that ``r * y`` of the solution stands for, which is feasible."""
    r = solution.dual_variables * y
    assert not r[y == 0].any()
    assert not hinge or (solution.dual_variables >= 0.0).all()
    assert not bias or abs(r.sum()) <= ROUNDING * max(np.abs(r).sum(), 1e-300)
    return r


def best_multiple(gain: float, square: float) -> float:
    return 0.5 * gain**2 / square if gain > 0.0 else 0.0


def own_functions(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    if params["form"] == "shared":
        r = residual(y, solution, hinge=True)
        return best_multiple(y @ r, r @ r + forms(instance.grams, r).max() / params["gamma_a"])
    r, kernels = residual(y, solution, hinge=True), deformed(instance, *gammas(params))
    return best_multiple(y @ r, r @ r + forms(kernels, r).max())


def gammas(params: Params) -> tuple[float, float]:
    return params["gamma_a"], params.get("gamma_i", 0.0)


def divisors(instance: Instance, y: np.ndarray, params: Params) -> np.ndarray:
    """Return by what each deformed kernel is divided, (M,)."""
    if not params.get("unit_norm"):
        return np.ones(len(instance.grams))
    labelled = np.flatnonzero(y)
    blocks = deformed(instance, *gammas(params))[:, labelled[:, None], labelled]
    return params["gamma_a"] * np.linalg.norm(blocks, axis=(1, 2))


def graph_kernels(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    r, kernels = solution.dual_variables, deformed(instance, *gammas(params))
    assert not r[y == 0].any()
    if params.get("bias", True):
        assert abs(r.sum()) <= ROUNDING * np.abs(r).sum()
    q = forms(kernels, r) / divisors(instance, y, params)
    return best_multiple(y @ r, r @ r + q.max())


def mean_kernel(hinge: bool) -> Dual:
    def dual(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
        r = residual(y, solution, hinge=hinge, bias=params.get("bias", True))
        K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
        L, (gamma_a, gamma_i) = heat_laplacian(instance.grams), gammas(params)
        Kd = K @ np.linalg.inv(gamma_a * np.eye(len(y)) + gamma_i * L @ K)
        return max(y @ r - 0.5 * r @ r - 0.5 * r @ Kd @ r, 0.0)

    return dual


def semi_supervised(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    """Return the dual value of beta, which for several kernels is the least over their weights.

    The value ``1'beta - gamma_i/n^2 z'L z - gamma_sigma ||t||^2`` is a lower bound of it for every
    z, and is it at ``z = sum_m d_m K_m alpha`` of the minimiser d = t.
    """
    n = len(y)
    beta, classes = solution.dual_variables.reshape(n, -1), y.reshape(n, -1)
    assert (beta >= 0.0).all()
    assert (beta <= (1.0 + 1e-12) / (classes != 0).sum(axis=0)).all()
    assert np.abs((beta * classes).sum(axis=0)).max() <= ROUNDING * beta.sum()
    L, gamma_a, c = heat_laplacian(instance.grams), params["gamma_a"], params["gamma_i"] / n**2
    d, best = solution.kernel_weights, -np.inf
    for _ in range(20):
        K = np.einsum("m,mij->ij", d, instance.grams)
        alpha = np.linalg.solve(gamma_a * np.eye(n) + c * L @ K, 0.5 * beta * classes)
        z, q = K @ alpha, forms(instance.grams, alpha)
        value = beta.sum() - c * (z * (L @ z)).sum()
        if "gamma_sigma" not in params:
            return max(value - gamma_a * d @ q, 0.0)
        t = gamma_a * q / (2.0 * params["gamma_sigma"])
        best = max(best, value - params["gamma_sigma"] * t @ t)
        d = np.cbrt(d**2 * t)
    return float(best)


DUALS: dict[str, Dual] = {
    **dict.fromkeys(("level", "silp", "simplemkl", "hessianmkl", "skm", "l0_mkl"), on_simplex),
    **dict.fromkeys(("uniform", "align", "alignf", "best_single", "svm"), at_weights),
    "lp_mkl": in_ball,
    "group_mkl": in_groups,
    "smo_mkl": penalised,
    "gmkl": priced,
    "rmkl": with_radii,
    "majority": majority,
    "easymkl": hulls,
    "spicymkl": block_norm,
    "elastmkl": block_norm,
    "primalmkl": primal,
    "lapmkl": own_functions,
    "glks": graph_kernels,
    "lapsvm": mean_kernel(hinge=True),
    "laprls": mean_kernel(hinge=False),
    "rls": mean_kernel(hinge=False),
    "lsvm": semi_supervised,
    "mklsvm": semi_supervised,
}
# Bounds of mixtures, by convexity no greater than the dual value of the mixed point; for easymkl
# and mklsvm, at numbers that are not the best for the dual point, and for the conjugate gradients
# of lapsvm at a larger kernel.
AT_LEAST = {"level", "silp", "simplemkl", "hessianmkl", "l0_mkl", "group_mkl", "rmkl"}
AT_LEAST |= {"easymkl", "mklsvm", "lapsvm-pcg"}


def shared_value(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    """Return F of (18), of coefficients that all kernels share."""
    gamma_a, gamma_i = gammas(params)
    v, L = instance.grams @ solution.coefficients, heat_laplacian(instance.grams)
    smooth = np.einsum("mi,ij,mj->m", v, L, v)
    norms = gamma_a * v @ solution.coefficients + gamma_i * smooth
    f = solution.kernel_weights @ v + solution.bias
    return 0.5 * (solution.kernel_weights @ norms + losses(y, f, squared=False))


def of_unit_norm(instance: Instance, y: np.ndarray, params: Params, solution: Solution) -> float:
    """Return F of GLKS with deformed kernels that are divided by their norms."""
    gamma_a, gamma_i = gammas(params)
    divided, L = divisors(instance, y, params), heat_laplacian(instance.grams)
    f, penalty = np.full(len(y), solution.bias), 0.0
    kernels = np.flatnonzero(solution.kernel_weights)
    for m, a in zip(kernels, solution.kernel_coefficients, strict=True):
        f_m, d = instance.grams[m] @ a, solution.kernel_weights[m]
        penalty += d * divided[m] * (gamma_a * a @ f_m + gamma_i * f_m @ L @ f_m)
        f += d * f_m
    return 0.5 * (penalty + losses(y, f, squared=True))


def variant(name: str, label: str, **changes: Any) -> Case:
    """Return the first case whose name begins like this with other parameters."""
    case = next(case for case in all_cases() if str(case).startswith(name))
    return replace(case, label=label, params=lambda i: case.params(i) | changes)


GAMMAS = {"gamma_a": 1e-2, "gamma_i": 0.1}
OTHERS = [
    replace(variant("lapmkl", "shared", form="shared"), value=shared_value),
    variant("glks", "none", acceleration="none"),
    variant("glks", "no-bias", bias=False),
    replace(variant("glks", "unit-norm", unit_norm=True), value=of_unit_norm),
    variant("lapsvm", "pcg", inner="pcg", **GAMMAS),
    variant("lapsvm", "one-kernel", kernel_number=1),
    variant("rmkl", "printed", curvature=False, max_iter=50),
    variant("lp_mkl", "printed", accelerate=False),
    variant("group_mkl", "printed", acceleration="none", p=1.0, scale="mean"),
    variant("primalmkl-squared-hinge-1-1", "none", acceleration="none"),
]
CASES = [*all_cases(), *OTHERS]
FIRST = {case.method: case for case in reversed(CASES)}
LATER = [case for case in all_cases() if case not in FIRST.values()]
ENDS = {"loose": {"tol": 1e-2}, "tight": {"tol": 1e-8}, "early": {"tol": 1e-8, "max_iter": 2}}


def drawn(n_kernels: int) -> Instance:
    """Return a small random problem, of kernels of few and of many dimensions."""
    rng = np.random.default_rng(n_kernels)
    y = np.where(np.arange(30) % 5 < 2, 1.0, -1.0)
    grams = []
    for m in range(n_kernels):
        x = rng.normal(size=(30, 3)) + (0.4 + 0.6 * rng.random()) * y[:, None] * (m % 3 == 0)
        grams.append(rbf_kernel(x, gamma=1.0 / (1.0 + m % 4)) if m % 2 else x @ x.T)
    stack = np.array(grams)
    stack /= np.einsum("mii->m", stack)[:, None, None]
    return Instance(f"{n_kernels} kernels", stack, y, 40.0)


def parameters(case: Case, instance: Instance, params: Params) -> dict[str, Any]:
    """Return the parameters that have an effect, and the graph or groups that a method takes."""
    method = METHODS[case.method]
    known = method.params(**params)
    given: dict[str, Any] = {name: params[name] for name in params if known.has_effect(name)}
    if method.needs_laplacian:
        given["laplacian"] = heat_laplacian(instance.grams)
    if method.takes_groups:
        given["groups"] = groups_of(len(instance.grams))
    return given


def solved(
    case: Case, instance: Instance, y: np.ndarray, params: Params, bank: Any = None, **more: Any
) -> Solution:
    """Return a solution; bounds hold wherever the run ends."""
    given = parameters(case, instance, params) | more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mkldist.solve(case.method, instance.grams if bank is None else bank, y, **given)


def assert_certified(
    name: str, objective: float, dual: float, solution: Solution, *, exactly: bool = True
) -> None:
    """Compare objective and dual value by hand with those of a solution."""
    size = ROUNDING * abs(solution.objective)
    assert solution.objective == pytest.approx(objective, abs=size)
    assert solution.dual_objective <= dual + size
    assert dual <= objective + size
    if exactly and not {name, name.split("-")[0]} & AT_LEAST:
        assert solution.dual_objective == pytest.approx(dual, abs=size)


def test_every_method_has_a_formula():
    assert DUALS.keys() == METHODS.keys() == FIRST.keys()


def checked(case: Case, end: str, n_kernels: int) -> None:
    instance = drawn(n_kernels)
    y, params = case.labels(instance), case.params(instance)
    known = METHODS[case.method].params.model_fields
    more = {name: value for name, value in ENDS[end].items() if name in known}
    solution = solved(case, instance, y, params, **more)
    dual = DUALS[case.method](instance, y, params, solution)
    assert_certified(str(case), case.value(instance, y, params, solution), dual, solution)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "n_kernels"), [("loose", 6), ("tight", 6), ("early", 6), ("loose", 48)]
)
@pytest.mark.parametrize("case", FIRST.values(), ids=str)
def test_objective_and_bound_are_those_by_hand(case, end, n_kernels):
    checked(case, end, n_kernels)


@pytest.mark.slow
@pytest.mark.parametrize(("end", "n_kernels"), [("early", 6), ("loose", 48)])
@pytest.mark.parametrize("case", [*OTHERS, *LATER], ids=str)
def test_they_are_with_every_loss_and_as_printed(case, end, n_kernels):
    checked(case, end, n_kernels)


JOINT = [name for name, method in METHODS.items() if method.joint_classes]
SQUARED = ("primalmkl", "lapmkl")  # losses, of which points have weights
OTHER_LOSSES = (*SQUARED, "lapsvm", "laprls", "rls", "glks", "spicymkl", "elastmkl")
WEIGHING = [n for n, method in METHODS.items() if method.weighs_points and n not in OTHER_LOSSES]
PATHS = [name for name, method in METHODS.items() if method.has_path]


def machines_value(grams: np.ndarray, y: np.ndarray, C: Any, solution: Solution) -> float:
    """Return the sum over classes of the machines' primal values at the returned weights."""
    a, classes = (one.reshape(len(y), -1) for one in (solution.coefficients, y))
    f = np.einsum("m,mij->ij", solution.kernel_weights, grams) @ a
    slacks = np.maximum(0.0, 1.0 - classes * (f + solution.bias))
    return 0.5 * (a * f).sum() + (np.broadcast_to(C, len(y)) @ slacks).sum()


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("name", JOINT)
def test_values_of_classes_that_share_weights_add_up(name, tol):
    case, instance = FIRST[name], drawn(6)
    y = np.column_stack([np.where(np.arange(30) % 3 == c, 1.0, -1.0) for c in range(3)])
    params = case.params(instance)
    if METHODS[name].needs_laplacian:
        y[10:, :] = 0.0
    solution = solved(case, instance, y, params, tol=tol)
    if METHODS[name].needs_laplacian:
        L = heat_laplacian(instance.grams)
        value = semi_supervised_value(instance.grams, L, y, params, solution)
    else:
        value = machines_value(instance.grams, y, params["C"], solution)
    assert solution.dual_variables.shape == y.shape
    assert_certified(name, value, DUALS[name](instance, y, params, solution), solution)


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize(
    ("name", "more"),
    [(name, {}) for name in WEIGHING]
    + [(name, {"acceleration": "none"}) for name in ("level", "silp")],
    ids=str,
)
def test_weights_of_points_are_in_both(name, more, tol):
    case, instance = FIRST[name], drawn(6)
    y, params = instance.y, case.params(instance)
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    solution = solved(case, instance, y, params, tol=tol, weights=weights, **more)
    C = params.get("C", solution.extra.get("chosen_C")) * weights
    value = machines_value(instance.grams, y, C, solution)
    dual = DUALS[name](instance, y, params | {"C": C}, solution)
    assert_certified(name, value, dual, solution)


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("n_kernels", [6, 48])
@pytest.mark.parametrize("name", SQUARED)
def test_so_they_are_in_those_of_squared_hinges(name, n_kernels, tol):
    case, instance = FIRST[name], drawn(n_kernels)
    y, params = case.labels(instance), case.params(instance)
    if name == "primalmkl":
        y, params = instance.y, params | {"loss": "squared-hinge"}
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    solution = solved(case, instance, y, params, tol=tol, weights=weights)
    slacks = np.maximum(0.0, 1.0 - y * solution.decision_function(instance.grams)) * (y != 0.0)
    value = case.value(instance, y, params, solution) + 0.5 * (weights - 1.0) @ slacks**2
    r = solution.dual_variables * y
    if name == "primalmkl":
        dual = DUALS[name](instance, y, params, solution) + 0.5 * (r**2 @ (1.0 - 1.0 / weights))
    else:
        r, kernels = residual(y, solution, hinge=True), deformed(instance, *gammas(params))
        dual = best_multiple(y @ r, r**2 @ (1.0 / weights) + forms(kernels, r).max())
    assert_certified(name, value, dual, solution)


@pytest.mark.slow
@pytest.mark.parametrize("n_kernels", [6, 48])
@pytest.mark.parametrize("name", PATHS)
def test_every_solution_of_a_path_has_its_own_certificate(name, n_kernels):
    case, instance = FIRST[name], drawn(n_kernels)
    y, params = case.labels(instance), case.params(instance)
    values = [params["C"] * factor for factor in (0.3, 1.0, 3.0)]
    given = parameters(case, instance, params)
    path = mkldist.solve_path(name, instance.grams, y, tol=1e-4, **given | {"C": values})
    for value, solution in zip(values, path, strict=True):
        there = params | {"C": value}
        dual, objective = (of(instance, y, there, solution) for of in (DUALS[name], case.value))
        # A path may begin with bounds of the norms at a point, for which both are not equal.
        assert_certified(name, objective, dual, solution, exactly=False)


ON_FACTORS = [name for name, method in METHODS.items() if method.exact_bound is not None]
# Their weights, or which kernel they choose, are those of the factors, and so is easymkl's bound.
ON_FACTORS = [name for name in ON_FACTORS if name != "easymkl"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_FACTORS)
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_on_factors_the_exact_bound_is_that_of_the_kernels(name, tol):
    rng = np.random.default_rng(0)
    X, widths = rng.normal(size=(80, 3)), [0.5, 1.0, 2.0, 4.0]
    classes = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    grams = np.array([rbf_kernel(X, gamma=0.5 / width**2) for width in widths])
    case, instance = FIRST[name], Instance("gaussian", grams, classes, 2.0)
    y, params = case.labels(instance), case.params(instance)
    entries = [{"function": "gaussian", "widths": widths}]
    with mkldist.KernelBank(X, entries, normalisation="none", backend="factors") as bank:
        solution = solved(case, instance, y, params, bank=bank, tol=tol)
    dual, size = DUALS[name](instance, y, params, solution), 1e-8 * abs(solution.objective)
    assert solution.exact_dual_objective <= dual + size
    assert dual <= solution.objective + size
    if name not in AT_LEAST:
        assert solution.exact_dual_objective == pytest.approx(dual, abs=size)
    if METHODS[name].hinge_machines:  # the functions are those that the coefficients expand
        f, norm, d = np.full(len(y), solution.bias), 0.0, solution.kernel_weights
        for m, a in zip(np.flatnonzero(d), solution.kernel_coefficients, strict=True):
            f += d[m] * grams[m] @ a
            norm += d[m] * a @ grams[m] @ a
        objective = 0.5 * norm + params["C"] * np.maximum(0.0, 1.0 - y * f).sum()
        assert solution.objective == pytest.approx(objective, rel=1e-6)
