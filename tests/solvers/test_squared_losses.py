"""Squared losses: their minima on lines, and the bounds that their residuals give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.solvers.squared_losses import SquaredLoss, root_on_line
from tests.methods import instances
from tests.methods.primal_machines import every_loss, loss_of, machine, targets


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


@pytest.mark.parametrize("seed", range(60))
def test_roots_lie_in_the_middle_of_those_by_sorting_equal_kinks(seed):
    rng = np.random.default_rng(seed)
    u, change = rng.integers(-3, 4, size=(2, 12)).astype(float)
    lower = np.where(rng.random(12) < 0.7, rng.integers(-2, 1, 12), -np.inf)
    upper = np.where(rng.random(12) < 0.7, rng.integers(0, 3, 12), np.inf)
    constant = float(rng.integers(-2, 3))

    def value(s: float) -> float:
        at = u + s * change
        return constant - float((np.clip(at, lower, upper) - at) @ change)

    moving = change != 0
    ends = np.concatenate([(end - u)[moving] / change[moving] for end in (lower, upper)])
    kinks = np.unique(ends[np.isfinite(ends)])
    values = np.array([value(s) for s in kinks])
    found = root_on_line(u, change, lower, upper, constant, 0.0)
    if np.any(values == 0.0) and values[0] < 0.0 < values[-1]:
        flat = kinks[values == 0.0]
        assert found == pytest.approx(0.5 * (flat[0] + flat[-1]))
    elif values[0] < 0.0 < values[-1]:
        assert value(found) == pytest.approx(0.0, abs=1e-12)


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
