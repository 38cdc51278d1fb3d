"""Banks for workers: a reference for each, one snapshot of equal data, fetched where not seen."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from mkldist.bank.byte_store import ByteStore
from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.errors import OutputError, StoreError
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.run.bank_refs import fetched_snapshot
from mkldist.run.sweep_setup import BankKey, bank_refs
from mkldist.run.worker_pool import SnapshotPublisher
from mkldist.spec.model import SweepSpec
from tests.run.scheduler_in_memory import SchedulerInMemory

SWEEP = """
name = "s"
[[datasets]]
name = "two_moons"
options = { n = 30 }
[preprocessing]
fit = "all"
[[banks]]
name = "plain"
normalisation = "none"
kernels = [{ function = "gaussian", widths = [1.0, 2.0] }]
[[banks]]
name = "traced"
normalisation = "trace"
kernels = [{ function = "gaussian", widths = [1.0, 2.0] }]
[[banks]]
name = "other"
kernels = [{ function = "gaussian", widths = [3.0] }]
[[methods]]
name = "uniform"
"""


@pytest.fixture(scope="module")
def planned():
    spec = SweepSpec.model_validate(tomllib.loads(SWEEP))
    resolved = resolve(spec, (), Path())
    return make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None), resolved


def test_banks_of_equal_kernels_share_a_store_but_no_reference(planned, tmp_path):
    plan, resolved = planned
    wanted = {bank.id for bank in plan.banks}
    refs = bank_refs(plan, resolved, wanted, "memory://banks", tmp_path)
    assert {key.label for key in refs} == {"plain", "traced", "other"}
    ids = {key.label: key.id for key in refs}
    assert ids["plain"] == ids["traced"] != ids["other"]
    assert {key.dataset for key in refs} == {"two_moons"}
    for key, ref in refs.items():
        assert (ref.plan.id, ref.plan.spec.label, ref.root) == (key.id, key.label, "memory://banks")
    assert {BankKey.of(run) for run in plan.runs} == refs.keys()


def test_workers_read_the_data_and_splits_of_the_sweep(planned, tmp_path):
    plan, resolved = planned
    refs = bank_refs(plan, resolved, {bank.id for bank in plan.banks}, "memory://b", tmp_path)
    [snapshot] = {ref.snapshot for ref in refs.values()}
    dataset, splits = load_snapshot(Path(snapshot))
    [(own, own_splits)] = resolved.datasets.values()
    np.testing.assert_array_equal(dataset.x, own.x)
    np.testing.assert_array_equal(dataset.y, own.y)
    assert [split.train.tolist() for split in splits] == [s.train.tolist() for s in own_splits]
    assert {ref.data_fingerprint for ref in refs.values()} == {dataset.fingerprint}


def test_banks_that_no_run_waits_for_are_left_out(planned, tmp_path):
    plan, resolved = planned
    [other] = {bank.id for bank in plan.banks if bank.spec.label == "other"}
    assert {key.label for key in bank_refs(plan, resolved, {other}, "b", tmp_path)} == {"other"}
    assert bank_refs(plan, resolved, (), "b", tmp_path / "none") == {}
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_is_named(planned, tmp_path):
    plan, resolved = planned
    (tmp_path / "snapshots").write_text("a file")
    with pytest.raises(OutputError, match="snapshots"):
        bank_refs(plan, resolved, {plan.banks[0].id}, "b", tmp_path / "snapshots")


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> SchedulerInMemory:
    return SchedulerInMemory().install(monkeypatch)


@pytest.fixture
def publisher(scheduler: SchedulerInMemory, tmp_path: Path) -> SnapshotPublisher:
    return SnapshotPublisher(scheduler, tmp_path / "out")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    rows = np.arange(4)
    data = Dataset("d", np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), ("a", "b"))
    save_snapshot(tmp_path / "out" / "snapshots" / "name", data, [Split(rows[:2], rows[2:])])
    return tmp_path / "out" / "snapshots" / "name"


@pytest.mark.parametrize("banks", ["", "memory://banks-of-others"])
def test_a_machine_fetches_a_snapshot_once_and_what_is_damaged_again(
    publisher, snapshot, tmp_path, monkeypatch, banks, scheduler
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    origin = publisher.publish(snapshot, banks)
    assert bool(scheduler.files) == (not banks)
    folder = fetched_snapshot("name", origin)
    assert folder.is_relative_to(tmp_path / "cache")
    data, (split,) = load_snapshot(folder)
    np.testing.assert_array_equal(data.x, np.eye(4))
    np.testing.assert_array_equal(split.test, [2, 3])
    assert fetched_snapshot("name", origin) == folder
    [x] = folder.glob("x-*.npy")
    x.write_bytes(x.read_bytes()[:-1] + b"\xff")
    fetched_snapshot("name", origin)
    load_snapshot(folder)
    publisher.close()
    assert not scheduler.files


@pytest.mark.parametrize("banks", ["", "memory://nothing-here"])
def test_a_snapshot_that_is_nowhere_is_told(scheduler, tmp_path, monkeypatch, banks):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    with pytest.raises(StoreError, match="no such file"):
        fetched_snapshot("name", banks or "prefix")


@pytest.mark.parametrize("pattern", ["x-*.npy", "snapshot.json"])
def test_a_flipped_bit_in_an_object_store_is_told_and_mended_by_the_next_sweep(
    publisher, snapshot, tmp_path, monkeypatch, pattern
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    banks = f"memory://flipped-{pattern[0]}"
    store, [name] = ByteStore(banks, "snapshots/name"), [p.name for p in snapshot.glob(pattern)]
    origin = publisher.publish(snapshot, banks)
    whole = store.get(name)
    assert whole is not None
    place = len(whole) - 5
    store.put(name, [whole[:place], bytes([whole[place] ^ 4]), whole[place + 1 :]])
    with pytest.raises(StoreError, match=rf"{banks}: snapshot name: found {name}, which arrives"):
        fetched_snapshot("name", origin)
    put: list[str] = []
    real = ByteStore.put

    def noting(self, name, parts):
        put.append(name)
        real(self, name, parts)

    monkeypatch.setattr(ByteStore, "put", noting)
    publisher.publish(snapshot, banks)
    assert (put, store.get(name)) == ([name], whole)
    data, _ = load_snapshot(fetched_snapshot("name", origin))
    np.testing.assert_array_equal(data.x, np.eye(4))
    publisher.publish(snapshot, banks)
    assert put == [name]


def test_what_the_scheduler_hands_on_damaged_is_told(
    publisher, snapshot, tmp_path, monkeypatch, scheduler
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    origin = publisher.publish(snapshot, "")
    [name] = [name for name in scheduler.files if "/x-" in name]
    scheduler.files[name] = scheduler.files[name][:-1] + b"\xff"
    with pytest.raises(StoreError, match=r"the scheduler: snapshot name: found x-.* damaged"):
        fetched_snapshot("name", origin)
