"""The dual simplex method for matrix games against HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mkldist.optim import cutting_planes
from mkldist.optim.cutting_planes import solve_game
from tests.variants import quick

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
