"""Projections onto balls of weights."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.primal_weights import (
    suboptimality,
)
from mkldist.optim.weight_sets import WeightSet, lp_norm, project_onto_lp_ball


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
