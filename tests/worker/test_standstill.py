"""A worker at a standstill, which ends; one that waits, works or was suspended, which does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from mkldist.worker.standstill import EXIT_CODE

WATCHED = """
import asyncio, threading, time
from mkldist.worker.standstill import end_at_standstill

async def main():
    end_at_standstill(asyncio.get_running_loop(), period=0.05, looks=6)
    print("watched", flush=True)
    {does}

asyncio.run(main())
print("went on")
"""
LOST_THREAD = "threading.Event().wait()"
IDLE = "await asyncio.sleep(1.5)"
AT_WORK = """until = time.perf_counter() + 1.5
    while time.perf_counter() < until:
        pass"""


def watched(does: str) -> subprocess.Popen[str]:
    code = WATCHED.replace("{does}", does)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "watched\n"
    return process


def test_a_loop_that_waits_for_ever_ends_its_process():
    with watched(LOST_THREAD) as process:
        assert process.wait(20) == EXIT_CODE


@pytest.mark.parametrize("does", [IDLE, AT_WORK])
def test_a_loop_that_waits_or_works_goes_on(does):
    with watched(does) as process:
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "went on\n")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no signal stops a process here")
def test_a_process_that_was_suspended_is_given_its_time():
    with watched(IDLE) as process:
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.0)  # far more than the looks take
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "went on\n")
