"""Workers of this machine are forked from a process that has imported what they need."""

from __future__ import annotations

import os
import subprocess
import sys

from mkldist.run.cluster import WORKER_ENVIRON, ConnectOptions, connect

SCRIPT = """
import os, sys
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
"""


def test_workers_have_one_parent_and_its_environment(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environ = {name: value for name, value in os.environ.items() if name not in WORKER_ENVIRON}
    said = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=True, env=environ
    ).stdout
    assert said.split() == ["1", "2", *["1", str(256 * 2**20)] * 2]


def test_workers_have_the_environment_of_when_they_start(monkeypatch):
    options = ConnectOptions(n_workers=1)
    options.prepare()
    monkeypatch.setenv("MKLDIST_CACHE", "elsewhere")
    with options.connect() as client:
        assert list(client.run(os.getenv, "MKLDIST_CACHE").values()) == ["elsewhere"]


def test_workers_have_imported_their_tasks_before_they_begin():
    with connect(n_workers=1) as client:
        [modules] = client.run(lambda: sorted(sys.modules)).values()
    assert "mkldist.run.tasks" in modules
