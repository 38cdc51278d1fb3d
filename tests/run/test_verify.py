"""Check of the output folder of a sweep: kinds of files, and what is no damage."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from mkldist.counted import counted
from mkldist.data.given import GivenData, is_sound
from mkldist.errors import StoreError
from mkldist.kernels.graph import GraphSpec
from mkldist.results.notes import note_banks
from mkldist.results.output import claimed
from mkldist.results.records import RecordStore
from mkldist.results.tree import prepare
from mkldist.run.verify import verify
from mkldist.worker.laplacian_cache import cached_laplacian
from tests.models.made_up import made_up_model
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.run import damage

PLAN = made_up_plan(n_splits=1)


@pytest.fixture
def output(tmp_path):
    """Return an output folder with a tree of made-up runs, and their records."""
    store = RecordStore(tmp_path / "records")
    with claimed(tmp_path, "made-up"):
        for run in PLAN.runs:
            store.write(made_up_record(run))
        prepare(tmp_path / "results.zarr", PLAN, made_up_facts(PLAN), store)
    return tmp_path


def damaged(output):
    return {one.kind: one.damaged for one in verify(output) if one.damaged}


def test_files_are_counted_by_kind(output):
    found = {one.kind: one.files for one in verify(output)}
    assert found == {
        "manifest": 1,
        "records": len(PLAN.runs),
        "results": len(damage.files_below(output / "results.zarr")),
    }


def test_runs_that_wait_are_no_damage(output):
    store = RecordStore(output / "records")
    store.remove(PLAN.runs[0].id)
    assert damaged(output) == {}


def test_a_tree_that_is_gone_is_damage_once_a_run_is_recorded(output, tmp_path_factory):
    tree = output / "results.zarr"
    shutil.rmtree(tree)
    (said,) = damaged(output)["results"]
    n_runs = len(PLAN.runs)
    assert said.startswith(f"{tree}: not there, though {n_runs} runs are recorded; the sweep's")
    begun = tmp_path_factory.mktemp("begun")
    with claimed(begun, "made-up"):
        assert damaged(begun) == {}


def test_runs_of_the_tree_without_a_record_are_counted(output):
    notes = {one.kind: one.note for one in verify(output)}
    assert notes["records"] == ""
    store = RecordStore(output / "records")
    for gone in (PLAN.runs[:1], PLAN.runs):
        for run in gone:
            store.remove(run.id)
        [(files, note)] = [(one.files, one.note) for one in verify(output) if one.kind == "records"]
        assert files == len(PLAN.runs) - len(gone)
        assert note.startswith(f"{counted(len(gone), 'run')} of the results without a record")


def test_a_number_that_is_not_that_of_the_record_is_found(output):
    """A chunk of another array fails no checksum, and neither does a record of another call."""
    chunk = output / "results.zarr/heart/level/objective/c/0/0"
    whole = chunk.read_bytes()
    chunk.unlink()
    assert damaged(output) == {"results": (str(chunk),)}
    chunk.write_bytes((output / "results.zarr/heart/level/dual_objective/c/0/0").read_bytes())
    runs = {run.id for run in PLAN.runs if run.method == "level"}
    assert {line.split()[2] for line in damaged(output)["results"]} == runs
    chunk.write_bytes(whole)
    assert damaged(output) == {}


def test_data_given_in_python_are_held_to_their_names(output):
    data = GivenData({"x": np.arange(6.0).reshape(3, 2), "y": np.arange(3)})
    file = output / "data" / f"mine-{data.id}.given.npz"
    file.parent.mkdir()
    data.save(file)
    assert is_sound(file)
    assert damaged(output) == {}
    other = GivenData({"x": np.ones((3, 2)), "y": np.arange(3)})
    other.save(file)
    assert damaged(output) == {"data": (str(file),)}
    file.write_bytes(b"PK")
    assert damaged(output) == {"data": (str(file),)}


def test_models_in_the_folder_are_checked(output):
    file = output / "best.model"
    made_up_model().save(file)
    assert damaged(output) == {}
    damage.flip(file, np.random.default_rng(0))
    assert damaged(output) == {"models": (str(file),)}


def test_laplacians_beside_the_banks_are_checked(output):
    root = output.parent / "banks"
    note_banks(output, str(root), [])
    cached_laplacian(np.arange(30.0).reshape(10, 3), GraphSpec(neighbours=3), root)
    [file] = (root / "laplacians").glob("*.npz")
    assert {one.kind: one.files for one in verify(output)}["laplacians"] == 1
    assert damaged(output) == {}
    damage.flip(file, np.random.default_rng(0))
    assert damaged(output) == {"laplacians": (str(file),)}


def test_the_folders_of_banks_are_named(output):
    note_banks(output, "/of/the/original", ["one", "two"])
    note_banks(output, "memory://of-another-sweep", ["three"])
    note_banks(output, "/of/graphs", [])
    [note] = [one.note for one in verify(output) if one.kind == "banks"]
    assert note == (
        "none of 2 left in /of/the/original; in memory://of-another-sweep; in /of/graphs"
    )


def test_a_folder_of_no_sweep_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"no sweep\.json here"):
        verify(tmp_path)
    with pytest.raises(StoreError, match="no such folder"):
        verify(tmp_path / "absent")
