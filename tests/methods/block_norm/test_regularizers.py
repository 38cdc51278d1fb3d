"""Regularisers against the maximisation that defines their response."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.methods.regularizers import (
    BlockQ,
    Concave,
    ElasticNet,
    Regularizer,
    block1,
    uniform,
)

HUBER = Concave(
    0.7,
    lambda u: 2 * (np.sqrt(1 + u) - 1),
    lambda u: 1 / np.sqrt(1 + u),
    lambda u: -0.5 * (1 + u) ** -1.5,
    largest_of_g=2.0,
)
ROOT = Concave(0.7, np.sqrt, lambda u: 0.5 / np.sqrt(u), lambda u: -0.25 * u**-1.5, 1.0, 1.0)

REGULARIZERS = {
    "block1": block1(0.7),
    "elastic-net": ElasticNet(0.7, 0.4),
    "uniform": uniform(0.7),
    "block-1.5": BlockQ(0.7, 1.5),
    "block-2": BlockQ(0.7, 2.0),
    "huber": HUBER,
    "root": ROOT,
}
every_regularizer = pytest.mark.parametrize(
    "regularizer", REGULARIZERS.values(), ids=REGULARIZERS.keys()
)


def maximum(regularizer: Regularizer, r: float, damping: float) -> tuple[float, float]:
    """Return max and argmax over s >= 0 of r s - psi(s) - damping/2 s^2 by a bounded search."""

    def loss(s: float) -> float:
        return float(regularizer.value(np.array([s]))[0]) + 0.5 * damping * s**2 - r * s

    found = minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-10})
    return max(-found.fun, 0.0), found.x


@every_regularizer
@pytest.mark.parametrize("damping", [0.05, 2.0])
def test_response_is_the_maximum(regularizer, damping):
    r = np.array([0.0, 0.1, 0.5, 0.8, 1.0, 3.0])
    response = regularizer.response(r, damping)
    for i, radius in enumerate(r):
        value, s = maximum(regularizer, radius, damping)
        assert response.value[i] == pytest.approx(value, abs=1e-8)
        assert response.ratio[i] * radius == pytest.approx(s, abs=1e-4)
    step = 1e-6
    up, down = (regularizer.response(r + sign * step, damping) for sign in (1, -1))
    inner = r > regularizer.threshold + 1e-3
    np.testing.assert_allclose(
        response.slope[inner],
        ((up.ratio * (r + step) - down.ratio * (r - step)) / (2 * step))[inner],
        rtol=1e-4,
    )


@every_regularizer
def test_conjugate_is_the_supremum(regularizer):
    r = np.array([0.1, 0.4, 0.65, 0.69])
    for radius, conjugate in zip(r, regularizer.conjugate(r), strict=True):
        assert conjugate == pytest.approx(maximum(regularizer, radius, 0.0)[0], abs=1e-7)


def test_only_duals_without_a_wall_are_smooth():
    smooth = [name for name, regularizer in REGULARIZERS.items() if regularizer.smooth_dual]
    assert smooth == ["elastic-net", "uniform", "block-1.5", "block-2"]


def test_ends_of_the_elastic_net():
    s = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(ElasticNet(0.7, 0.0).value(s), 0.7 * s)
    np.testing.assert_allclose(ElasticNet(0.7, 1.0).value(s), 0.35 * s**2)


@pytest.mark.parametrize("q", [1.01, 1.0001])
def test_steep_powers_of_any_dual_norm_are_finite_and_convex(q):
    r = np.logspace(-3, 12, 400)
    with np.errstate(over="raise", invalid="raise"):
        response = BlockQ(0.1, q).response(r, 0.0)
    moments = response.ratio * r  # the derivative of the conjugate
    assert np.isfinite([response.value, response.ratio, response.slope]).all()
    assert (np.diff(moments) >= 0.0).all()
    assert (np.diff(response.value) >= 0.0).all()
    middle = BlockQ(0.1, q).conjugate(np.array([0.09, 0.1001]))
    p = q / (q - 1.0)
    np.testing.assert_allclose(middle, 0.1 / p * np.array([0.9, 1.001]) ** p, rtol=1e-9)
