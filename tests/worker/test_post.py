"""The way to the coordinator: `record_sinks` and `bank_refs`, in folders or through Dask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.errors import ClusterError, StoreError
from mkldist.fit.score import failed_record
from mkldist.gram.remote_blobs import RemoteBlobs
from mkldist.planning.model import RunPlan
from mkldist.results.record_format import encode
from mkldist.results.records import RecordStore
from mkldist.run.post_box import PostBox
from mkldist.worker.bank_refs import fetched_snapshot
from mkldist.worker.post import Post
from mkldist.worker.record_sinks import record_sink
from tests.worker.scheduler_in_memory import SchedulerInMemory

RUNS = tuple(RunPlan(f"r{i}", "d", "b", "b", 0, "uniform", "uniform", {}) for i in range(3))
RECORD = failed_record(RUNS[0], "no solution", 4)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> SchedulerInMemory:
    return SchedulerInMemory().install(monkeypatch)


@pytest.fixture
def box(scheduler: SchedulerInMemory, tmp_path: Path) -> PostBox:
    return PostBox(scheduler, tmp_path / "out")


def test_a_shared_folder_takes_records_and_tells_which_are_there(tmp_path):
    with record_sink(str(tmp_path), "", "r0") as sink:
        assert sink.unrecorded(RUNS) == list(RUNS)
        sink.write(RECORD)
        assert sink.unrecorded(RUNS) == list(RUNS[1:])
    assert encode(RecordStore(tmp_path).read("r0")) == encode(RECORD)


def test_records_that_are_sent_arrive_once_and_are_not_computed_again(scheduler, box, tmp_path):
    with record_sink(str(tmp_path / "nowhere"), box.name, "r0") as sink:
        sink.write(RECORD)
    with record_sink(str(tmp_path / "nowhere"), box.name, "r0") as sink:  # of a second worker
        assert sink.unrecorded(RUNS) == list(RUNS[1:])
    assert not (tmp_path / "nowhere").exists()
    assert [encode(one) for one in box.take()] == [encode(RECORD)]
    assert list(box.take()) == []
    assert (box.n_records, box.received > 0) == (1, True)
    box.forget("r0")
    with record_sink("", box.name, "r0") as sink:
        assert sink.unrecorded(RUNS) == list(RUNS)
    box.close()
    assert (scheduler.n_open, scheduler.marks[box.name]) == (0, {})


def test_a_coordinator_that_resumes_takes_what_was_sent_to_the_one_before(scheduler, box, tmp_path):
    with record_sink("", box.name, "r0") as sink:
        sink.write(RECORD)
    second = PostBox(scheduler, tmp_path / "out")  # the first was killed
    assert [one.id for one in second.take()] == ["r0"]
    with record_sink("", second.name, "r0") as sink:
        assert sink.unrecorded(RUNS) == list(RUNS)  # one that it took may not have been written
    assert PostBox(scheduler, tmp_path / "other").name != second.name


def test_a_damaged_record_is_dropped(scheduler, box):
    Post(box.name).send({"record": b"flipped"})
    assert list(box.take()) == []


def test_a_coordinator_that_takes_nothing_is_told(scheduler, monkeypatch):
    post = Post("post")

    def full(letter, timeout):
        raise TimeoutError

    monkeypatch.setattr(post._letters, "put", full)
    with pytest.raises(ClusterError, match="no coordinator that takes records"):
        post.send({"record": b""})


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    rows = np.arange(4)
    data = Dataset("d", np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), ("a", "b"))
    save_snapshot(tmp_path / "out" / "snapshots" / "name", data, [Split(rows[:2], rows[2:])])
    return tmp_path / "out" / "snapshots" / "name"


@pytest.mark.parametrize("banks", ["", "memory://banks-of-a-post"])
def test_a_machine_fetches_a_snapshot_once_and_what_is_damaged_again(
    box, snapshot, tmp_path, monkeypatch, banks, scheduler
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    box.publish(snapshot, banks)
    assert bool(scheduler.files) == (not banks)
    folder = fetched_snapshot("name", banks, box.name)
    assert folder.is_relative_to(tmp_path / "cache")
    data, (split,) = load_snapshot(folder)
    np.testing.assert_array_equal(data.x, np.eye(4))
    np.testing.assert_array_equal(split.test, [2, 3])
    assert fetched_snapshot("name", banks, box.name) == folder
    [x] = folder.glob("x-*.npy")
    n_bytes = len(x.read_bytes())
    x.write_bytes(x.read_bytes()[:-1] + b"\xff")
    fetched_snapshot("name", banks, box.name)
    load_snapshot(folder)
    assert list(box.take()) == []
    whole = sum(path.stat().st_size for path in snapshot.iterdir())
    assert (box.n_fetches, box.fetched) == (2, whole + n_bytes)
    box.close()
    assert not scheduler.files


@pytest.mark.parametrize("banks", ["", "memory://nothing-here"])
def test_a_snapshot_that_is_nowhere_is_told(scheduler, tmp_path, monkeypatch, banks):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    with pytest.raises(StoreError, match="no such file"):
        fetched_snapshot("name", banks, "post")


@pytest.mark.parametrize("pattern", ["x-*.npy", "snapshot.json"])
def test_a_flipped_bit_in_an_object_store_is_told_and_mended_by_the_next_sweep(
    box, snapshot, tmp_path, monkeypatch, pattern
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    banks = f"memory://flipped-{pattern[0]}"
    store, [name] = RemoteBlobs(banks, "snapshots/name"), [p.name for p in snapshot.glob(pattern)]
    box.publish(snapshot, banks)
    whole = store.get(name)
    assert whole is not None
    place = len(whole) - 5
    store.put(name, [whole[:place], bytes([whole[place] ^ 4]), whole[place + 1 :]])
    with pytest.raises(StoreError, match=rf"{banks}: snapshot name: found {name}, which arrives"):
        fetched_snapshot("name", banks, box.name)
    put: list[str] = []
    real = RemoteBlobs.put

    def noting(self, name, parts, *, durable=True):
        put.append(name)
        real(self, name, parts, durable=durable)

    monkeypatch.setattr(RemoteBlobs, "put", noting)
    box.publish(snapshot, banks)
    assert (put, store.get(name)) == ([name], whole)
    data, _ = load_snapshot(fetched_snapshot("name", banks, box.name))
    np.testing.assert_array_equal(data.x, np.eye(4))
    box.publish(snapshot, banks)
    assert put == [name]


def test_what_the_scheduler_hands_on_damaged_is_told(
    box, snapshot, tmp_path, monkeypatch, scheduler
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    box.publish(snapshot, "")
    [name] = [name for name in scheduler.files if "/x-" in name]
    scheduler.files[name] = scheduler.files[name][:-1] + b"\xff"
    with pytest.raises(StoreError, match=r"the scheduler: snapshot name: found x-.* damaged"):
        fetched_snapshot("name", "", box.name)
