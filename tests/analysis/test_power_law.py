"""Fits of power laws."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis.power_law import fit_power_law


def test_an_exact_law_is_found():
    sizes = np.array([100.0, 300, 1000, 3000])
    law = fit_power_law(sizes, 2e-3 * sizes**1.5)
    assert law.factor == pytest.approx(2e-3)
    assert (law.exponent, law.low, law.high) == (pytest.approx(1.5),) * 3
    assert law.at(10_000) == pytest.approx(2e-3 * 10_000**1.5)
    assert law.n_sizes == 4


def test_the_interval_covers_the_exponent_at_its_level():
    rng = np.random.default_rng(0)
    sizes = np.repeat([100.0, 1000, 10_000], 3)
    covered = 0
    for _ in range(1000):
        law = fit_power_law(sizes, sizes**0.8 * np.exp(rng.normal(0, 0.2, len(sizes))))
        covered += law.low <= 0.8 <= law.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_two_points_tell_no_interval():
    law = fit_power_law(np.array([1.0, 10.0]), np.array([1.0, 100.0]))
    assert law.exponent == pytest.approx(2.0)
    assert (law.low, law.high) == (-np.inf, np.inf)


def test_what_has_no_law_is_refused():
    with pytest.raises(ValueError, match="not above zero"):
        fit_power_law(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="found 1 size"):
        fit_power_law(np.array([5.0, 5.0]), np.array([1.0, 2.0]))
