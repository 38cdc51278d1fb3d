"""Folders that are full, read-only or gone under a sweep, and two sweeps on one folder."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

from mkldist.errors import EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_INTERNAL
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import N_RUNS, Ended, Scene, Undisturbed, resumed, wait_for
from tests.run.sweeps import record_times

FAILURES = ("full disk", "read-only", "vanished")
LIMITED = "limit on file sizes"
PLACES = ("output", "banks", "cache", "scratch")
STOPPED = (0, EXIT_INTERNAL, EXIT_BAD_INPUT, EXIT_FAILED_RUNS)
ENOUGH_KIB = 2**16


def media() -> list[str]:
    """Return what can fail here: every folder in every way, and files that grow too large."""
    may_mount = os.geteuid() == 0 and shutil.which("mount") is not None
    ways = FAILURES if may_mount else FAILURES[-1:]
    return [LIMITED, *(f"{way}: {place}" for place in PLACES for way in ways)]


def fail(folder: Path, clean: Undisturbed, kind: str, rng: np.random.Generator) -> Outcome:
    """Let a medium fail under a sweep, mend it, and run the command again."""
    scene = Scene(folder)
    if kind == LIMITED:
        ended = _limited(scene, rng)
    else:
        way, _, place = kind.partition(": ")
        target = scene.places[place]
        if way == "full disk":
            return _full(scene, clean, kind, target, rng)
        ended = _hidden(scene, target, read_only if way == "read-only" else vanished, rng)
    return resumed(scene, clean, kind, ended)


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


def start_twice(folder: Path, clean: Undisturbed, **_: object) -> Outcome:
    """Start two commands on one new folder at once: one sweeps, the other may be refused."""
    scene, allowed = Scene(folder), (0, EXIT_BAD_INPUT)
    with scene.started() as first, Scene(folder).started() as second:
        ends = [Ended(*scene.wait(process), allowed) for process in (first, second)]
    outcome = resumed(scene, clean, "two starts at once", ends[0])
    faults = [*outcome.faults, *ends[1].faults()]
    if all(end.code for end in ends):
        faults.append("neither did the sweep")
    return Outcome(**{**vars(outcome), "faults": tuple(faults)})


def _limited(scene: Scene, rng: np.random.Generator) -> Ended:
    """Run the command with a limit on the size of its files."""
    most = int(rng.integers(1_000, 40_000))
    setup = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"
    with scene.started(setup=setup) as process:
        return Ended(*scene.wait(process), STOPPED)


def _full(
    scene: Scene, clean: Undisturbed, kind: str, place: Path, rng: np.random.Generator
) -> Outcome:
    """Give one folder a disk of its own that is soon full, and enlarge it after the command."""
    place.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={rng.integers(8, 500)}k", "tmpfs", place)
    try:
        with scene.started() as process:
            ended = Ended(*scene.wait(process), STOPPED)
        _mount("-o", f"remount,size={ENOUGH_KIB}k", place)
        return resumed(scene, clean, kind, ended)
    finally:
        _unmount(place)


def _hidden(
    scene: Scene,
    place: Path,
    hidden: Callable[[Path], AbstractContextManager[None]],
    rng: np.random.Generator,
) -> Ended:
    """Hide one folder after a random number of runs, until the command has ended."""
    n_records = int(rng.integers(1, N_RUNS))
    with scene.started() as process:
        wait_for(lambda: len(record_times(scene.output)) >= n_records, process)
        with hidden(place):
            return Ended(*scene.wait(process), STOPPED)


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Mount a folder over itself without the right to write; open files stay as they are."""
    _mount("--bind", place, place)
    try:
        _mount("-o", "remount,bind,ro", place, attempts=100)
        yield
    finally:
        _unmount(place)


@contextmanager
def vanished(place: Path) -> Iterator[None]:
    """Move a folder away; at the end it takes the place of what was made meanwhile."""
    away = place.with_name(f"{place.name}-away")
    place.rename(away)
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)
        away.rename(place)


def _mount(*words: str | Path, attempts: int = 1) -> None:
    """Mount; try again while a file is open for writing, which forbids to write no more."""
    for left in range(attempts - 1, -1, -1):
        ended = subprocess.run(["mount", *words], check=not left, capture_output=True)
        if not ended.returncode:
            return
        time.sleep(0.01)


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", place], check=True)
