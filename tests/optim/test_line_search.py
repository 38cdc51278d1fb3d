"""The search for a slope's root against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from mkldist.optim.descent import root_of_slope

SLOPES = {
    "line": lambda t: 3.0 * t - 2.0,
    "exponential": lambda t: np.exp(4.0 * t) - 9.0,
    "kink": lambda t: -1.0 if t < 0.37 else 50.0 * (t - 0.37) + 1e-9,
    "flat": lambda t: (t - 0.5) ** 5,
}


@pytest.mark.parametrize("name", ["line", "exponential", "flat"])
@pytest.mark.parametrize("options", [{}, {"first": 1.0}, {"known_end": True}])
def test_a_small_share_gives_the_root(name, options):
    slope_at, share = SLOPES[name], 1e-12
    end = {"end_slope": slope_at(1.0)} if options.get("known_end") else {}
    first = {"first": options["first"]} if "first" in options else {}
    step = root_of_slope(slope_at, slope_at(0.0), 1.0, share=share, **end, **first)
    assert abs(slope_at(step)) <= share * abs(slope_at(0.0))
    if name != "flat":
        assert step == pytest.approx(brentq(slope_at, 0.0, 1.0), abs=1e-9)


def test_a_kink_is_bracketed():
    slope_at = SLOPES["kink"]
    assert root_of_slope(slope_at, -1.0, 1.0) == pytest.approx(0.37, abs=1e-2)


def test_a_slope_that_stays_negative_goes_to_the_end():
    tried = []

    def slope_at(t: float) -> float:
        tried.append(t)
        return -1.0 / (1.0 + t)

    assert root_of_slope(slope_at, -1.0, 50.0) == 50.0
    assert len(tried) < 10


def test_the_search_stops_at_the_share_asked_for():
    tried = []

    def slope_at(t: float) -> float:
        tried.append(t)
        return np.exp(t) - 20.0

    step = root_of_slope(slope_at, slope_at(0.0), 10.0, share=0.5)
    assert 0.0 < step <= 10.0
    assert abs(np.exp(step) - 20.0) <= 0.5 * 19.0
    assert abs(slope_at(tried[-2])) > 0.5 * 19.0
