"""Lists of kernels, and the first of them in a drawn order."""

import json
import pickle
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.errors import SpecError
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList, first_drawn
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


@pytest.mark.slow
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


@pytest.mark.slow
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


NAMES = tuple("abcdefg")


def listed(size: int | None = None, seed: int = 0):
    kernels = [
        {"function": "gaussian", "widths": [0.5, 1.0, 2.0],
         "features": ["all", "each", {"count": 20}]},
        {"function": "polynomial", "degrees": [1, 2], "features": ["all", {"count": 20}]},
    ]  # fmt: skip
    spec = BankSpec.model_validate({"name": "drawn", "kernels": kernels, "n_kernels": size})
    everything = kernel_list(spec, 7, NAMES, {}, seed)
    if size is None:
        return everything
    return first_drawn([everything], size, seed, "banks.drawn")[0]


def contents(kernels) -> list[tuple]:
    """Return every kernel as function, parameter, offset and the names of its features."""
    return [
        (int(kernels.function[m]), float(kernels.parameter[m]), float(kernels.offset[m]),
         tuple(NAMES[j] for j in kernels.features_of(m)))
        for m in range(len(kernels))
    ]  # fmt: skip


def test_smaller_banks_begin_larger_ones():
    everything, sizes = listed(), (1, 10, 50, len(listed()))
    drawn = [listed(size) for size in sizes]
    for smaller, larger in pairwise(drawn):
        n = len(smaller)
        assert contents(larger)[:n] == contents(smaller)
        assert larger.names(NAMES)[:n] == smaller.names(NAMES)
        assert larger.select(slice(n)).names(NAMES) == smaller.names(NAMES)
    assert [len(kernels) for kernels in drawn] == list(sizes)
    assert Counter(contents(drawn[-1])) == Counter(contents(everything))
    assert contents(drawn[-1]) != contents(everything)


@pytest.mark.slow
def test_the_seed_draws_the_order_and_every_kernel_has_its_chance():
    first = Counter(listed(1, seed).names(NAMES)[0].split("[")[0] for seed in range(200))
    assert set(first) == {
        "gaussian(0.5)", "gaussian(1)", "gaussian(2)", "polynomial(1)", "polynomial(2)",
    }  # fmt: skip
    shares = np.array([first["gaussian(1)"], first["polynomial(2)"]]) / 200
    np.testing.assert_allclose(shares, [28 / 126, 21 / 126], atol=0.1)


def test_only_the_subsets_of_drawn_kernels_are_kept():
    few = listed(4)
    assert len(few.subset_indptr) - 1 == len(set(few.subset.tolist())) <= 4
    assert few.fingerprint == listed(4).fingerprint != listed(5).fingerprint


def test_more_kernels_than_are_listed_are_refused():
    with pytest.raises(SpecError, match=r"banks\.drawn\.n_kernels: found 127; expected at most 126"
                       r".*features = \{count"):  # fmt: skip
        listed(127)
