"""The loop on tasks in this process, with `sweep_setup`, `task_errors` and `work`."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest

from mkldist.errors import GramError, OutputError, StoreError, UnreadableError
from mkldist.planning.model import RunPlan
from mkldist.results.folder import OutputFolder
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.run import cluster
from mkldist.run import sweep_loop as loop_module
from mkldist.run.cluster import ConnectOptions
from mkldist.run.progress import SilentProgress
from mkldist.run.record_queue import packed, unpacked
from mkldist.run.sweep_loop import SweepLoop, _Pending
from mkldist.run.sweep_setup import Work, batch_settings
from mkldist.run.tasks import BatchTask, Stage
from mkldist.run.work_queue import BatchItem, BuildItem
from tests.run.here import TEXT, Client, Failing, Future, kept, spec_of, sweep
from tests.run.sweeps import records, run_here, solutions, sweep_text

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


def test_a_store_that_does_not_answer_a_while_costs_no_run(tmp_path, client, monkeypatch):
    failing = Failing(monkeypatch, "build", StoreError("bank", "no answer"), times=2)
    outcome = sweep(MAPPED, tmp_path / "small")
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (0, 6)
    assert failing.calls == 5


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


def test_a_batch_that_dies_while_it_builds_is_tried_again(tmp_path, client, monkeypatch):
    Failing(monkeypatch, "solve_batch", RuntimeError("killed"), times=1)
    assert sweep(TEXT, tmp_path / "small").counts[RunState.COMPLETE] == 6
    assert len(kept(tmp_path / "banks")) == 3


def test_blocks_of_a_task_that_died_are_not_waited_for(tmp_path, client, monkeypatch):
    real, begun = loop_module.solve_batch, []

    def solve_batch(task):
        begun.append(task)
        receipt = real(task)
        if len(begun) == 1:
            raise RuntimeError("killed")
        return receipt

    counted = []
    monkeypatch.setattr(loop_module, "solve_batch", solve_batch)
    monkeypatch.setattr(SilentProgress, "show", lambda _, counts: counted.append(replace(counts)))
    sweep(TEXT, tmp_path / "small", connect_options=ONE_WORKER)
    assert counted[-1].bytes_done == counted[-1].bytes > 0


def test_batches_that_cannot_read_are_tried_again(tmp_path, client, monkeypatch):
    Failing(monkeypatch, "solve_batch", UnreadableError("bank", "no answer"), times=1)
    outcome = sweep(TEXT, tmp_path / "small")
    assert (outcome.failed, outcome.counts[RunState.COMPLETE]) == (0, 6)


@pytest.mark.parametrize(("text", "task"), [(MAPPED, "build"), (TEXT, "solve_batch")])
def test_runs_whose_medium_cannot_be_read_are_done_by_the_next_call(
    tmp_path, client, monkeypatch, text, task
):
    failing = Failing(monkeypatch, task, UnreadableError("bank", "no answer"), times=10**9)
    with pytest.raises(UnreadableError, match="no answer; 6 runs left to do"):
        sweep(text, tmp_path / "small")
    assert Journal(tmp_path / "small" / "records.journal").states() == {}
    failing.times = 0
    outcome = sweep(text, tmp_path / "small")
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
    real, tasks = loop_module.solve_batch, list[BatchTask]()

    def solve_batch(task):
        tasks.append(task)
        receipt = real(task)
        for content in change(len(tasks), receipt.records):
            records = {unpacked(content).id: content}
            task.settings.queue.put({"task": task.key, "stage": "", "records": records})
        return replace(receipt, records=(), n_sent=len(receipt.records))

    monkeypatch.setattr(loop_module, "solve_batch", solve_batch)
    return tasks


def times_done(tasks) -> Counter[str]:
    return Counter(run.id for task in tasks for run in task.runs)


def test_what_a_batch_sends_is_recorded_as_what_it_returns(tmp_path, client, monkeypatch):
    sweep(TEXT, tmp_path / "returned" / "small")
    tasks = through_the_queue(monkeypatch, lambda _, records: records)
    assert sweep(TEXT, tmp_path / "small").computed == 6
    assert solutions(tmp_path / "small") == solutions(tmp_path / "returned" / "small")
    assert set(times_done(tasks).values()) == {1}


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
    loop = SweepLoop(client, work, store, SilentProgress())
    for i, item in enumerate(items):
        loop._tasks._pending[str(i)] = _Pending(item, len, "", 0.0, future=Future("", len, ""))
    for task, stage in stages.items():
        client.messages.put({"task": task, "stage": stage, "records": {}})
    loop._receive([])
    loop._housekeep()
    assert loop.counts.doing == doing


def test_a_cache_that_could_not_be_locked_is_told_once(tmp_path, client, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(SilentProgress, "note", lambda _, line: said.append(line))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    for execution in ("shared", "isolated"):
        text = sweep_text({"uniform": [1.0, 10.0]}, repeats=3, execution=execution)
        with monkeypatch.context() as patch:
            patch.setattr("mkldist.run.tasks.make_folder", refuse)
            assert sweep(text, tmp_path / execution).counts[RunState.COMPLETE] == 6
        assert said.count(loop_module.UNLOCKED) == (execution == "isolated")


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


def test_a_sweep_at_work_is_told_and_banks_are_counted_as_they_are_built(tmp_path, monkeypatch):
    """A bank that its batch builds is complete when the batch begins to solve."""
    told, counted = [], []
    monkeypatch.setattr("mkldist.run.sweep_loop.EVERY_SECONDS", 0.0)
    monkeypatch.setattr("mkldist.run.sweep_loop.WAIT_SECONDS", 0.001)  # no task ends so soon
    monkeypatch.setattr(
        "mkldist.run.sweep_loop.write_work_note", lambda folder, at_work: told.extend(at_work)
    )

    class Watching(SilentProgress):
        def show(self, counts):
            counted.append((counts.runs_done, len(counts.built), counts.banks))

    monkeypatch.setattr("mkldist.run.sweep.make_progress", lambda console: Watching())
    outcome = run_here(sweep_text({"level": [1.0, 100.0]}, repeats=3), tmp_path / "out", None)
    assert outcome.computed == 6
    assert {one.place for one in told} >= {"two_moons/level"}
    assert {one.doing for one in told} <= {"starting", *(stage.value for stage in Stage)}
    assert all(set(one.params["C"]) <= {1.0, 100.0} for one in told)
    assert counted[-1] == (6, 3, 3)
    assert all(n_built >= runs_done / 2 for runs_done, n_built, _ in counted)
    assert not (tmp_path / "out" / ".work.json").exists()
