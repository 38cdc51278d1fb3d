"""Numbers and texts that runs report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.schema import COORDINATES
from mkldist.results.tree import names_at, open_results, reported
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


def test_numbers_that_runs_report_are_variables_of_their_names(tmp_path):
    plan = made_up_plan({"uniform": {}}, n_splits=3)
    lay_out(tmp_path, plan, made_up_facts(plan, {"uniform": {}}))
    first, second, third = map(made_up_record, plan.runs)
    times = {"own_seconds": 1.5, "pass_seconds": 0.25, "wall_seconds": 9.0}
    extra = {"chosen_kernel": 1.0, "cv_error": 0.5}
    store = Journal(tmp_path / "records.journal")
    store.append([replace(first, times=times, extra=extra), replace(second, times={}), third])
    node = open_results(tmp_path)["heart/uniform"].to_dataset()
    assert node.seconds.values[0] == 1.75
    assert np.isnan(node.seconds.values[1])
    assert node.chosen_kernel.values.tolist() == [node.kernel.values[1], "", ""]
    assert node.cv_error.values[0] == 0.5
    assert np.isnan(node.cv_error.values[1:]).all()


def test_no_position_has_no_name():
    positions = np.array([[1, -1], [0, 1]])
    assert names_at(positions, ["a", "b"]).tolist() == [["b", ""], ["a", "b"]]
    assert names_at(np.array([np.nan, 0.0]), ["a", "b"]).tolist() == ["", "a"]


def test_scores_that_few_runs_have_are_explained():
    assert "logistic loss" in reported("log_loss").description
    assert reported("chosen_kernel").dtype == "string"
    assert reported("margin").description == "margin, as the run reported it"


@pytest.mark.parametrize("name", METHODS)
def test_no_parameter_of_a_method_has_the_name_of_a_coordinate(name):
    coordinates = {variable.name for variable in COORDINATES}
    assert not coordinates & METHODS[name].params.model_fields.keys()
