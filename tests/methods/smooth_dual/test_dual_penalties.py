"""Penalties of the smooth duals: their weights and Hessians by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.smooth_dual import MOREAU_YOSIDA, P_NORM, Penalty
from tests.methods import instances

PENALTIES = (
    Penalty(P_NORM, 21.0, 1.0),
    Penalty(P_NORM, 2.0, 0.3),
    Penalty(P_NORM, 4 / 3, 5.0),
    Penalty(MOREAU_YOSIDA, 0.5),
    Penalty(MOREAU_YOSIDA, 1e-2),
)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=str)


def dual_point(penalty, seed=3):
    """Return grams, labels, a point and its products, with every kernel of some use."""
    instance = instances.not_normalised()
    n = len(instance.y)
    beta = instance.y * np.random.default_rng(seed).uniform(0.0, 0.5, n)
    beta -= beta.mean()
    return instance.grams, instance.y, beta, np.einsum("mij,j->mi", instance.grams, beta)


@every_penalty
def test_weights_and_their_derivative_by_finite_differences(penalty):
    q = np.array([1.3, 1.1, 0.9, 1.0])
    e, h, r, kappa = penalty.response(q)
    step = 1e-6
    for m in range(len(q)):
        change = np.zeros(len(q))
        change[m] = step
        slope = (penalty.value(q + change) - penalty.value(q - change)) / (2 * step)
        assert e[m] == pytest.approx(2 * slope, rel=1e-6, abs=1e-8)
        column = (penalty.weights(q + change) - penalty.weights(q - change)) / (2 * step)
        expected = kappa * r * r[m]
        expected[m] += h[m]
        np.testing.assert_allclose(column, expected, rtol=1e-5, atol=1e-5 * np.abs(h).max())


def test_hessian_by_finite_differences():
    for penalty in PENALTIES:
        grams, _, beta, G = dual_point(penalty)

        def gradient(x, penalty=penalty, grams=grams):
            products = np.einsum("mij,j->mi", grams, x)
            return penalty.weights(products @ x) @ products

        q = G @ beta
        H = penalty.hessian(np.einsum("m,mij->ij", penalty.weights(q), grams), G, q)
        direction = np.random.default_rng(6).normal(size=len(beta))
        step = 1e-7
        change = (gradient(beta + step * direction) - gradient(beta - step * direction)) / step / 2
        np.testing.assert_allclose(
            change, H @ direction, rtol=1e-4, atol=1e-4 * np.abs(change).max()
        )
