"""Facts that parts of the report share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mkldist.errors import StoreError
from mkldist.report.facts import Facts, records
from mkldist.report.page import made_page
from mkldist.results.schema import RunState
from tests.analysis.studies import study
from tests.report.studies import facts_of


def test_counts_are_those_of_the_results(facts):
    assert facts.count(RunState.FAILED) == 1
    assert facts.count(RunState.WAITING) == 2
    complete = [row for row in records(facts.runs) if row["state"] == "complete"]
    assert facts.count(RunState.COMPLETE) == len(complete)
    assert facts.status.n_runs == len(facts.runs)


def test_a_record_that_is_lost_leaves_the_page_as_it_is(facts):
    told = replace(facts.status, counts={RunState.WAITING: facts.status.n_runs})
    assert replace(facts, status=told).count(RunState.FAILED) == 1
    assert made_page(replace(facts, status=told)).headline == made_page(facts).headline


def test_the_largest_bank_is_that_of_most_kernels():
    facts = facts_of(study((300, 100, 1000)))
    banks = ["gaussians-1000", "gaussians-300", "gaussians-100"]
    assert facts.largest_bank("ring", banks) == "gaussians-1000"
    assert facts.largest_bank("ring", banks[1:]) == "gaussians-300"


def test_names_of_a_comparison_begin_with_the_method(facts):
    assert facts.method_of("level") == "level"
    assert facts_of(study((100, 300))).method_of("silp (gaussians-100)") == "silp"


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
