"""Lists of kernels: names, selection and fingerprints."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec


def small_list(parameters=(0.5, 2.0, 0.5)):
    return KernelList(
        function=[0, 1, 0],
        parameter=parameters,
        offset=[0.0, 1.0, 0.0],
        subset=[0, 0, 1],
        subset_indptr=[0, 3, 4],
        subset_indices=[0, 1, 2, 1],
        subset_labels={0: "all"},
    )


def test_names_say_function_parameter_and_features():
    assert small_list().names(["radius", "texture", "area"]) == [
        "gaussian(0.5)[all]",
        "polynomial(2)[all]",
        "gaussian(0.5)[texture]",
    ]
    assert small_list().names()[2] == "gaussian(0.5)[x1]"


def test_kernels_on_one_subset_or_on_subsets_of_one_label_form_a_group():
    kernels = KernelList(
        np.zeros(5), np.ones(5), np.zeros(5), [0, 2, 1, 3, 0], [0, 1, 2, 3, 4], [0, 1, 2, 3]
    )
    assert kernels.groups.tolist() == [0, 2, 1, 3, 0]
    labelled = replace(kernels, subset_labels={1: "view", 3: "view"})
    assert labelled.groups.tolist() == [0, 2, 1, 1, 0]
    assert KernelList([], [], [], [], [0], []).groups.tolist() == []


def test_names_of_large_subsets_and_other_offsets():
    kernels = KernelList([1, 2, 3], [2, 1, 1.5], [0.5, 0, 0], [0, 0, 1], [0, 5, 7], range(7))
    assert kernels.names() == [
        "polynomial(2, offset=0.5)[5 features #0]",
        "linear[5 features #0]",
        "laplacian-rbf(1.5)[x5+x6]",
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1.0, 2.0, 1.0000000001]),
                          st.integers(0, 2)), max_size=30))  # fmt: skip
def test_names_are_unique(kernels):
    functions, parameters, subsets = zip(*kernels, strict=True) if kernels else ((), (), ())
    listed = KernelList(
        functions, parameters, np.ones(len(kernels)), subsets, [0, 1, 2, 3], [0, 1, 1]
    )
    names = listed.names(["same", "same"])
    assert len(names) == len(set(names)) == len(kernels)


def test_numbering_of_repeated_names_avoids_names_that_are_taken():
    listed = KernelList([2, 2, 2], np.ones(3), np.zeros(3), [0, 0, 1], [0, 1, 2], [0, 1])
    assert listed.names(["a]~2", "a"]) == ["linear[a]~2]", "linear[a]~2]~2", "linear[a]"]


@given(st.lists(st.integers(0, 2), max_size=8))
def test_selection_computes_the_same_values(indices):
    points = np.random.default_rng(0).normal(size=(4, 3))
    kernels = small_list()
    chosen = kernels.select(indices)
    expected = evaluate(kernels, points, points)[indices]
    np.testing.assert_array_equal(evaluate(chosen, points, points), expected)
    assert [n.partition("~")[0] for n in chosen.names()] == [kernels.names()[i] for i in indices]


def test_selection_keeps_only_the_subsets_it_needs():
    assert small_list().select(slice(2, 3)).subset_indices.tolist() == [1]


def test_fingerprint_follows_content_and_survives_pickling():
    kernels = small_list()
    assert kernels.fingerprint == small_list().fingerprint
    assert kernels.fingerprint != small_list((0.5, 3.0, 0.5)).fingerprint
    assert pickle.loads(pickle.dumps(kernels)).fingerprint == kernels.fingerprint


def described() -> KernelList:
    entries = [
        {"function": "gaussian", "widths": 0.5, "features": "pair"},
        {"function": "matern", "widths": 2, "nu": 2.5},
        {"function": "linear"},
        {"function": products, "parameters": {"scale": 3, "kind": "a"}, "features": "b"},
    ]
    return kernel_list(BankSpec(kernels=entries), 3, ["a", "b", "c"], {"pair": (0, 2)}, 0)


def products(left, right, scale=1.0, kind=""):
    return scale * left @ right.T


def test_a_kernel_is_described_by_words_and_numbers():
    listed = described()
    found = [listed.describe(m, ["a", "b", "c"]) for m in range(4)]
    every = ["a", "b", "c"]
    assert json.loads(json.dumps(found)) == [
        {"function": "matern", "parameters": {"width": 2.0, "nu": 2.5}, "features": every,
         "group": "all"},
        {"function": "linear", "parameters": {}, "features": every, "group": "all"},
        {"function": "gaussian", "parameters": {"width": 0.5}, "features": ["a", "c"],
         "group": "pair"},
        {"function": "products", "parameters": {"scale": 3, "kind": "a"}, "features": ["b"],
         "group": "b"},
    ]  # fmt: skip
    assert listed.describe(2)["features"] == ["x0", "x2"]


def test_columns_hold_every_parameter_by_name():
    columns = described().columns()
    assert list(columns) == ["function", "width", "nu", "scale", "kind"]
    assert columns["function"].tolist() == ["matern", "linear", "gaussian", "products"]
    np.testing.assert_array_equal(columns["width"], [2.0, np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(columns["scale"], [np.nan, np.nan, np.nan, 3.0])
    assert columns["kind"].tolist() == [None, None, None, "a"]
    assert small_list().select([]).columns()["function"].shape == (0,)


def test_the_fingerprint_knows_functions_of_the_user():
    def listed(call):
        return kernel_list(BankSpec(kernels=[{"function": call}]), 1, ["a"], {}, 0)

    def other(left, right):
        return left @ right.T

    assert listed(products).fingerprint == listed(products).fingerprint
    assert listed(products).fingerprint != listed(other).fingerprint
    assert described().select([0]).fingerprint != small_list().select([0]).fingerprint
    again = pickle.loads(pickle.dumps(described()))
    assert again.fingerprint == described().fingerprint


def test_runs_are_the_kernels_of_one_subset():
    assert list(small_list().runs()) == [slice(0, 2), slice(2, 3)]
    assert list(small_list().select([]).runs()) == []


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="one length"):
        KernelList([0], [1.0, 2.0], [0.0], [0], [0, 1], [0])
