"""Losses against the definition of the conjugate, finite differences and scalar searches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.methods.block_norm_losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    Smoothing,
    Squared,
)

CLASSES = np.array([1.0, -1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
VALUES = np.array([0.3, -1.2, 2.0, 0.0, 5.5, -0.7, 1.1])

LOSSES = [Logistic(CLASSES), Hinge(CLASSES), Squared(VALUES), EpsilonInsensitive(VALUES, 0.25)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def inner_point(loss: Loss, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if loss.y is CLASSES:
        return loss.y * rng.uniform(0.1, 0.9, len(loss.y))
    return rng.uniform(-0.9, 0.9, len(loss.y))


@every_loss
def test_conjugate_is_the_supremum_that_defines_it(loss):
    # h(rho) = l*(-rho) = sup_f { -rho'f - l(f) }, separable: one coordinate at a time.
    rho = inner_point(loss)
    f = np.linspace(-60, 60, 240_001)
    total = 0.0
    for i, y in enumerate(loss.y):
        one = type(loss)(np.array([y]), *([loss.epsilon] if hasattr(loss, "epsilon") else []))
        match one:
            case Logistic():
                values = np.logaddexp(0, -y * f)
            case Hinge():
                values = np.maximum(0, 1 - y * f)
            case Squared():
                values = 0.5 * (y - f) ** 2
            case _:
                values = np.maximum(0, np.abs(y - f) - loss.epsilon)
        assert one.value(f[:1] - one.offset) == pytest.approx(values[0])
        total += (-rho[i] * f - values).max()
    assert loss.conjugate(rho) == pytest.approx(total, abs=1e-5)


@every_loss
@pytest.mark.parametrize("gamma", [0.5, 20.0])
@pytest.mark.parametrize("temperature", [0.0, 0.03, 1.0])
def test_gradient_and_hessian_of_the_smoothed_conjugate(loss, gamma, temperature):
    smoothing = Smoothing(gamma, temperature)
    rng = np.random.default_rng(1)
    rho = rng.normal(size=len(loss.y))
    z = rng.normal(size=len(rho))
    curve, step = loss.smoothed(rho, z, smoothing), 1e-6
    for i, unit in enumerate(np.eye(len(rho))):
        up = loss.smoothed(rho + step * unit, z, smoothing)
        down = loss.smoothed(rho - step * unit, z, smoothing)
        slope = (up.value - down.value) / (2 * step)
        bend = (up.gradient[i] - down.gradient[i]) / (2 * step)
        assert curve.gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-7)
        assert curve.hessian[i] == pytest.approx(bend, rel=1e-5, abs=1e-6)


@every_loss
def test_feasible_points_are_in_the_domain_and_sum_to_zero(loss):
    rng = np.random.default_rng(2)
    for rho in (loss.start(), loss.feasible(3 * rng.normal(size=len(loss.y)))):
        assert rho.sum() == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(loss.into_domain(rho), rho)
        assert np.isfinite(loss.conjugate(rho))


@every_loss
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_best_bias_minimises_the_loss(loss, scale):
    f = scale * np.random.default_rng(3).normal(size=len(loss.y))
    best = loss.value(f + loss.best_bias(f))
    search = minimize_scalar(
        lambda b: loss.value(f + b), bounds=(-5 * scale - 9, 5 * scale + 9), method="bounded"
    )
    assert best <= search.fun * (1 + 1e-9)


def test_the_envelope_of_the_logistic_loss_is_a_minimum():
    loss, gamma, step = Logistic(np.array([-1.0])), 7.0, 1e-4
    for v in (-3.0, -0.4, -1e-9, 0.2, 50.0):
        grid = np.arange(step, 1.0, step)
        entropy = grid * np.log(grid) + (1 - grid) * np.log1p(-grid)
        least = (entropy + 0.5 * gamma * (-grid - v) ** 2).min()
        curve = loss.smoothed(np.array([v]), np.zeros(1), Smoothing(gamma))
        assert curve.value == pytest.approx(least, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("loss", [Hinge(CLASSES), EpsilonInsensitive(VALUES, 0.25)])
@pytest.mark.parametrize("gamma", [0.5, 1e6])
def test_a_falling_temperature_leads_to_the_envelope_of_the_polyhedral_loss(loss, gamma):
    rng = np.random.default_rng(4)
    rho, z = rng.normal(size=len(loss.y)), rng.normal(size=len(loss.y))
    plain = loss.smoothed(rho, z, Smoothing(gamma))
    for temperature in (1e-2, 1e-5, 1e-9):
        curve = loss.smoothed(rho, z, Smoothing(gamma, temperature))
        lowered, rounding = plain.value - curve.value, 1e-13 * abs(plain.value)
        assert -rounding <= lowered <= temperature * 2 * len(rho) * np.log(2) + rounding
        moved = np.abs(curve.multipliers - plain.multipliers).max()
        assert moved <= 50 * temperature + 1e-14 * gamma


@pytest.mark.parametrize("loss", [Hinge(CLASSES), EpsilonInsensitive(VALUES, 0.25)])
def test_the_entropy_bounds_what_a_temperature_lowers(loss):
    rho = inner_point(loss)
    for temperature in (1e-6, 0.1, 1.0):  # a penalty so large that only the entropy is felt
        curve = loss.smoothed(rho, np.zeros(len(rho)), Smoothing(1e9, temperature))
        lowered = loss.conjugate(rho) - curve.value
        assert 0 < lowered <= temperature * loss.entropy(rho) + 1e-7
