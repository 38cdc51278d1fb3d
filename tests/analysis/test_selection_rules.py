"""Rules that choose a setting."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis.selection import choose_setting
from mkldist.analysis.statistics import Overlap

# Means 0.30, 0.22, 0.20, 0.21; the standard error of the third is 0.028.
ERRORS = np.array([0.30, 0.22, 0.20, 0.21]) + 0.02 * np.sqrt(2) * np.array([[1], [-1]])
FROM_STRONG = np.arange(4)


def test_the_best_has_the_least_mean_error():
    assert choose_setting(ERRORS, FROM_STRONG) == 2
    assert choose_setting(ERRORS[:1], FROM_STRONG) == 2


def test_of_equal_means_the_simplest_is_chosen():
    assert choose_setting(np.array([[0.1, 0.1, 0.1]]), np.array([3.0, 1.0, 2.0])) == 1


def test_one_standard_error_takes_the_strongest_regularisation_within_it():
    standard_error = ERRORS[:, 2].std(ddof=1) / np.sqrt(2)
    assert 0.02 < standard_error < 0.05
    assert choose_setting(ERRORS, FROM_STRONG, "one_standard_error") == 1


def test_the_sparsest_within_one_standard_error():
    kernels = np.array([2.0, 40.0, 30.0, 10.0])
    assert choose_setting(ERRORS, kernels, "sparsest") == 3


def test_overlap_widens_the_standard_error():
    # 1/2 becomes 1/2 + 9: even the first setting is within it.
    assert choose_setting(ERRORS, FROM_STRONG, "one_standard_error", Overlap(10, 90)) == 0


def test_missing_errors_and_single_folds_are_refused():
    holed = ERRORS.copy()
    holed[1, 3] = np.nan
    with pytest.raises(ValueError, match="no error of setting 3 on fold 1"):
        choose_setting(holed, FROM_STRONG)
    with pytest.raises(ValueError, match="found 1 fold"):
        choose_setting(ERRORS[:1], FROM_STRONG, "sparsest")
