"""Projections onto level sets against their conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.optim.cutting_planes import nearest_below, project_onto_level_set


@pytest.mark.parametrize("seed", range(8))
def test_projections_satisfy_their_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    payoff, centre = rng.normal(size=(7, 12)), rng.dirichlet(np.ones(12))
    inside = rng.dirichlet(np.ones(12))
    level = float((payoff @ inside).max())  # so that the set is not empty
    p, w, reached = project_onto_level_set(payoff, centre, level, 1e-11, np.zeros(7))
    assert reached
    assert (w >= 0).all()
    np.testing.assert_allclose(w * (payoff @ p - level), 0.0, atol=1e-9)
    # p - centre + payoff'w is the same wherever p is positive, and no less elsewhere.
    pull = p - centre + payoff.T @ w
    on = p > 0
    assert np.ptp(pull[on]) <= 1e-9
    assert (pull >= pull[on].max() - 1e-9).all()


@pytest.mark.parametrize("size", range(2, 41))
@pytest.mark.parametrize("value", [0.1, 0.3, 1.0, 7.1])
def test_a_cut_of_one_value_on_the_support_moves_the_point_by_no_more_than_it_must(size, value):
    payoff, centre = np.full((1, size + 1), value), np.full(size + 1, 1 / size)
    payoff[0, -1] = centre[-1] = 0.0
    p, w, reached = project_onto_level_set(payoff, centre, 0.5 * value, 1e-9 * value, np.zeros(1))
    nearest = np.append(np.full(size, 0.5 / size), 0.5)
    assert reached
    np.testing.assert_allclose(p, nearest, atol=1e-7)
    assert w[0] == pytest.approx((0.5 + 0.5 / size) / value, rel=1e-6)


def test_a_warm_start_ends_where_a_cold_one_does():
    rng = np.random.default_rng(0)
    payoff, centre = rng.normal(size=(7, 12)), rng.dirichlet(np.ones(12))
    level = float((payoff @ np.full(12, 1 / 12)).max())
    cold, multipliers = nearest_below(payoff, centre, level, 1e-11, np.zeros(7))
    warm, _ = nearest_below(payoff, centre, level, 1e-11, multipliers + rng.random(7))
    np.testing.assert_allclose(warm, cold, atol=1e-8)


def test_an_empty_level_set_is_reported():
    point, _ = nearest_below(np.eye(3), np.full(3, 1 / 3), 0.2, 1e-9, np.zeros(3))
    assert point is None
