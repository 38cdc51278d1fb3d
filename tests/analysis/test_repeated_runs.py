"""How far two results of one sweep agree."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis.comparison import agreement
from tests.analysis.two_sweeps import made

ERRORS = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2, 0.25, 0.2]}
SPLITS = ("s0", "s1", "s2")


@pytest.fixture
def tree(tmp_path):
    def of(name, errors=ERRORS, **changes):
        return made(tmp_path / name, errors, split_names=SPLITS, **changes).tree

    return of


def test_equal_results_are_equal_to_the_bit(tree):
    found = agreement(tree("a"), tree("b"))
    assert (found.n_runs, found.n_equal, found.n_alone) == (12, 12, (0, 0))
    assert found.objective_difference == 0.0
    assert found.loss_differences == {"test_error": 0.0}
    assert found.holds


def test_differences_within_the_certificates_agree(tree):
    changed = ERRORS | {("heart", "level"): [0.1, 0.2, 0.35]}
    found = agreement(tree("a", gap=0.01), tree("b", changed, objective=10.05, gap=0.01))
    assert (found.n_runs, found.n_equal) == (12, 0)
    assert found.objective_difference == pytest.approx(0.05 / 10.05)
    assert found.loss_differences["test_error"] == pytest.approx(0.05)
    assert found.holds


def test_intervals_without_a_common_point_contradict_each_other(tree):
    found = agreement(tree("a", gap=0.01), tree("b", objective=10.2, gap=0.01))
    assert len(found.contradictions) == 12
    assert found.contradictions[0] == "heart/xu2008/level, split 0, C 1.0"
    assert not found.holds


def test_runs_that_one_lacks_are_counted(tree):
    failed = ERRORS | {("heart", "level"): [0.1, np.nan, 0.3]}
    found = agreement(tree("a"), tree("b", failed))
    assert (found.n_runs, found.n_alone) == (10, (2, 0))
    assert not found.holds
