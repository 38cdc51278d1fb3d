"""A `snapshot` with the records that the tree does not hold yet, against a tree that does."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis.summary import INPUTS
from mkldist.results.newest import later_words, with_newest
from mkldist.results.node_arrays import nodes_in
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.snapshot import Snapshot
from mkldist.results.tree import prepare
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


@pytest.fixture
def plan():
    return made_up_plan(datasets=["heart", "wdbc"])


def test_records_are_read_as_the_tree_would_hold_them(tmp_path, plan):
    facts, store = made_up_facts(plan), RecordStore(tmp_path / "records")
    for run in plan.runs[:3]:
        store.write(made_up_record(run))
    prepare(tmp_path / "behind.zarr", plan, facts, store)
    for run in plan.runs[3:9]:
        store.write(made_up_record(run))
    store.write(RunRecord.failed(plan.runs[9], "worker lost"))
    prepare(tmp_path / "current.zarr", plan, facts, store)
    behind, current = (Snapshot.of(tmp_path / f"{name}.zarr") for name in ("behind", "current"))
    assert (behind.n_behind, current.n_behind) == (7, 0)
    found = with_newest(nodes_in(behind.index, INPUTS), behind)
    expected = nodes_in(current.index, INPUTS)
    assert len(found) == len(expected)
    for node, other in zip(found, expected, strict=True):
        assert node.place == other.place
        for name, values in other.values.items():
            np.testing.assert_array_equal(node.values[name], values, err_msg=name)


def test_only_records_that_the_tree_lacks_are_read(tmp_path, plan, monkeypatch):
    store = RecordStore(tmp_path / "records")
    for run in plan.runs[:5]:
        store.write(made_up_record(run))
    prepare(tmp_path / "tree.zarr", plan, made_up_facts(plan), store)
    store.write(made_up_record(plan.runs[7]))
    read = []
    monkeypatch.setattr(RecordStore, "read", lambda self, run_id: read.append(run_id))
    held = Snapshot.of(tmp_path / "tree.zarr")
    nodes = nodes_in(held.index, INPUTS)
    assert with_newest(nodes, held) == nodes
    assert read == [plan.runs[7].id]


def test_one_run_is_said_in_the_singular():
    assert later_words(1) == "1 run was recorded after the results were last written."
