"""Facts that parts of the report share."""

from __future__ import annotations

import pytest

from mkldist.errors import StoreError
from mkldist.report.facts import Facts, records
from mkldist.results.state import RunState


def test_counts_are_those_of_the_status(facts):
    assert facts.count(RunState.FAILED) == 1
    assert facts.count(RunState.WAITING) == 2
    complete = [row for row in records(facts.runs) if row["state"] == "complete"]
    assert facts.count(RunState.COMPLETE) == len(complete)
    assert facts.status.n_runs == len(facts.runs)


def test_each_method_has_a_look_of_its_own(facts):
    assert list(facts.looks) == ["level", "simplemkl", "uniform"]
    assert len({look.colour for look in facts.looks.values()}) == 3


def test_the_axis_is_the_hyperparameter_of_numbers_that_most_methods_have(facts):
    assert facts.axis("heart") == "C"
    assert facts.loss("heart") == "test_error"
    assert not facts.validated
    assert not facts.several_banks


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(StoreError):
        Facts.of(tmp_path)
