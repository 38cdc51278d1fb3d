"""The paper's weight step: its minimum by a conic solver, its gradient by differences."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mkldist.methods.primal_weights import alternating_objective, nesterov
from mkldist.optim.weight_sets import WeightSet
from tests.methods import instances
from tests.methods.primal_machines import (
    differences,
    every_loss,
    loss_of,
    machine,
    targets,
)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
def test_nesterovs_method_finds_the_conic_minimum(p):
    rng = np.random.default_rng(0)
    B, target = rng.normal(size=(12, 8)), 3.0 * rng.normal(size=12)
    weights = WeightSet(p)

    def f(d: np.ndarray) -> tuple[float, np.ndarray]:
        error = B @ d - target
        return 0.5 * float(error @ error), B.T @ error

    found = nesterov(f, weights, weights.uniform(8), gap=1e-9)
    d = cp.Variable(8, nonneg=True)
    bound = cp.sum(d) == 1 if p == 1 else cp.pnorm(d, p) <= 1
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(B @ d - target)), [bound])
    problem.solve(solver=cp.CLARABEL)
    assert f(found)[0] == pytest.approx(problem.value, rel=1e-6)


@every_loss
def test_gradient_in_d_of_the_alternation_is_that_of_finite_differences(name):
    instance = instances.not_normalised()
    loss = loss_of(name, targets(name, instance))
    rng = np.random.default_rng(1)
    alpha, b, lam = rng.normal(size=len(instance.y)), 0.3, 0.1
    G = (instance.grams @ alpha).T
    F = alternating_objective(G, G.T @ alpha, lam, loss, b)
    d = np.array([0.1, 0.2, 0.3, 0.4])
    K = np.einsum("m,mij->ij", d, instance.grams)
    at = machine(loss, lam).point(K, alpha, K @ alpha, b)
    assert F(d)[0] == pytest.approx(at.value, rel=1e-12)
    expected = differences(lambda d: F(d)[0], d, 1e-6)
    np.testing.assert_allclose(F(d)[1], expected, rtol=1e-6, atol=1e-6)
