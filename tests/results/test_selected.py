"""Selected settings: the least validation error of each split, on a tree that is made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import mkldist
from mkldist.errors import InputError

NAN = np.nan
# Three splits, two values of C, two of p.
LOSSES = np.array(
    [
        [[0.3, 0.2], [0.2, 0.4]],  # two of equal loss: the first is taken
        [[NAN, 0.9], [0.1, NAN]],
        [[NAN, NAN], [NAN, NAN]],  # no outcome: the first setting
    ]
)
CHOSEN = [(0, 1), (1, 0), (0, 0)]


def tree(score: str = "validation_error", *, task: str = "classification") -> xr.DataTree:
    dims = ("split", "C", "p")
    ids = np.array([f"run {i}" for i in range(LOSSES.size)]).reshape(LOSSES.shape)
    tuned = xr.Dataset(
        {"run_id": (dims, ids), score: (dims, LOSSES)},
        coords={"split": [0, 1, 2], "C": [1.0, 10.0], "p": [1.5, 2.0]},
        attrs={"task": task},
    )
    steps = np.arange(LOSSES.size * 4.0).reshape(*LOSSES.shape, 4)
    trace = xr.Dataset({"gap": ((*dims, "iteration"), steps)})
    fixed = xr.Dataset(
        {"run_id": ("split", ["x", "y", "z"]), score: ("split", [0.5, 0.5, NAN])},
        coords={"split": [0, 1, 2]},
        attrs={"task": task},
    )
    return xr.DataTree.from_dict(
        {"/d/tuned": tuned, "/d/tuned/convergence": trace, "/d/fixed": fixed}, name="sweep"
    )


@pytest.mark.parametrize(
    ("score", "task"),
    [("validation_error", "classification"), ("validation_rmse", "regression")],
)
def test_each_split_has_the_setting_of_its_least_loss(score, task):
    whole = tree(score, task=task)
    found = mkldist.selected(whole)
    assert found.name == "sweep"
    node = found["d/tuned"]
    assert node["run_id"].dims == ("split",)
    assert node["C"].values.tolist() == [[1.0, 10.0][c] for c, _ in CHOSEN]
    assert node["p"].values.tolist() == [[1.5, 2.0][p] for _, p in CHOSEN]
    np.testing.assert_array_equal(node[score], [0.2, 0.1, NAN])
    for split, place in enumerate(CHOSEN):
        assert node["run_id"].values[split] == whole["d/tuned/run_id"].values[split, *place]
        gaps = node["convergence/gap"].values[split]
        np.testing.assert_array_equal(gaps, whole["d/tuned/convergence/gap"].values[split, *place])


def test_a_method_without_hyperparameters_stays_as_it_is():
    assert (
        mkldist.selected(tree())["d/fixed"].to_dataset().identical(tree()["d/fixed"].to_dataset())
    )


def test_results_without_selection_are_refused():
    with pytest.raises(InputError, match=r"without inner folds"):
        mkldist.selected(tree("test_error"))
