"""Numbers and texts that runs report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.results.schema import COORDINATES
from mkldist.results.tree import chosen_kernel, names_at, reported, scalars
from tests.results.sweeps import made_up_plan, made_up_record

RECORD = made_up_record(made_up_plan().runs[0])


def test_seconds_are_own_time_and_share_of_passes():
    times = {"own_seconds": 1.5, "pass_seconds": 0.25, "wall_seconds": 9.0}
    assert scalars(replace(RECORD, times=times))["seconds"] == 1.75
    assert "seconds" not in scalars(replace(RECORD, times={}))


def test_the_chosen_kernel_is_a_name_and_no_number():
    record = replace(RECORD, extra={"chosen_kernel": 1.0, "cv_error": 0.5})
    assert chosen_kernel(record, ["a", "b"]) == "b"
    assert chosen_kernel(record, ()) == "1"
    assert chosen_kernel(RECORD, ["a", "b"]) == ""
    assert "chosen_kernel" not in scalars(record)
    assert scalars(record)["cv_error"] == 0.5


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
