"""The tree of results, made anew by `writer` or refused by `tree_index` after damage.

The module ``tree`` is tested here where a tree is there already.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mkldist.errors import OutputError, StoreError
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.tree import open_results, prepare
from mkldist.results.writer import TreeWriter
from mkldist.results.zarr_documents import read_root, write_root
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.results.tree_checks import assert_holds


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path / "records")


def test_the_tree_catches_up_with_records_written_behind_its_back(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    facts = made_up_facts(plan)
    assert prepare(path, plan, facts, store).written == 0
    before = path.stat().st_ino
    records = [made_up_record(run) for run in plan.runs]
    failed = RunRecord.failed(plan.runs[0], "no memory")
    for record in [failed, *records[1:5]]:
        store.write(record)
    assert prepare(path, plan, facts, store).written == 5
    assert prepare(path, plan, facts, store).written == 0
    store.write(records[0])
    store.write(dataclasses.replace(records[5], id="of-another-plan"))
    assert prepare(path, plan, facts, store).written == 1
    assert path.stat().st_ino == before
    assert_holds(open_results(tmp_path), plan, records[:5])


def test_a_changed_plan_makes_the_tree_anew(tmp_path, store):
    plan, path = made_up_plan(n_splits=2), tmp_path / "results.zarr"
    for run in plan.runs:
        store.write(made_up_record(run))
    prepare(path, plan, made_up_facts(plan), store)
    grids = {"level": {"C": [0.1, 0.5, 1.0]}, "uniform": {}}
    changed = made_up_plan(grids, n_splits=3)
    kept = {run.id for run in plan.runs} & {run.id for run in changed.runs}
    assert prepare(path, changed, made_up_facts(changed, grids), store).written == len(kept) == 6
    tree = open_results(tmp_path)
    records = [made_up_record(run) for run in changed.runs if run.id in kept]
    assert [node.path for node in tree["heart"].leaves] == ["/heart/level", "/heart/uniform"]
    assert_holds(tree, changed, records)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["records", "results.zarr"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder, of another file system if there is one that can be written."""
    here = tmp_path.stat().st_dev
    others = [p for p in map(Path, ("/dev/shm", "/tmp")) if p.is_dir() and p.stat().st_dev != here]
    with tempfile.TemporaryDirectory(dir=others[0] if others else tmp_path.parent) as folder:
        yield Path(folder)


def test_a_tree_behind_a_link_is_written_and_made_anew_behind_it(tmp_path, store, disk):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    path.symlink_to(disk / "tree.zarr")
    for run in plan.runs[:3]:
        store.write(made_up_record(run))
    prepare(path, plan, made_up_facts(plan), store)
    for run in plan.runs[3:]:
        store.write(made_up_record(run))
    assert prepare(path, plan, made_up_facts(plan), store).written == len(plan.runs) - 3
    changed = made_up_plan(n_splits=6)
    prepare(path, changed, made_up_facts(changed), store)
    assert path.readlink() == disk / "tree.zarr"
    kept = {run.id for run in plan.runs}
    records = [made_up_record(run) for run in changed.runs if run.id in kept]
    assert_holds(open_results(tmp_path), changed, records)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["records", "results.zarr"]
    assert [p.name for p in disk.iterdir()] == ["tree.zarr"]


def test_a_link_to_a_disk_that_is_gone_is_refused(tmp_path, store, disk):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    path.symlink_to(disk / "gone" / "tree.zarr")
    with pytest.raises(OutputError, match=r"a link to .* whose folder is not there"):
        prepare(path, plan, made_up_facts(plan), store)
    assert list(disk.iterdir()) == []


def test_a_killed_rebuild_leaves_the_old_tree(tmp_path, store, monkeypatch):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    for run in plan.runs[:4]:
        store.write(made_up_record(run))
    prepare(path, plan, made_up_facts(plan), store)

    def full(self, records):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TreeWriter, "write", full)
    changed = made_up_plan(n_splits=6)
    with pytest.raises(OSError, match="No space"):
        prepare(path, changed, made_up_facts(changed), store)
    assert_holds(open_results(path), plan, [made_up_record(run) for run in plan.runs[:4]])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["records", "results.zarr"]


@pytest.mark.slow
def test_a_damaged_tree_is_an_error_for_readers_and_made_anew_by_the_sweep(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    for run in plan.runs:
        store.write(made_up_record(run))
    records = [made_up_record(run) for run in plan.runs]

    def cut(file: Path) -> None:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    for name in ("zarr.json", "heart/level/state/c/1/0", "heart/level/run_id/c/0/0"):
        prepare(path, plan, made_up_facts(plan), store)
        assert_holds(open_results(path), plan, records)
        cut(path / name)
        if name == "zarr.json":
            with pytest.raises(StoreError, match="records"):
                open_results(path)
        with pytest.raises(StoreError, match="cannot be read"):
            TreeWriter(path).states()
    prepare(path, plan, made_up_facts(plan), store)
    assert_holds(open_results(path), plan, records)


def test_a_flipped_bit_in_a_chunk_is_noticed(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    for run in plan.runs:
        store.write(made_up_record(run))
    prepare(path, plan, made_up_facts(plan), store)
    chunk = path / "heart" / "level" / "gap" / "c" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 4
    chunk.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="gap"):
        open_results(path)["heart/level"].gap.load()
    with pytest.raises(StoreError, match="gap"):
        TreeWriter(path).write([made_up_record(plan.runs[0])])


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_no_results_is_an_error_that_says_so(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"results\.zarr") as caught:
        open_results(tmp_path / name)
    assert caught.value.exit_code == 2


def test_another_layout_version_is_refused(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    prepare(path, plan, made_up_facts(plan), store)
    root = read_root(path)
    root["attributes"]["layout_version"] = 99
    write_root(path, root)
    with pytest.raises(StoreError, match="99"):
        open_results(path)


def test_a_variable_of_other_dims_is_refused(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    prepare(path, plan, made_up_facts(plan), store)
    root = read_root(path)
    nodes = root["consolidated_metadata"]["metadata"]
    nodes["heart/level/gap"]["dimension_names"] = ["C", "split"]
    nodes["heart/level/gap"]["shape"].reverse()
    write_root(path, root)
    with pytest.raises(StoreError, match=r"heart/level/gap.*dims"):
        open_results(path)
