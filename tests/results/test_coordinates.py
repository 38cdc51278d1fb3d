"""Coordinates of hyperparameters and of runs: types, texts, and places without a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mkldist.planning.model import RunPlan
from mkldist.results.layout import of_runs, of_values


def run(split: int, trial: int, params: dict[str, Any], asked: int | None = None) -> RunPlan:
    at = {"trial": trial, "split": split if asked is None else asked}
    return RunPlan("id", "d", "b", "bank", split, "level", "level", params, at=at)


@pytest.mark.parametrize(
    ("series", "dtype", "values"),
    [
        ([1, 2], "int64", [1, 2]),
        ([1, 2.5], "float64", [1.0, 2.5]),
        ([True, False], "bool", [True, False]),
        (["a", 2], "string", ["a", "2"]),
    ],
)
def test_values_are_numbers_if_all_are(series, dtype, values):
    found = of_values("C", series, "level")
    assert (found.variable.dtype, found.variable.dims) == (dtype, ("C",))
    assert found.values.tolist() == values
    assert found.variable.description.startswith("C: ")


def test_dims_of_a_search_say_what_they_are():
    found = of_values("trial", [0, 1, 2], "level")
    assert found.variable.description == "number of the trial of a search"
    assert found.variable.dtype == "int64"
    assert of_values("training_fraction", [0.1, 1.0], "level").variable.dtype == "float64"


def test_numbers_of_trials_are_nan_where_there_is_no_trial():
    runs = [run(0, 0, {"C": 3}), run(0, 1, {"C": 2.5}), run(3, 1, {"C": 9.0}, asked=1)]
    found = of_runs("C", runs, 2, {"trial": [0, 1], "tol": [0.1]})
    np.testing.assert_array_equal(found.values, [[3.0, 2.5], [np.nan, 9.0]])
    assert (found.variable.dtype, found.variable.dims) == ("float64", ("split", "trial"))


def test_other_values_of_trials_are_texts():
    runs = [run(0, 0, {"loss": "hinge"}), run(0, 1, {"loss": True})]
    found = of_runs("loss", runs, 1, {"trial": [0, 1, 2]})
    assert found.values.tolist() == [["hinge", "True", ""]]
    assert found.variable.dtype == "string"


def test_a_parameter_that_another_method_gives_lies_along_all_dims():
    runs = [
        RunPlan("id", "d", "b", "bank", split, "level", "level", {"C": C, "near": near}, at=at)
        for split, C, near, at in (
            (0, 7.0, 0.9, {"source_C": 0.5}), (1, 8.0, 0.8, {"source_C": 2.0})
        )
    ]  # fmt: skip
    found = of_runs("C", runs, 2, {"source_C": [0.5, 2.0], "near": [0.8, 0.9]})
    assert found.variable.dims == ("split", "source_C", "near")
    nothing = [np.nan, np.nan]
    np.testing.assert_array_equal(
        found.values, [[[np.nan, 7.0], nothing], [nothing, [8.0, np.nan]]]
    )
    of_source = of_values("source_C", [0.5, 2.0], "level").variable
    assert of_source.description == "C of the method that gives C"
