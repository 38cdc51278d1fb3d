"""Projections onto the simplex and onto lp balls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, minimize_scalar
from scipy.special import xlogy

from mkldist.methods.block_norm_losses import entropic_prox
from mkldist.methods.primalmkl import suboptimality
from mkldist.optim.weight_sets import WeightSet, lp_norm, project_onto_lp_ball, project_onto_simplex


@pytest.mark.slow
@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e3, 1e3)))
def test_projections_satisfy_their_optimality_conditions(z):
    p = project_onto_simplex(z)
    assert p.sum() == pytest.approx(1)
    assert (p >= 0).all()
    shift = z - p
    on = p > 0
    scale = 1 + np.abs(z).max()
    assert np.ptp(shift[on]) <= 1e-12 * scale
    assert (z[~on] <= shift[on].max() + 1e-12 * scale).all()


@pytest.mark.parametrize("seed", range(5))
def test_sorting_gives_the_same_projection(seed):
    # Held, Wolfe & Crowder 1974: the threshold is that of the largest k entries for the last k
    # that keeps the smallest of them positive.
    z = np.random.default_rng(seed).normal(size=50)
    sums = np.cumsum(np.sort(z)[::-1]) - 1.0
    thresholds = sums / np.arange(1, 51)
    k = np.flatnonzero(np.sort(z)[::-1] > thresholds)[-1]
    np.testing.assert_allclose(project_onto_simplex(z), np.maximum(z - thresholds[k], 0.0))


@pytest.mark.parametrize("few", [[0.1, 0.2, 0.7 - 2**-52], [0.1, 0.2, 0.7], [0.3, 0.7 + 2**-52]])
def test_zeros_stay_zeros_where_the_sum_is_rounded(few):
    z = np.array([0.0, 0.0, *few, 0.0])
    assert np.flatnonzero(project_onto_simplex(z)).tolist() == np.flatnonzero(z).tolist()


def test_entries_too_large_for_differences_give_a_vertex():
    p = project_onto_simplex(np.array([1e300, 2e300, -1e300]))
    assert p.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("p", [1.0, 1.01, 1.3, 1.5, 2.0, 3.0, 7.0, 64.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_projections_satisfy_their_variational_inequality(p, scale):
    weights = WeightSet(p)
    z = scale * np.random.default_rng(0).normal(size=30)
    x = weights.project(z)
    assert (x >= 0).all()
    assert weights.length(x) <= 1 + 1e-12
    # (z - x)'(y - x) <= 0 for every y of the set: the maximum is a dual norm.
    assert suboptimality(weights, x, x - z) <= 1e-12 * max(scale, 1.0)


def test_points_inside_the_ball_stay_and_negative_ones_go_to_zero():
    np.testing.assert_array_equal(project_onto_lp_ball(np.array([0.1, -3.0]), 1.5), [0.1, 0.0])
    assert lp_norm(np.array([3e200, 4e200]), 2.0) == pytest.approx(5e200)
    assert lp_norm(np.zeros(3), 1.5) == 0.0


# Proximal points of the entropy against scalar searches and finite differences.


CENTRES = np.array([-40.0, -1.3, -0.2, -1e-9, 0.0, 1e-12, 0.3, 0.5, 0.999, 1.0, 1.7, 1e3])


def negative_entropy(t):
    return xlogy(t, t) + xlogy(1 - t, 1 - t)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 50.0, 1e5])
def test_one_sided_points_minimise_and_move_as_said(gamma):
    found = entropic_prox(CENTRES, gamma)
    for p, t in zip(CENTRES, found.points, strict=True):
        search = minimize_scalar(
            lambda t, p=p: negative_entropy(t) + 0.5 * gamma * (t - p) ** 2,
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-12},
        )
        value = negative_entropy(t) + 0.5 * gamma * (t - p) ** 2
        assert value <= search.fun + 1e-12 * abs(search.fun)
    assert found.value == pytest.approx(negative_entropy(found.points).sum(), abs=1e-12)
    moved = (
        entropic_prox(CENTRES + 1e-6, gamma).points - entropic_prox(CENTRES - 1e-6, gamma).points
    )
    np.testing.assert_allclose(found.slopes, moved / 2e-6, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("gamma", [1e-2, 1.0, 50.0])
@pytest.mark.parametrize("width", [0.0, 0.4, 8.0])
def test_two_sided_points_minimise_and_move_as_said(gamma, width):
    def value(ab, p):
        a, b = ab
        return float(
            negative_entropy(a)
            + negative_entropy(b)
            + width * (a + b)
            + 0.5 * gamma * (a - b - p) ** 2
        )

    centres = np.array([-3.0, -1.0, -0.2, 0.0, 0.1, 0.7, 1.5])
    total = 0.0
    for p in centres:
        found = entropic_prox(np.array([p]), gamma, width=width)
        search = minimize(value, (0.5, 0.5), args=(p,), bounds=[(1e-14, 1 - 1e-14)] * 2, tol=1e-15)
        quadratic = 0.5 * gamma * (found.points[0] - p) ** 2
        assert found.value + quadratic == pytest.approx(search.fun, rel=1e-7, abs=1e-7)
        assert found.points[0] == pytest.approx(search.x[0] - search.x[1], abs=1e-4)
        total += found.value
    found = entropic_prox(centres, gamma, width=width)
    assert found.value == pytest.approx(total)
    up = entropic_prox(centres + 1e-6, gamma, width=width).points
    down = entropic_prox(centres - 1e-6, gamma, width=width).points
    np.testing.assert_allclose(found.slopes, (up - down) / 2e-6, rtol=1e-4, atol=1e-8)


def test_digits_survive_where_the_linear_term_is_steep():
    # a - b is known: gamma (p - t) = width + logit(t) up to what b adds, exp(-2 width).
    gamma, width, t = 1e11, 3e5, np.array([1e-3, 0.2, 0.7])
    centres = t + (width + np.log(t / (1 - t))) / gamma
    found = entropic_prox(centres, gamma, width=width)
    np.testing.assert_allclose(found.points, t, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 1e5])
def test_gaps_are_distances_of_the_centres(gamma):
    one, two = entropic_prox(CENTRES, gamma), entropic_prox(CENTRES, gamma, width=0.4)
    for found in (one, two):
        np.testing.assert_allclose(found.gaps, CENTRES - found.points, rtol=1e-9, atol=1e-13)


def test_gaps_keep_their_digits_where_points_are_as_near_as_floats_tell():
    centres, gamma, width = np.array([1e-9, 7e-4, 0.3, 0.5, 0.999]), 1e28, 60.0
    logits = np.log(centres) - np.log1p(-centres)
    one, two = entropic_prox(centres, gamma), entropic_prox(-centres, gamma, width=width)
    np.testing.assert_allclose(gamma * one.gaps, logits, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gamma * two.gaps, -(logits + width), rtol=1e-12)
