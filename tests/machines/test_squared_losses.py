"""Squared losses: their minima on lines, and the bounds that their residuals give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.machines.squared_losses import SquaredLoss
from tests.methods import instances
from tests.methods.primal_machines import (
    every_loss,
    loss_of,
    machine,
    targets,
)


@every_loss
@pytest.mark.parametrize("seed", range(10))
def test_best_bias_and_best_step_minimise_on_their_lines(name, seed):
    rng = np.random.default_rng(seed)
    instance = instances.not_normalised()
    loss = loss_of(name, targets(name, instance))
    u, change = rng.normal(size=(2, len(instance.y)))

    def along_bias(b: float) -> float:
        return loss.value(loss.residual(u + b), b)

    found = along_bias(loss.best_bias(u))
    assert found <= minimize_scalar(along_bias, bracket=(-1, 1), tol=1e-12).fun + 1e-9

    def along(s: float) -> float:
        r = loss.residual(u + s * change)
        return 0.3 * s + 0.5 * 0.2 * s**2 + 0.5 * float(r @ r)

    found = along(loss.best_step(u, change, 0.3, 0.2))
    assert found <= minimize_scalar(along, bracket=(-1, 1), tol=1e-12).fun + 1e-9


def test_a_flat_loss_takes_the_middle_bias():
    loss = SquaredLoss(np.array([-1.0, -2.0]), np.array([3.0, 1.0]))
    assert loss.best_bias(np.zeros(2)) == pytest.approx(0.0)
    assert loss.value(loss.residual(np.zeros(2)), 0.0) == 0.0


@every_loss
@pytest.mark.parametrize("seed", range(5))
def test_any_residual_made_feasible_bounds_the_primal_from_below(name, seed):
    rng = np.random.default_rng(seed)
    instance = instances.not_normalised()
    loss, K, lam = loss_of(name, targets(name, instance)), instance.grams[0], 0.1
    z = machine(loss, lam)(K, np.zeros(len(K)))
    r = loss.feasible(loss.residual(rng.normal(size=len(K))))
    assert r.sum() == pytest.approx(loss.slope, abs=1e-12)
    assert (r[~np.isfinite(loss.upper)] >= 0).all()
    assert (r[~np.isfinite(loss.lower)] <= 0).all()
    norm = float(r @ K @ r) / (2 * lam)
    for b in (0.0, 2.5):
        assert loss.dual_value(r, b) == pytest.approx(loss.dual_value(r, 0.0), abs=1e-10)
    assert loss.dual_value(r, 0.0) - norm <= z.value
    r = loss.feasible(z.r)
    best = loss.dual_value(r, z.b) - float(r @ K @ r) / (2 * lam)
    assert best == pytest.approx(z.value, rel=1e-12)
