"""Flipped bits in the files of a sweep, and what mends them; which banks stay, and which go."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from mkldist.bank.cache import NodeCache, removing_banks, using_banks
from mkldist.bank.store import BankStore
from mkldist.data.inputs import InputData, is_sound
from mkldist.errors import OutputError, StoreError, UnreadableError
from mkldist.results.folder import claimed, note_banks
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.run import sweep as clean_sweep
from mkldist.run import sweep_loop
from mkldist.run.bank_refs import cached_laplacian
from mkldist.run.upkeep import remove, stored_banks, total_bytes, verify
from mkldist.spec.datasets import GraphSpec
from tests.bank.stores import stored
from tests.fit.made_up import made_up_model
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.run import damage
from tests.run.here import TEXT, kept, sweep
from tests.run.sweeps import run_here, sweep_text
from tests.variants import quick

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
    assert found == {"manifest": 1, "records": len(PLAN.runs), "layout": 1}


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


def test_the_layout_of_another_sweep_of_the_same_name_is_damage(output):
    other = made_up_plan(n_splits=1, datasets=("wine",))
    lay_out(output, other, made_up_facts(other))
    assert [*damaged(output)] == ["layout"]


def test_data_given_in_python_are_held_to_their_names(output):
    data = InputData({"x": np.arange(6.0).reshape(3, 2), "y": np.arange(3)})
    file = output / "data" / f"mine-{data.id}.inputs.npz"
    file.parent.mkdir()
    data.save(file)
    assert is_sound(file)
    assert damaged(output) == {}
    other = InputData({"x": np.ones((3, 2)), "y": np.arange(3)})
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the output folder of a finished sweep."""
    folder = tmp_path_factory.mktemp("repair")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MKLDIST_CACHE", str(folder / "cache"))
        damage.sweep(folder / "small")
        yield folder / "small"


def damaged_kinds(output: Path) -> set[str]:
    return {one.kind for one in verify(output) if one.damaged}


def assert_equal(found: dict[str, xr.Dataset], expected: dict[str, xr.Dataset]) -> None:
    assert found.keys() == expected.keys()
    for path, data in expected.items():
        xr.testing.assert_equal(found[path], data)


@pytest.mark.parametrize("kind", quick(["banks", "manifest", "layout", "records", "snapshots"]))
def test_a_flipped_bit_is_found_and_the_sweep_mends_it(made, kind):
    rng = np.random.default_rng(len(kind))
    expected = damage.values_of(made, timed=False)
    assert damaged_kinds(made) == set()
    files = damage.kinds(made)[kind]
    for path in rng.choice(np.array(files, object), size=min(3, len(files)), replace=False):
        whole = damage.flip(path, rng)
        assert damaged_kinds(made) == {kind}, path
        outcome = damage.sweep(made)
        assert (outcome.computed > 0, outcome.failed) == (kind == "records", 0)
        if kind == "banks" and path.name != "banks.json":
            path.write_bytes(whole)  # the finished sweep needs none of them
        assert damaged_kinds(made) == set(), path
        assert_equal(damage.values_of(made, timed=False), expected)


@pytest.mark.parametrize("kind", ["gone", "loop"])
def test_a_manifest_that_is_gone_is_made_anew_with_what_the_layout_says(made, kind):
    manifest = made / "sweep.json"
    whole = manifest.read_bytes()
    manifest.unlink()
    if kind == "loop":
        manifest.symlink_to(manifest)
    assert damaged_kinds(made) == {"manifest"}
    assert damage.sweep(made).computed == 0
    assert manifest.read_bytes() == whole


def test_a_folder_in_the_place_of_the_layout_is_mended(made):
    expected = damage.values_of(made)
    layout = made / "tree.layout"
    layout.unlink()
    layout.mkdir()
    assert damaged_kinds(made) == {"layout"}
    assert damage.sweep(made).computed == 0
    assert damaged_kinds(made) == set()
    assert_equal(damage.values_of(made), expected)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no names of open files here")
def test_a_device_that_fails_ends_a_sweep_with_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").resolve() == tmp_path / "small/records.journal":
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=r"small/records\.journal: found a device that fails"):
        damage.sweep(tmp_path / "small")


@pytest.mark.parametrize("kind", ["text", "folder", "loop"])
def test_a_damaged_note_of_banks_is_named_and_made_anew(made, kind):
    note = made / "banks.json"
    whole = note.read_bytes()
    note.unlink()
    if kind == "text":
        note.write_text("{")
    elif kind == "folder":
        note.mkdir()
    else:
        note.symlink_to(note)
    assert [one.damaged for one in verify(made) if one.damaged] == [(str(note),)]
    outcome = damage.sweep(made)
    assert outcome.computed == 0
    assert outcome.mended == ("the note of stored Gram matrices was damaged, and is made anew",)
    assert damaged_kinds(made) == set()
    assert note.read_bytes() == whole


@pytest.mark.parametrize("kind", ["block", "description"])
def test_what_is_damaged_of_a_bank_is_found(made, kind):
    wanted = "/c/" if kind == "block" else "/zarr.json"
    path = next(file for file in damage.kinds(made)["banks"] if wanted in str(file))
    whole = damage.flip(path, np.random.default_rng(0))
    [found] = [one.damaged for one in verify(made) if one.damaged]
    assert found == ((f"{path.parents[3]}, block 0",) if kind == "block" else (str(path),))
    path.write_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_runs_after_a_flipped_bit_equal_those_without(tmp_path, monkeypatch, seed):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(seed)
    clean, output = tmp_path / "clean" / "small", tmp_path / "out" / "small"
    for path in (clean, output):
        path.parent.mkdir()
        damage.sweep(path)
    for files in damage.kinds(output).values():
        damage.flip(files[rng.integers(len(files))], rng)
    for path in (clean, output):
        assert damage.sweep(path, more=True).failed == 0
    assert_equal(damage.values_of(output, timed=False), damage.values_of(clean, timed=False))


@pytest.mark.slow
def test_what_stands_in_the_place_of_records_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "small"
    damage.sweep(output)
    expected = damage.values_of(output, timed=False)
    [record] = damage.kinds(output)["records"]
    n_lost = len(Journal(record).states())
    record.unlink()
    record.mkdir()
    assert "records" in damaged_kinds(output)
    with pytest.raises(UnreadableError, match="move away what is there"):
        damage.sweep(output)
    record.rename(output.parent / "moved")
    assert damage.sweep(output).computed == n_lost
    assert_equal(damage.values_of(output, timed=False), expected)


def not_kept(text: str) -> str:
    return text.replace("keep_banks = true", "keep_banks = false")


def test_banks_that_are_not_kept_lie_apart_from_those_of_other_sweeps(tmp_path, client):
    sweep(TEXT, tmp_path / "first")
    shared = kept(tmp_path / "banks")
    assert len(shared) == 3
    sweep(not_kept(TEXT).replace('"small"', '"second"'), tmp_path / "second")
    assert kept(tmp_path / "banks") == shared
    assert kept(tmp_path / "second" / "banks") == []


def test_in_a_shared_folder_only_own_banks_are_deleted(tmp_path, client):
    sweep(TEXT, tmp_path / "first")
    root = tmp_path / "banks"
    shared = kept(root)
    text = not_kept(sweep_text({"uniform": [1.0]}, name="second", repeats=4))
    sweep(text.replace("keep_banks", f'banks = "{root}"\nkeep_banks'), tmp_path / "second")
    assert kept(root) == shared


def test_own_banks_in_a_shared_folder_stay_while_another_sweep_uses_it(tmp_path, client):
    root = tmp_path / "elsewhere"
    text = not_kept(TEXT).replace("keep_banks", f'banks = "{root}"\nkeep_banks')
    with using_banks(str(root)):
        sweep(text, tmp_path / "small")
        assert len(kept(root)) == 3
    sweep(text.replace("10.0", "20.0"), tmp_path / "small")
    assert len(kept(root)) == 3  # which another sweep may have built
    sweep(text.replace('"small"', '"second"').replace("n = 80", "n = 60"), tmp_path / "second")
    assert len(kept(root)) == 3


def test_a_call_after_a_kill_removes_the_banks_that_no_run_needs_any_more(
    tmp_path, client, monkeypatch
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "small"
    with monkeypatch.context() as killed:  # before the removal
        killed.setattr(sweep_loop, "remove_bank", lambda store: None)
        killed.setattr("mkldist.run.sweep._Sweep.remove_banks", lambda *given: None)
        sweep(not_kept(TEXT), output)
    copy = NodeCache().path_of(BankStore.open(str(output / "banks"), kept(output / "banks")[0]))
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(b"")
    assert sweep(not_kept(TEXT), output).computed == 0
    assert kept(output / "banks") == []
    assert not copy.exists()


METHODS = {"uniform": [1.0]}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_sweep_loses_its_banks_alone_and_computes_them_again(tmp_path, scheduler):
    path = tmp_path / "results" / "small"
    run_here(sweep_text(METHODS), path, scheduler)
    other = stored(tmp_path / "results" / "banks", np.ones((1, 4, 4)), "float64", "other")
    before, banks = files(path), stored_banks(path)
    assert len(banks) == 2  # one for each split
    assert {bank.words for bank in banks} == {"two_moons, bank"}
    on_disk = sum(len(content) for bank in banks
                  for content in files(Path(bank.store.location)).values())  # fmt: skip
    assert remove(banks) == total_bytes(banks) + on_disk == on_disk
    assert stored_banks(path) == ()
    assert not other.missing()
    assert files(path) == before
    assert run_here(sweep_text(METHODS), path, scheduler).computed == 0
    assert stored_banks(path) == ()  # nothing was to do
    more = run_here(sweep_text({"uniform": [1.0, 2.0]}), path, scheduler)
    assert (more.computed, more.failed) == (2, 0)
    assert len(stored_banks(path)) == 2


def test_a_sweep_at_work_keeps_its_banks(tmp_path, monkeypatch):
    root, tried = tmp_path / "results" / "banks", []

    def work(*given):
        with pytest.raises(OutputError, match="a sweep at work"):
            removing_banks(root).__enter__()
        tried.append(root)

    monkeypatch.setattr(clean_sweep._Sweep, "work", work)
    run_here(sweep_text(METHODS), tmp_path / "results" / "small", "tcp://nowhere:1")
    assert tried == [root]
    with removing_banks(root):
        pass


def test_a_sweep_that_stores_nothing_notes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(clean_sweep._Sweep, "work", lambda *given: None)
    text = sweep_text(METHODS, backend="recompute")
    run_here(text, tmp_path / "results" / "small", "tcp://nowhere:1")
    assert not (tmp_path / "results" / "banks").exists()
    assert stored_banks(tmp_path / "results" / "small") == ()


def test_all_banks_of_a_folder_go_with_their_copies_and_nothing_else(tmp_path, cache):
    root = tmp_path / "banks"
    store = stored(root, np.ones((2, 5, 5)), "float64", "one")
    stored(root, np.ones((2, 5, 5)), "float32", "two")
    (root / "mine").mkdir()
    (root / "mine" / "thesis.txt").write_text("years of work")
    NodeCache().open(store).close()
    banks = stored_banks(root)
    assert [bank.copy is not None for bank in banks] == [True, False]
    assert banks[0].copy_bytes == NodeCache().path_of(store).stat().st_size
    assert remove(banks) > 2 * 2 * 25 * 4
    assert stored_banks(root) == ()
    assert (root / "mine" / "thesis.txt").read_text() == "years of work"
    assert not list(cache.glob("*.bank"))


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert stored_banks(tmp_path / "nowhere") == ()
