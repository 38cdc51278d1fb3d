"""Kills and signals at random moments of a sweep."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from mkldist.errors import EXIT_INTERNAL, EXIT_INTERRUPTED
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import N_RUNS, Ended, Scene, Undisturbed, resumed, wait_for
from tests.run.sweeps import record_times

TARGETS = ("coordinator", "worker", "fork server", "all")
SIGNALS = ("SIGINT", "SIGTERM")
KILLED = -signal.SIGKILL
TRIES = 20


def kill(folder: Path, clean: Undisturbed, target: str, rng: np.random.Generator) -> Outcome:
    """Kill one process of a sweep, or all, at a random moment; then run its command again."""
    allowed = (KILLED,) if target in ("coordinator", "all") else (0, EXIT_INTERNAL)

    def strike(process: subprocess.Popen[str]) -> bool:
        return _kill(process, target, rng)

    return _struck(folder, clean, f"kill -9 {target}", strike, allowed, rng)


def interrupt(
    folder: Path, clean: Undisturbed, name: str, times: int, rng: np.random.Generator
) -> Outcome:
    """Send a signal to a sweep's command, once or twice, at a random moment; then run it again."""
    sign = signal.Signals[name]

    def strike(process: subprocess.Popen[str]) -> bool:
        for number in range(times):
            if number:
                time.sleep(float(rng.uniform(0.0, 0.5)))
            process.send_signal(sign)
        return True

    # A signal during the start of Python, or the second one, may end the process at once.
    allowed = (0, EXIT_INTERRUPTED, 128 + sign, -sign)
    return _struck(
        folder, clean, f"{name} {'once' if times == 1 else 'twice'}", strike, allowed, rng
    )


def _struck(
    folder: Path,
    clean: Undisturbed,
    kind: str,
    strike: Callable[[subprocess.Popen[str]], bool],
    allowed: tuple[int, ...],
    rng: np.random.Generator,
) -> Outcome:
    """Strike a sweep at a random moment, and run its command again."""
    for number in range(TRIES):
        scene = Scene(folder / str(number))
        with scene.started() as process:
            if not (_moment(scene, process, clean.seconds, rng) and strike(process)):
                continue  # it ended before
            code, said = scene.wait(process)
            return resumed(scene, clean, kind, Ended(code, said, allowed))
    raise AssertionError(f"{kind}: the sweep always ends before")


def _moment(
    scene: Scene, process: subprocess.Popen[str], seconds: float, rng: np.random.Generator
) -> bool:
    """Wait for a random moment: of the start, or after so many runs; False if it ends before."""
    n_records = int(rng.integers(N_RUNS + 1))
    longest = 0.6 * seconds if n_records == 0 else 0.3
    there = wait_for(lambda: len(record_times(scene.output)) >= n_records, process)
    time.sleep(float(rng.uniform(0.0, longest)))
    return there and process.poll() is None


def _kill(process: subprocess.Popen[str], target: str, rng: np.random.Generator) -> bool:
    """Kill a process; return False if there is none of this kind."""
    if target == "coordinator":
        process.kill()
        return True
    if target == "all":
        os.killpg(process.pid, signal.SIGKILL)
        return True
    with suppress(psutil.Error):
        servers = [
            child
            for child in psutil.Process(process.pid).children()
            if "forkserver" in " ".join(child.cmdline())
        ]
        workers = [worker for server in servers for worker in server.children()]
        of_kind = workers if target == "worker" else servers
        if of_kind:
            of_kind[int(rng.integers(len(of_kind)))].kill()
            return True
    return False
