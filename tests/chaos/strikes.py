"""Kills, pauses, signals and lack of memory at random moments of a sweep."""

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from mkldist.errors import EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_INTERNAL, EXIT_INTERRUPTED
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import N_RUNS, Ended, Scene, Undisturbed, resumed, wait_for
from tests.run.sweeps import hosts_of, record_times, workers_of

TARGETS = ("coordinator", "worker", "host", "all")
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
KILLED = -signal.SIGKILL
TRIES = 20
LONGEST_PAUSE = 20.0


def kill(folder: Path, clean: Undisturbed, target: str, rng: np.random.Generator) -> Outcome:
    """Kill one process of a sweep, or all, at a random moment; then run its command again."""
    allowed = (KILLED,) if target in ("coordinator", "all") else (0, EXIT_INTERNAL)

    def strike(process: subprocess.Popen[str]) -> bool:
        targets: list[psutil.Process] = []
        with suppress(psutil.Error):
            targets = _targets(process, target, rng)
        for one in targets:
            with suppress(psutil.Error):
                one.kill()
        return bool(targets)

    return _struck(folder, clean, f"kill -9 {target}", strike, allowed, rng)


def pause(folder: Path, clean: Undisturbed, target: str, rng: np.random.Generator) -> Outcome:
    """Stop one process of a sweep, or all, at a random moment, and let it go on seconds later."""

    def strike(process: subprocess.Popen[str]) -> bool:
        with suppress(psutil.Error):
            stopped = _targets(process, target, rng)
            for one in stopped:
                one.suspend()
            time.sleep(float(rng.uniform(0.0, LONGEST_PAUSE)))
            for one in reversed(stopped):
                one.resume()
            return bool(stopped)
        return False

    return _struck(folder, clean, f"SIGSTOP, SIGCONT {target}", strike, (0,), rng)


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


def exhaust(folder: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    """Let a worker have no more memory from a random moment on; then repeat the failed runs."""

    def strike(process: subprocess.Popen[str]) -> bool:
        with suppress(psutil.Error):
            if workers := workers_of(process):
                worker = workers[int(rng.integers(len(workers)))]
                limit = worker.memory_info().vms
                worker.rlimit(psutil.RLIMIT_AS, (limit, limit))
                return True
        return False

    # A worker without memory for the files that it reads cannot read them: the sweep says so.
    allowed = (0, EXIT_INTERNAL, EXIT_FAILED_RUNS, EXIT_BAD_INPUT)
    kind = "worker out of memory"
    return _struck(folder, clean, kind, strike, allowed, rng, again=("--retry-failed",))


def _struck(
    folder: Path,
    clean: Undisturbed,
    kind: str,
    strike: Callable[[subprocess.Popen[str]], bool],
    allowed: tuple[int, ...],
    rng: np.random.Generator,
    *,
    again: tuple[str, ...] = (),
) -> Outcome:
    """Strike a sweep at a random moment, and run its command again, with more options."""
    for number in range(TRIES):
        scene = Scene(folder / str(number))
        with scene.started() as process:
            if not (moment(scene, process, clean.seconds, rng) and strike(process)):
                continue  # it ended before
            ended = Ended(*scene.wait(process), allowed)
            return resumed(scene, clean, kind, ended, *again)
    raise AssertionError(f"{kind}: the sweep always ends before")


def moment(
    scene: Scene, process: subprocess.Popen[str], seconds: float, rng: np.random.Generator
) -> bool:
    """Wait for a random moment: of the start, or after so many runs; False if it ends before."""
    n_records = int(rng.integers(N_RUNS + 1))
    longest = 0.6 * seconds if n_records == 0 else 0.3
    there = wait_for(lambda: len(record_times(scene.output)) >= n_records, process)
    time.sleep(float(rng.uniform(0.0, longest)))
    return there and process.poll() is None


def _targets(
    process: subprocess.Popen[str], target: str, rng: np.random.Generator
) -> list[psutil.Process]:
    """Return the processes that a fault is to strike; none if none of this kind is there."""
    command = psutil.Process(process.pid)
    if target == "coordinator":
        return [command]
    if target == "all":
        return [command, *command.children(recursive=True)]
    of_kind = workers_of(process) if target == "worker" else hosts_of(process)
    return [of_kind[int(rng.integers(len(of_kind)))]] if of_kind else []
