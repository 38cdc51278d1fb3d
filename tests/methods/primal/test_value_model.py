"""The second-order model of J: gradient and Hessian by differences, minima by a conic solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mkldist.methods.primal_weights import ValueModel
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.primal_newton import SupportSystem
from tests.methods import instances
from tests.methods.primal_machines import differences, every_loss, loss_of, machine, targets


@every_loss
def test_gradient_and_hessian_of_J_are_those_of_finite_differences(name):
    instance = instances.balanced()
    loss, lam = loss_of(name, targets(name, instance)), 0.05
    solver = machine(loss, lam)

    def at(d: np.ndarray):
        return solver(np.einsum("m,mij->ij", d, instance.grams), np.zeros(len(instance.y)))

    def gradient(d: np.ndarray) -> np.ndarray:
        a = at(d).r / lam
        return -0.5 * lam * np.einsum("i,mij,j->m", a, instance.grams, a)

    d = np.full(len(instance.grams), 1.0 / len(instance.grams))
    expected = differences(lambda d: at(d).value, d, 1e-5)
    np.testing.assert_allclose(gradient(d), expected, rtol=1e-5)
    z = at(d)
    a, sv = z.r / lam, loss.active(z.r)
    K = np.einsum("m,mij->ij", d, instance.grams)
    G = (instance.grams @ a).T
    model = ValueModel.of(
        SupportSystem(K[np.ix_(sv, sv)], lam), lam, G[sv], np.maximum(G.T @ a, 0), (K @ a)[sv]
    )
    np.testing.assert_allclose(model(d)[1], gradient(d), rtol=1e-9)
    hessian = differences(gradient, d, 1e-5)
    np.testing.assert_allclose(model.B.T @ model.B, hessian, atol=1e-3 * np.abs(hessian).max())


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_minimum_over_the_set_is_the_conic_one(p):
    rng = np.random.default_rng(0)
    B, target = rng.normal(size=(12, 8)), 3.0 * rng.normal(size=12)
    weights = WeightSet(p)
    model = ValueModel(rng.normal(size=8), B, target)
    found = model.minimum(weights, weights.uniform(8), share=1e-9)
    assert (found >= 0).all()
    assert weights.length(found) <= 1 + 1e-12
    d = cp.Variable(8, nonneg=True)
    bound = cp.sum(d) == 1 if p == 1 else cp.pnorm(d, p) <= 1
    value = model.gradient @ d + 0.5 * cp.sum_squares(B @ d - target)
    problem = cp.Problem(cp.Minimize(value), [bound])
    problem.solve(solver=cp.CLARABEL)
    assert model(found)[0] == pytest.approx(problem.value, rel=1e-6)
