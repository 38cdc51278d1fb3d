"""What is left to gain in one or several solutions."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.solvers.base import Solution, proximity_of
from mkldist.solvers.progress import StopReason


def solution(objective, bound, **extra):
    empty = np.zeros(1)
    return Solution(empty, empty, 0.0, empty, objective, bound, StopReason.CONVERGED, extra=extra)


def test_the_gap_of_several_solutions_is_that_of_their_sums():
    assert proximity_of([solution(2.0, 1.0), solution(8.0, 7.0)]) == {"gap": pytest.approx(0.2)}


def test_where_no_gap_is_known_it_is_the_largest_stationarity():
    some = [solution(2.0, 1.0, stationarity=0.1), solution(2.0, 1.0, stationarity=0.3)]
    assert proximity_of(some) == {"stationarity": 0.3}
