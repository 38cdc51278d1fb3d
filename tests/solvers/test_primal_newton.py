"""Kernel machines with squared losses, and systems of their support vectors."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.l2_svm import solve_l2_svm
from mkldist.solvers.primal_newton import SupportSystem, ThinSupportSystem, support_system
from tests.methods import instances
from tests.methods.primal_machines import (
    INNERS,
    differences,
    every_instance,
    every_loss,
    loss_of,
    machine,
    targets,
)


@every_loss
def test_gradient_and_hessian_in_z_are_those_of_finite_differences(name):
    instance = instances.not_normalised()
    K, lam, n = instance.grams[0], 0.1, len(instance.y)
    loss = loss_of(name, targets(name, instance))
    solver = machine(loss, lam)
    rng = np.random.default_rng(0)
    z = np.append(0.1 * rng.normal(size=n), 0.2)

    def value(z: np.ndarray) -> float:
        return solver.point(K, z[:n], K @ z[:n], z[n]).value

    def gradient(z: np.ndarray) -> np.ndarray:
        at = solver.point(K, z[:n], K @ z[:n], z[n])
        return np.append(at.Ks, loss.slope - at.r.sum())

    np.testing.assert_allclose(gradient(z), differences(value, z), atol=1e-7)
    sv = loss.active(solver.point(K, z[:n], K @ z[:n], z[n]).r)
    I_sv, ones = np.diag(sv.astype(float)), np.ones((n, 1))
    left = np.block([[I_sv @ K + lam * np.eye(n), I_sv @ ones], [ones.T @ I_sv @ K, sv.sum()]])
    P = np.block([[K, 0 * ones], [0 * ones.T, 1.0]])
    np.testing.assert_allclose(P @ left, differences(gradient, z, 1e-7), atol=1e-5)


@pytest.mark.slow
@every_loss
@every_instance
@pytest.mark.parametrize("lam", [1e-2, 1.0])
def test_the_three_ways_to_the_minimum_of_z_agree(name, make, lam):
    instance = make()
    K, loss = instance.grams.mean(axis=0), loss_of(name, targets(name, instance))
    points = [machine(loss, lam, inner, 1e-18)(K, np.zeros(len(K))) for inner in INNERS]
    for z in points:
        assert z.value == pytest.approx(points[0].value, rel=1e-12)
        np.testing.assert_allclose(z.f + z.b, points[0].f + points[0].b, atol=1e-6)
        np.testing.assert_allclose(lam * z.alpha, z.r, atol=1e-5)


@every_loss
@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("inner", INNERS)
def test_an_operator_has_the_minimum_of_its_matrix(name, lam, inner):
    rng = np.random.default_rng(0)
    instance = instances.balanced()
    G = rng.normal(size=(60, 15)) * 0.7 ** np.arange(15)
    K = FactoredMatrix(np.array([2.0]), [G], (G**2).sum(axis=1)[None], 60)
    loss = loss_of(name, targets(name, instance))
    found = machine(loss, lam, inner, 1e-12)(K, np.zeros(60))
    expected = machine(loss, lam, inner, 1e-12)(2.0 * G @ G.T, np.zeros(60))
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(found.f + found.b, expected.f + expected.b, atol=1e-4)


def test_the_gap_of_a_machine_is_primal_minus_dual():
    instance = instances.balanced()
    K, lam = instance.grams[0], 0.01
    loss = loss_of("squared-hinge", instance.y)
    solver = machine(loss, lam)
    alpha = np.random.default_rng(0).normal(size=len(K))
    z = solver.point(K, alpha, K @ alpha)
    dual = loss.dual_value(z.r, z.b) - float(z.r @ K @ z.r) / (2 * lam)
    assert solver.gap(z) == pytest.approx(z.value - dual, rel=1e-10)


@every_instance
@pytest.mark.parametrize("lam", [1e-8, 1e-2, 1.0, 1e8])
def test_the_squared_hinge_machine_is_the_l2_svm(make, lam):
    instance = make()
    K = instance.grams.mean(axis=0)
    z = machine(loss_of("squared-hinge", instance.y), lam)(K, np.zeros(len(K)))
    svm = solve_l2_svm(K, instance.y, lam, tol=1e-10)
    assert z.value == pytest.approx(lam * svm.objective, rel=1e-8)


RNG = np.random.default_rng(0)
G = RNG.normal(size=(30, 8))
SV = RNG.random(30) < 0.6
LAM = 0.05


def system(thin: bool) -> SupportSystem | ThinSupportSystem:
    K = FactoredMatrix(np.array([0.5]), [G], (G**2).sum(axis=1)[None], 30)
    return support_system(K if thin else 0.5 * G @ G.T, SV, LAM)


def bordered() -> np.ndarray:
    block = 0.5 * G[SV] @ G[SV].T + LAM * np.eye(SV.sum())
    ones = np.ones((len(block), 1))
    return np.block([[block, ones], [ones.T, np.zeros((1, 1))]])


@pytest.mark.parametrize("thin", [True, False])
def test_the_solution_is_that_of_the_bordered_matrix(thin):
    right = RNG.normal(size=SV.sum())
    x, b = system(thin).solve(right, 0.7)
    expected = np.linalg.solve(bordered(), np.append(right, 0.7))
    np.testing.assert_allclose(np.append(x, b), expected, atol=1e-4 * np.abs(expected).max())
    assert x.sum() == pytest.approx(0.7)


@pytest.mark.parametrize("thin", [True, False])
def test_projected_columns_have_the_products_of_the_inverse(thin):
    columns = RNG.normal(size=(SV.sum(), 3))
    B = system(thin).projected(columns)
    inverse = np.linalg.inv(bordered())[:-1, :-1]
    expected = columns.T @ inverse @ columns
    np.testing.assert_allclose(B.T @ B, expected, atol=1e-4 * np.abs(expected).max())


def test_a_singular_support_system_is_regularised_until_it_factorises():
    singular = SupportSystem(np.ones((4, 4)), 1e-30)
    x, b = singular.solve(np.ones(4), 1.0)
    assert np.isfinite([*x, b]).all()
    assert x.sum() == pytest.approx(1.0)
