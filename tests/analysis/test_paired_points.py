"""McNemar's test on the points of one split."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mkldist.analysis.statistics import mcnemar


def answers(both: int, first_only: int, second_only: int, neither: int):
    counts = (both, first_only, second_only, neither)
    first = np.repeat([True, True, False, False], counts)
    second = np.repeat([True, False, True, False], counts)
    return first, second


def test_the_example_of_the_presidents_approval():
    # Agresti (1990), p. 350: 794, 86, 150, 570; chi-squared with correction 16.82.
    test = mcnemar(*answers(794, 150, 86, 570))
    assert (test.first_only, test.second_only) == (150, 86)
    assert test.p_value == pytest.approx(2 * stats.binom.cdf(86, 236, 0.5), rel=1e-9)
    assert test.p_value == pytest.approx(stats.chi2.sf(63**2 / 236, 1), rel=0.1)
    assert test.points() == (1.0, 0.0)


def test_many_points_are_tested_by_the_approximation():
    test = mcnemar(*answers(0, 7940, 7800, 0))
    exact = stats.binomtest(7940, 15740).pvalue
    assert test.p_value == pytest.approx(exact, rel=1e-3)
    assert test.points() == (0.5, 0.5)


def test_the_order_of_methods_does_not_matter():
    first, second = answers(5, 1, 12, 3)
    assert mcnemar(first, second).p_value == mcnemar(second, first).p_value
    assert mcnemar(first, second).points() == (0.0, 1.0)
    assert mcnemar(first, first) == (0, 0, 1.0)


def test_other_numbers_of_points_are_refused():
    with pytest.raises(ValueError, match="found 3 and 4 points"):
        mcnemar(np.ones(3, bool), np.ones(4, bool))
