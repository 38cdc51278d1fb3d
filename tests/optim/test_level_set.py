"""Projections onto the simplex and onto level sets against a conic solver and brute force."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.optim.simplex import project_onto_simplex


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e3, 1e3)))
def test_simplex_projection_satisfies_its_optimality_conditions(z):
    p = project_onto_simplex(z)
    assert p.sum() == pytest.approx(1)
    assert (p >= 0).all()
    shift = z - p
    on = p > 0
    scale = 1 + np.abs(z).max()
    assert np.ptp(shift[on]) <= 1e-12 * scale
    assert (z[~on] <= shift[on].max() + 1e-12 * scale).all()


def reference(payoff: np.ndarray, centre: np.ndarray, level: float) -> np.ndarray:
    p = cp.Variable(len(centre))
    constraints = [p >= 0, cp.sum(p) == 1, payoff @ p <= level]
    cp.Problem(cp.Minimize(cp.sum_squares(p - centre)), constraints).solve(solver=cp.CLARABEL)
    return p.value


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("closeness", [0.1, 0.5, 0.9, 0.99])
def test_level_set_projection_agrees_with_a_conic_solver(seed, closeness):
    rng = np.random.default_rng(seed)
    n_cuts, n_kernels = int(rng.integers(1, 15)), int(rng.integers(2, 40))
    payoff = rng.normal(size=(n_cuts, n_kernels))
    if seed % 3 == 0:  # duplicated kernels
        payoff = np.repeat(payoff, 2, axis=1)
    cuts = CuttingPlanes(payoff.shape[1])
    for row in payoff:
        cuts.add(0.0, row)
    centre = rng.dirichlet(np.ones(payoff.shape[1]))
    lower, upper = cuts.minimum().bound, float((payoff @ centre).max())
    level = closeness * upper + (1 - closeness) * lower
    point = cuts.project(centre, level, slack=1e-10)
    assert point is not None
    assert (payoff @ point).max() <= level + 1e-10
    best = reference(payoff, centre, level)
    assert np.linalg.norm(point - centre) <= np.linalg.norm(best - centre) + 1e-7


def test_a_centre_inside_the_level_set_stays():
    cuts = CuttingPlanes(3)
    cuts.add(1.0, np.array([1.0, 2.0, 3.0]))
    centre = np.array([0.5, 0.25, 0.25])
    np.testing.assert_array_equal(cuts.project(centre, 10.0, slack=1e-9), centre)


def test_cut_is_height_plus_slopes():
    cuts = CuttingPlanes(2)
    for _ in range(40):  # the bundle grows
        cuts.add(5.0, np.array([-1.0, 2.0]))
    assert len(cuts) == 40
    np.testing.assert_array_equal(cuts.payoff, np.tile([4.0, 7.0], (40, 1)))
    assert cuts.minimum().bound == 4.0
