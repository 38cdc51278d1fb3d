"""Bounds of block-norm MKL: they enclose the conic optimum at any point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mkldist.methods.block_norm import BlockNormBounds, BlockNormParams, dual_value, kernel_scale
from mkldist.methods.block_norm_dual import Iterate, enlarged
from mkldist.methods.block_norm_losses import Logistic
from mkldist.methods.regularizers import block1
from tests.methods import instances, plain_bank
from tests.methods.references import real_values
from tests.methods.references.block_norm import EPSILON, MIX, Q
from tests.methods.references.recorded import optimum_of


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


def test_the_weights_of_an_iterate_are_its_own_though_another_is_better():
    instance, rng = instances.balanced(), np.random.default_rng(0)
    params = BlockNormParams(C=20.0, loss="logistic")
    loss, psi = params.make_loss(instance.y), params.make_regularizer()
    bounds = BlockNormBounds(loss, psi, np.einsum("mii->m", instance.grams))
    rho = loss.feasible(rng.normal(size=len(instance.y)))
    everyone = np.arange(len(instance.grams))
    iterate = plain_bank.run(enlarged(Iterate.without_kernels(rho), everyone), instance.grams)
    lengths = np.sqrt(np.einsum("i,mij,j->m", rho, instance.grams, rho))
    values, weights = [], []
    for norms in (1e-3 * lengths, 100.0 * rng.uniform(1.0, 2.0, len(everyone))):
        bounds.take_primal(replace(iterate, norms=norms))
        values.append(bounds.own.objective)
        weights.append(norms / lengths / (norms / lengths).sum())
    assert values[1] > values[0] == bounds.upper
    np.testing.assert_allclose(bounds.best.kernel_weights, weights[0], rtol=1e-9)
    np.testing.assert_allclose(bounds.at.kernel_weights, weights[1], rtol=1e-9)


def test_points_beyond_the_largest_slope_are_scaled_down_to_it():
    y = np.array([1.0, -1.0])
    found = dual_value(Logistic(y), block1(0.5), np.array([0.4, -0.4]), np.array([0.2, 2.0]))
    assert found.scale == 0.25
    # -h of t = 0.1 twice; psi* is zero up to lam.
    assert found.value == pytest.approx(-2 * (0.1 * np.log(0.1) + 0.9 * np.log(0.9)))


def test_kernel_scale_is_the_largest_rayleigh_quotient():
    grams, rho = np.array([np.eye(2), [[2.0, 1.0], [1.0, 2.0]]]), np.array([3.0, 3.0])
    norms = np.sqrt(np.einsum("i,mij,j->m", rho, grams, rho))
    assert kernel_scale(rho, norms) == pytest.approx(3.0)
    assert kernel_scale(np.zeros(2), np.zeros(2)) == 1.0
