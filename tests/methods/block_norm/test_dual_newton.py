"""Newton's method on the inner objective against a linear system and scipy's SLSQP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from mkldist.core.counters import Counters
from mkldist.methods.block_norm_dual import DualNewton, InnerObjective, Iterate, enlarged
from mkldist.methods.block_norm_losses import Logistic, Smoothing, Squared
from mkldist.methods.regularizers import block1, uniform
from tests.methods import instances, plain_bank
from tests.methods.references import real_values


def minimised(loss, regularizer, grams, damping, counters):
    """Minimise phi with alpha = 0 over all kernels; return it and the minimiser."""
    start = Iterate.without_kernels(loss.start())
    start = plain_bank.run(enlarged(start, np.arange(len(grams))), grams)
    phi = InnerObjective(loss, regularizer, start, Smoothing(10.0), damping)
    found, _ = plain_bank.run(DualNewton(counters).minimise(phi, start, 1e-14), grams)
    return phi, found


def test_a_quadratic_objective_takes_one_step_to_the_solution_of_a_linear_system():
    # phi = 1/2 rho'rho - y'rho + rho'K rho / (2 lam), with K the sum of the kernels, and 1'rho = 0.
    instance, lam = instances.balanced(), 0.3
    loss, n, counters = Squared(real_values(instance)), len(instance.y), Counters()
    _, found = minimised(loss, uniform(lam), instance.grams, 0.0, counters)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = np.eye(n) + instance.grams.sum(axis=0) / lam
    system[n, n] = 0.0
    expected = np.linalg.solve(system, np.append(loss.y, 0.0))[:n]
    np.testing.assert_allclose(found.rho, expected, atol=1e-10)
    np.testing.assert_allclose(found.products, instance.grams @ expected, atol=1e-10)
    assert counters.newton_steps <= 2


def test_a_general_objective_is_minimised_under_the_constraint():
    instance = instances.not_normalised()
    phi, found = minimised(Logistic(instance.y), block1(2.0), instance.grams, 0.1, Counters())
    reference = minimize(
        lambda rho: phi.at(rho, instance.grams @ rho).value,
        np.zeros(len(instance.y)),
        jac=lambda rho: phi.at(rho, instance.grams @ rho).gradient,
        constraints={"type": "eq", "fun": lambda rho: rho.sum(), "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    end = phi.at(found.rho, instance.grams @ found.rho)
    assert found.rho.sum() == pytest.approx(0.0, abs=1e-12)
    assert end.value == pytest.approx(reference.fun, rel=1e-9)
    assert np.ptp(end.gradient) <= 1e-6  # a multiple of 1
