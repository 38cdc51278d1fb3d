"""Chunks deleted from a tree of results: each is named, and the tree is made anew."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from mkldist.results.lost_chunks import lost_chunks
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState
from mkldist.results.tree import open_results, prepare
from mkldist.results.tree_check import is_sound, tree_files
from mkldist.results.tree_index import TreeIndex
from mkldist.results.writer import TreeWriter
from mkldist.results.zarr_documents import read_root
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

GRIDS = {"level": {"C": [0.1, 1.0]}, "uniform": {}}
PLAN = made_up_plan(GRIDS, n_splits=2)
FACTS = made_up_facts(PLAN, GRIDS)
RUNS = PLAN.runs


def lost(tree: Path) -> list[str]:
    documents = read_root(tree)["consolidated_metadata"]["metadata"]
    found = lost_chunks(tree, documents)
    assert lost_chunks(tree, documents, absent={*found}) == found
    return [str(Path(path).relative_to(tree)) for path in found]


@pytest.mark.slow
def test_every_deleted_chunk_is_named_and_the_tree_made_anew(tmp_path):
    store, tree = RecordStore(tmp_path / "records"), tmp_path / "results.zarr"
    for run in RUNS:
        store.write(made_up_record(run))
    prepare(tree, PLAN, FACTS, store)
    with open_results(tree) as opened:
        expected = {node.path: node.to_dataset().load() for node in opened.subtree}
    chunks = sorted(path for path in tree.rglob("c/**/*") if path.is_file())
    assert len(chunks) > 100
    assert tree_files(tree)[1] == []
    for chunk in chunks:
        whole = chunk.read_bytes()
        chunk.unlink()
        assert tree_files(tree)[1] == [chunk]
        chunk.write_bytes(whole)
    for name in (
        "heart/kernel/c/0",
        "heart/level/state/c/0/0",
        "heart/uniform/kernel_weights/c/1/0",
    ):
        assert is_sound(tree)
        (tree / name).unlink()
        assert not is_sound(tree)
        assert prepare(tree, PLAN, FACTS, store).written == len(RUNS)
        with open_results(tree) as opened:
            for path, data in expected.items():
                xr.testing.assert_equal(opened[path].to_dataset(), data)


def test_a_chunk_that_was_written_meanwhile_is_not_lost(tmp_path):
    store, tree = RecordStore(tmp_path / "records"), tmp_path / "results.zarr"
    for run in RUNS:
        store.write(made_up_record(run))
    prepare(tree, PLAN, FACTS, store)
    documents = read_root(tree)["consolidated_metadata"]["metadata"]
    before = {str(path) for path in tree.rglob("c/**/*") if path.is_file()}
    assert lost_chunks(tree, documents, absent=before) == []


@pytest.mark.parametrize("n_done", range(len(RUNS) + 1))
def test_a_tree_that_is_not_finished_has_lost_nothing(tmp_path, n_done):
    """Some runs fail, and later ones bring variables that the tree did not have."""
    store, tree = RecordStore(tmp_path / "records"), tmp_path / "results.zarr"
    prepare(tree, PLAN, FACTS, store)
    writer = TreeWriter(tree)
    for i, run in enumerate(RUNS[:n_done]):
        record = made_up_record(run)
        if i % 3 == 0:
            record.extra.clear()
        record.extra[f"number_{i}"] = float(i)
        writer.write([record])
        assert lost(tree) == []
    assert list(writer.states().values()).count(RunState.COMPLETE) == n_done


def test_a_writer_killed_before_the_states_leaves_no_lost_chunk(tmp_path, monkeypatch):
    tree = tmp_path / "results.zarr"
    prepare(tree, PLAN, FACTS, RecordStore(tmp_path / "records"))
    left, write = [0], TreeIndex.write

    def killed(self, node, name, place, values):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        write(self, node, name, place, values)

    monkeypatch.setattr(TreeIndex, "write", killed)
    for left[0] in (0, 1, 5, 20):
        with pytest.raises(KeyboardInterrupt):
            TreeWriter(tree).write([made_up_record(RUNS[0])])
        assert lost(tree) == []
    assert set(TreeWriter(tree).states().values()) == {RunState.WAITING}
