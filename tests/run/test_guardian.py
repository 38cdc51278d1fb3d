"""Guardians of daemons: nothing of a daemon lives on, however the process that wanted it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid

import psutil
import pytest

from tests.run.guardian import guarded
from tests.run.sweeps import wait_until

# Its child leaves the session, and loses its parent, as the steps of SLURM's jobs do.
DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_DFL if sys.argv[1] == "ends" else signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
time.sleep(600)
"""
WANTS = """
import subprocess, sys
with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True):
    sys.stdin.read()
"""


def living(mark: str) -> list[psutil.Process]:
    """Return the daemons of a mark; their guardian has it too, as a later word."""
    return [
        one
        for one in psutil.process_iter(["cmdline", "status"])
        if mark in (one.info["cmdline"] or ()) and one.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give orphans to process 1")
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_daemons_end_with_the_process_that_wanted_them(sign):
    mark = uuid.uuid4().hex
    words = guarded(sys.executable, "-c", DAEMON, "ends", mark)
    with subprocess.Popen([sys.executable, "-c", WANTS, *words], stdin=subprocess.PIPE) as wants:
        # The process itself, its guardian, the daemon, and the daemon's orphan.
        wait_until(lambda: len(living(mark)) == 4, "the daemon has an orphan", seconds=20)
        wants.send_signal(sign)
    wait_until(lambda: not living(mark), "all have ended", seconds=20)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give orphans to process 1")
def test_daemons_that_do_not_listen_are_killed(monkeypatch):
    mark = uuid.uuid4().hex
    program = "import sys; from tests.run import guardian; guardian.TERM_SECONDS = 0.1; "
    program += "guardian.main(sys.argv[1:])"
    words = [sys.executable, "-c", program, sys.executable, "-c", DAEMON, "stays", mark]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as guardian:
        wait_until(lambda: len(living(mark)) == 3, "the daemon has an orphan", seconds=20)
        guardian.communicate()
    assert guardian.returncode == 0
    assert not living(mark)
