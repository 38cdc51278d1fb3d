"""A tree with the newest records in memory, against the tree on disk that holds them."""

from __future__ import annotations

import pandas as pd

from mkldist.results.newest_tree import newest_tree
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.rows import to_frame
from mkldist.results.snapshot import Snapshot
from mkldist.results.tree import prepare, read_tree
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


def test_the_newest_tree_has_the_runs_that_the_tree_would_have(tmp_path):
    plan = made_up_plan(datasets=["heart", "wdbc"])
    facts, store = made_up_facts(plan), RecordStore(tmp_path / "records")
    path = tmp_path / "results.zarr"
    for run in plan.runs[:3]:
        store.write(made_up_record(run))
    prepare(path, plan, facts, store)
    before = to_frame(read_tree(path)).copy()
    for run in plan.runs[3:9]:
        store.write(made_up_record(run))
    store.write(RunRecord.failed(plan.runs[9], "worker lost"))
    found = to_frame(newest_tree(read_tree(path), Snapshot.of(path)))
    pd.testing.assert_frame_equal(to_frame(read_tree(path)), before)  # the file is as it was
    prepare(path, plan, facts, store)
    expected = to_frame(read_tree(path))
    assert (before["state"] == "complete").sum() == 3
    assert (found["state"] == "complete").sum() == 9
    of_records = "margin"  # reported by runs alone: a node has it once a record is written
    pd.testing.assert_frame_equal(
        found.drop(columns=of_records), expected.drop(columns=of_records), check_dtype=False
    )


def test_a_tree_that_lacks_nothing_is_returned_as_it_is(tmp_path):
    plan = made_up_plan()
    store = RecordStore(tmp_path / "records")
    path = tmp_path / "results.zarr"
    prepare(path, plan, made_up_facts(plan), store)
    tree = read_tree(path)
    assert newest_tree(tree, Snapshot.of(path)).identical(tree)
