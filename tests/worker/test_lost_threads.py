"""A worker that waits for a lost thread, which ends; one that waits otherwise, which goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from mkldist.worker.setup import EXIT_CODE
from tests.variants import quick

WATCHED = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
from mkldist.worker.setup import end_if_threads_are_lost

end_if_threads_are_lost(period=0.05, looks=6)
print("watched", flush=True)
{does}
print("went on")
"""
LOST = """
threading._start_new_thread = lambda *arguments: None  # as if it had no memory
{start}
"""
ALONE = LOST.replace("{start}", "threading.Thread(target=print).start()")
IN_A_TASK = f"""
with ThreadPoolExecutor(1) as pool:
    pool.submit(int).result()
    def task():
        {ALONE.strip().splitlines()[0]}
        {ALONE.strip().splitlines()[1]}
    pool.submit(task).result()
"""
WAITS = "threading.Event().wait(1.5)"
STARTS_MANY = """
until = time.perf_counter() + 1.5
while time.perf_counter() < until:
    threading.Thread(target=int).start()
"""


def watched(does: str) -> subprocess.Popen[str]:
    code = WATCHED.replace("{does}", does)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "watched\n"
    return process


@pytest.mark.parametrize("does", [ALONE, IN_A_TASK])
def test_a_process_that_waits_for_a_lost_thread_ends(does):
    with watched(does) as process:
        try:
            assert process.wait(30) == EXIT_CODE
        finally:
            process.kill()


@pytest.mark.parametrize("does", quick([WAITS, STARTS_MANY]))
def test_a_process_that_waits_or_starts_many_threads_goes_on(does):
    with watched(does) as process:
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "went on\n")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no signal stops a process here")
def test_a_process_that_was_suspended_is_given_its_time():
    with watched(STARTS_MANY) as process:
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.0)  # far more than the looks take
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "went on\n")
