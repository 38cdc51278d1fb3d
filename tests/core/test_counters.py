"""Counts of a solver's work, by name."""

from __future__ import annotations

from mkldist.core.counters import Counters


def test_solves_of_a_machine_are_added_up():
    counters = Counters(svm_iterations=5, newton_steps=1)
    counters.count_svm(iterations=20, newton_steps=3)
    counters.count_svm(iterations=7, newton_steps=0)
    assert counters.as_dict() == {
        "outer_iterations": 0,
        "svm_solves": 2,
        "svm_iterations": 32,
        "newton_steps": 4,
        "cg_steps": 0,
        "passes": 0,
        "combines": 0,
    }


def test_work_of_another_count_leaves_iterations_and_passes_alone():
    counters = Counters(outer_iterations=1, passes=2, svm_solves=1)
    counters.count_work(Counters(9, 2, 3, 4, 5, 9, 9))
    assert counters == Counters(1, 3, 3, 4, 5, 2, 0)


def test_counts_that_were_handed_out_stay_as_they_are():
    counters = Counters(passes=2)
    before = counters.as_dict()
    counters.passes += 1
    assert (before["passes"], counters.as_dict()["passes"]) == (2, 3)
