"""Bounds of an optimum: the best ones are kept, and iterations without progress are counted."""

from __future__ import annotations

import numpy as np

from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.progress import Bounds, Own

DUAL = np.ones(3)


def test_the_best_value_point_and_lower_bound_are_kept():
    bounds = Bounds("first")
    for point, value, lower in (("a", 5.0, 1.0), ("b", 3.0, 0.5), ("c", 4.0, 2.0)):
        bounds.take(point, value, lower, np.array([lower]))
    assert (bounds.best, bounds.upper, bounds.lower) == ("b", 3.0, 2.0)
    assert bounds.dual_point == [2.0]
    assert not bounds.improve_lower(1.5, np.array([1.5]))
    assert bounds.dual_point == [2.0]
    assert bounds.gap == 1 / 3


def test_idle_counts_the_iterations_since_a_bound_became_better():
    bounds = Bounds("first", lower=0.0)
    seen = []
    for value, lower in ((5.0, 1.0), (5.0, 1.0), (6.0, 0.0), (5.0, 1.5), (4.0, 1.5), (4.0, 1.0)):
        bounds.take("point", value, lower, DUAL)
        seen.append(bounds.idle)
    assert seen == [0, 1, 2, 0, 0, 1]


def test_changes_below_the_progress_asked_for_are_taken_but_count_as_idle():
    bounds = Bounds("first", progress=0.1)
    bounds.take("a", 10.0, 1.0, DUAL)
    bounds.take("b", 9.5, 1.5, DUAL)
    assert (bounds.best, bounds.lower, bounds.idle) == ("b", 1.5, 1)
    bounds.take("c", 8.0, 1.5, DUAL)
    assert bounds.idle == 0


def test_a_restart_keeps_the_point_and_forgets_the_lower_bound():
    bounds = Bounds("first")
    bounds.take("a", 2.0, 1.9, DUAL)
    bounds.take("a", 2.0, 1.9, DUAL)
    bounds.restart(1.0)
    assert (bounds.best, bounds.upper, bounds.lower, bounds.idle) == ("a", 2.0, 1.0, 0)


def test_the_own_values_are_those_of_the_last_point():
    bounds = Bounds("first")
    for point, value, lower in (("a", 4.0, 3.0), ("b", 8.0, 2.0)):
        bounds.take(point, value, lower, DUAL)
    assert bounds.own == Own(8.0, 2.0)
    assert (relative_gap(*bounds.own), bounds.gap) == (0.75, 0.25)
