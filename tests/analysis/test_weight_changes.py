"""Changes of kernel weights in traces, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from mkldist.analysis.split_values import weight_changes


def trace(*runs):
    """Return a trace of runs, each a list of iterations, each the weights by name."""
    length = max(map(len, runs))
    names = np.full((len(runs), length, 2), "", object)
    weights = np.full((len(runs), length, 2), np.nan)
    for place, run in enumerate(runs):
        for t, own in enumerate(run):
            for rank, (name, weight) in enumerate(own.items()):
                names[place, t, rank], weights[place, t, rank] = name, weight
    dims = ("split", "iteration", "rank")
    return xr.Dataset({"largest_kernels": (dims, names), "largest_weights": (dims, weights)})


def test_a_change_is_the_sum_over_the_kernels_of_two_iterations():
    swapped = [{"a": 0.6, "b": 0.4}, {"b": 0.7, "a": 0.3}]  # 0.3 and 0.3
    replaced = [{"a": 0.6, "b": 0.4}, {"a": 0.5, "c": 0.5}, {"a": 1.0}]  # 0.1 + 0.4 + 0.5; 1.0
    still = [{"a": 1.0}, {"a": 1.0}]
    once = [{"a": 1.0}]
    found = weight_changes(trace(swapped, replaced, still, once))
    assert found == pytest.approx([0.6, 1.0, 0.0, math.nan], nan_ok=True)
