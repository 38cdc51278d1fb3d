"""The tree as xarray objects: parts that are read, dtypes, coordinates of every node."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from xarray.core import indexing

from mkldist.results import array_chunks
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results, prepare
from mkldist.results.xarray_backend import ResultsBackend, StoredArray
from mkldist.results.zarr_documents import array_document
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

N_SPLITS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    plan = made_up_plan(datasets=["heart", "wdbc"], n_splits=N_SPLITS, predictions=True)
    store = RecordStore(folder / "records")
    for run in plan.runs:
        store.write(made_up_record(run))
    facts = made_up_facts(plan)
    of_kernels = {
        "function": np.array(["gaussian", "linear", "gaussian"] * 2 + ["linear"], dtype=object),
        "width": np.array([1.0, np.nan, 2.0, 1.0, np.nan, 2.0, np.nan]),
        "nu": np.arange(7.0),
    }
    splits = {"repeat": [0, 0, 1, 1], "fold": [0, 1, 0, 1], "n_train": [5] * 4, "n_test": [5] * 4}
    facts = replace(
        facts,
        kernels={key: {**own, **of_kernels} for key, own in facts.kernels.items()},
        splits={"heart": {name: np.array(values) for name, values in splits.items()}},
        n_features={"heart": 13},
        classes={"heart": ("healthy", "ill")},
    )
    prepare(folder / "results.zarr", plan, facts, store)
    return folder


@pytest.fixture
def tree(folder):
    return open_results(folder)


def test_a_node_has_the_coordinates_of_its_bank_and_data_set(tree):
    node = tree["heart/level"].to_dataset()
    for name in ("function", "width", "nu", "kernel"):
        assert node[name].dims == ("kernel",)
    for name in ("repeat", "fold", "n_train", "n_test", "split"):
        assert node[name].dims == ("split",)
    assert node.repeat.values.tolist() == [0, 0, 1, 1]
    assert (node.n_kernels, node.n_features) == (7, 13)
    assert node.label.dims == ("sample",)
    assert node.class_name.values.tolist() == ["healthy", "ill"]
    assert node.attrs["positive_class"] == "ill"
    assert "width" not in tree["heart/level"].to_dataset(inherit=False).data_vars
    assert "n_features" not in tree["wdbc/level"].coords


def test_variables_and_coordinates_explain_themselves(tree):
    for node in tree.subtree:
        for name, variable in node.variables.items():
            assert variable.attrs["long_name"], name
            assert ("units" in variable.attrs) == (variable.dtype.kind in "fib"), name
    assert tree["heart/level"].C.attrs["long_name"].startswith("C: ")


def test_weights_are_summed_by_function_and_width(tree):
    weights = tree["heart/level"].kernel_weights
    by_width = weights.groupby("width").sum()
    assert by_width.width.values.tolist() == [1.0, 2.0]
    at = [np.flatnonzero(weights.width.values == width) for width in (1.0, 2.0)]
    expected = np.stack([weights.values[..., where].sum(axis=-1) for where in at], axis=-1)
    np.testing.assert_allclose(by_width.transpose("split", "C", "width"), expected)
    assert set(weights.groupby("function").sum().function.values) == {"gaussian", "linear"}
    linear = weights.sel(kernel=weights.function == "linear")
    assert linear.sizes["kernel"] == 3


def test_text_plots_selects_and_converts(tree):
    weights = tree["heart/level"].kernel_weights.isel(split=0)
    with mpl.rc_context({"backend": "agg"}):
        axes = Figure().subplots()
        weights.isel(C=0).plot(ax=axes)
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("kernel of the bank", (
            "weight of each kernel of the\nbank, normalised as asked [1]"))  # fmt: skip
    largest = weights.idxmax("kernel")
    np.testing.assert_array_equal(largest, weights.kernel[weights.argmax("kernel")])
    assert weights.kernel.astype(str).dtype.kind == "U"
    assert tree["heart/level"].stop_reason.astype(str).dtype.kind == "U"
    assert (tree["heart/level"].state == "complete").all()
    assert xr.align(weights, weights[:, :3], join="outer")[0].sizes["kernel"] == 7


def test_only_the_chunks_of_a_part_are_read(tree, monkeypatch):
    read = []
    plain = array_chunks._decoded
    monkeypatch.setattr(array_chunks, "_decoded", lambda *given: read.append(1) or plain(*given))
    node = tree["heart/level"].to_dataset()
    assert not read
    assert node.gap.variable[2].values.shape == (3,)
    assert len(read) == 1
    assert node.kernel_weights.variable[1:3].values.shape == (2, 3, 7)
    assert len(read) == 3
    assert len(read) == 3 + N_SPLITS


def test_a_tree_can_be_sent_to_another_process(tree):
    again = pickle.loads(pickle.dumps(tree))
    xr.testing.assert_identical(again.load(), tree.load())


def test_xarray_reads_the_same_by_itself(folder, tree):
    plain = xr.open_datatree(folder / "results.zarr", engine="zarr")
    assert {node.path for node in plain.subtree} == {node.path for node in tree.subtree}
    for node in plain.leaves:
        ours = tree[node.path].to_dataset()
        assert set(node.data_vars) == set(ours.data_vars)
        for name, values in node.data_vars.items():
            np.testing.assert_array_equal(values.values, ours[name].values, err_msg=str(name))
    assert set(plain["heart"].coords) == set(tree["heart"].coords)


KEYS = (0, -1, slice(None), slice(1, 4), slice(4, 1, -1), slice(None, None, -2), slice(3, 3))


@pytest.mark.parametrize("key", list(product(KEYS, KEYS)))
@pytest.mark.parametrize("text", [False, True])
def test_every_part_of_an_array_is_that_of_numpy(tmp_path, key, text):
    values = np.arange(35.0).reshape(5, 7)
    values = values.astype(str).astype(object) if text else values
    document = array_document({"a": 5, "b": 7}, "string" if text else "float64", (1, 3))
    for row in range(5):
        array_chunks.write_rows(tmp_path / "x", document, (row,), values[row], tmp_path)
    stored = StoredArray(tmp_path / "x", document)
    found = stored[indexing.BasicIndexer(key)]
    np.testing.assert_array_equal(found, values[key])
    assert np.shape(found) == np.shape(values[key])
    outer = stored[indexing.OuterIndexer((np.array([3, 1]), key[1]))]
    np.testing.assert_array_equal(outer, values[[3, 1]][:, key[1]])
    points = (np.array([4, 0, 2]), np.array([1, 6, 3]))
    np.testing.assert_array_equal(stored[indexing.VectorizedIndexer(points)], values[points])


def test_variables_can_be_left_out(folder):
    tree = xr.open_datatree(folder / "results.zarr", engine=ResultsBackend, drop_variables=["gap"])
    assert "gap" not in tree["heart/level"].data_vars
    assert "auc" in tree["heart/level"].data_vars
