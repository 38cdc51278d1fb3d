"""Projections onto the simplex and onto lp balls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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
