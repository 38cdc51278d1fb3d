"""Pair updates of the smooth dual against a scalar search and the conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.methods.smooth_dual import (
    MOREAU_YOSIDA,
    P_NORM,
    Penalty,
    line_maximum,
    mkl_pair_updates,
)
from tests.methods import instances

every_penalty = pytest.mark.parametrize(
    "penalty",
    [Penalty(P_NORM, 2.0, 0.3), Penalty(P_NORM, 11.0), Penalty(MOREAU_YOSIDA, 0.1)],
    ids=str,
)


@every_penalty
@pytest.mark.parametrize("seed", range(5))
def test_the_line_search_ends_at_the_maximum(penalty, seed):
    rng = np.random.default_rng(seed)
    start, along = rng.normal(size=(2, 4, 6))  # q_m = ||start_m + t along_m||^2
    q, u, c = (start**2).sum(1), (start * along).sum(1), (along**2).sum(1)
    linear = 0.5 * rng.random() + float(penalty.weights(q) @ u)  # the objective rises at t = 0

    def loss(t: float) -> float:
        return penalty.value(q + 2 * u * t + c * t**2) - linear * t

    for room in (0.01, 10.0):
        t = line_maximum(penalty, linear, q, u, c, room)
        search = minimize_scalar(
            loss, bounds=(0.0, room), method="bounded", options={"xatol": 1e-12}
        )
        assert 0.0 < t <= room
        assert loss(t) <= search.fun + 1e-9 * (1.0 + abs(search.fun))


@every_penalty
def test_updates_reach_the_optimality_conditions_and_keep_the_products(penalty):
    instance, C, accuracy = instances.not_normalised(), 1.0, 1e-8
    n, y = len(instance.y), instance.y
    slots = np.random.default_rng(0).permutation(n)
    rows = np.empty((n, len(instance.grams), n))
    rows[slots] = instance.grams.transpose(1, 0, 2)
    beta, q, G = np.zeros(n), np.zeros(len(instance.grams)), np.zeros((len(instance.grams), n))
    lower, upper = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
    updates = mkl_pair_updates(
        penalty, rows, slots, np.arange(n), G, q, beta, y, lower, upper, accuracy, 100_000
    )
    assert 0 < updates < 100_000
    products = instance.grams @ beta
    np.testing.assert_allclose(G, products, atol=1e-9)
    np.testing.assert_allclose(q, products @ beta, atol=1e-9)
    assert beta.sum() == pytest.approx(0.0, abs=1e-12)
    assert ((lower <= beta) & (beta <= upper)).all()
    slack = y - penalty.weights(products @ beta) @ products
    assert slack[beta < upper].max() - slack[beta > lower].min() <= 1e-6
