"""Compilation that processes share: each function is compiled once, and meanwhile called in Python.

The functions are those of a module in an empty folder, and so is their machine code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from mkldist.compiled import FIRST_CALL
from mkldist.compiling import compiling_together

MODULE = """
from mkldist.compiled import compiled

@compiled
def doubled(x):
    return 2 * x

@compiled
def first(x):
    return doubled(x)

@compiled
def second(x):
    return 3 * x
"""
# Compiles both functions together with others, and says how many it compiled by itself.
SHARES = """
import sys
from pathlib import Path
from numba.core import event
from mkldist.compiled import has_code_on_disk
from mkldist.compiling import compiling_together
import shared_functions as f

has_code_on_disk(f.doubled)  # to ask is not to call
with event.install_recorder("numba:compile") as recorder:
    with compiling_together(Path(sys.argv[1])):
        print("met", f.first(2.0), bool(f.first.signatures), flush=True)
        print("met", f.second(2.0), bool(f.second.signatures), flush=True)
        print("within", bool(f.doubled.signatures), flush=True)
    print("left", len(f.first.signatures), len(f.second.signatures))
names = {e.data["dispatcher"].py_func.__name__ for _, e in recorder.buffer}
print("compiled", *sorted(names & {"first", "second"}))
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a process which compiles both functions with others."""
    (tmp_path / "shared_functions.py").write_text(MODULE)
    environ = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "compiled"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    def begin(locks: Path | str = tmp_path / "locks") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", SHARES, str(locks)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
        )  # fmt: skip

    return begin


def said(process: subprocess.Popen[str]) -> list[list[str]]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return [line.split() for line in out.splitlines()]


def test_one_process_compiles_all_and_the_next_one_nothing(start, tmp_path):
    met, left = [["met", "4.0", "True"], ["met", "6.0", "True"]], ["left", "1", "1"]
    assert said(start()) == [*met, ["within", "True"], left, ["compiled", "first", "second"]]
    (tmp_path / "locks" / "a.lock").write_text("")  # of a process that was killed
    assert said(start()) == [*met, ["within", "False"], left, ["compiled"]]
    assert not list((tmp_path / "locks").iterdir())


def test_a_function_that_another_compiles_is_called_in_python_with_those_it_calls(start, tmp_path):
    (tmp_path / "locks").mkdir()
    with FileLock(tmp_path / "locks" / "shared_functions.first.lock") as lock:
        process = start()
        lines = [process.stdout.readline().split() for _ in range(3)]
        assert Path(lock.lock_file).exists()
    assert lines == [["met", "4.0", "False"], ["met", "6.0", "True"], ["within", "False"]]
    assert said(process) == [["left", "1", "1"], ["compiled", "first", "second"]]


HOLDS = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(300)
"""


def test_the_lock_of_a_killed_process_is_free(start, tmp_path):
    (tmp_path / "locks").mkdir()
    lock = tmp_path / "locks" / "shared_functions.first.lock"
    holds = [sys.executable, "-c", HOLDS, str(lock)]
    with subprocess.Popen(holds, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        process = start()
        line = process.stdout.readline().split()
        holder.kill()
    assert line == ["met", "4.0", "False"]
    assert said(process)[-1] == ["compiled", "first", "second"]


def test_without_locks_each_process_compiles_for_itself(start, tmp_path):
    (tmp_path / "file").write_text("")
    assert said(start(tmp_path / "file" / "locks"))[-1] == ["compiled", "first", "second"]


def test_contexts_of_a_thread_are_one_and_those_of_other_threads_apart(tmp_path):
    seen = []
    with compiling_together(tmp_path):
        outer = FIRST_CALL.get()
        with compiling_together(tmp_path):
            assert FIRST_CALL.get() is outer
        assert FIRST_CALL.get() is outer
        thread = threading.Thread(target=lambda: seen.append(FIRST_CALL.get()))
        thread.start()
        thread.join()
    assert seen == [None]
    assert FIRST_CALL.get() is None
