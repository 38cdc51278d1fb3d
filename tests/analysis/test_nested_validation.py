"""Nested cross-validation, on trees made by hand, held to their numbers and to scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from mkldist.analysis.selection import (
    nested_selection,
    selection_bias,
    within_one_standard_error,
)
from mkldist.errors import InputError

# Three splits, two values of C and two of p.  With 100 points, the standard error of 0.2 is 0.04.
VALIDATION = np.array(
    [[[0.20, 0.30], [0.23, 0.24]], [[0.25, 0.20], [0.40, 0.30]], [[0.10, 0.50], [0.50, 0.50]]]
)
TEST = VALIDATION + np.array([0.03, 0.05, -0.01])[:, None, None]
KERNELS = np.array([[[9, 1], [4, 2]]] * 3)
N_TRAIN, N_TEST = 100, 50


def tree(task: str = "classification", *, failed: bool = False, **attrs: str) -> xr.DataTree:
    dims = ("split", "C", "p")
    names = ("validation_rmse", "rmse") if task == "regression" else ("validation_error",
                                                                      "test_error")  # fmt: skip
    state = np.full(VALIDATION.shape, "complete", object)
    state[0, 0, 0] = "failed" if failed else "complete"
    sizes = {"n_train": N_TRAIN, "n_test": N_TEST, "n_unlabelled": 0}
    node = xr.Dataset(
        {
            "run_id": (dims, np.full(VALIDATION.shape, "x", object)),
            "state": (dims, state),
            names[0]: (dims, VALIDATION),
            names[1]: (dims, TEST),
            "active_kernels": (dims, KERNELS.astype(float)),
        },
        {
            "split": [0, 1, 2],
            "C": [1.0, 10.0],
            "p": [1.5, 2.0],
            **{name: ("split", np.full(3, size)) for name, size in sizes.items()},
        },
        attrs={"task": task, **attrs},
    )
    return xr.DataTree.from_dict({"/d/level": node}, name="sweep")


def test_the_best_has_the_least_validation_error_and_its_test_error_is_another():
    table = nested_selection(tree())
    best = table[table["rule"] == "best"]
    assert best["C"].tolist() == [1.0, 1.0, 1.0]
    assert best["p"].tolist() == [1.5, 2.0, 1.5]
    assert best["validation"].tolist() == pytest.approx([0.2, 0.2, 0.1])
    assert best["test"].tolist() == pytest.approx([0.23, 0.25, 0.09])
    assert best["optimism"].tolist() == pytest.approx([0.03, 0.05, -0.01])
    assert (best["n_settings"] == 4).all()
    assert (best["loss"] == "test_error").all()


def test_the_sparsest_has_the_fewest_kernels_within_one_standard_error():
    table = nested_selection(tree())
    sparsest = table[table["rule"] == "sparsest"]
    # Within 0.24 of the first split: 9, 4 and 2 kernels; of the second: 1; of the third: 9.
    assert sparsest["active_kernels"].tolist() == [2, 1, 9]
    assert sparsest["validation"].tolist() == pytest.approx([0.24, 0.2, 0.1])


def test_the_standard_error_is_that_of_a_share():
    least, n = 0.3, 40
    limit = least + stats.bernoulli(least).std() / math.sqrt(n)
    errors = np.array([limit + 1e-9, np.nan, limit - 1e-9, least])
    assert within_one_standard_error(errors, n).tolist() == [False, False, True, True]


def test_the_interval_of_the_optimism_is_corrected_for_overlap():
    found = selection_bias(tree()).set_index("rule").loc["best"]
    optimism = np.array([0.03, 0.05, -0.01])
    scale = optimism.std(ddof=1) * math.sqrt(1 / 3 + N_TEST / N_TRAIN)
    low, high = stats.t(2, loc=optimism.mean(), scale=scale).interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((low, high))
    assert found["optimism"] == pytest.approx(found["test"] - found["validation"])
    assert found["least_test"] <= found["test"]
    assert (found["n_splits"], found["n_settings"]) == (3, 4)


def test_runs_that_failed_are_not_selected():
    first = nested_selection(tree(failed=True)).iloc[0]
    assert (first["validation"], first["n_settings"]) == (0.23, 3)


def test_real_values_have_the_best_alone():
    assert set(nested_selection(tree("regression"))["rule"]) == {"best"}


def test_results_that_cannot_tell_are_refused():
    bare = tree()["d/level"].to_dataset().drop_vars("validation_error")
    with pytest.raises(InputError, match=r"without inner folds"):
        nested_selection(xr.DataTree.from_dict({"/d/level": bare}))
    with pytest.raises(InputError, match="halving"):
        selection_bias(tree(rungs="tol"))
