"""Cutting-plane models of functions on the simplex, and projections onto their level sets."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mkldist.optim import cutting_planes
from mkldist.optim.cutting_planes import (
    LEVEL,
    LEVEL_SLACK,
    CuttingPlanes,
    nearest_below,
    solve_game,
)
from tests.variants import quick


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


# The dual simplex method for matrix games against HiGHS.


NONE = np.empty(0, dtype=np.intp)


def value_by_highs(payoff: np.ndarray) -> float:
    rows, columns = payoff.shape
    result = linprog(
        np.r_[np.zeros(columns), 1.0],
        A_ub=np.column_stack([payoff, -np.ones(rows)]),
        b_ub=np.zeros(rows),
        A_eq=np.r_[np.ones(columns), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * columns + [(None, None)],
    )
    return float(result.fun)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 20), st.integers(0, 10_000), st.booleans())
def test_value_strategies_and_warm_start(n_rows, n_columns, seed, coarse):
    rng = np.random.default_rng(seed)
    payoff = rng.normal(size=(n_rows, n_columns)) * 100
    if coarse:  # ties and duplicates
        payoff = np.round(payoff / 50)
    active, support = NONE, NONE
    previous = -np.inf
    for used in range(1, n_rows + 1):
        game = solve_game(payoff[:used], active, support)
        active, support = game.active, game.support
        value = value_by_highs(payoff[:used])
        scale = np.abs(payoff).max() + 1
        assert game.bound == pytest.approx(value, abs=1e-9 * scale)
        assert (payoff[:used] @ game.columns).max() == pytest.approx(value, abs=1e-9 * scale)
        assert game.columns.sum() == pytest.approx(1)
        assert game.rows.sum() == pytest.approx(1)
        assert (game.columns >= 0).all()
        assert (game.rows >= 0).all()
        assert game.bound >= previous - 1e-9 * scale
        previous = game.bound


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 20), st.integers(0, 10_000), st.sampled_from([0.01, 10]))
def test_basis_of_another_game(n_rows, n_columns, seed, change):
    rng = np.random.default_rng(seed)
    payoff = rng.normal(size=(n_rows, n_columns))
    basis = solve_game(payoff, NONE, NONE)
    payoff += change * rng.normal(size=payoff.shape)
    game = solve_game(payoff, basis.active, basis.support)
    value = value_by_highs(payoff)
    assert game.bound == pytest.approx(value, abs=1e-9 * (1 + change))
    assert (payoff @ game.columns).max() == pytest.approx(value, abs=1e-9 * (1 + change))


def pivots_of(monkeypatch, payoff, active, support):
    """Return a solution and how many pivots it took."""
    counted = []

    def exchanged(*basis):
        counted.append(basis)
        return _exchanged(*basis)

    _exchanged = cutting_planes._exchanged
    with monkeypatch.context() as patched:
        patched.setattr(cutting_planes, "_exchanged", exchanged)
        return solve_game(payoff, active, support), len(counted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick(range(5), 2))
def test_further_columns_start_from_the_basis(monkeypatch, seed):
    payoff = np.random.default_rng(seed).normal(size=(60, 60))
    narrow = solve_game(payoff[:, :58], NONE, NONE)
    game, few = pivots_of(monkeypatch, payoff, narrow.active, narrow.support)
    anew, many = pivots_of(monkeypatch, payoff, NONE, NONE)
    assert few < many / 3
    assert game.bound == pytest.approx(value_by_highs(payoff), abs=1e-9)
    assert game.bound == pytest.approx(anew.bound, abs=1e-9)
    assert (payoff @ game.columns).max() == pytest.approx(game.bound, abs=1e-9)
    assert game.bound == (game.rows @ payoff).min()


def test_a_basis_of_a_larger_game_does_not_fit():
    payoff = np.random.default_rng(3).normal(size=(9, 9))
    basis = solve_game(payoff, NONE, NONE)
    small = payoff[:2, :2].copy()
    assert len(basis.active) > 2
    assert (
        solve_game(small, basis.active, basis.support).bound == solve_game(small, NONE, NONE).bound
    )


def test_a_game_that_pivots_do_not_solve_leaves_a_basis_for_the_next(monkeypatch):
    payoff = np.random.default_rng(0).normal(size=(40, 30))
    with monkeypatch.context() as patched:
        patched.setattr(cutting_planes, "_PIVOT_LIMIT", 1)
        game = solve_game(payoff[:39], NONE, NONE)
    assert game.bound == pytest.approx(value_by_highs(payoff[:39]), abs=1e-9)
    assert len(game.active) == len(game.support) > 1
    following, pivots = pivots_of(monkeypatch, payoff, game.active, game.support)
    assert following.bound == pytest.approx(value_by_highs(payoff), abs=1e-9)
    assert pivots < 10


def test_bound_is_valid_for_any_rounding():
    rng = np.random.default_rng(0)
    payoff = 1e6 + 1e-4 * rng.normal(size=(8, 30))
    game = solve_game(payoff, NONE, NONE)
    assert game.bound <= value_by_highs(payoff - 1e6) + 1e6 + 1e-8
    assert game.bound == (game.rows @ payoff).min()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10), st.integers(2, 15), st.integers(0, 10_000))
def test_columns_that_differ_by_many_digits(n_rows, n_columns, seed):
    # Cuts of kernels of very different size: h_j - q_jm / 2, q_jm from 1 to 1e9.
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(0, 9, size=n_columns)
    payoff = rng.random((n_rows, 1)) - sizes * rng.random((n_rows, n_columns))
    active, support = NONE, NONE
    for used in range(1, n_rows + 1):
        game = solve_game(payoff[:used], active, support)
        active, support = game.active, game.support
        highest = (payoff[:used] @ game.columns).max()
        terms = 1 + np.abs(payoff[:used] * game.columns)[active].sum(axis=1).max()
        assert len(active)
        assert highest - game.bound <= 1e-9 * terms


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e13, 1e30, 1e200])
@pytest.mark.parametrize("seed", range(20))
def test_games_of_any_scale(scale, seed):
    payoff = np.random.default_rng(seed).normal(size=(3, 4))
    none = np.empty(0, dtype=np.intp)
    expected = linprog(
        np.r_[np.zeros(4), 1.0],
        A_ub=np.column_stack([payoff, -np.ones(3)]),
        b_ub=np.zeros(3),
        A_eq=[[1.0, 1.0, 1.0, 1.0, 0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * 4 + [(None, None)],
    ).fun
    assert solve_game(payoff * scale, none, none).bound / scale == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e13])
def test_projections_from_multipliers_of_another_problem_are_the_same(size):
    rng = np.random.default_rng(0)
    payoff, centre = rng.normal(size=(23, 44)), np.full(44, 1.0 / 44)
    empty = np.empty(0, dtype=np.intp)
    least = cutting_planes.solve_game(payoff, empty, empty).bound
    level = 0.5 * (float((payoff @ centre).max()) + least)
    expected, _ = nearest_below(payoff, centre, level, 1e-9, np.zeros(23))
    found, multipliers = nearest_below(payoff, centre, level, 1e-9, size * rng.random(23))
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert multipliers.max() < 10.0
