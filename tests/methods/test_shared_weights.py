"""Kernel weights that several classes share, against an independent conic solver."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

import mkldist
from mkldist.errors import GramError, SpecError
from mkldist.methods.registry import METHODS
from tests.methods.instances import factors

C = 20.0
SIMPLEX = ("level", "silp", "simplemkl", "hessianmkl")
TOL = 1e-8


@cache
def three_classes() -> tuple[np.ndarray, np.ndarray]:
    """Return (M, n, n) kernels of unit trace, one of them zero and one twice, and (n, 3) labels."""
    rng = np.random.default_rng(7)
    number = np.repeat([0, 1, 2], [12, 18, 24])
    x = rng.normal(size=(54, 5))
    x[:, 0] += np.array([-1.5, 0.0, 1.5])[number]
    x[:, 1] += np.array([0.0, 1.0, 0.0])[number] * np.sign(x[:, 2])
    grams = [rbf_kernel(x[:, [j]], gamma=g) for j in range(5) for g in (0.1, 1.0)]
    grams += [linear_kernel(x), polynomial_kernel(x, degree=2), linear_kernel(x)]
    stack = np.array(grams)
    stack /= np.trace(stack, axis1=1, axis2=2)[:, None, None]
    stack = np.concatenate([stack, np.zeros((1, 54, 54))])
    return stack, np.where(number[:, None] == np.arange(3), 1.0, -1.0)


@cache
def shared_optimum(C: float = C, unit: float = C, groups: tuple[int, ...] = ()) -> float:
    """Optimum of max sum_c 1'a_c - t, t >= 1/2 sum_c ||F_m (a_c*y_c)||^2 for all m.

    The conic solver sees a in multiples of `unit`.  With groups, the kernels are their means.
    """
    grams, y = three_classes()
    if groups:
        grams = np.array([grams[np.array(groups) == g].mean(axis=0) for g in set(groups)])
    a, t = cp.Variable(y.shape), cp.Variable()
    constraints = [a >= 0, a <= C / unit, cp.sum(cp.multiply(y, a), axis=0) == 0, t >= 0]
    constraints += [
        0.5 * unit * cp.sum_squares(root @ cp.multiply(y, a)) <= t
        for root in factors(grams)
        if len(root)
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(a) - t), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return unit * float(problem.value)


def primal_value(solution: mkldist.Solution, grams: np.ndarray, y: np.ndarray) -> float:
    """Return 1/2 ||f_c||^2 + C sum of hinge, added up over the classes."""
    f = solution.decision_function(grams)
    norms = np.sum(solution.coefficients * (f - solution.bias))
    return float(0.5 * norms + C * np.maximum(0.0, 1.0 - y * f).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMPLEX)
def test_the_sum_of_objectives_is_minimised(name):
    grams, y = three_classes()
    solution = mkldist.solve(name, grams, y, C=C, tol=TOL, trace=True)
    assert solution.converged
    assert solution.objective == pytest.approx(shared_optimum(), rel=1e-6)
    assert solution.dual_objective == pytest.approx(shared_optimum(), rel=1e-6)
    assert solution.kernel_weights.shape == (len(grams),)
    assert solution.kernel_weights.sum() == pytest.approx(1.0)
    assert solution.coefficients.shape == solution.dual_variables.shape == y.shape
    assert solution.bias.shape == (3,)
    assert solution.objective == pytest.approx(primal_value(solution, grams, y), rel=1e-9)
    slack = 1e-6 * shared_optimum()
    assert (solution.trace["objective"] >= shared_optimum() - slack).all()
    assert (solution.trace["dual_objective"] <= shared_optimum() + slack).all()


def test_groups_of_kernels_are_shared():
    grams, y = three_classes()
    groups = tuple(np.repeat(np.arange(7), 2).tolist())
    solution = mkldist.solve("group_mkl", grams, y, C=C, tol=TOL, groups=groups)
    assert solution.converged
    assert solution.objective == pytest.approx(shared_optimum(groups=groups), rel=1e-6)
    assert solution.objective == pytest.approx(primal_value(solution, grams, y), rel=1e-9)


@pytest.mark.slow
def test_weights_in_a_ball_are_shared():
    grams, y = three_classes()
    a, t = cp.Variable(y.shape), cp.Variable(len(grams))
    forms = [cp.sum_squares(root @ cp.multiply(y, a)) for root in factors(grams) if len(root)]
    constraints = [a >= 0, a <= 1, cp.sum(cp.multiply(y, a), axis=0) == 0]
    constraints += [C * form <= t[m] for m, form in enumerate(forms)]
    problem = cp.Problem(cp.Maximize(cp.sum(a) - 0.5 * cp.norm(t)), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    solution = mkldist.solve("lp_mkl", grams, y, C=C, p=2.0, tol=TOL)
    assert solution.converged
    assert solution.objective == pytest.approx(C * problem.value, rel=1e-6)
    assert solution.objective == pytest.approx(primal_value(solution, grams, y), rel=1e-9)


def test_weights_of_their_own_do_not_cost_more():
    grams, y = three_classes()
    own = [mkldist.solve("level", grams, column, C=C, tol=TOL).objective for column in y.T]
    assert sum(own) < shared_optimum() * (1 - 1e-4)


def test_uniform_weights_are_as_many_machines():
    grams, y = three_classes()
    shared = mkldist.solve("uniform", grams, y, C=C, tol=TOL)
    own = [mkldist.solve("uniform", grams, column, C=C, tol=TOL) for column in y.T]
    assert shared.objective == pytest.approx(sum(one.objective for one in own))
    np.testing.assert_allclose(shared.coefficients.T, [one.coefficients for one in own])
    assert shared.counters.svm_solves == 3
    assert shared.counters.combines == 1


def test_alignment_with_all_classes():
    grams, y = three_classes()
    n = len(y)
    H = np.eye(n) - 1.0 / n
    centred, target = H @ grams @ H, H @ y @ y.T @ H
    v = cp.Variable(len(grams), nonneg=True)
    root = centred.reshape(len(grams), -1).T
    distance = cp.sum_squares(root @ v - target.ravel())
    cp.Problem(cp.Minimize(distance)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    combined = root @ v.value
    solution = mkldist.solve("alignf", grams, y, C=C)
    best = combined @ target.ravel() / np.linalg.norm(combined) / np.linalg.norm(target)
    mixed = root @ solution.kernel_weights
    found = mixed @ target.ravel() / np.linalg.norm(mixed) / np.linalg.norm(target)
    assert found == pytest.approx(best, rel=1e-6)
    assert solution.extra["alignment"] == pytest.approx(found, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMPLEX)
@pytest.mark.parametrize(("C", "unit"), [(1e-6, 1e-6), (1e6, 300.0)])
def test_extremes_have_bounds_of_the_optimum(name, C, unit):
    grams, y = three_classes()
    solution, optimum = mkldist.solve(name, grams, y, C=C, tol=1e-3), shared_optimum(C, unit)
    assert np.isfinite(solution.coefficients).all()
    assert solution.converged
    assert solution.gap <= 1e-3
    assert solution.dual_objective <= optimum * (1 + 1e-6)
    assert solution.objective >= optimum * (1 - 1e-6)


def test_a_method_that_cannot_share_weights_names_those_that_can():
    grams, y = three_classes()
    with pytest.raises(SpecError, match=r"gmkl with labels of shape \(54, 3\).*level, simplemkl"):
        mkldist.solve("gmkl", grams, y)


def test_every_column_has_both_classes():
    grams, y = three_classes()
    wrong = y.copy()
    wrong[:, 1] = 1.0
    with pytest.raises(GramError, match="both classes"):
        mkldist.solve("level", grams, wrong)
    with pytest.raises(GramError, match=r"found shape \(3, 54\)"):
        mkldist.solve("level", grams, y.T)


def test_declared_methods_take_columns():
    grams, y = three_classes()
    for name, method in METHODS.items():
        if method.joint_classes and not method.needs_laplacian:
            assert mkldist.solve(name, grams, y).decision_function(grams).shape == y.shape
