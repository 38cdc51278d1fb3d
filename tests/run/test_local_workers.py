"""Workers of this machine: their environment, memory, their end, and what killed ones leave."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from mkldist.errors import ClusterError, OutputError
from mkldist.planning.planner import WORKER_BASE_BYTES
from mkldist.results.schema import RunState
from mkldist.run import cluster
from mkldist.run.cluster import WORKER_ENVIRON, ConnectOptions
from mkldist.run.local_workers import remove_abandoned, scratch_of_workers
from tests.peak_memory import peak_resident_bytes
from tests.run.sweeps import run_here, sweep_text, wait_until
from tests.variants import quick

# Without a guard for ``__main__``, and beside a file of the user that has the name of a module.
SCRIPT = """
import os, sys
from mkldist.run.cluster import ConnectOptions

def seen():
    return os.getpid(), os.getppid(), os.getsid(0), dict(os.environ)

print("begun", flush=True)
with ConnectOptions(n_workers=2).connect() as client:
    client.wait_for_workers(2)
    found = client.run(seen).values()
print(len({pid for pid, *_ in found}), len({parent for _, parent, *_ in found}))
print(os.getsid(0) in {session for _, _, session, _ in found})
for *_, environ in found:
    print(environ["OMP_NUM_THREADS"], environ["MALLOC_TRIM_THRESHOLD_"], environ["PYTHONPATH"])
"""
WAITS = """
from mkldist.run.cluster import ConnectOptions
with ConnectOptions(n_workers=1).connect() as client:
    client.wait_for_workers(1)
    print("there", flush=True)
    input()
"""
FORKS = """
import os, time
from mkldist.run.cluster import ConnectOptions
with ConnectOptions(n_workers=1).connect() as client:
    client.wait_for_workers(1)
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
    print(child, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("given", ["a file", "standard input"])
def test_any_script_may_start_workers_which_are_a_session_of_their_own(tmp_path, given):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    (tmp_path / "queue.py").write_text("raise RuntimeError('a file of the user')")
    environ = {name: value for name, value in os.environ.items() if name not in WORKER_ENVIRON}
    environ |= {"OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [str(path)] if given == "a file" else ["-"]
    done = subprocess.run(
        [sys.executable, "-P", *words], input=SCRIPT,
        capture_output=True, text=True, env=environ, cwd=tmp_path,
    )  # fmt: skip
    each = f"2 {256 * 2**20} {environ['PYTHONPATH']}"
    lines = ["begun", "2 1", "False", each, each]
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", lines)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX closes them")
def test_a_program_may_have_no_standard_files(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.partition("print(len")[0] + f"open({str(tmp_path / 'done')!r}, 'x')")
    words = ["sh", "-c", '"$0" "$1" <&- >&- 2>&-', sys.executable, str(script)]
    assert subprocess.run(words).returncode == 0
    assert (tmp_path / "done").exists()


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["coordinator", "host"])
def test_no_process_outlives_a_kill_and_the_next_sweep_removes_the_folders(folder, killed):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "there\n"
    [host] = psutil.Process(process.pid).children()
    started = host.children(recursive=True)
    assert len(list(folder.iterdir())) == 1
    assert remove_abandoned() == 0
    (process if killed == "coordinator" else host).kill()
    _, living = psutil.wait_procs(started, timeout=20)
    assert living == []
    process.communicate(input="\n")
    assert remove_abandoned() == (killed == "coordinator")
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_workers_end_though_a_process_that_the_coordinator_forked_lives(folder):
    process = subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, text=True)
    forked = psutil.Process(int(process.stdout.readline()))
    try:
        others = psutil.Process(process.pid).children(recursive=True)
        others.remove(forked)
        process.kill()
        assert psutil.wait_procs(others, timeout=20)[1] == []
        assert forked.is_running()
    finally:
        forked.kill()
        process.communicate()


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced():
    with ConnectOptions(n_workers=1).connect() as client:
        [before] = client.run(os.getpid).values()
        psutil.Process(before).kill()

        def pids() -> list[int]:
            return [*client.run(os.getpid, on_error="ignore").values()]

        wait_until(lambda: pids() not in ([], [before]), "a new one is there")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no signal stops a process here")
def test_a_worker_that_gives_no_sign_of_life_is_replaced(monkeypatch):
    monkeypatch.setitem(cluster.DASK_CONFIG, "distributed.scheduler.worker-ttl", "5 seconds")
    with ConnectOptions(n_workers=1).connect() as client:
        [before] = client.run(os.getpid).values()
        psutil.Process(before).suspend()
        wait_until(lambda: not psutil.pid_exists(before), "it has ended")
        client.wait_for_workers(1)
        assert client.submit(sum, (1, 2)).result(timeout=60) == 3


def test_without_python_there_are_no_workers(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(ClusterError, match="did not start"), ConnectOptions(n_workers=1).connect():
        pass


@pytest.mark.slow
def test_dask_uses_the_folder_while_the_context_lasts(folder):
    import dask

    before = dask.config.get("temporary-directory")
    with ConnectOptions(n_workers=1).connect() as client:
        [own] = folder.iterdir()
        [local] = client.run(lambda dask_worker: dask_worker.local_directory).values()
        assert Path(local).is_relative_to(own)
    assert not own.exists()
    assert dask.config.get("temporary-directory") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", quick([[], ["--workers", "1"]]), ids=["in a thread", "in processes"]
)
def test_without_a_folder_for_temporary_files_the_command_says_so(tmp_path, option):
    """As root may write everywhere, the list of folders that Python tries is made empty."""
    program = (
        "import tempfile; tempfile._candidate_tempdir_list = lambda: []\n"
        "from mkldist.cli import main; main()"
    )
    words = ["sweep", "two_circles", "--output", str(tmp_path / "out"), *option]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert "TMPDIR: found no folder for temporary files that can be written" in done.stderr
    assert "Set TMPDIR to one." in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_for_temporary_files_is_a_full_disk(folder, monkeypatch):
    def full(path, *details, **more):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(OutputError, match="no space left on the device"), scratch_of_workers():
        pass


N_POINTS = 1200  # half of them are training points
WIDTHS = [round(0.1 * 1.08**k, 4) for k in range(80)]  # of three kernels each


def threads_here() -> list[str]:
    return [one.name for one in threading.enumerate()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("backend", "execution"),
    [("memory", "shared"), pytest.param("stream", "isolated", marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_a_worker_takes_the_memory_that_its_plan_predicts(
    tmp_path, monkeypatch, backend, execution
):
    """The bank is 371 MiB of the prediction, so a second copy of it would fail the test."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    text = sweep_text({"level": [1.0, 100.0]}, repeats=1, backend=backend, execution=execution)
    text = text.replace("n = 80", f"n = {N_POINTS}").replace("[0.1, 0.3, 1.0, 3.0]", str(WIDTHS))
    with ConnectOptions(
        n_workers=1
    ).connect() as client:  # a worker of its own, without other tests' peak
        outcome = run_here(text, tmp_path / "small", client.scheduler_info()["address"])
        [peak] = client.run(peak_resident_bytes).values()
        [threads] = client.run(threads_here).values()
    assert outcome.counts[RunState.COMPLETE] == 2
    assert threads.count("mkldist-memory") == 1  # that ends a worker whose threads cannot begin
    predicted = outcome.plan.memory_per_worker
    assert outcome.plan.bank_bytes > 0.4 * predicted
    assert 0.65 * predicted < peak < 1.1 * predicted


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_factors_that_grow_keep_to_the_memory_that_their_plan_predicts(tmp_path, monkeypatch):
    """The matrices would take 3.1 GB, which no worker has, those of 240 kernels ten times that.

    The factors of 240 kernels begin with 732 MiB, more than the 512 MiB of them in memory.
    """
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    widths = WIDTHS
    text = sweep_text({"level": [300.0, 3000.0]}, repeats=1, backend="factors")
    text = text.replace("n = 80", "n = 8000").replace("[0.1, 0.3, 1.0, 3.0]", str(widths))
    text = text.replace('name = "small"', 'name = "small"\nmemory = "1GiB"')
    with ConnectOptions(n_workers=1).connect() as client:
        outcome = run_here(text, tmp_path / "small", client.scheduler_info()["address"])
        [peak] = client.run(peak_resident_bytes).values()
    assert outcome.counts[RunState.COMPLETE] == 2
    predicted, [bank] = outcome.plan.memory_per_worker, outcome.plan.banks
    assert bank.n_bytes > 2**29
    assert predicted <= 2**30 + WORKER_BASE_BYTES
    assert peak < 1.1 * predicted
