"""Folders that fill up, become read-only or vanish under a sweep, and two sweeps on one folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mkldist.errors import EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_INTERNAL
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import N_RUNS, Ended, Scene, Undisturbed, resumed, wait_for
from tests.run.sweeps import record_times

MEDIA = ("full disk", "limit on file sizes", "read-only folder", "vanished folder")
STOPPED = (0, EXIT_INTERNAL, EXIT_BAD_INPUT, EXIT_FAILED_RUNS)
ENOUGH = "64m"


def can_mount() -> bool:
    """Return True if this process may mount file systems."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def fail(folder: Path, clean: Undisturbed, kind: str, rng: np.random.Generator) -> Outcome:
    """Let a medium fail under a sweep, mend it, and run the command again."""
    if kind == "limit on file sizes":
        return _limited(folder, clean, rng)
    if kind == "vanished folder":
        return _vanished(folder, clean, rng)
    with _mounted(folder / "disk", ENOUGH) as disk:
        return (_full if kind == "full disk" else _read_only)(disk, clean, rng)


def two_at_once(folder: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    """Start a second command on the folder of a sweep; it must be refused, and the first go on."""
    scene = Scene(folder)
    with scene.started() as first:
        wait_for((scene.output / "sweep.json").exists, first)
        time.sleep(float(rng.uniform(0.0, 0.5 * clean.seconds)))
        other = Scene(folder)
        with other.started() as second:
            late = first.poll() is not None  # the second then finds a finished sweep
            code, said = scene.wait(second)
        refused = Ended(code, said, (0,) if late else (0, EXIT_BAD_INPUT))
        code, said = scene.wait(first)
    faults = tuple(Ended(code, said, (0,)).faults())
    outcome = resumed(scene, clean, "two coordinators", refused)
    return Outcome(**{**vars(outcome), "faults": outcome.faults + faults})


def _full(disk: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    kib = int(rng.integers(16, 700))
    scene = Scene(disk / "sweep")
    _mount(disk, f"remount,size={kib}k")
    with scene.started() as process:
        ended = Ended(*scene.wait(process), STOPPED)
    _mount(disk, f"remount,size={ENOUGH}")
    return resumed(scene, clean, "full disk", ended)


def _read_only(disk: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    scene = Scene(disk / "sweep", temporary=disk.with_name("scratch"))
    with scene.started() as process:
        _some_runs(scene, process, rng)
        # Files that are open for writing forbid it, so that the moment is that after them.
        while process.poll() is None and not _mount(disk, "remount,ro"):
            time.sleep(0.01)
        ended = Ended(*scene.wait(process), STOPPED)
    _mount(disk, "remount,rw")
    return resumed(scene, clean, "read-only folder", ended)


def _limited(folder: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    scene = Scene(folder)
    most = int(rng.integers(1_000, 40_000))
    setup = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"
    with scene.started(setup) as process:
        ended = Ended(*scene.wait(process), STOPPED)
    return resumed(scene, clean, "limit on file sizes", ended)


def _vanished(folder: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    scene, away = Scene(folder), folder.with_name(f"{folder.name}-away")
    with scene.started() as process:
        _some_runs(scene, process, rng)
        scene.output.rename(away)
        ended = Ended(*scene.wait(process), STOPPED)
    shutil.rmtree(scene.output, ignore_errors=True)
    away.rename(scene.output)
    return resumed(scene, clean, "vanished folder", ended)


def _some_runs(scene: Scene, process: subprocess.Popen[str], rng: np.random.Generator) -> None:
    """Wait until a random number of runs is recorded."""
    n_records = int(rng.integers(1, N_RUNS))
    wait_for(lambda: len(record_times(scene.output)) >= n_records, process)


@contextmanager
def _mounted(disk: Path, size: str) -> Iterator[Path]:
    """Mount a file system in memory."""
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def _mount(disk: Path, options: str) -> bool:
    """Mount a file system with other options; return False if that is refused."""
    done = subprocess.run(["mount", "-o", options, disk], check=False, capture_output=True)
    return done.returncode == 0
