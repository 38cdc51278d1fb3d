"""Workers of this machine are forked from a process that has imported what they need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest

from mkldist.durable import is_alive
from mkldist.run import fork_server
from mkldist.run.cluster import WORKER_ENVIRON, ConnectOptions
from tests.run.sweeps import wait_until

SCRIPT = """
import os, sys
from mkldist.run import fork_server
from mkldist.run.cluster import ConnectOptions

def seen():
    return os.getpid(), os.getppid(), dict(os.environ)

if __name__ == "__main__":
    before = dict(os.environ)
    options = ConnectOptions(n_workers=2)
    options.prepare()
    assert dict(os.environ) == before
    with options.connect() as client:
        found = client.run(seen)
    print(len({ppid for _, ppid, _ in found.values()}), len({pid for pid, *_ in found.values()}))
    for _, _, environ in found.values():
        print(environ["OMP_NUM_THREADS"], environ["MALLOC_TRIM_THRESHOLD_"])
        print(repr(environ["PYTHONPATH"]))
"""


@pytest.mark.slow
def test_workers_have_one_parent_and_its_environment(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environ = {name: value for name, value in os.environ.items() if name not in WORKER_ENVIRON}
    here = tmp_path / "where the user is"
    here.mkdir()
    (here / "queue.py").write_text("raise RuntimeError('a file of the user')")
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, env=environ, cwd=here
    )
    assert not ended.returncode, ended.stderr
    each = ["1", str(256 * 2**20), repr(os.environ.get("PYTHONPATH", ""))]
    assert ended.stdout.split() == ["1", "2", *each * 2]


def test_workers_have_the_environment_of_when_they_start(monkeypatch):
    options = ConnectOptions(n_workers=1)
    options.prepare()
    monkeypatch.setenv("MKLDIST_CACHE", "elsewhere")
    with options.connect() as client:
        assert list(client.run(os.getenv, "MKLDIST_CACHE").values()) == ["elsewhere"]


def test_variables_that_are_set_while_the_server_starts_stay(monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", "before")
    monkeypatch.setattr(
        forkserver, "ensure_running", lambda: os.environ.update(MKLDIST_CACHE="meanwhile")
    )
    fork_server.start_fork_server({"MKLDIST_SOME": 1})
    assert os.environ["MKLDIST_CACHE"] == "meanwhile"
    assert "MKLDIST_SOME" not in os.environ


def test_neither_workers_nor_their_server_get_ctrl_c():
    def blocked(pid):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigBlk"))
        return bool(mask & 1 << (signal.SIGINT - 1))

    with ConnectOptions(n_workers=1).connect() as client:
        [pids] = client.run(lambda: [os.getpid(), os.getppid()]).values()
        assert [blocked(pid) for pid in pids] == [True, True]
    assert not blocked(os.getpid())


def test_workers_have_imported_their_tasks_before_they_begin():
    with ConnectOptions(n_workers=1).connect() as client:
        [modules] = client.run(lambda: sorted(sys.modules)).values()
    assert "mkldist.worker.tasks" in modules


def leave_a_mark(path):
    Path(path).write_text(f"{os.environ.get('MKLDIST_CACHE')} {os.getpid()}")


def wait_for_ever(path):
    leave_a_mark(path)
    signal.pause()


def test_a_process_beside_has_the_environment_of_now_and_no_part_of_the_context(
    tmp_path, monkeypatch
):
    ConnectOptions(n_workers=1).prepare()
    monkeypatch.setenv("MKLDIST_CACHE", "elsewhere")
    mark = tmp_path / "mark"
    with fork_server.process_beside(leave_a_mark, str(mark)):
        wait_until(lambda: mark.exists() and mark.read_text(), "the mark is left")
    cache, pid = mark.read_text().split()
    assert cache == "elsewhere"
    assert int(pid) != os.getpid()


def test_a_process_beside_ends_with_its_context(tmp_path):
    ConnectOptions(n_workers=1).prepare()
    mark = tmp_path / "mark"
    with fork_server.process_beside(wait_for_ever, str(mark)):
        wait_until(lambda: mark.exists() and mark.read_text(), "the mark is left")
    pid = int(mark.read_text().split()[1])
    wait_until(lambda: not is_alive(pid), "the process has ended")


def test_a_process_beside_that_cannot_start_costs_nothing():
    with fork_server.process_beside(lambda: None):  # cannot be pickled
        pass
