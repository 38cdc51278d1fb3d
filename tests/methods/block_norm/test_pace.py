"""The rules for the next outer iteration, on bounds made up for them."""

from __future__ import annotations

import pytest

from mkldist.methods import block_norm
from mkldist.methods.block_norm import HURRY, POLYHEDRAL_HURRY, Pace


@pytest.mark.parametrize(
    ("upper", "steps", "power"),
    [
        (1.1, 5, 1),  # a good gain
        (1.9, 5, 2),  # a small one, easily had
        (1.9, 30, 1),  # a small one
        (1.1, 41, 0),  # hard work
    ],
)
def test_the_penalty_grows_by_gain_and_effort(upper, steps, power):
    rules = Pace(1e-6, 1.0)
    rules.judge(2.0, 1.0, 10)  # the gap is 1/2
    rules.judge(upper, 1.0, 10 + steps)
    assert rules.grown(3.0, 2.0, 1e-9) == 3.0 * 2.0**power


def test_a_polyhedral_loss_is_minimised_more_exactly_with_a_penalty_that_grows_less():
    smooth, polyhedral = Pace(1e-6, 1.0), Pace(1e-6, 1.0, polyhedral=True)
    assert polyhedral.accuracy(0.5, 2.0) < smooth.accuracy(0.5, 2.0)
    for rules in (smooth, polyhedral):
        rules.judge(2.0, 1.0, 1)
        rules.judge(1.9, 1.0, 2)
    assert 3.0 * 2.0 < polyhedral.grown(3.0, 2.0, 1e-9) < smooth.grown(3.0, 2.0, 1e-9)


@pytest.mark.parametrize(
    ("bounds", "power"),
    [
        ([(2.0, 1.0), (1.9, 1.0)], POLYHEDRAL_HURRY),  # a little was gained
        ([(2.0, 1.0), (2.0, 1.0)], HURRY),  # nothing
        ([(2.0, 0.05), (1.9, 0.05)], HURRY),  # little, far off
    ],
)
def test_the_penalty_of_a_polyhedral_loss_hurries_where_it_is_far_too_small(bounds, power):
    rules = Pace(1e-6, 1.0, polyhedral=True)
    for steps, (upper, lower) in enumerate(bounds):
        rules.judge(upper, lower, steps)
    assert rules.grown(3.0, 2.0, 1e-9) == pytest.approx(3.0 * 2.0**power)


def test_the_penalty_stays_below_what_rounding_allows():
    rules = Pace(1e-6, 1.0)
    rules.judge(1.0, 1.0, 1)
    assert rules.grown(1e9, 2.0, 1.0) == block_norm.GAMMA_LIMIT


def test_slow_iterations_make_the_next_minimisations_more_accurate():
    rules = Pace(1e-6, 1.0)
    first = rules.accuracy(0.5, 2.0)
    rules.judge(2.0, 1.0, 1)
    assert rules.accuracy(0.5, 2.0) == pytest.approx(first)
    rules.judge(2.0, 1.2, 2)
    assert rules.accuracy(0.4, 2.0) == pytest.approx(0.1 * 0.4 / 0.5 * first)


def test_the_temperature_falls_with_the_gap_and_never_rises():
    rules = Pace(1e-6, 1.0)
    assert rules.cooled(2.0, 4.0) == pytest.approx(0.5 * 2.0 / 4.0)
    rules.judge(2.0, 1.5, 1)  # the gap is 1/4
    cold = rules.cooled(2.0, 4.0)
    assert cold == pytest.approx(0.5 * 0.25**1.5 * 2.0 / 4.0)
    assert rules.cooled(200.0, 4.0) == cold
    assert rules.cooled(2.0, 0.0) == 0.0


def test_twenty_iterations_without_gain_are_a_stall():
    rules = Pace(1e-6, 1.0)
    for _ in range(block_norm.PATIENCE):
        rules.judge(2.0, 1.0, 1)
        assert not rules.stalled
    rules.judge(2.0, 1.0, 1)
    assert rules.stalled


def test_a_gap_that_rounding_makes_rise_and_fall_is_a_stall():
    rules = Pace(1e-6, 1.0)
    rules.judge(2.0, 1.0, 1)
    for _ in range(block_norm.PATIENCE // 2):
        assert not rules.stalled
        rules.judge(2.0, 0.9, 1)
        rules.judge(2.0, 1.0, 1)
    assert rules.stalled


def test_slow_gains_that_add_up_are_no_stall():
    rules = Pace(1e-6, 1.0)
    for i in range(5 * block_norm.PATIENCE):
        rules.judge(2.0, 1.0 + 0.001 * i, 1)
        assert not rules.stalled


def test_gains_on_more_kernels_do_not_count_from_those_on_fewer():
    rules = Pace(1e-6, 1.0)
    rules.begin_anew()
    rules.judge(2.0, 1.9, 1)
    for _ in range(block_norm.PATIENCE):
        rules.judge(2.0, 1.0, 1)
        assert not rules.stalled
    rules.judge(2.0, 1.0, 1)
    assert rules.stalled
