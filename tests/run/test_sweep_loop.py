"""The loop on tasks in this process: what it submits, waits for, records, and says of its work."""

import errno
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from mkldist.errors import (
    ClusterError,
    GramError,
    OutputError,
    StoreError,
    UnfitClusterError,
    UnreadableError,
    WorkerError,
)
from mkldist.fit.score import failed_record
from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.results.folder import AtWork, OutputFolder, read_work_note
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.run import cluster, record_queue, sweep_loop
from mkldist.run.cluster import ConnectOptions
from mkldist.run.local_workers import thread_worker
from mkldist.run.progress import Progress
from mkldist.run.record_queue import RecordReceiver, RecordSender, packed, queue_name, unpacked
from mkldist.run.sweep_loop import PendingTasks, StatusWriter, SweepLoop, _Pending
from mkldist.run.sweep_setup import BankKey, Work, batch_settings
from mkldist.run.tasks import BatchTask, Stage
from mkldist.run.work_queue import BatchItem, BuildItem
from tests.run.here import TEXT, Client, Failing, Future, SchedulerInMemory, kept, spec_of, sweep
from tests.run.sweeps import plan_of, records, run_here, sweep_text

WAITING = "waiting for another isolated run on its machine"
RUNS = tuple(RunPlan(f"r{i}", "d", "b", "b", 0, "uniform", "uniform", {}) for i in range(2))


@pytest.mark.parametrize(
    ("repeats", "workers", "at_once"),
    [
        (1, {"tcp://a:1": 4, "tcp://a:2": 4}, [1]),
        (3, {"tcp://a:1": 1, "tcp://a:2": 1}, [2, 2, 1]),
        (3, {"tcp://a:1": 1, "tcp://b:1": 1}, [1, 1, 1]),
    ],
)
def test_batches_know_how_many_share_a_machine(
    tmp_path, client, monkeypatch, repeats, workers, at_once
):
    monkeypatch.setattr(client, "nthreads", lambda: workers)
    text = sweep_text({"uniform": [1.0, 10.0]}, repeats=repeats, backend="recompute")
    assert sweep(text, tmp_path / "small").counts[RunState.COMPLETE] == 2 * repeats
    assert [task.n_at_once for task in client.tasks] == at_once


ONE_WORKER = ConnectOptions(n_workers=1)
MAPPED = sweep_text({"uniform": [1.0, 10.0]}, repeats=3, backend="mmap")


@pytest.mark.parametrize(
    ("text", "task", "error", "times"),
    [
        (MAPPED, "build", StoreError("bank", "no answer"), 2),
        (TEXT, "solve_batch", UnreadableError("bank", "no answer"), 1),
        (TEXT, "solve_batch", RuntimeError("killed"), 1),  # while it builds its bank
    ],
    ids=["build", "read", "death"],
)
def test_a_fault_that_passes_costs_no_run(tmp_path, client, monkeypatch, text, task, error, times):
    failing = Failing(monkeypatch, task, error, times)
    outcome = sweep(text, tmp_path / "small")
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (0, 6)
    assert failing.calls > times
    assert len(kept(tmp_path / "banks")) == 3


@pytest.mark.parametrize(
    ("text", "task"), [(MAPPED, "build"), (TEXT, "solve_batch")], ids=["tasks", "batches"]
)
def test_kernels_that_cannot_be_stored_are_not_tried_again(
    tmp_path, client, monkeypatch, text, task
):
    failing = Failing(monkeypatch, task, GramError("kernel 3", "not finite"), times=1)
    outcome = sweep(text, tmp_path / "small", connect_options=ONE_WORKER)
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (2, 4)
    assert failing.calls == 3
    assert len(kept(tmp_path / "banks")) == 2


def test_banks_are_built_by_the_batches_that_load_them(tmp_path, client):
    first = sweep(TEXT, tmp_path / "small", connect_options=ONE_WORKER)
    assert first.counts[RunState.COMPLETE] == 6
    assert [type(task) for task in client.tasks] == [BatchTask] * 3
    assert len(kept(tmp_path / "banks")) == 3
    more = TEXT.replace("10.0", "100.0").replace('"small"', '"more"')
    again = sweep(more, tmp_path / "more", connect_options=ONE_WORKER)
    assert again.counts[RunState.COMPLETE] == 6
    assert [task.builds for task in client.tasks] == [True] * 3 + [False] * 3


def test_blocks_of_a_task_that_died_are_not_waited_for(tmp_path, client, monkeypatch):
    real, begun = sweep_loop.solve_batch, []

    def solve_batch(task):
        begun.append(task)
        receipt = real(task)
        if len(begun) == 1:
            raise RuntimeError("killed")
        return receipt

    counted = []
    monkeypatch.setattr(sweep_loop, "solve_batch", solve_batch)
    monkeypatch.setattr(Progress, "show", lambda _, counts: counted.append(replace(counts)))
    sweep(TEXT, tmp_path / "small", connect_options=ONE_WORKER)
    assert counted[-1].bytes_done == counted[-1].bytes > 0


@pytest.mark.parametrize(("text", "task"), [(MAPPED, "build"), (TEXT, "solve_batch")])
@pytest.mark.parametrize(
    ("error", "raised"),
    [(UnreadableError("bank", "no answer"), UnreadableError), (OSError("no answer"), WorkerError)],
    ids=["disk", "machine"],
)
def test_runs_whose_medium_cannot_be_read_are_done_by_the_next_call(
    tmp_path, client, monkeypatch, text, task, error, raised
):
    failing = Failing(monkeypatch, task, error, times=10**9)
    with pytest.raises(raised, match="no answer; 6 runs left to do"):
        sweep(text, tmp_path / "small")
    assert Journal(tmp_path / "small" / "records.journal").states() == {}
    failing.times = 0
    outcome = sweep(text, tmp_path / "small")
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (0, 6)


@pytest.mark.parametrize("fault", [OSError(5, "Input/output error"), ImportError("no numba")])
def test_a_fault_of_the_machine_is_no_failed_run(tmp_path, client, monkeypatch, fault):
    def broken(*_):
        raise fault
        yield

    method = METHODS["uniform"]
    with monkeypatch.context() as patch:
        patch.setitem(vars(method), "solve", broken)
        with pytest.raises(WorkerError, match="6 runs left to do"):
            sweep(TEXT, tmp_path / "small")
    assert Journal(tmp_path / "small" / "records.journal").states() == {}
    outcome = sweep(TEXT, tmp_path / "small")
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (0, 6)


def test_runs_that_can_be_read_are_recorded_before_the_error_of_the_others(
    tmp_path, client, monkeypatch
):
    failing = Failing(monkeypatch, "solve_batch", UnreadableError("bank", "no answer"), times=4)
    # The batch of two runs, each of them alone, then the first of them; the last call does well.
    with pytest.raises(UnreadableError, match="1 run left to do"):
        sweep(sweep_text({"uniform": [1.0, 10.0]}, repeats=1), tmp_path / "small")
    assert failing.calls == 5
    assert len(Journal(tmp_path / "small" / "records.journal").states()) == 1


def test_a_receipt_that_is_lost_with_its_worker_is_no_reason_to_end(tmp_path, client, monkeypatch):
    lost: list[str] = []

    def result(future, timeout=None):
        if not lost and future.key.startswith("solve"):
            lost.append(future.key)
            raise TimeoutError
        return future.outcome

    monkeypatch.setattr(Future, "result", result)
    outcome = sweep(TEXT, tmp_path / "small")
    assert lost
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (0, 6)


@pytest.mark.slow
def test_batches_are_divided_among_the_threads_of_the_scheduler(tmp_path, client):
    text = sweep_text({"uniform": [1.0]}, repeats=12, fit="all")
    client.n_threads = 2
    sweep(text, tmp_path / "two", connect_options=ConnectOptions("tcp://elsewhere"))
    batches = [task for task in client.tasks if hasattr(task, "runs")]
    assert [len(batch.runs) for batch in batches] == [3] * 4
    client.n_threads, client.tasks = 100, []
    sweep(text, tmp_path / "many", connect_options=ConnectOptions("tcp://elsewhere"))
    batches = [task for task in client.tasks if hasattr(task, "runs")]
    assert [len(batch.runs) for batch in batches] == [1] * 12


def through_the_queue(monkeypatch, change):
    """Have batches send their records as `change` says, in place of returning them."""
    real, tasks = sweep_loop.solve_batch, list[BatchTask]()

    def solve_batch(task):
        tasks.append(task)
        receipt = real(task)
        for content in change(len(tasks), receipt.records):
            records = {unpacked(content).id: content}
            task.settings.queue.put({"task": task.key, "stage": "", "records": records})
        return replace(receipt, records=(), n_sent=len(receipt.records))

    monkeypatch.setattr(sweep_loop, "solve_batch", solve_batch)
    return tasks


def times_done(tasks) -> Counter[str]:
    return Counter(run.id for task in tasks for run in task.runs)


def test_runs_that_a_batch_sent_before_it_died_are_not_done_again(tmp_path, client, monkeypatch):
    def dying(number, records):
        yield from records[:1] if number == 1 else records
        if number == 1:
            raise RuntimeError("died")

    tasks = through_the_queue(monkeypatch, dying)
    outcome = sweep(TEXT, tmp_path / "small")
    assert (outcome.computed, outcome.failed) == (6, 0)
    assert sorted(times_done(tasks).values()) == [1] * 5 + [2]


def test_records_that_are_lost_on_their_way_are_computed_again(tmp_path, client, monkeypatch):
    tasks = through_the_queue(monkeypatch, lambda number, records: records[number == 1 :])
    outcome = sweep(TEXT, tmp_path / "small")
    assert (outcome.computed, outcome.failed) == (6, 0)
    assert sorted(times_done(tasks).values()) == [1] * 5 + [2]


def test_a_record_that_comes_twice_is_dropped_and_a_complete_one_replaces_a_failed_one(
    tmp_path, client, monkeypatch
):
    def twice(number, records):  # as of workers that were thought lost
        for content in records:
            record = unpacked(content)
            failed = packed(replace(record, state=RunState.FAILED, error="died"))
            again = packed(replace(record, objective=0.0))
            yield from (failed, content, failed, again)

    through_the_queue(monkeypatch, twice)
    outcome = sweep(TEXT, tmp_path / "small")
    assert (outcome.computed, outcome.failed) == (6, 0)
    found = records(tmp_path / "small").values()
    assert [(one.state, one.objective != 0.0) for one in found] == [(RunState.COMPLETE, True)] * 6


def test_records_of_runs_that_are_not_asked_for_any_more_are_kept(tmp_path, client, monkeypatch):
    sweep(TEXT.replace("[1.0, 10.0]", "[3.0, 30.0]"), tmp_path / "other" / "small")
    others = [*map(packed, records(tmp_path / "other" / "small").values())]

    def with_others(number, records):
        return [*others, *records]

    through_the_queue(monkeypatch, with_others)
    outcome = sweep(TEXT, tmp_path / "small")
    assert (outcome.computed, outcome.waiting) == (6, 0)
    assert len(records(tmp_path / "small")) == 6 + len(others)


def test_runs_of_batches_that_end_before_an_interrupt_is_heard_are_recorded(
    tmp_path, client, monkeypatch
):
    real = SweepLoop._submit

    def interrupted(loop):
        real(loop)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SweepLoop, "_submit", interrupted)
        with pytest.raises(KeyboardInterrupt, match="2 of 6 runs are recorded"):
            sweep(TEXT, tmp_path / "small")
    assert sweep(TEXT, tmp_path / "small").computed == 4


def test_records_that_cannot_be_written_end_the_sweep(tmp_path, client, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", full)
        with pytest.raises(OutputError, match="found no space left"):
            sweep(TEXT, tmp_path / "small")
    assert sweep(TEXT, tmp_path / "small").computed == 6


@pytest.mark.parametrize(
    ("threads", "items", "stages", "doing"),
    [
        (0, [], {}, "waiting for workers"),
        (2, [], {}, ""),
        (2, [BuildItem("b", (0,))], {}, "building banks"),
        (
            2,
            [BuildItem("b", (0,)), BuildItem("b", (2,))],
            {"b from block 0": WAITING, "b from block 2": WAITING},
            WAITING,
        ),
        (2, [BatchItem("b", RUNS[:1])], {"r0": WAITING}, WAITING),
        (2, [BatchItem("b", RUNS[:1])], {"r0": "compiling"}, "compiling"),
        (2, [BatchItem("b", RUNS[:1])], {"r0": "reading banks", "r1": "solving"}, "reading banks"),
        (
            3,
            [BuildItem("b", (0,)), BatchItem("c", RUNS[:1]), BatchItem("c", RUNS[1:])],
            {"r0": "compiling", "r1": "solving"},
            "building banks and compiling and solving",
        ),
    ],
)
def test_the_progress_says_what_tasks_are_doing(tmp_path, client, threads, items, stages, doing):
    folder = OutputFolder(tmp_path)
    store = Journal(folder.records)
    work = Work({}, (), batch_settings(spec_of(TEXT)))
    client.n_threads = threads
    loop = SweepLoop(client, work, store, Progress())
    for i, item in enumerate(items):
        loop._tasks._pending[str(i)] = _Pending(item, len, "", 0.0, future=Future("", len, ""))
    for task, stage in stages.items():
        client.messages.put({"task": task, "stage": stage, "records": {}})
    loop._receive([])
    loop._housekeep()
    assert loop.counts.doing == doing


def test_a_cache_that_could_not_be_locked_is_told_once(tmp_path, client, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(Progress, "note", lambda _, line: said.append(line))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    for execution in ("shared", "isolated"):
        text = sweep_text({"uniform": [1.0, 10.0]}, repeats=3, execution=execution)
        with monkeypatch.context() as patch:
            patch.setattr("mkldist.run.tasks.make_folder", refuse)
            assert sweep(text, tmp_path / execution).counts[RunState.COMPLETE] == 6
        assert said.count(sweep_loop.UNLOCKED) == (execution == "isolated")


def test_a_small_sweep_is_done_by_a_thread_and_one_with_workers_by_processes(tmp_path, monkeypatch):
    chosen = []

    def noting(options: ConnectOptions) -> Iterator[Client]:
        chosen.append(options)
        return nullcontext(Client())

    monkeypatch.setattr(ConnectOptions, "connect", noting)
    monkeypatch.setattr(cluster, "n_processors", lambda: 2)
    for number, options in enumerate((None, ConnectOptions(n_workers=1))):
        sweep(TEXT, tmp_path / str(number), connect_options=options)
    assert [(one.in_this_process, one.n_workers) for one in chosen] == [(True, 2), (False, 1)]


@pytest.mark.slow
def test_a_small_sweep_starts_no_process_and_imports_no_cluster(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    program = (
        "import os, sys\n"
        "from mkldist.cli import command\n"
        "words = ['sweep', sys.argv[1], '--output', sys.argv[2], '--quiet']\n"
        "command.main(words, standalone_mode=False)\n"
        "from pathlib import Path\n"
        "children = Path(f'/proc/self/task/{os.getpid()}/children').read_text()\n"
        "heavy = sorted({'distributed', 'bokeh'} & set(sys.modules))\n"
        "print('children:', children, 'imported:', *heavy)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(file), str(tmp_path / "small")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].split() == ["children:", "imported:"]
    assert set(Journal(tmp_path / "small" / "records.journal").states().values()) == {
        RunState.COMPLETE
    }


def test_runs_without_a_record_are_counted(tmp_path, client, monkeypatch):
    real, lost = Journal.append, list[str]()

    def append(store, records):
        first, *others = records
        real(store, [first, *others])
        if not lost:
            lost.append(first.id)
            store.remove(lost)

    monkeypatch.setattr(Journal, "append", append)
    outcome = sweep(TEXT, tmp_path / "small")
    assert outcome.waiting == 1
    assert outcome.counts[RunState.COMPLETE] == 5


@pytest.mark.slow
def test_a_sweep_at_work_is_told_and_banks_are_counted_as_they_are_built(tmp_path, monkeypatch):
    """A bank that its batch builds is complete when the batch begins to solve."""
    told, counted = [], []
    monkeypatch.setattr("mkldist.run.sweep_loop.EVERY_SECONDS", 0.0)
    monkeypatch.setattr("mkldist.run.sweep_loop.WAIT_SECONDS", 0.001)  # no task ends so soon
    monkeypatch.setattr(
        "mkldist.run.sweep_loop.write_work_note", lambda folder, at_work: told.extend(at_work)
    )

    class Watching(Progress):
        def show(self, counts):
            counted.append((counts.runs_done, len(counts.built), counts.banks))

    monkeypatch.setattr("mkldist.run.sweep.make_progress", lambda console: Watching())
    outcome = run_here(sweep_text({"level": [1.0, 100.0]}, repeats=3), tmp_path / "out", None)
    assert outcome.computed == 6
    assert {one.place for one in told} >= {"two_moons/level"}
    assert {one.doing for one in told} <= {"starting", *(stage.value for stage in Stage)}
    assert counted[-1] == (6, 3, 3)
    assert all(n_built >= runs_done / 2 for runs_done, n_built, _ in counted)
    assert not (tmp_path / "out" / ".work.json").exists()


PLAN = plan_of(sweep_text({"level": [1.0, 10.0], "uniform": [1.0]}, repeats=2))
BANKS = [BankKey(bank.id, bank.spec.label, bank.dataset) for bank in PLAN.banks]


@pytest.fixture
def now(monkeypatch):
    """Seconds of the clock, to be set."""
    seconds = [0.0]
    monkeypatch.setattr("mkldist.run.sweep_loop.time.monotonic", lambda: seconds[0])
    return seconds


def batch(split):
    runs = tuple(run for run in PLAN.runs if run.split == split)
    return BatchItem(runs[0].bank, runs)


def test_runs_are_told_by_method_without_those_recorded(tmp_path, now):
    first, second = batch(0), batch(1)
    writer = StatusWriter(tmp_path, BANKS)
    recorded = {run.id for run in first.runs if run.params["C"] == 10.0 or run.key == "uniform"}
    begun = [(first, 5.0), (second, 3.0), (BuildItem(BANKS[0].id, (0, 1)), 4.0)]
    writer.write(begun, {first.key: "solving", second.key: "solving"}, recorded)
    assert read_work_note(tmp_path) == [
        AtWork("two_moons/level", "solving", 3.0, 3),
        AtWork("two_moons/uniform", "solving", 3.0, 1),
        AtWork("two_moons/bank", "building the bank", 4.0),
    ]
    writer.end()
    assert not list(tmp_path.iterdir())


def test_the_bank_is_named_where_there_are_several(tmp_path, now):
    item = batch(0)
    banks = [*BANKS, BankKey("id", "other", "two_moons")]
    StatusWriter(tmp_path, banks).write([(item, 0.0)], {}, ())
    assert [(one.place, one.doing) for one in read_work_note(tmp_path)] == [
        ("two_moons/bank/level", "starting"),
        ("two_moons/bank/uniform", "starting"),
    ]


def test_notes_are_written_when_something_has_changed_and_not_too_often(tmp_path, now, monkeypatch):
    written = []
    monkeypatch.setattr(
        "mkldist.run.sweep_loop.write_work_note", lambda folder, at_work: written.append(at_work)
    )
    writer, item = StatusWriter(tmp_path, BANKS), batch(0)
    for seconds, stage in [(0.0, "a"), (0.5, "b"), (1.5, "b"), (3.0, "b"), (5.0, "c")]:
        now[0] = seconds
        writer.write([(item, 0.0)], {item.key: stage}, ())
    assert [one[0].doing for one in written] == ["a", "b", "c"]


ITEM = BuildItem("bank", (0,))


class Ended:
    """A task that ended with a status and a result."""

    def __init__(self, key: str, status: str, result: object) -> None:
        self.key, self.status, self._result, self.released = key, status, result, False

    def add_done_callback(self, tell):
        tell(self)

    def result(self, timeout=None):
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def exception(self):
        return self._result

    def release(self):
        self.released = True


class Ending:
    """A cluster whose tasks end at once."""

    def __init__(self, ending=("finished", "receipt"), **threads: int) -> None:
        self.status, self.ending, self.futures = "running", ending, []
        self.threads = {f"tcp://{name.replace('_', ':')}": n for name, n in threads.items()}

    def nthreads(self):
        return self.threads

    def submit(self, function, task, key, pure, workers=None):
        self.allowed = workers
        self.futures.append(Ended(key, *self.ending))
        return self.futures[-1]

    def cancel(self, futures, force):
        self.cancelled = list(futures)


def outcome_of(client: Ending):
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    [outcome] = tasks.wait(0.0)
    return outcome


def build(task):
    raise AssertionError("the client of these tests calls nothing")


def test_there_is_room_for_one_task_for_every_thread():
    tasks = PendingTasks(Ending(a_1=1, a_2=2, b_1=1))
    assert (tasks.n_threads, tasks.threads_of_a_machine) == (4, 3)
    for n in range(4):
        assert (len(tasks), tasks.has_room) == (n, True)
        tasks.submit(ITEM, build, "task")
    assert not tasks.has_room


def test_a_machine_that_does_one_task_at_a_time_has_one_worker_and_keeps_it():
    client = Ending(a_1=1, a_2=2, b_1=4)
    tasks = PendingTasks(client, one_a_machine=True)
    assert (tasks.n_threads, tasks.threads_of_a_machine) == (2, 1)
    client.threads = {"tcp://a:0": 1, "tcp://c:1": 1, **client.threads}
    tasks._refreshed = float("-inf")
    for n in range(3):
        assert (len(tasks), tasks.has_room) == (n, True)
        tasks.submit(ITEM, build, "task")
        assert client.allowed == ["tcp://a:1", "tcp://b:1", "tcp://c:1"]
    assert not tasks.has_room


def test_a_task_whose_workers_have_gone_is_given_to_the_next_of_the_machine():
    client = Ending(a_1=1, a_2=1)
    tasks = PendingTasks(client, one_a_machine=True)
    assert tasks.has_room
    tasks.submit(ITEM, build, "task")
    assert client.allowed == ["tcp://a:1"]
    client.threads = {"tcp://a:2": 1, "tcp://a:3": 1}
    tasks._refreshed = float("-inf")
    assert not tasks.has_room
    assert client.allowed == ["tcp://a:2"]
    assert [future.key for future in client.cancelled] == [client.futures[0].key]


def test_a_receipt_is_taken_and_its_future_released():
    client = Ending()
    outcome = outcome_of(client)
    assert (outcome.item, outcome.receipt, outcome.error) == (ITEM, "receipt", None)
    assert client.futures[0].released


def test_a_task_of_whose_end_nothing_tells_is_found(monkeypatch):
    """Dask starts a thread to tell, which a limit of memory may forbid."""
    monkeypatch.setattr(Ended, "add_done_callback", lambda future, tell: None)
    tasks = PendingTasks(Ending())
    tasks.submit(ITEM, build, "task")
    outcomes = tasks.wait(0.0) + tasks.wait(0.0)
    assert [one.receipt for one in outcomes] == ["receipt"]
    assert (len(tasks), tasks.wait(0.0)) == (0, [])


def test_the_error_of_a_task_is_its_outcome():
    error = ValueError("no")
    assert outcome_of(Ending(("error", error))).error is error


@pytest.mark.parametrize("ending", [("lost", None), ("finished", TimeoutError())])
def test_a_receipt_that_is_lost_with_its_worker_is_an_error_of_the_task(ending):
    assert "worker was lost" in str(outcome_of(Ending(ending)).error)


@pytest.mark.parametrize("ending", [("lost", None), ("finished", TimeoutError())])
def test_a_lost_scheduler_is_an_error_of_the_cluster(ending):
    client = Ending(ending)
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    client.status = "closed"
    with pytest.raises(ClusterError, match="a lost connection"):
        tasks.wait(0.0)
    with pytest.raises(ClusterError, match="a lost connection"):
        PendingTasks(client).wait(0.0)


def test_a_connection_that_breaks_while_workers_are_counted_is_an_error_of_the_cluster():
    class Broken(Ending):
        def nthreads(self):
            raise OSError("Stream is closed")

        def cancel(self, futures, force):
            raise OSError("Stream is closed")

    tasks = PendingTasks(Broken())
    tasks.submit(ITEM, build, "task")
    with pytest.raises(ClusterError, match="a lost connection"):
        tasks.has_room  # noqa: B018, it asks for the workers
    tasks.cancel()
    assert len(tasks) == 0


def test_a_worker_that_could_not_begin_a_task_is_an_error_of_the_cluster():
    error = UnfitClusterError("worker", "version 1 of numpy", "version 2")
    with pytest.raises(UnfitClusterError, match="version 1 of numpy; expected version 2"):
        outcome_of(Ending(("error", error)))


def test_a_task_that_an_unfit_worker_was_given_is_begun_again_where_others_are_admitted():
    class Admitting:
        def usable(self, there):
            return there

    class Choosing(Ending):
        def submit(self, function, task, key, pure, workers):
            assert workers == ["tcp://a:1"]
            return super().submit(function, task, key, pure)

    error = UnfitClusterError("worker", "version 1 of numpy", "version 2")
    client = Choosing(("error", error), a_1=1)
    tasks = PendingTasks(client, Admitting())
    assert tasks.n_threads == 1
    tasks.submit(ITEM, build, "task")
    client.ending = ("finished", "receipt")
    assert [one.receipt for one in tasks.wait(0.0)] == ["receipt"]
    assert (len(client.futures), len(tasks)) == (2, 0)


def test_a_task_that_found_no_coordinator_is_begun_again():
    client = Ending(("error", ClusterError("scheduler", "no coordinator", "one")), a_1=1)
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    client.ending = ("finished", "receipt")
    assert [one.receipt for one in [*tasks.wait(0.0), *tasks.wait(0.0)]] == ["receipt"]
    assert len(client.futures) == 2


def test_what_ended_before_an_error_of_the_cluster_counts():
    client = Ending(a_1=2)
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    client.ending = ("error", UnfitClusterError("worker", "version 1 of numpy", "version 2"))
    tasks.submit(ITEM, build, "task")
    assert [one.receipt for one in tasks.wait(0.0)] == ["receipt"]
    with pytest.raises(UnfitClusterError, match="version 1 of numpy"):
        tasks.wait(0.0)


def test_all_tasks_in_flight_are_cancelled():
    client = Ending(a_1=2)
    tasks = PendingTasks(client)
    for _ in range(2):
        tasks.submit(ITEM, build, "task")
    tasks.cancel()
    assert client.cancelled == client.futures
    assert len(tasks) == 0


def doubled(task):
    if task is None:
        raise ValueError("nothing to double")
    return 2 * task


def test_outcomes_are_those_of_the_tasks_in_their_order():
    with thread_worker() as client:
        tasks = PendingTasks(client)
        assert (tasks.n_threads, tasks.threads_of_a_machine) == (1, 1)
        tasks.submit(ITEM, doubled, 4)
        assert not tasks.has_room
        [outcome] = tasks.wait(10.0)
        assert (outcome.item, outcome.receipt, outcome.error) == (ITEM, 8, None)
        tasks.submit(ITEM, doubled, None)
        [outcome] = tasks.wait(10.0)
        assert repr(outcome.error) == "ValueError('nothing to double')"
        assert tasks.wait(0.0) == []


def test_what_has_not_begun_can_be_cancelled():
    done, go = [], threading.Event()
    with thread_worker() as client:
        client.submit(lambda _: go.wait(10.0), None, key="first", pure=False)
        waiting = client.submit(done.append, 1, key="second", pure=False)
        client.cancel([waiting], force=True)
        go.set()
    assert (waiting.status, done) == ("cancelled", [])


def test_an_interrupt_does_not_wait_for_the_task():
    go, tasks = threading.Event(), []

    def interrupted() -> None:
        with thread_worker() as client:
            tasks.append(client)
            tasks.append(client.submit(lambda _: go.wait(60.0), None, key="a", pure=False))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [one.status for one in tasks] == ["closed", "pending"]
    go.set()


THREE = tuple(RunPlan(f"r{i}", "d", "b", "b", 0, "uniform", "uniform", {}) for i in range(3))
RECORDS = [failed_record(run, "no solution", 4) for run in THREE]


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> SchedulerInMemory:
    return SchedulerInMemory().install(monkeypatch)


@pytest.fixture
def receiver(scheduler: SchedulerInMemory, tmp_path: Path) -> RecordReceiver:
    return RecordReceiver(scheduler, tmp_path / "out")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks send whatever they have."""
    monkeypatch.setattr(record_queue, "SEND_BYTES", 1)


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
    monkeypatch.setattr(record_queue, "SEND_SECONDS", 60.0)
    for queue in (None, SimpleQueue(), receiver.queue):
        with RecordSender(queue, "r0") as sender:
            sender.begin("solving")
            for record in RECORDS:
                sender.add(record)
            left = sender.rest()
        assert (ids(left), sender.n_sent) == (["r0", "r1", "r2"], 0)
    assert list(receiver.take()) == []


def test_a_task_that_lasts_sends_what_it_does_and_the_records_that_it_has(monkeypatch):
    monkeypatch.setattr(record_queue, "SEND_SECONDS", 0.01)
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
