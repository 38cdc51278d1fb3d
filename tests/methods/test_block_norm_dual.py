"""The dual of block-norm MKL: inner objective, Newton's method, bounds, losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar

from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.passes import answered
from mkldist.core.counters import Counters
from mkldist.methods import block_norm_dual as newton_model
from mkldist.methods.block_norm import BlockNormBounds, BlockNormParams, dual_value
from mkldist.methods.block_norm_dual import (
    DenseModel,
    DualNewton,
    InnerObjective,
    InnerPoint,
    Iterate,
    Line,
    ThinHessian,
    ThinModel,
    enlarged,
)
from mkldist.methods.block_norm_losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    Smoothing,
    Squared,
)
from mkldist.methods.regularizers import BlockQ, ElasticNet, block1, uniform
from mkldist.optim import factored_matrix
from tests.methods import instances, plain_bank
from tests.methods.references import real_values
from tests.methods.references.block_norm import EPSILON, MIX, Q
from tests.methods.references.recorded import optimum_of
from tests.methods.test_on_factors import factors_of, products_of

GAMMA = 10.0


def iterate_of(grams: np.ndarray, rho: np.ndarray, alphas: np.ndarray) -> Iterate:
    """Return the iterate of explicit coefficients alpha_m, (M, n)."""
    images = np.einsum("mij,mj->mi", grams, alphas)
    norms = np.sqrt(np.maximum(np.einsum("mi,mi->m", images, alphas), 0.0))
    return Iterate(rho, 0.1 * rho, np.arange(len(grams)), grams @ rho, images, norms)


def example(regularizer) -> tuple[np.ndarray, np.ndarray, InnerObjective]:
    """Return Gram matrices, coefficients alpha_m and phi with multipliers that are not zero."""
    instance = instances.balanced()
    rng = np.random.default_rng(0)
    alphas = 2.0 * rng.normal(size=(len(instance.grams), len(instance.y)))
    alphas[1::2] = 0.0
    rho = instance.y * rng.uniform(0.1, 0.9, len(instance.y))
    iterate = iterate_of(instance.grams, rho, alphas)
    smoothing = Smoothing(GAMMA)
    phi = InnerObjective(Logistic(instance.y), regularizer, iterate, smoothing, 1.0 / GAMMA)
    return instance.grams, alphas, phi


@pytest.mark.parametrize("regularizer", [block1(0.05), ElasticNet(0.05, 0.4), BlockQ(0.05, 1.5)])
def test_gradient_hessian_and_slopes_by_finite_differences(regularizer):
    grams, _, phi = example(regularizer)
    rng = np.random.default_rng(1)
    point = phi.at(phi.anchor.rho, phi.anchor.products)
    H = plain_bank.run(phi.hessian(point), grams)
    for _ in range(5):
        direction, step = rng.normal(size=len(point.rho)) * 1e-2, 1e-4
        up, down = (
            phi.at(rho, grams @ rho)
            for rho in (point.rho + step * direction, point.rho - step * direction)
        )
        slope = (up.value - down.value) / (2 * step)
        assert point.gradient @ direction == pytest.approx(slope, rel=1e-5, abs=1e-9)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(H @ direction, bend, rtol=1e-4, atol=1e-6 * abs(bend).max())
        line = Line(phi, point, direction, grams @ direction)
        for length in (0.0, 0.3, 1.0):
            rho = point.rho + length * direction
            expected = phi.at(rho, grams @ rho).gradient @ direction
            assert line.slope_at(length) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("mix", [0.0, 0.4])
def test_the_proximal_step_is_the_soft_threshold_of_the_coefficients(mix):
    lam = 0.8 / (1.0 - mix)  # between the dual norms
    grams, alphas, phi = example(ElasticNet(lam, mix))
    moved = phi.proximal_step(phi.anchor, phi.at(phi.anchor.rho, phi.anchor.products))
    assert (moved.norms == 0.0).any()
    assert (moved.norms > 0.0).any()
    for m, (K, alpha) in enumerate(zip(grams, alphas, strict=True)):
        v = alpha + GAMMA * phi.anchor.rho
        length = np.sqrt(v @ K @ v)
        kept = max(length - GAMMA * lam * (1 - mix), 0.0) / (length * (1 + GAMMA * lam * mix))
        np.testing.assert_allclose(moved.images[m], kept * K @ v, rtol=1e-9, atol=1e-14)
        assert moved.norms[m] == pytest.approx(kept * length, rel=1e-9)


@pytest.fixture
def never_multiplied_out(monkeypatch):
    monkeypatch.setattr(factored_matrix, "FEW_POINTS", 0)


def hessians(regularizer) -> tuple[FactorBank, InnerPoint, np.ndarray, ThinHessian]:
    """Return factors, a point of phi on their products, and both forms of the Hessian there."""
    grams, _, phi = example(regularizer)
    factors = factors_of(grams, rank=9)
    grams = products_of(factors)
    point = phi.at(phi.anchor.rho, grams @ phi.anchor.rho)
    thin = answered(factors, phi.hessian(point))
    return factors, point, plain_bank.run(phi.hessian(point), grams), thin


@pytest.mark.parametrize("regularizer", [block1(0.05), ElasticNet(0.05, 0.4), BlockQ(0.05, 1.5)])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.usefixtures("never_multiplied_out")
def test_the_direction_is_that_of_the_hessian_with_all_entries(monkeypatch, regularizer, bounded):
    monkeypatch.setattr(newton_model, "RESIDUAL", 1e-10)
    _, point, dense, thin = hessians(regularizer)
    assert isinstance(thin, ThinHessian)
    found = ThinModel.of(thin, point.gradient, bounded)
    expected = DenseModel.of(dense, point.gradient, bounded)
    assert_allclose(found.direction, expected.direction, atol=1e-8)
    near = point.gradient + 1e-3 * found.direction
    gain = expected.left_to_gain(near)
    assert found.left_to_gain(near) == pytest.approx(gain, rel=1e-6)


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


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "epsilon"])
@pytest.mark.parametrize("regularizer", ["block1", "elastic-net", "block-q"])
def test_any_point_bounds_the_optimum_from_both_sides(loss, regularizer):
    instance, lam = instances.balanced(), 0.05
    optimum = optimum_of(f"spicymkl-{loss}-{regularizer}", instances.balanced)
    params = BlockNormParams(
        C=1 / lam, loss=loss, regularizer=regularizer, epsilon=EPSILON, mix=MIX, q=Q
    )
    y = instance.y if loss in ("logistic", "hinge") else real_values(instance)
    given, psi = params.make_loss(y), params.make_regularizer()
    rng = np.random.default_rng(0)
    for size in (0.01, 0.3, 3.0):
        bounds = BlockNormBounds(given, psi, np.einsum("mii->m", instance.grams))
        rho = given.feasible(size * rng.normal(size=len(y)))
        iterate = plain_bank.run(
            enlarged(Iterate.without_kernels(rho), np.arange(len(instance.grams))), instance.grams
        )
        bounds.take_primal(replace(iterate, norms=rng.uniform(0.0, 1.0, len(instance.grams))))
        forms = np.einsum("i,mij,j->m", rho, instance.grams, rho)
        bounds.take_dual(rho, np.sqrt(np.maximum(forms, 0.0)))
        assert bounds.lower <= optimum * (1 + 1e-7)
        assert bounds.upper >= optimum * (1 - 1e-7)


def test_points_beyond_the_largest_slope_are_scaled_down_to_it():
    y = np.array([1.0, -1.0])
    found = dual_value(Logistic(y), block1(0.5), np.array([0.4, -0.4]), np.array([0.2, 2.0]))
    assert found.scale == 0.25
    # -h of t = 0.1 twice; psi* is zero up to lam.
    assert found.value == pytest.approx(-2 * (0.1 * np.log(0.1) + 0.9 * np.log(0.9)))


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
