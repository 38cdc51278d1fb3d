"""The relative duality gap on numbers."""

from __future__ import annotations

import math

import pytest

from mkldist.optim.accuracy import relative_gap


@pytest.mark.parametrize(
    ("primal", "dual", "gap"),
    [
        (4.0, 3.0, 0.25),
        (3.0, 4.0, 1 / 3),  # bounds that cross
        (-2.0, -3.0, 0.5),
        (0.0, 0.0, 0.0),
        (1.0, -math.inf, math.inf),  # no lower bound yet
        (math.inf, math.inf, math.inf),  # overflow bounds nothing
        (math.nan, 1.0, math.inf),
    ],
)
def test_gap_is_relative_to_the_primal_value(primal, dual, gap):
    assert relative_gap(primal, dual) == pytest.approx(gap)


def test_no_tolerance_accepts_the_gap_before_the_first_predictor():
    assert not relative_gap(math.inf, 1.0) <= 1e9


def test_a_primal_value_of_zero_leaves_any_other_bound_far_away():
    assert relative_gap(0.0, -1e-9) > 1e200
