"""Records in `record_format`, from `run_record`, with their `state`: whole or absent."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.counters import Counters
from mkldist.durable import machine_id, temporary_path
from mkldist.errors import UnreadableError
from mkldist.planning.model import RunPlan
from mkldist.results.record_format import decode, encode
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.state import RunState
from mkldist.sealed import sealed, unsealed
from mkldist.solvers.base import Solution
from mkldist.solvers.outcome import StopReason
from tests.results.sweeps import made_up_plan, made_up_record
from tests.variants import quick

RUNS = made_up_plan().runs


def same(one: RunRecord | None, other: RunRecord | None) -> bool:
    """Compare every field; arrays by dtype and values, NaN equal to itself."""
    if one is None or other is None:
        return one is other
    for field in dataclasses.fields(RunRecord):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "trace":
            if a.keys() != b.keys() or not all(np.array_equal(a[k], b[k]) for k in a):
                return False
        elif isinstance(a, np.ndarray):
            if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=True):
                return False
        elif a != b and not (isinstance(a, float) and np.isnan(a) and np.isnan(b)):
            return False
    return True


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path / "records")


def file_of(store: RecordStore) -> Path:
    return next(store.directory.glob("*/*.npz"))


def test_a_record_comes_back_as_it_was(store):
    record = dataclasses.replace(
        made_up_record(RUNS[0]),
        params={"C": 0.1, "time_limit": float("inf"), "variant": "ü"},
        scores={"test_error": 0.25, "auc": float("nan")},
    )
    store.write(record)
    back = store.read(record.id)
    assert back is not None
    assert np.isnan(back.scores.pop("auc"))
    record.scores.pop("auc")
    assert same(back, record)
    assert store.ids() == {record.id: RunState.COMPLETE}


def test_record_of_a_solution():
    weights = np.array([0.0, 0.7, 0.0, 0.3, 5e-4])
    solution = Solution(
        weights, np.array([1.0, -2.0]), 0.5, np.array([1.0, 2.0]), 10.0, 9.0,
        StopReason.MAX_ITER, Counters(outer_iterations=3), {"gap": np.ones(3)}, {"margin": 2.0},
    )  # fmt: skip
    record = RunRecord.from_solutions(
        RUNS[0], [solution], scores={"test_error": 0.1}, times={"own_seconds": 1.0},
        provenance={"host": "h"}, counters={"bytes_read": 5},
    )  # fmt: skip
    np.testing.assert_array_equal(record.kernel_weights, weights)
    assert record.kernels.tolist() == [1, 3, 4]
    assert record.n_active == 2
    assert record.gap == pytest.approx(0.1)
    assert record.stop_reason == "max_iter"
    assert record.counters["outer_iterations"] == 3
    assert record.counters["bytes_read"] == 5
    assert same(decode(encode(record)), record)


def test_failed_then_complete_leaves_one_outcome(store):
    failed = RunRecord.failed(RUNS[0], "no memory", n_kernels=7)
    store.write(failed)
    assert same(store.read(failed.id), failed)
    assert store.ids() == {failed.id: RunState.FAILED}
    complete = made_up_record(RUNS[0])
    store.write(complete)
    assert store.ids() == {failed.id: RunState.COMPLETE}
    assert len(list(store.directory.glob("*/*"))) == 1
    store.remove(failed.id)
    store.remove(failed.id)
    assert store.ids() == {}
    assert store.read(failed.id) is None


def test_only_outcomes_are_recorded(store):
    with pytest.raises(ValueError, match="waiting"):
        store.write(dataclasses.replace(made_up_record(RUNS[0]), state=RunState.WAITING))
    assert store.ids() == {}


def test_every_truncation_is_noticed():
    content = encode(made_up_record(RUNS[0]))
    assert decode(content) is not None
    assert all(decode(content[:length]) is None for length in range(len(content)))
    assert decode(content + b"\0") is None


def test_every_flipped_bit_is_noticed():
    content = encode(made_up_record(RUNS[0]))
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position % 8)
        assert decode(bytes(flipped)) is None, position


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_anything_else_is_no_record(content):
    assert decode(content) is None


@pytest.mark.parametrize("changed", [{"state": "paused"}, {"field_of_later": 1}, {"state": []}])
def test_a_record_that_another_version_wrote_is_none(changed):
    header, arrays = unsealed(encode(made_up_record(made_up_plan().runs[0])))
    assert decode(sealed(header, arrays)) is not None
    assert decode(sealed(header | changed, arrays)) is None


def test_damage_on_disk_counts_as_not_recorded(store):
    for run in RUNS[:3]:
        store.write(made_up_record(run))
    path = file_of(store)
    run_id = path.name.partition(".")[0]
    path.write_bytes(path.read_bytes()[:-5])
    assert store.read(run_id) is None
    assert set(store.ids(verify=True)) == {run.id for run in RUNS[:3]} - {run_id}


def test_a_record_under_another_id_is_not_that_run(store):
    store.write(made_up_record(RUNS[0]))
    path = file_of(store)
    path.rename(path.with_name(f"{RUNS[0].id[:2]}other.complete.npz"))
    assert store.read(f"{RUNS[0].id[:2]}other") is None


def replaced(path: Path, kind: str) -> None:
    """Put something else in the place of a file or a folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("a file")
    else:
        path.symlink_to(path if kind == "loop" else path.parent / "nothing")


@pytest.mark.parametrize("kind", ["folder", "loop", "link"])
def test_what_stands_in_the_place_of_a_record_is_one_damaged_record(store, kind):
    for run in RUNS[:3]:
        store.write(made_up_record(run))
    path = store.directory / RUNS[0].id[:2] / f"{RUNS[0].id}.complete.npz"
    replaced(path, kind)
    assert store.damaged() == [path]
    assert store.read(RUNS[0].id) is None
    assert set(store.ids(verify=True)) == {RUNS[1].id, RUNS[2].id}
    store.remove(RUNS[0].id)
    assert store.damaged() == []
    assert set(store.ids()) == {RUNS[1].id, RUNS[2].id}
    store.write(made_up_record(RUNS[0]))
    assert store.read(RUNS[0].id) is not None


@pytest.mark.parametrize("kind", ["file", "loop", "link"])
@pytest.mark.parametrize("which", ["records", "shard"])
def test_what_stands_in_the_place_of_a_folder_is_damaged_and_refused_by_name(store, kind, which):
    store.write(made_up_record(RUNS[0]))
    place = store.directory if which == "records" else store.directory / RUNS[0].id[:2]
    store.refuse_blocked()
    replaced(place, kind)
    assert store.damaged() == store.blocked() == [place]
    assert store.ids() == {}
    words = f"{place}: .*run 'mkldist verify {store.directory.parent} --repair'"
    with pytest.raises(UnreadableError, match=words):
        store.refuse_blocked()
    if kind != "link":
        with pytest.raises(UnreadableError, match=words):
            store.read(RUNS[0].id)


def test_other_files_beside_the_folders_of_records_are_no_damage(store):
    store.write(made_up_record(RUNS[0]))
    (store.directory / ".DS_Store").write_text("")
    (store.directory / "README").write_text("")
    assert store.damaged() == []


def test_a_record_whose_name_says_another_run_state_or_folder_is_damaged(store):
    for run in RUNS[:2]:
        store.write(made_up_record(run))
    one, other = (store.directory / run.id[:2] / f"{run.id}.complete.npz" for run in RUNS[:2])
    assert store.damaged() == []
    whole = one.read_bytes()
    failed = one.rename(one.with_name(f"{RUNS[0].id}.failed.npz"))
    assert store.damaged() == [failed]
    assert store.read(RUNS[0].id) is None
    assert set(store.ids(verify=True)) == {RUNS[1].id}
    failed.rename(one)
    other.write_bytes(whole)
    assert store.damaged() == [other]
    other.unlink()
    stray = store.directory / "zz" / one.name
    stray.parent.mkdir()
    one.rename(stray)
    assert store.damaged() == [stray]
    assert store.ids() == {}


def test_a_record_of_another_version_is_no_damage(store):
    store.write(made_up_record(RUNS[0]))
    header, arrays = unsealed(file_of(store).read_bytes())
    file_of(store).write_bytes(sealed(header | {"field_of_later": 1}, arrays))
    assert store.damaged() == []


def test_a_folder_of_records_that_cannot_be_listed_is_named(store, monkeypatch):
    def refuse(folder: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", folder)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UnreadableError, match=r"Permission denied.*Make it readable"):
        store.ids()


def test_numpy_reads_a_record(store):
    record = made_up_record(RUNS[0])
    store.write(record)
    with np.load(file_of(store), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["weights"], record.weights)
        np.testing.assert_array_equal(archive["trace.objective"], record.trace["objective"])


@pytest.mark.slow
def test_thirty_thousand_records_are_listed_at_once(store):
    ids = [f"{i * 2654435761 % 2**32:08x}{i:08x}" for i in range(30_000)]
    for shard in {run_id[:2] for run_id in ids}:
        (store.directory / shard).mkdir(parents=True)
    for i, run_id in enumerate(ids):
        state = "failed" if i % 10 == 0 else "complete"
        (store.directory / run_id[:2] / f"{run_id}.{state}.npz").touch()
    start = time.process_time()
    found = store.ids()
    assert time.process_time() - start < 0.5
    assert set(found) == set(ids)
    assert sum(state is RunState.FAILED for state in found.values()) == 3_000


def elsewhere(path: Path) -> Path:
    """Return a temporary path as a process of another machine would name it."""
    return path.with_name(path.name.replace(machine_id(), 12 * "0"))


def test_temporary_files_are_no_records_and_go_when_they_are_old(store):
    store.write(made_up_record(RUNS[0]))
    folder = file_of(store).parent
    old, new = (elsewhere(temporary_path(folder)) for _ in range(2))
    ours = temporary_path(folder)  # of a process that lives
    for path in (old, new, ours):
        path.write_bytes(b"half a rec")
    for path in (old, ours):
        os.utime(path, (0, 0))
    assert set(store.ids()) == {RUNS[0].id}
    assert store.remove_temporaries() == 1
    assert new.exists()
    assert ours.exists()


WRITER = """
import dataclasses, sys
from pathlib import Path
import numpy as np
from mkldist.results.records import RecordStore
from tests.results.sweeps import made_up_plan, made_up_record

store = RecordStore(Path(sys.argv[1]))
runs = made_up_plan(n_splits=200).runs
print("ready", flush=True)
for i, run in enumerate(runs):
    big = np.random.default_rng(i).normal(size=20_000 * (1 + i % 5))
    store.write(dataclasses.replace(made_up_record(run), coefficients=big))
"""


@pytest.mark.parametrize("delay", quick([0.1, 0.02, 0.3]))
def test_a_writer_killed_at_any_moment_leaves_whole_records(store, delay):
    root = Path(__file__).parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.directory)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 20
        while not store.ids() and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
    listed = store.ids()
    assert listed
    assert store.ids(verify=True) == listed
    assert all(store.read(run_id) is not None for run_id in listed)


def test_a_refused_write_leaves_nothing(store, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    store.write(made_up_record(RUNS[0]))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write(made_up_record(RUNS[1]))
    names = [path.name for path in store.directory.glob("*/*")]
    assert names == [f"{RUNS[0].id}.complete.npz"]


def test_run_plan_is_copied_not_shared():
    run = RunPlan("ab", "d", "b", "bank", 0, "level", "level", {"C": 1.0})
    record = RunRecord.failed(run, "")
    record.params["C"] = 2.0
    assert run.params == {"C": 1.0}


def test_the_file_that_was_made_durable_is_the_record(store, monkeypatch):
    synced: dict[int, dict[str, RunState]] = {}
    fsync = os.fsync

    def note(descriptor: int) -> None:
        fsync(descriptor)
        synced[os.fstat(descriptor).st_ino] = store.ids()

    monkeypatch.setattr(os, "fsync", note)
    store.write(made_up_record(RUNS[0]))
    path = file_of(store)
    assert synced[path.stat().st_ino] == {}
    assert synced[path.parent.stat().st_ino] == {RUNS[0].id: RunState.COMPLETE}
