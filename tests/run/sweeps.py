"""Small sweeps for the tests of this folder, run in this process or as the command line."""

import os
import runpy
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import distributed  # noqa: F401  # its defaults, before one is set and taken back
import psutil

from mkldist.methods.registry import METHODS
from mkldist.planning.model import Plan
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.schema import RunState
from mkldist.run.cluster import ConnectOptions
from mkldist.run.rounds import Rounds
from mkldist.run.sweep import SweepOutcome, run_sweep
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.spec.model import SweepSpec

Solution = tuple[RunState, float, bytes]
MISBEHAVING = Path(__file__).with_name("misbehaving.py")

SWEEP = """
name = "{name}"
execution = "{execution}"
[[datasets]]
name = "two_moons"
options = {{ n = 80, noise = 0.3 }}
[preprocessing]
fit = "{fit}"
[splits]
repeats = {repeats}
[[banks]]
normalisation = {normalisation}
backend = "{backend}"
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 0.3, 1.0, 3.0]
features = ["all", "each"]
[outputs]
predictions = true
keep_banks = true
{methods}
"""


def sweep_text(methods: dict[str, list[float]], **changes: Any) -> str:
    settings = {
        "name": "small", "execution": "shared", "fit": "train", "repeats": 2, "backend": "auto",
        "normalisation": '"trace"',
    } | changes  # fmt: skip
    entries = "\n".join(f'[[methods]]\nname = "{m}"\nC = {values}' for m, values in methods.items())
    return SWEEP.format(methods=entries, **settings)


def many_kernels(methods: dict[str, list[float]], **changes: Any) -> str:
    """Return a sweep on 1500 kernels, which two workers keep as a shard each."""
    widths = "{ start = 0.1, stop = 5.0, num = 500, scale = 'log' }"  # of three kernels each
    return sweep_text(methods, **changes).replace("[0.1, 0.3, 1.0, 3.0]", widths)


def rounds_of(text: str) -> Rounds:
    """Return the rounds of a sweep for one worker."""
    spec = SweepSpec.model_validate(tomllib.loads(text))
    return sweep_rounds(spec, Path("sweep.toml"), (), ConnectOptions(n_workers=1))


def plan_of(text: str) -> Plan:
    """Return the plan of a sweep for one worker."""
    return rounds_of(text).most


def run_here(text: str, output: Path, scheduler: str | None, **options: Any) -> SweepOutcome:
    """Run a sweep on a scheduler, or on a cluster of its own."""
    spec = SweepSpec.model_validate(tomllib.loads(text))
    options.setdefault(
        "connect_options", ConnectOptions(scheduler, n_workers=None if scheduler else 1)
    )
    return run_sweep(spec, origin=output.parent / "sweep.toml", output=output, **options)


@contextmanager
def misbehaving_methods() -> Iterator[None]:
    """Have the misbehaving methods here and in workers that start meanwhile."""
    before = dict(METHODS)
    runpy.run_path(str(MISBEHAVING))
    try:
        with dask.config.set({"distributed.worker.preload": [str(MISBEHAVING)]}):
            yield
    finally:
        METHODS.clear()
        METHODS.update(before)


def hosts_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the process of a sweep's command that has started workers of this machine, if any."""
    children = psutil.Process(process.pid).children()
    return [child for child in children if "local_workers" in " ".join(child.cmdline())]


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the worker processes of a sweep's command, forked from a process or started each."""
    found: list[psutil.Process] = []
    for child in [child for host in hosts_of(process) for child in host.children()]:
        words = " ".join(child.cmdline())
        if "spawn_main" in words:
            found.append(child)
        elif "forkserver" in words:
            found += child.children()
    return found


def start_process(
    text: str, output: Path, *arguments: str, setup: str = "", through: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Start the command line on a sweep, in a process group of its own as a terminal would."""
    file = output.parent / f"{output.name}.toml"
    file.write_text(text)
    program = (  # under nohup it would not hear SIGHUP
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        f"{setup}import runpy; runpy.run_path({str(MISBEHAVING)!r}); "
        "from mkldist.cli import main; main()"
    )
    return subprocess.Popen(
        [
            *(*through, sys.executable, "-c", program),
            *("sweep", str(file), "--output", str(output), *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"DASK_DISTRIBUTED__WORKER__PRELOAD": str(MISBEHAVING)},
    )


@contextmanager
def running_process(
    text: str, output: Path, *arguments: str, setup: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """Start a sweep as :func:`start_process` does, and kill its processes at the end."""
    with start_process(text, output, *arguments, setup=setup) as process:
        try:
            yield process
        finally:
            end(process)


def run_process(text: str, output: Path, *arguments: str) -> tuple[int, str]:
    with running_process(text, output, "--workers", "1", *arguments) as process:
        said, _ = process.communicate(timeout=600)
    return process.returncode, said


def kill_after(n_records: int, text: str, output: Path) -> dict[str, int]:
    """Kill a sweep and its worker when so many runs are recorded; return when each was written."""
    with running_process(text, output, "--workers", "1") as process:
        there = f"{n_records} runs are recorded"
        wait_until(lambda: len(record_times(output)) >= n_records, there, process)
    return record_times(output)


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def records(output: Path) -> dict[str, RunRecord]:
    store = Journal(output / "records.journal")
    found = {run_id: store.read(run_id) for run_id in store.states()}
    return {run_id: record for run_id, record in found.items() if record is not None}


def solutions(output: Path) -> dict[str, Solution]:
    """Return what each run found, to the bit."""
    found = records(output).items()
    return {run: (one.state, one.objective, one.weights.tobytes()) for run, one in found}


def record_times(output: Path) -> dict[str, int]:
    """Return when each recorded run ended, in nanoseconds, by its id and state."""
    found = records(output).values()
    return {f"{one.id}.{one.state}": int(1e9 * one.provenance["ended"]) for one in found}


def wait_until(
    condition: Callable[[], bool],
    what: str,
    process: subprocess.Popen[str] | None = None,
    seconds: float = 300,
) -> None:
    """Wait for a condition, not longer than a process lives that is to bring it about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        if process is not None and process.poll() is not None:
            said = process.stdout.read() if process.stdout else ""
            raise AssertionError(f"ended with {process.returncode} before {what}: {said}")
        time.sleep(0.05)
