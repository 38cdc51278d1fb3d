"""Real kills, full disks, flipped bits and interrupts in a sweep; the same results after all."""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import xarray as xr

import mkldist
from mkldist.analysis.comparison import agreement
from mkldist.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED_RUNS,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    OutputError,
)
from mkldist.results.schema import RunState
from mkldist.results.status import sweep_status, traceback_of
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from tests.run.damage import values_of
from tests.run.sweeps import (
    MISBEHAVING,
    kill_after,
    misbehaving_methods,
    record_times,
    records,
    run_here,
    run_process,
    running_process,
    sweep_text,
    wait_until,
    workers_of,
)

GRID = [float(c) for c in range(1, 9)]


def test_a_solver_that_raises_is_a_recorded_result_and_the_others_finish(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    with misbehaving_methods():
        text = sweep_text({"raising": [1.0, 10.0], "uniform": [1.0]})
        outcome = run_here(text, output, scheduler)
        assert outcome.counts[RunState.FAILED] == outcome.failed == 2
        assert outcome.counts[RunState.COMPLETE] == 4
        failed = [r for r in records(output).values() if r.state is RunState.FAILED]
        assert {r.error for r in failed} == {"ArithmeticError: no solution for C = 10"}
        status = sweep_status(output)
        assert all("misbehaving.py" in traceback_of(status, run) for run in status.failed)
        again = run_here(text, output, scheduler)
        assert (again.computed, again.failed) == (0, 2)
        before = record_times(output)
        retried = run_here(text, output, scheduler, retry_failed=True)
        assert (retried.computed, retried.skipped, retried.failed) == (2, 4, 2)
        after = record_times(output)
        assert sum(after[name] != when for name, when in before.items()) == 2


@pytest.mark.slow
def test_failed_runs_show_in_the_exit_code(tmp_path):
    output = tmp_path / "small"
    code, said = run_process(sweep_text({"raising": [1.0, 10.0]}, repeats=1), output)
    assert code == EXIT_FAILED_RUNS, said
    assert "no solution for C = 10" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_run_that_kills_its_worker_fails_alone(tmp_path):
    output = tmp_path / "out" / "small"
    with misbehaving_methods():
        text = sweep_text({"killing": [1.0, 10.0], "uniform": [1.0, 10.0]}, repeats=1)
        outcome = run_here(text, output, None)
    assert outcome.counts[RunState.COMPLETE] == 3
    [failed] = [r for r in records(output).values() if r.state is RunState.FAILED]
    assert (failed.method, failed.params["C"]) == ("killing", 10.0)
    assert "worker process died" in failed.error


ISOLATED = sweep_text({"slow": GRID}, execution="isolated", repeats=1)


def assert_resumed(text: str, output: Path) -> str:
    """Do the rest of a sweep of eight runs, and none of those recorded again; return its output."""
    before = record_times(output)
    code, said = run_process(text, output)
    assert code == 0, said
    after = record_times(output)
    assert len(after) == len(GRID)
    assert {name: after[name] for name in before} == before
    return said


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_nothing_that_was_recorded(tmp_path):
    output = tmp_path / "small"
    with running_process(ISOLATED, output, "--workers", "1") as process:
        wait_until(lambda: len(record_times(output)) >= 2, "two runs are recorded", process)
        [worker] = workers_of(process)
        worker.kill()
        before = record_times(output)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    after = record_times(output)
    assert {name: after[name] for name in before} == before
    found = records(output).values()
    assert [run.state for run in found] == [RunState.COMPLETE] * len(GRID)
    assert len({run.provenance["pid"] for run in found}) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "send"),
    [
        (signal.SIGINT, os.killpg),
        (signal.SIGTERM, os.kill),
        (signal.SIGHUP, os.killpg),
        (signal.SIGKILL, os.kill),
    ],
)
def test_a_sweep_that_is_ended_leaves_no_process_and_resumes_and_repeats_nothing(
    tmp_path, sign, send
):
    output = tmp_path / "small"
    with running_process(ISOLATED, output, "--workers", "1") as process:
        wait_until(lambda: len(record_times(output)) >= 2, "two runs are recorded", process)
        started = psutil.Process(process.pid).children(recursive=True)
        assert {*workers_of(process)} < {*started}
        send(process.pid, sign)
        process.wait(30)
        psutil.wait_procs(started, timeout=10)
        assert not any(one.is_running() for one in started), "orphaned workers"
        said, _ = process.communicate(timeout=30)
    n_done = len(record_times(output))
    assert 2 <= n_done < len(GRID)
    if sign != signal.SIGKILL:
        assert process.returncode == EXIT_INTERRUPTED, said
        last = f"mkldist: interrupted: {n_done} of 8 runs are recorded; resume with: mkldist sweep"
        assert said.splitlines()[-1].startswith(last)
        assert not re.search(r"Traceback|semaphore|Error|Warning", said)
    with open_results(output) as tree:
        assert int((tree["two_moons/slow"].state == "complete").sum()) == n_done
    assert f"{n_done} are recorded already" in assert_resumed(ISOLATED, output)


@pytest.mark.slow
def test_an_interrupt_before_the_first_run_says_what_is_kept(tmp_path):
    output = tmp_path / "small"
    setup = (
        "import os, signal, mkldist.run.sweep as s; "
        "s.sweep_rounds = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM); "
    )
    text = sweep_text({"uniform": [1.0, 10.0]}, repeats=1)
    for n_runs in (0, 2):
        with running_process(text, output, setup=setup) as process:
            said, _ = process.communicate(timeout=120)
        assert process.returncode == EXIT_INTERRUPTED
        kept = f"mkldist: interrupted: {n_runs} runs are recorded; resume with: mkldist sweep"
        assert said.splitlines()[-1].startswith(kept)
        assert "Traceback" not in said
        if not n_runs:
            run_here(text, output, None, connect_options=ConnectOptions(in_this_process=True))


IN_A_THREAD = "import mkldist.run.sweep as s; s.is_small = lambda *_: True; "


def in_a_thread(text: str, output: Path, sign: signal.Signals) -> tuple[int, str]:
    """Do a sweep in a thread of the command, and send a signal when two runs are recorded."""
    with running_process(text, output, setup=IN_A_THREAD) as process:
        wait_until(lambda: len(record_times(output)) >= 2, "two runs are recorded", process)
        assert not psutil.Process(process.pid).children()
        process.send_signal(sign)
        said, _ = process.communicate(timeout=30)
    return process.returncode, said


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_sweep_in_a_thread_ends_at_once_and_resumes(tmp_path, sign):
    output = tmp_path / "small"
    text = sweep_text({"slow": GRID[:1]}, repeats=8)
    code, said = in_a_thread(text, output, sign)
    if sign != signal.SIGKILL:
        assert code == EXIT_INTERRUPTED
        assert "resume with: mkldist sweep" in said
        assert "Traceback" not in said
    assert 2 <= len(record_times(output)) < 8
    assert_resumed(text, output)


@pytest.mark.slow
def test_two_coordinators_do_not_write_to_one_folder(tmp_path):
    output = tmp_path / "small"
    with running_process(ISOLATED, output, "--workers", "1") as first:
        wait_until((output / "sweep.json").exists, "the folder is claimed", first)
        code, said = run_process(ISOLATED, output)
        assert code == EXIT_BAD_INPUT, said
        assert f"another mkldist process (pid {first.pid}" in said
        assert first.poll() is None


def test_another_sweep_does_not_get_the_folder(tmp_path, scheduler):
    output = tmp_path / "small"
    run_here(sweep_text({"uniform": [1.0]}), output, scheduler)
    before = record_times(output)
    with pytest.raises(OutputError, match="folder of sweep 'small'"):
        run_here(sweep_text({"uniform": [1.0]}, name="other"), output, scheduler)
    assert record_times(output) == before


@contextlib.contextmanager
def small_disk(path: Path, kib: int):
    """Mount a file system of some KiB."""
    path.mkdir(parents=True)
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(path)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("kib", [16, 256, 400])  # of 570 that the sweep takes
def test_a_full_disk_ends_the_sweep_with_a_message(tmp_path, scheduler, kib):
    disk = tmp_path / "disk"
    text = sweep_text({"uniform": [float(c) for c in range(1, 60)]}, repeats=2)
    with small_disk(disk, kib), pytest.raises(OutputError) as caught:
        run_here(text, disk / "small", scheduler)
    assert "space" in str(caught.value)
    assert str(disk) in caught.value.where


@pytest.mark.slow
def test_a_limit_on_file_sizes_is_a_full_disk_too(tmp_path):
    output = tmp_path / "small"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)); "
    with running_process(sweep_text({"uniform": [1.0]}), output, setup=limited) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_BAD_INPUT, said
    assert "mkldist: bad output" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_sweep_with_a_message_and_keeps_the_records(tmp_path):
    output = tmp_path / "small"
    with (
        own_scheduler(tmp_path) as (scheduler, address),
        running_process(ISOLATED, output, "--scheduler", address) as process,
    ):
        wait_until(lambda: len(record_times(output)) >= 2, "two runs are recorded", process)
        scheduler.kill()
        said, _ = process.communicate(timeout=90)
    assert process.returncode == EXIT_INTERNAL, said
    assert "a lost connection" in said
    assert "Traceback" not in said
    assert_resumed(ISOLATED, output)


@contextlib.contextmanager
def own_scheduler(folder: Path):
    """Start a scheduler and a worker as processes; yield the scheduler's and its address."""
    address_file = folder / "scheduler.json"
    common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    run = [sys.executable, "-m"]
    host = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    file = ["--scheduler-file", str(address_file)]
    scheduler = subprocess.Popen(
        [*run, "distributed.cli.dask_scheduler", "--port", "0", *host, *file], **common
    )
    worker = subprocess.Popen(
        [
            *run, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny",
            "--preload", str(MISBEHAVING), *host, *file,
        ],
        **common,
    )  # fmt: skip
    try:
        wait_until(address_file.exists, "the scheduler is there")
        wait_until(lambda: b"address" in address_file.read_bytes(), "it has an address")
        yield scheduler, json.loads(address_file.read_text())["address"]
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


METHODS = {"level": [1.0, 10.0, 100.0], "silp": [10.0], "best_single": [1.0], "uniform": [1.0]}
REPEATS = 3
N_RUNS = REPEATS * sum(map(len, METHODS.values()))
WORKERS = {"shared": (0, 1, 4), "isolated": (1, 4), "path": (0, 2)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the results of each execution, each with several numbers of workers."""
    found: dict[str, list] = {execution: [] for execution in WORKERS}
    for execution, numbers in WORKERS.items():
        for n_workers in numbers:
            folder = tmp_path_factory.mktemp(execution)
            file = folder / "small.toml"
            file.write_text(sweep_text(METHODS, execution=execution, repeats=REPEATS))
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("MKLDIST_CACHE", str(folder / "cache"))
                output = folder / "small"
                mkldist.sweep(file, output=output, workers=n_workers, progress=False)
            found[execution].append(output)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("execution", WORKERS)
def test_results_are_equal_to_the_bit_for_any_number_of_workers(folders, execution):
    first, *others = folders[execution]
    for other in others:
        assert_equal(other, first)


def assert_equal(folder, other):
    """Hold all results, without times, to those of another folder, bit for bit."""
    found, expected = (values_of(one, timed=False) for one in (folder, other))
    assert found.keys() == expected.keys()
    for node, data in expected.items():
        xr.testing.assert_equal(found[node], data)


@pytest.mark.slow
@pytest.mark.parametrize("execution", WORKERS)
def test_results_are_equal_after_a_kill(folders, tmp_path, monkeypatch, execution):
    """To the bit, or to the certificate where a kill cuts a path: its next solver starts anew."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    text, output = sweep_text(METHODS, execution=execution, repeats=REPEATS), tmp_path / "small"
    assert 3 <= len(kill_after(3, text, output)) < N_RUNS
    code, said = run_process(text, output)
    assert code == 0, said
    if execution == "path":
        found = agreement(*map(mkldist.open_results, (output, folders[execution][0])))
        assert found.n_runs == N_RUNS
        assert found.holds
    else:
        assert_equal(output, folders[execution][0])


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), [*itertools.combinations(WORKERS, 2)])
def test_certificates_of_different_executions_agree(folders, one, two):
    trees = [mkldist.open_results(folders[execution][0]) for execution in (one, two)]
    found = agreement(*trees)
    assert found.n_runs == N_RUNS
    assert found.holds
    assert found.objective_difference <= 0.01  # the tolerance of the runs


DIES_AT_ONE_RECORD = """
import itertools, os, mkldist.results.journal as journal
append = journal.Journal.append
def dies(self, records):
    append(self, itertools.islice(records, 2))
    os.kill(os.getpid(), 9)
journal.Journal.append = dies
"""


@pytest.mark.slow
def test_a_killed_path_goes_on_from_the_states_that_it_had(tmp_path):
    path = sweep_text({"level": [0.1, 1.0, 10.0, 100.0]}, execution="path", repeats=1)
    toml = "tol = 0.01\n" + path
    for output, setup in (("whole", ""), ("killed", DIES_AT_ONE_RECORD), ("killed", "")):
        with running_process(
            toml, tmp_path / output, "--workers", "1", setup=f"exec({setup!r}); "
        ) as process:
            said, _ = process.communicate(timeout=300)
        assert process.returncode == (-9 if setup else 0), said
    whole, killed = (values_of(tmp_path / name, timed=False) for name in ("whole", "killed"))
    assert whole.keys() == killed.keys()
    for node, values in whole.items():
        xr.testing.assert_equal(values, killed[node])
