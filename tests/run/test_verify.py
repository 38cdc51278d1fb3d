"""Check of the output folder of a sweep: kinds of files, and what is no damage."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.data.given import GivenData, is_sound
from mkldist.errors import StoreError
from mkldist.results.folder import claimed, note_banks
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.run.bank_refs import cached_laplacian
from mkldist.run.verify import verify
from mkldist.spec.datasets import GraphSpec
from tests.models.made_up import made_up_model
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.run import damage

PLAN = made_up_plan(n_splits=1)


@pytest.fixture
def output(tmp_path):
    """Return an output folder with a tree of made-up runs, and their records."""
    store = Journal(tmp_path / "records.journal")
    with claimed(tmp_path, "made-up"):
        for run in PLAN.runs:
            store.append([made_up_record(run)])
        lay_out(tmp_path, PLAN, made_up_facts(PLAN))
    return tmp_path


def damaged(output):
    return {one.kind: one.damaged for one in verify(output) if one.damaged}


def test_files_are_counted_by_kind(output):
    found = {one.kind: one.files for one in verify(output)}
    assert found == {
        "manifest": 1,
        "records": len(PLAN.runs),
        "layout": 1,
    }


def test_runs_that_wait_are_no_damage(output):
    store = Journal(output / "records.journal")
    store.remove([PLAN.runs[0].id])
    assert damaged(output) == {}


def test_a_layout_that_is_gone_is_damage_once_a_run_is_recorded(output, tmp_path_factory):
    layout = output / "tree.layout"
    layout.unlink()
    (said,) = damaged(output)["layout"]
    assert said.startswith(f"{layout}: not there, though {len(PLAN.runs)} runs are recorded")
    begun = tmp_path_factory.mktemp("begun")
    with claimed(begun, "made-up"):
        assert damaged(begun) == {}


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
