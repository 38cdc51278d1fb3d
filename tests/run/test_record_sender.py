"""Records on their way from a task to the coordinator, in this process or through Dask."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from mkldist.errors import ClusterError
from mkldist.fit.score import failed_record
from mkldist.planning.model import RunPlan
from mkldist.run import record_queue as record_sender
from mkldist.run.record_queue import RecordReceiver, RecordSender, queue_name, unpacked
from tests.run.scheduler_in_memory import SchedulerInMemory

RUNS = tuple(RunPlan(f"r{i}", "d", "b", "b", 0, "uniform", "uniform", {}) for i in range(3))
RECORDS = [failed_record(run, "no solution", 4) for run in RUNS]


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> SchedulerInMemory:
    return SchedulerInMemory().install(monkeypatch)


@pytest.fixture
def receiver(scheduler: SchedulerInMemory, tmp_path: Path) -> RecordReceiver:
    return RecordReceiver(scheduler, tmp_path / "out")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks send whatever they have."""
    monkeypatch.setattr(record_sender, "SEND_BYTES", 1)


def ids(contents) -> list[str]:
    return [unpacked(content).id for content in contents]


def received(receiver: RecordReceiver, n_records: int) -> list[str]:
    """Return the runs of the next records, for which it waits."""
    found: list[str] = []
    end = time.monotonic() + 60.0
    while len(found) < n_records:
        assert time.monotonic() < end
        for message in receiver.take():
            found += ids(message["records"].values())
    return found


def test_a_task_that_ends_soon_returns_its_records_and_sends_none(receiver, monkeypatch):
    monkeypatch.setattr(record_sender, "SEND_SECONDS", 60.0)
    for queue in (None, SimpleQueue(), receiver.queue):
        with RecordSender(queue, "r0") as sender:
            sender.begin("solving")
            for record in RECORDS:
                sender.add(record)
            left = sender.rest()
        assert (ids(left), sender.n_sent) == (["r0", "r1", "r2"], 0)
    assert list(receiver.take()) == []


def test_a_task_that_lasts_sends_what_it_does_and_the_records_that_it_has(monkeypatch):
    monkeypatch.setattr(record_sender, "SEND_SECONDS", 0.01)
    queue = SimpleQueue()
    with RecordSender(queue, "r0") as sender:
        sender.begin("compiling")
        assert queue.get(timeout=60) == {"task": "r0", "stage": "compiling", "records": {}}
        sender.add(RECORDS[0])
        message = queue.get(timeout=60)
        assert (message["stage"], ids(message["records"].values())) == ("", ["r0"])
        assert (sender.rest(), sender.n_sent) == ((), 1)


def test_records_that_are_much_are_sent_at_once_and_no_more_of_them_are_kept(at_once):
    queue = SimpleQueue()
    with RecordSender(queue, "r0") as sender:
        for record in RECORDS:
            sender.add(record)
        left = sender.rest()
    sent = []
    while not queue.empty():
        sent += ids(queue.get()["records"].values())
    assert sent + ids(left) == ["r0", "r1", "r2"]
    assert sender.n_sent == len(sent) >= 2


def test_what_was_sent_is_not_done_again_by_a_second_worker(scheduler, receiver):
    with RecordSender(receiver.queue, "r0") as sender:
        assert sender.already_sent() == set()
    die_with(receiver.queue, RECORDS[0])
    assert received(receiver, 1) == ["r0"]
    with RecordSender(receiver.queue, "r0") as sender:
        assert (sender.already_sent(), sender.n_sent) == ({"r0"}, 1)  # to be taken at its end
    receiver.forget(["r0"])
    with RecordSender(receiver.queue, "r0") as sender:
        assert sender.already_sent() == set()
    receiver.close()
    assert (scheduler.n_open, scheduler.marks[receiver.queue.name]) == (0, {})


def die_with(queue, record) -> None:
    """Have a task end in an error that has a record."""
    with suppress(OSError), RecordSender(queue, "r0") as sender:
        sender.add(record)
        raise OSError("no answer")


def test_a_task_that_ends_in_an_error_sends_the_records_that_it_has(receiver):
    die_with(receiver.queue, RECORDS[0])
    assert received(receiver, 1) == ["r0"]


def test_a_coordinator_that_resumes_takes_what_was_sent_to_the_one_before(
    scheduler, receiver, tmp_path
):
    die_with(receiver.queue, RECORDS[0])
    second = RecordReceiver(scheduler, tmp_path / "out")  # the first was killed
    assert received(second, 1) == ["r0"]
    with RecordSender(second.queue, "r0") as sender:
        assert sender.already_sent() == set()  # the first may have taken one and not written it
    assert queue_name(tmp_path / "other") != second.queue.name


def test_a_task_of_a_killed_coordinator_ends_when_another_resumes(
    scheduler, receiver, tmp_path, at_once
):
    with RecordSender(receiver.queue, "r0") as sender:
        sender.add(RECORDS[0])
        assert received(receiver, 1) == ["r0"]
        second = RecordReceiver(scheduler, tmp_path / "out")
        with suppress(ClusterError):
            while True:
                sender.add(RECORDS[1])
        with pytest.raises(ClusterError, match="resumed"):
            sender.rest()
    assert "r1" in received(second, 1)


def test_a_coordinator_that_takes_nothing_ends_its_tasks(scheduler, receiver, monkeypatch, at_once):
    from distributed import Queue

    def full(queue, message, timeout):
        raise TimeoutError

    monkeypatch.setattr(Queue, "put", full)
    with RecordSender(receiver.queue, "r0") as sender:
        with suppress(ClusterError):
            while True:
                sender.add(RECORDS[0])
        with pytest.raises(ClusterError, match="no coordinator that takes records"):
            sender.rest()
