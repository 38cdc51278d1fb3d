"""The package on systems that lack what Linux has: its modules are hidden from a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mkldist

pytestmark = pytest.mark.slow

# Workers are processes that Python starts anew, and so they hide the modules too.
HIDDEN = """
import multiprocessing, os, pathlib, signal, socket, sys
import numpy, distributed, dask, filelock, psutil, tempfile, platformdirs, sqlite3, asyncio, zarr
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog"):
    sys.modules[name] = None
for name in ("sysconf", "sched_getaffinity", "fork", "killpg", "statvfs"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)

opened = pathlib.Path.open
def no_proc(self, *arguments, **options):
    if str(self).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(2, "No such file or directory", str(self))
    return opened(self, *arguments, **options)
pathlib.Path.open = no_proc
"""
LIBRARY = """
import numpy as np
import mkldist
x = np.random.default_rng(0).normal(size=(30, 3))
y = np.where(x[:, 0] + x[:, 1] > 0.0, 1, -1)
grams = np.array([np.outer(column, column) for column in x.T])
assert mkldist.solve("level", grams, y, C=1.0).gap < 0.1
assert mkldist.MKLClassifier().fit(x, y).score(x, y) > 0.8
"""
SWEEP = """
name = "small"
[[datasets]]
name = "two_moons"
options = { n = 40 }
[[banks]]
backend = "mmap"
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0]
[splits]
repeats = 2
[[methods]]
name = "level"
"""


def runs(program: str, folder: Path, *words: str) -> str:
    """Run Python on a system without these modules; return what it prints."""
    (folder / "hidden.py").write_text(HIDDEN)
    (temporary := folder / ("t" * 60)).mkdir(exist_ok=True)  # too long a name to fork workers there
    environ = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
        "DASK_DISTRIBUTED__WORKER__PRELOAD": "hidden",
        "MKLDIST_CACHE": str(folder / "cache"),
        "TMPDIR": str(temporary),
    }
    done = subprocess.run(
        [sys.executable, "-c", f"import hidden\n{program}", *words],
        capture_output=True, text=True, env=environ, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_solve_and_estimators_need_nothing_of_linux(tmp_path):
    runs(LIBRARY, tmp_path)


@pytest.mark.parametrize(
    ("execution", "workers"),
    [("shared", []), ("shared", ["--workers", "2"]), ("isolated", ["--workers", "1"])],
)
def test_a_sweep_needs_nothing_of_linux(tmp_path, execution, workers):
    (tmp_path / "small.toml").write_text(f'execution = "{execution}"\n{SWEEP}')
    program, output = "from mkldist.cli import main; main()", tmp_path / "out"
    runs(program, tmp_path, "sweep", "small.toml", *workers, "--output", str(output))
    with mkldist.open_results(output) as tree:
        assert tree["two_moons/level"].state.values.ravel().tolist() == ["complete"] * 2
    runs(program, tmp_path, "status", str(output))
