"""Runs read from a tree on disk, against the same runs read by xarray."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from mkldist.analysis.summary import INPUTS
from mkldist.errors import StoreError
from mkldist.results.node_arrays import is_validated, nodes_in, nodes_of
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results, prepare
from mkldist.results.tree_index import TreeIndex
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

PLAN = made_up_plan(datasets=["heart", "wdbc"], banks=("one", "two"), n_splits=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    store = RecordStore(folder / "records")
    for run in PLAN.runs[:-2]:
        store.write(made_up_record(run))
    prepare(folder / "results.zarr", PLAN, made_up_facts(PLAN), store)
    return folder


def test_runs_on_disk_are_those_of_xarray(folder):
    ours = nodes_in(TreeIndex(folder / "results.zarr"), INPUTS)
    theirs = nodes_of(open_results(folder), INPUTS)
    assert len(ours) == len(theirs) > 4
    for mine, other in zip(sorted(ours, key=_place), sorted(theirs, key=_place), strict=True):
        assert (mine.place, mine.task) == (other.place, other.task)
        assert list(mine.dims) == list(other.dims)
        assert mine.values.keys() == other.values.keys() > {"state", "test_error"}
        np.testing.assert_array_equal(mine.planned, other.planned)
        assert mine.planned.any()
        for name, values in {**mine.dims, **mine.values}.items():
            expected = {**other.dims, **other.values}[name]
            np.testing.assert_array_equal(values, expected.astype(values.dtype))


def test_the_order_of_nodes_is_that_of_xarray(folder):
    ours = nodes_in(TreeIndex(folder / "results.zarr"), ())
    assert [n.place for n in ours] == [n.place for n in nodes_of(open_results(folder), ())]


def test_results_without_selection_are_not_validated(folder):
    assert not is_validated(TreeIndex(folder / "results.zarr"))


def test_a_damaged_chunk_is_named(folder, tmp_path):
    tree = shutil.copytree(folder / "results.zarr", tmp_path / "results.zarr")
    [chunk, *_] = sorted(tree.glob("heart/*/*/test_error/c/0/*"))
    chunk.write_bytes(b"nothing")
    with pytest.raises(StoreError, match=r"test_error: found results that cannot be read"):
        nodes_in(TreeIndex(tree), INPUTS)


def _place(node):
    return tuple(node.place.values())
