"""A small sweep as processes of its own, and what is left of it after a fault."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil
import xarray as xr

from mkldist.results.schema import RunState
from tests.chaos.outcomes import Outcome
from tests.run.damage import values_of
from tests.run.sweeps import record_times, sweep_text

METHODS = {"level": [1.0, 10.0, 100.0], "best_single": [10.0], "uniform": [1.0, 10.0]}
MAPPED_BANK = """
[[banks]]
name = "mapped"
backend = "mmap"
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0]
features = ["all", "each"]
"""
SWEEP = sweep_text(METHODS, backend="memory") + MAPPED_BANK
N_RUNS = 2 * 2 * sum(map(len, METHODS.values()))  # on two banks and two splits
MARK = "MKLDIST_CHAOS"
ORPHANS_AFTER = 10.0
HANGS_AFTER = 1200.0  # more than the 15 minutes after which a silent worker is replaced
RANDOM = re.compile(r"[0-9a-z_]{8}$|\d+")


@dataclass(frozen=True)
class Scene:
    """Folders of a sweep, and the environment of its processes."""

    folder: Path  # holds everything that the sweep writes
    workers: tuple[str, ...] = ("--workers", "2")  # options of the command that choose its workers
    # Tells its processes from all others
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def output(self) -> Path:
        """Output folder of the sweep."""
        return self.folder / "results" / "small"

    @property
    def places(self) -> dict[str, Path]:
        """Every folder that the sweep writes to."""
        return {
            "output": self.output,
            "banks": self.output.with_name("banks"),
            "cache": self.folder / "cache",
            "scratch": self.folder / "scratch",
        }

    @cached_property
    def environment(self) -> dict[str, str]:
        """Environment of the sweep's processes."""
        places = self.places
        places["scratch"].mkdir(parents=True, exist_ok=True)
        own = {"MKLDIST_CACHE": str(places["cache"]), "TMPDIR": str(places["scratch"])}
        return os.environ | own | {MARK: self.mark}

    @contextmanager
    def started(self, *options: str, setup: str = "") -> Iterator[subprocess.Popen[str]]:
        """Start the sweep's command in a session of its own; at the end, stop what still runs.

        Its process executes the statements `setup` first.
        """
        file = self.folder / "small.toml"
        self.folder.mkdir(parents=True, exist_ok=True)
        file.write_text(SWEEP)
        program = f"{setup}\nfrom mkldist.cli import main; main()"
        words = ["sweep", str(file), "--output", str(self.output), *self.workers, *options]
        with subprocess.Popen(
            [sys.executable, "-c", program, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=self.environment,
        ) as process:
            try:
                yield process
            finally:
                for one in self.processes():
                    with suppress(psutil.Error):
                        one.kill()

    def processes(self) -> list[psutil.Process]:
        """Return the living processes of the sweep, found by their environment."""
        found = []
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                if one.environ().get(MARK) == self.mark and one.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
        return found

    def orphans(self) -> tuple[str, ...]:
        """Return the processes of an ended command that live 10 seconds later."""
        deadline = time.monotonic() + ORPHANS_AFTER
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        found = []
        for one in left:
            with suppress(psutil.Error):
                found.append(" ".join(one.cmdline()))
        return tuple(found)

    def files(self) -> set[str]:
        """Return the paths of all files; random parts of names in the scratch folder count not."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
        return {RANDOM.sub("*", path) if path.startswith("scratch/") else path for path in found}

    def wait(self, process: subprocess.Popen[str]) -> tuple[int | None, str]:
        """Return the exit code of a process, None if it hangs, and what it has said."""
        try:
            said, _ = process.communicate(timeout=HANGS_AFTER)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return None, said
        return process.returncode, said


@dataclass(frozen=True, eq=False)
class Undisturbed:
    """The sweep without a fault."""

    seconds: float  # seconds that its command took at first
    values: dict[str, xr.Dataset]  # its results, without times
    files: set[str]  # all files that it leaves


def undisturbed(folder: Path) -> Undisturbed:
    """Run the sweep without a fault, and repeat its command, as is done after a fault."""
    scene, seconds = Scene(folder), []
    for _ in range(2):
        begin = time.monotonic()
        with scene.started() as process:
            code, said = scene.wait(process)
        seconds.append(time.monotonic() - begin)
        assert code == 0, said
    return Undisturbed(seconds[0], values_of(scene.output, timed=False), scene.files())


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # its exit code; None if it hung
    said: str  # what it printed
    allowed: tuple[int, ...]  # exit codes that are right

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with its end."""
        if self.code is None:
            yield f"hangs: {self.said[-300:]}"
        elif self.code not in self.allowed:
            yield f"exit code {self.code}: {self.said[-300:]}"
        if "Traceback" in self.said:
            yield f"a traceback: {self.said[-600:]}"


def resumed(scene: Scene, clean: Undisturbed, kind: str, ended: Ended, *options: str) -> Outcome:
    """Run the command of a disturbed sweep again, and compare with the undisturbed one."""
    orphans = scene.orphans()
    before = solved(scene.output)
    with scene.started(*options) as process:
        code, said = scene.wait(process)
    again = Ended(code, said, allowed=(0,))
    after = solved(scene.output)
    return Outcome(
        kind,
        lost=len(before.keys() - after.keys()),
        again=sum(after.get(name, when) != when for name, when in before.items()),
        wrong=tuple(differing(scene.output, clean.values)) if code == 0 else (),
        orphans=orphans + scene.orphans(),
        leftovers=tuple(sorted(scene.files() - clean.files)),
        faults=(*ended.faults(), *again.faults()),
    )


def solved(output: Path) -> dict[str, int]:
    """Return when each run was recorded, without the failed ones, which may be done again."""
    times = record_times(output)
    return {name: when for name, when in times.items() if name.endswith(f".{RunState.COMPLETE}")}


def differing(
    output: Path, expected: dict[str, xr.Dataset], *, recorded: bool = False
) -> list[str]:
    """Return the nodes of results that are not bit for bit as expected.

    With `recorded`, runs without a record are left out: theirs may be damaged.
    """
    found = values_of(output, timed=False)
    wrong = found.keys() ^ expected.keys()
    for node in found.keys() & expected.keys():
        one, other = found[node], expected[node]
        if recorded and "state" in one:
            there = one["state"] != "waiting"
            # Without a run that reports it, a variable is not there.
            one, other = one.where(there), other[[*one.data_vars]].where(there)
        if not one.equals(other):
            wrong.add(node)
    return sorted(wrong)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
    """Wait until a condition holds; return False if the process ends before."""
    deadline = time.monotonic() + HANGS_AFTER
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return process.poll() is None
