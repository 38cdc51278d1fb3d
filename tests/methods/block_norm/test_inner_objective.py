"""The inner objective against finite differences and proximal steps in the coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mkldist.methods.block_norm_dual import (
    InnerObjective,
    Iterate,
    Line,
    enlarged,
    reduced,
)
from mkldist.methods.block_norm_losses import Logistic, Smoothing
from mkldist.methods.regularizers import BlockQ, ElasticNet, block1
from tests.methods import instances, plain_bank

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


def test_a_point_of_a_line_is_the_same_whatever_steps_were_tried():
    grams, _, phi = example(block1(0.05))
    point = phi.at(phi.anchor.rho, phi.anchor.products)
    direction = np.random.default_rng(2).normal(size=len(point.rho)) * 1e-2
    changes = grams @ direction
    for tried in ((), (0.3,), (1.0,), (0.3, 1.0)):
        line = Line(phi, point, direction, changes)
        for step in tried:
            line.slope_at(step)
        found = line.at(0.3)
        plain = phi.at(point.rho + 0.3 * direction, point.products + 0.3 * changes)
        assert found.value == plain.value
        np.testing.assert_array_equal(found.gradient, plain.gradient)
        np.testing.assert_array_equal(found.curve.multipliers, plain.curve.multipliers)


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


def test_kernels_join_with_no_component_and_leave():
    instance = instances.balanced()
    start = Iterate.without_kernels(instance.y.copy())
    grown = plain_bank.run(enlarged(start, np.array([3, 0])), instance.grams)
    np.testing.assert_allclose(grown.products, instance.grams[[3, 0]] @ instance.y)
    assert not grown.images.any()
    assert not grown.norms.any()
    left = reduced(replace(grown, norms=np.array([1.0, 2.0])), np.array([False, True]))
    assert left.kernels.tolist() == [0]
    assert left.norms.tolist() == [2.0]
    np.testing.assert_array_equal(left.products, grown.products[1:])
