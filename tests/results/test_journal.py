"""The journal: appended, read while it grows, torn, damaged, removed from, and made compact."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mkldist.core.checksums import frame, frame_header, unframed
from mkldist.errors import OutputError, UnreadableError
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.schema import RunState
from tests.results.sweeps import made_up_plan, made_up_record
from tests.variants import quick

RUNS = made_up_plan().runs


def same(one: RunRecord | None, other: RunRecord | None) -> bool:
    """Compare every field; arrays by dtype and values, NaN equal to itself."""
    if one is None or other is None:
        return one is other
    for field in dataclasses.fields(RunRecord):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("trace", "of_classes"):
            if a.keys() != b.keys() or not all(np.array_equal(a[k], b[k]) for k in a):
                return False
        elif isinstance(a, np.ndarray):
            if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=True):
                return False
        elif a != b and not (isinstance(a, float) and np.isnan(a) and np.isnan(b)):
            return False
    return True


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "output" / "records.journal")


def records(n: int) -> list[RunRecord]:
    return [made_up_record(run) for run in RUNS[:n]]


def three(journal: Journal) -> list[int]:
    """Append three records one by one; return the lengths of the file."""
    sizes = [0]
    for record in records(3):
        journal.append([record])
        sizes.append(journal.path.stat().st_size)
    return sizes


@pytest.mark.parametrize("other", [False, True])
def test_records_are_read_as_they_were_appended(journal, other):
    written = [*records(3), RunRecord.failed(RUNS[3], "no memory", n_kernels=7)]
    assert journal.states() == {}
    assert journal.read(RUNS[0].id) is None
    journal.append(written[:1])
    journal.append(written[1:])
    reader = Journal(journal.path) if other else journal
    assert reader.states() == {record.id: record.state for record in written}
    assert all(same(reader.read(record.id), record) for record in written)
    assert reader.read("another") is None
    assert reader.damaged() == []


def test_a_scan_has_records_without_arrays(journal):
    written = records(3)
    journal.append(written)
    heads = journal.scan(dict)
    assert list(heads) == [record.id for record in written]
    for record in written:
        head = heads[record.id]
        assert not {"weights", "coefficients", "trace", "provenance"} & head.keys()
        assert (head["objective"], head["scores"], head["n_active"]) == (
            record.objective,
            record.scores,
            int(np.sum(record.weights > 0)),
        )


def test_a_later_record_takes_the_place_of_an_earlier_one(journal):
    failed, complete = RunRecord.failed(RUNS[0], "no memory"), made_up_record(RUNS[0])
    journal.append([failed])
    journal.append([complete])
    assert Journal(journal.path).states() == {RUNS[0].id: RunState.COMPLETE}
    assert same(journal.read(RUNS[0].id), complete)


def test_a_removed_run_is_not_recorded_until_it_is_appended_again(journal):
    one, other, _ = records(3)
    journal.append([one, other])
    journal.remove([one.id, "another"])
    assert Journal(journal.path).states() == journal.states() == {other.id: RunState.COMPLETE}
    assert journal.read(one.id) is None
    size = journal.path.stat().st_size
    journal.remove([one.id])
    assert journal.path.stat().st_size == size
    journal.append([one])
    assert set(Journal(journal.path).states()) == {one.id, other.id}


def test_an_error_that_names_a_file_which_is_no_utf8_is_recorded(journal):
    made_by = {"traceback": "open('caf\udce9')", "threads": 1}
    journal.append([RunRecord.failed(RUNS[0], "no file caf\udce9", provenance=made_by)])
    found = journal.read(RUNS[0].id)
    assert found.error == r"no file caf\udce9"
    assert found.provenance == {"traceback": r"open('caf\udce9')", "threads": 1}


def test_only_outcomes_are_recorded(journal):
    with pytest.raises(ValueError, match="waiting"):
        journal.append([dataclasses.replace(records(1)[0], state=RunState.WAITING)])
    assert not journal.path.exists()


def test_a_tail_torn_at_any_byte_is_passed_over_and_cut_off(journal):
    sizes = three(journal)
    whole, written = journal.path.read_bytes(), records(3)
    for size in range(sizes[2], sizes[3]):
        journal.path.write_bytes(whole[:size])
        assert set(Journal(journal.path).states()) == {record.id for record in written[:2]}
        assert len(Journal(journal.path).damaged()) == (size > sizes[2])
    again = Journal(journal.path)
    again.append(written[2:])
    assert journal.path.read_bytes() == whole
    assert same(Journal(journal.path).read(written[2].id), written[2])


@pytest.mark.slow
def test_a_flipped_bit_costs_one_run(journal):
    sizes = three(journal)
    whole, ids = journal.path.read_bytes(), [run.id for run in RUNS[:3]]
    for position in range(0, len(whole), 3):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (position % 8)
        journal.path.write_bytes(flipped)
        hit = next(i for i in range(3) if position < sizes[i + 1])
        reader = Journal(journal.path)
        assert [i for i in ids if reader.read(i) is None] == [ids[hit]], position
        (damage,) = reader.damaged()
        assert (damage.start, damage.end) == (sizes[hit], sizes[hit + 1])
        assert damage.run in ("", ids[hit])
        assert set(reader.states()) == {*ids} - {ids[hit]}


def test_heads_and_bodies_of_different_frames_do_not_fit_together(journal):
    one, other = (dataclasses.replace(record, trace={}) for record in records(2))
    other = dataclasses.replace(other, weights=one.weights, kernels=one.kernels)
    journal.append([one])
    size = journal.path.stat().st_size
    journal.append([other])
    content = journal.path.read_bytes()
    assert len(content) == 2 * size
    body = frame_header(content).body_bytes
    journal.path.write_bytes(content[: size - body] + content[-body:] + content[size:])
    assert Journal(journal.path).read(one.id) is None
    assert same(Journal(journal.path).read(other.id), other)


def test_compacting_leaves_what_counts_and_drops_damage(journal):
    written = records(3)
    journal.append([RunRecord.failed(RUNS[0], "no memory"), *written])
    journal.append(records(6)[3:])
    journal.remove([RUNS[4].id])
    content = bytearray(journal.path.read_bytes())
    content[-5] ^= 1
    journal.path.write_bytes(content)  # the tombstone
    journal.remove([RUNS[5].id])
    reader = Journal(journal.path)
    assert len(reader.states()) == 5
    journal.compact()
    assert journal.damaged() == []
    assert set(reader.states()) == set(journal.states()) == {run.id for run in RUNS[:5]}
    assert all(same(reader.read(record.id), record) for record in written)
    journal.append(records(6)[5:])
    assert len(reader.states()) == 6


def test_a_second_reader_follows_a_writer(journal):
    reader = Journal(journal.path)
    for n, record in enumerate(records(9), 1):
        journal.append([record])
        assert len(reader.states()) == n
        assert same(reader.read(record.id), record)


def test_a_reader_sees_that_another_file_has_the_place_and_the_inode(journal):
    one, other, third = records(3)
    journal.append([one])
    reader = Journal(journal.path)
    assert set(reader.states()) == {one.id}
    journal.path.write_bytes(b"")
    Journal(journal.path).append([other, third])
    assert set(reader.states()) == {other.id, third.id}
    assert same(reader.read(other.id), other)


def test_threads_that_read_while_records_are_replaced_see_the_last(journal):
    before, threads = sys.getswitchinterval(), 4
    reader, runs = Journal(journal.path), RUNS[:20]
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(20):
            if turn % 2:
                journal.compact()
            else:
                journal.append(RunRecord.failed(run, f"{turn}") for run in runs)
            with ThreadPoolExecutor(threads) as pool:
                found = list(pool.map(reader.read, [run.id for run in runs]))
            assert [one and one.error for one in found] == [f"{turn - turn % 2}"] * len(runs)
    finally:
        sys.setswitchinterval(before)


def test_a_refused_write_leaves_nothing(journal, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    one, other, _ = records(3)
    journal.append([one])
    before = journal.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            journal.append([other])
    assert journal.path.read_bytes() == before
    journal.append([other])
    assert set(Journal(journal.path).states()) == {one.id, other.id}


def test_an_interrupt_while_records_are_flushed_takes_none_away(journal, monkeypatch):
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    one, other, third = records(3)
    journal.append([one])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.append([other])
    journal.append([third])
    assert set(Journal(journal.path).states()) == {one.id, other.id, third.id}


def test_a_journal_that_vanished_is_not_begun_anew(journal):
    journal.append(records(1))
    shutil.rmtree(journal.path.parent)
    with pytest.raises(OutputError, match=r"records\.journal"):
        journal.append(records(2)[1:])
    assert not journal.path.parent.exists()


def test_compacting_leaves_a_link_and_the_mode_of_its_file(journal, tmp_path):
    journal.append(records(2))
    elsewhere = tmp_path / "elsewhere"
    journal.path.rename(elsewhere)
    elsewhere.chmod(0o640)
    journal.path.symlink_to(elsewhere)
    journal.compact()
    assert journal.path.is_symlink()
    assert elsewhere.stat().st_mode & 0o777 == 0o640
    assert len(journal.states()) == 2


def test_damaged_heads_are_counted(journal):
    sizes = three(journal)
    content = bytearray(journal.path.read_bytes())
    content[sizes[1] + 100] ^= 1  # in the head of the second
    journal.path.write_bytes(content)
    reader = Journal(journal.path)
    assert len(reader.states()) == 2
    assert reader.n_damaged == 1


@pytest.mark.parametrize("kind", ["folder", "link", "loop"])
def test_what_cannot_be_read_is_refused_by_name(journal, kind):
    journal.append(records(1))
    journal.path.unlink()
    if kind == "folder":
        journal.path.mkdir()
    else:
        journal.path.symlink_to(journal.path if kind == "loop" else "nothing")
    with pytest.raises(UnreadableError, match=r"records\.journal"):
        journal.states()


def test_a_record_of_another_version_is_none(journal):
    journal.append(records(1))
    head, arrays = unframed(journal.path.read_bytes())
    journal.path.write_bytes(frame(head | {"field_of_later": 1}, arrays))
    assert journal.read(RUNS[0].id) is None
    assert [damage.run for damage in journal.damaged()] == [RUNS[0].id]
    assert journal.states() == {}


def test_vectors_of_a_million_kernels_are_passed_over(journal):
    ones = np.ones(10**6)
    record = dataclasses.replace(records(1)[0], weights=ones, kernels=np.arange(10**6))
    journal.append([record, records(2)[1]])
    reader = Journal(journal.path)
    tracemalloc.start()
    assert len(reader.states()) == len(reader.scan(len)) == 2
    assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    tracemalloc.stop()
    assert same(reader.read(record.id), record)


WRITER = """
import dataclasses, sys
from pathlib import Path
import numpy as np
from mkldist.results.journal import Journal
from tests.results.sweeps import made_up_plan, made_up_record

journal = Journal(Path(sys.argv[1]))
runs = made_up_plan(n_splits=200).runs
print("ready", flush=True)
for i, run in enumerate(runs):
    big = np.random.default_rng(i).normal(size=20_000 * (1 + i % 5))
    journal.append([dataclasses.replace(made_up_record(run), coefficients=big)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", quick([0.1, 0.02, 0.3]))
def test_a_writer_killed_at_any_moment_leaves_whole_records(journal, delay):
    root = Path(__file__).parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(journal.path)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 20
        while not journal.states() and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
    listed = journal.states()
    assert listed
    assert all(journal.read(run_id) is not None for run_id in listed)
    journal.append([RunRecord.failed(RUNS[0], "")])
    assert Journal(journal.path).damaged() == []


@pytest.mark.slow
def test_thirty_thousand_records_are_listed_at_once(journal):
    record = records(1)[0]
    for part in range(30):
        ids = (f"{part:08x}{i:08x}" for i in range(1000))
        journal.append(dataclasses.replace(record, id=run_id) for run_id in ids)
    reader = Journal(journal.path)
    assert len(reader.states()) == 30_000
    tracemalloc.start()
    assert len(reader.states()) == 30_000
    assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
    tracemalloc.stop()
