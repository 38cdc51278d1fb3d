"""Bounds: the best of what a method met, whatever comes after it."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.machines.svm import SvmSolution
from mkldist.solvers.bounds import Bounds


def machine() -> SvmSolution:
    return SvmSolution(np.ones(2), np.ones(2), 0.0, 1.0, 1.0, 0, 0)


def test_the_least_value_is_kept_with_its_weights_and_machine():
    bounds, machines, weights = Bounds(), [machine() for _ in range(4)], np.eye(4)
    values = [3.0, 2.0, 2.5, 2.0]
    better = [bounds.improve_upper(*met) for met in zip(values, weights, machines, strict=True)]
    assert better == [True, True, False, False]
    assert bounds.upper == 2.0
    assert bounds.weights.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert bounds.svm is machines[1]


def test_the_greatest_lower_bound_is_kept():
    bounds = Bounds()
    assert [bounds.improve_lower(value) for value in (-1.0, 0.5, 0.0)] == [True, True, False]
    assert bounds.lower == 0.5


def test_the_gap_is_relative_to_the_upper_bound():
    bounds = Bounds()
    bounds.improve_upper(200.0, np.ones(1), machine())
    bounds.improve_lower(199.0)
    assert bounds.gap == pytest.approx(0.005)
