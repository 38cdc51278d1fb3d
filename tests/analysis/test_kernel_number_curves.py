"""The loss against numbers of kernels, with intervals by the formula of Nadeau & Bengio."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
import xarray as xr

from mkldist.analysis import loss_by_active_kernels, loss_by_bank_size

N_TRAIN, N_TEST = 80, 20
ERRORS = np.array([[0.30, 0.20], [0.28, 0.26], [0.32, np.nan]])  # (split, C)
KERNELS = np.array([[2.0, 5.0], [4.0, 8.0], [3.0, np.nan]])


def node(errors: np.ndarray = ERRORS, **attributes: str) -> xr.Dataset:
    """Return the runs of a method at two values of C, of which one failed."""
    dims = ("split", "C")
    sizes = {"n_train": N_TRAIN, "n_test": N_TEST, "n_unlabelled": 0}
    return xr.Dataset(
        {
            "run_id": (dims, np.full(errors.shape, "x", object)),
            "state": (dims, np.where(np.isnan(errors), "failed", "complete").astype(object)),
            "test_error": (dims, errors),
            "active_kernels": (dims, KERNELS),
        },
        {
            "split": [0, 1, 2],
            "C": [1.0, 10.0],
            **{name: ("split", np.full(3, size)) for name, size in sizes.items()},
        },
        attrs={"task": "classification", **attributes},
    )


def half_width(values: list[float]) -> float:
    factor = 1 / len(values) + N_TEST / N_TRAIN
    quantile = scipy.stats.t.ppf(0.975, len(values) - 1)
    return float(quantile * np.std(values, ddof=1) * math.sqrt(factor))


def test_each_setting_has_its_loss_and_its_number_of_kernels():
    table = loss_by_active_kernels(xr.DataTree.from_dict({"/ring/level": node()}))
    assert table["C"].tolist() == [1.0, 10.0]
    assert table["active_kernels"].tolist() == [3.0, 6.5]
    assert table["mean"].to_numpy() == pytest.approx([0.30, 0.23])
    assert table["n_splits"].tolist() == [3, 2]
    halves = [half_width([0.30, 0.28, 0.32]), half_width([0.20, 0.26])]
    assert (table["high"] - table["mean"]).to_numpy() == pytest.approx(halves)
    assert (table["mean"] - table["low"]).to_numpy() == pytest.approx(halves)
    assert set(table["loss"]) == {"test_error"}


def test_settings_without_a_complete_run_have_no_row():
    errors = np.where([True, False], ERRORS, np.nan)
    table = loss_by_active_kernels(xr.DataTree.from_dict({"/ring/level": node(errors)}))
    assert table["C"].tolist() == [1.0]
    nothing = np.full_like(ERRORS, np.nan)
    assert loss_by_active_kernels(xr.DataTree.from_dict({"/ring/level": node(nothing)})).empty


def test_sizes_of_a_bank_have_the_loss_of_the_setting_chosen_there():
    sizes = {100: ERRORS, 300: ERRORS - 0.1}
    tree = xr.DataTree.from_dict(
        {
            f"/ring/g-{size}/level": node(errors, bank=f"g-{size}", bank_series="g").assign_coords(
                n_kernels=size
            )
            for size, errors in sizes.items()
        }
    )
    table = loss_by_bank_size(tree)
    assert table["bank"].tolist() == ["g", "g"]
    assert table["n_kernels"].tolist() == [100, 300]
    # On the splits that both values of C have, C = 10 has the least mean.
    assert table["mean"].to_numpy() == pytest.approx([0.23, 0.13])
    assert (table["high"] - table["mean"]).to_numpy() == pytest.approx(half_width([0.20, 0.26]))


def test_one_size_is_no_curve():
    one = node(bank="g").assign_coords(n_kernels=100)
    assert loss_by_bank_size(xr.DataTree.from_dict({"/ring/level": one})).empty
