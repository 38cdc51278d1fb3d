"""Values by split: ratios, means over data sets and the best setting, computed by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from mkldist.analysis.pairing import Results
from mkldist.analysis.published_number import Published
from mkldist.analysis.split_values import our_values, values_by_split
from mkldist.errors import DataError
from tests.analysis.two_sweeps import made

ERRORS = {
    ("heart", "level"): [0.1, 0.3],
    ("heart", "uniform"): [0.2, 0.4],
    ("pima", "level"): [0.3, math.nan],
    ("pima", "uniform"): [0.0, 0.1],
}
NUMBER = Published("made-up", "heart", "level", "", "test_error", 0.2, math.nan, "Table 1")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    return made(tmp_path_factory.mktemp("ours"), ERRORS, split_names=("s0", "s1"))


def test_a_metric_over_a_method_is_the_ratio_on_each_split(results):
    one = replace(NUMBER, metric="test_error/uniform")
    assert values_by_split(results, one) == pytest.approx([0.5, 0.75])
    assert values_by_split(results, replace(one, metric="test_error/xu2008/uniform")) == (
        pytest.approx([0.5, 0.75])
    )
    assert np.isnan(values_by_split(results, replace(one, dataset="pima"))).all()  # 0 and failed
    assert our_values(results, replace(one, dataset="pima")) == "no complete run"
    assert our_values(results, replace(one, metric="test_error/silp")) == "not in the results"


def test_a_star_is_the_mean_of_every_data_set(results):
    assert our_values(results, replace(NUMBER, dataset="*")) == pytest.approx([0.2, 0.3])
    other = replace(NUMBER, dataset="*", metric="test_error/uniform")  # pima has 0 and failed
    assert our_values(results, other) == "no complete run of pima"


def test_the_least_setting_has_the_least_mean_of_those_that_are_complete(results):
    # C = 10 has errors larger by 0.2
    assert our_values(results, replace(NUMBER, setting="C=least")) == pytest.approx([0.1, 0.3])
    assert our_values(results, replace(NUMBER, setting="C=10")) == pytest.approx([0.3, 0.5])
    for dataset, setting in (("pima", "C=least"), ("heart", "p=least"), ("heart", "p=1")):
        one = replace(NUMBER, dataset=dataset, setting=setting)
        assert our_values(results, one) == "setting not in the results"


def test_times_are_of_processor_and_passes_and_compare_if_isolated(results):
    tree = results.tree.copy()
    for node in tree.subtree:
        if "wall_seconds" in node:
            ones = node["wall_seconds"] * 0.0 + (1.0 if node.name == "level" else 4.0)
            node["cpu_seconds"], node["pass_cpu_seconds"] = ones, 2.0 * ones
    own = replace(results, tree=tree)
    one = replace(NUMBER, metric="processor_seconds")
    assert our_values(own, one) == pytest.approx([3.0, 3.0])
    ratio = replace(one, metric="processor_seconds/uniform")
    assert our_values(own, ratio) == "runs share passes, so that their times do not compare"
    spec = json.loads(str(tree.attrs["spec"]))
    tree.attrs["spec"] = json.dumps({**spec, "execution": "isolated"})
    assert our_values(own, ratio) == pytest.approx([0.25, 0.25])


def test_a_metric_of_several_numbers_a_run_is_refused(results):
    with pytest.raises(DataError, match=r"column 'metric': found 'kernel_weights'; expected a var"):
        our_values(results, replace(NUMBER, metric="kernel_weights"))


def test_the_change_of_weights_is_of_the_trace_at_the_setting(results):
    number = replace(NUMBER, metric="weight_change")
    assert our_values(results, number) == "no trace of one setting in the results"
    tree = results.tree.copy()
    weights = np.ones((2, 2, 2, 1))
    weights[:, 1, 1] = 0.5  # C = 10 changes by a half
    names = np.full(weights.shape, "a", object)
    dims = ("split", "C", "iteration", "rank")
    trace = {"largest_kernels": (dims, names), "largest_weights": (dims, weights)}
    tree["heart/level/convergence"] = xr.DataTree(xr.Dataset(trace))
    own = replace(results, tree=tree)
    assert our_values(own, number) == pytest.approx([0.0, 0.0])
    assert our_values(own, replace(number, setting="C=10")) == pytest.approx([0.5, 0.5])
