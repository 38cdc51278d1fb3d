"""Cutting-plane models of functions on the simplex, and projections onto their level sets."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from mkldist.optim.cutting_planes import (
    LEVEL,
    LEVEL_SLACK,
    CuttingPlanes,
    nearest_below,
)


def bundle(payoff: np.ndarray) -> CuttingPlanes:
    cuts = CuttingPlanes(payoff.shape[1])
    for row in payoff:
        cuts.add(0.0, row)
    return cuts


def nearest(payoff: np.ndarray, centre: np.ndarray, level: float) -> np.ndarray:
    p = cp.Variable(len(centre))
    constraints = [p >= 0, cp.sum(p) == 1, payoff @ p <= level]
    cp.Problem(cp.Minimize(cp.sum_squares(p - centre)), constraints).solve(solver=cp.CLARABEL)
    return p.value


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("closeness", [0.1, 0.5, 0.9, 0.99])
def test_projections_agree_with_a_conic_solver(seed, closeness):
    rng = np.random.default_rng(seed)
    n_cuts, size = int(rng.integers(1, 15)), int(rng.integers(2, 40))
    payoff = rng.normal(size=(n_cuts, size))
    if seed % 3 == 0:  # duplicated variables
        payoff = np.repeat(payoff, 2, axis=1)
    cuts = bundle(payoff)
    centre = rng.dirichlet(np.ones(payoff.shape[1]))
    lower, upper = cuts.minimum().bound, float((payoff @ centre).max())
    level = closeness * upper + (1 - closeness) * lower
    point = cuts.project(centre, level, slack=1e-10)
    assert point is not None
    assert (payoff @ point).max() <= level + 1e-10
    best = nearest(payoff, centre, level)
    assert np.linalg.norm(point - centre) <= np.linalg.norm(best - centre) + 1e-7


@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_of_a_growing_model_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    heights, slopes = rng.normal(size=8), rng.normal(size=(8, 5))
    cuts = CuttingPlanes(5)
    for j in range(8):
        cuts.add(heights[j], slopes[j])
        # min v  s.t.  h_j + slopes_j'p <= v, p in the simplex
        rows = np.column_stack([slopes[: j + 1], -np.ones(j + 1)])
        result = linprog(
            np.r_[np.zeros(5), 1.0],
            A_ub=rows,
            b_ub=-heights[: j + 1],
            A_eq=np.r_[np.ones(5), 0.0][None],
            b_eq=[1.0],
            bounds=[(0, None)] * 5 + [(None, None)],
        )
        assert cuts.minimum().bound == pytest.approx(result.fun, abs=1e-9)


def test_a_level_step_lands_below_the_level():
    rng = np.random.default_rng(0)
    payoff, centre = rng.normal(size=(6, 10)), np.full(10, 0.1)
    cuts = bundle(payoff)
    lower, upper = cuts.minimum().bound, float((payoff @ centre).max())
    point = cuts.level_step(centre, upper, lower)
    level = LEVEL * upper + (1 - LEVEL) * lower
    assert (payoff @ point).max() <= level + LEVEL_SLACK * (upper - lower)
    assert point.sum() == pytest.approx(1.0)
    assert np.linalg.norm(point - centre) <= (
        np.linalg.norm(nearest(payoff, centre, level) - centre) + 1e-6
    )


def test_a_centre_inside_the_level_set_stays():
    cuts = CuttingPlanes(3)
    cuts.add(1.0, np.array([1.0, 2.0, 3.0]))
    centre = np.array([0.5, 0.25, 0.25])
    np.testing.assert_array_equal(cuts.project(centre, 10.0, slack=1e-9), centre)


def test_a_cut_is_its_height_plus_its_slopes():
    cuts = CuttingPlanes(2)
    for _ in range(40):  # the bundle grows
        cuts.add(5.0, np.array([-1.0, 2.0]))
    np.testing.assert_array_equal(cuts.payoff, np.tile([4.0, 7.0], (40, 1)))
    assert cuts.minimum().bound == 4.0


@pytest.mark.parametrize("seed", range(8))
def test_projections_satisfy_their_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    payoff, centre = rng.normal(size=(7, 12)), rng.dirichlet(np.ones(12))
    inside = rng.dirichlet(np.ones(12))
    level = float((payoff @ inside).max())  # so that the set is not empty
    p, w = nearest_below(payoff, centre, level, 1e-11, np.zeros(7))
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
    p, w = nearest_below(payoff, centre, 0.5 * value, 1e-9 * value, np.zeros(1))
    nearest = np.append(np.full(size, 0.5 / size), 0.5)
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
