"""A sweep of very many short runs: memory of its coordinator, and commands while and after it runs.

The coordinator has Dask's scheduler in its process, so that its memory is that of both.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from mkldist.results.journal import Journal
from tests.benchmarks.measuring import Measured, named
from tests.benchmarks.starting import Spent, spent

RUNS = """
name = "short"
[[datasets]]
name = "two_moons"
options = { n = 40 }
[splits]
repeats = 300
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0]
[[methods]]
name = "uniform"
C = { start = 0.01, stop = 100.0, num = 100, scale = "log" }
"""
N_RUNS = 300 * 100
SETTLED = 0.25  # share of the runs after which memory is to stay as it is
PAUSE = 5.0  # seconds between two looks
OPEN = "import sys, mkldist; mkldist.open_results(sys.argv[1]).load()"


def thirty_thousand_runs(_: Path | None) -> Iterator[Measured]:
    """Run 30,000 runs with two workers; look at memory and at ``mkldist status`` meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name), Path(name) / "short.toml"
        file.write_text(RUNS)
        command = ("-m", "mkldist", "sweep", str(file), "--quiet", "--output", f"{folder}/results")
        started = time.perf_counter()
        sweep = subprocess.Popen(
            [sys.executable, *command, "--workers", "2"], stdout=subprocess.DEVNULL
        )
        looks = list(_looks(sweep, folder))
        wall = time.perf_counter() - started
        if sweep.returncode:
            raise RuntimeError(f"the sweep ended with exit code {sweep.returncode}")
        early = next(look.memory for look in looks if look.done >= SETTLED)
        last, asked = looks[-1].memory, sorted((look.status for look in looks), key=_wall)
        slowest = asked[-1]
        work = f"{N_RUNS} short runs"
        yield Measured(work, wall, "", note=f"2 workers, {N_RUNS / wall:.0f} runs a second")
        note = f"MiB; {early:.0f} after a quarter of the runs"
        yield Measured(f"{work}: coordinator and scheduler", last, "", unit="MiB", note=note)
        median = asked[len(asked) // 2].wall
        note = f"CPU {slowest.cpu:.2f} s, the slowest of {len(looks)}; median {median:.2f} s"
        yield Measured(f"{work}: status meanwhile", slowest.wall, "1 s", note=note)
        finished = spent(folder, *command)
        yield Measured(f"{work}: sweep, finished", finished.wall, "1 s", note=_cpu(finished))
        opened = spent(folder, "-c", OPEN, f"{folder}/results")
        yield Measured(f"{work}: open_results and load", opened.wall, "2 s", note=_cpu(opened))


def _wall(spent: Spent) -> float:
    return spent.wall


def _cpu(spent: Spent) -> str:
    return f"CPU {spent.cpu:.2f} s"


class _Look(NamedTuple):
    """The share of the runs that is recorded, MiB of the coordinator, and the time of `status`."""

    done: float
    memory: float
    status: Spent


def _looks(sweep: subprocess.Popen[bytes], folder: Path) -> Iterator[_Look]:
    """Look at a sweep now and then until it ends."""
    records = Journal(folder / "results" / "records.journal")
    coordinator = psutil.Process(sweep.pid)
    while sweep.poll() is None:
        time.sleep(PAUSE)
        done = len(records.states()) / N_RUNS
        try:
            memory = coordinator.memory_info().rss / 2**20
        except psutil.Error:
            return
        if memory and done:  # a process that has ended has no memory
            status = spent(folder, "-m", "mkldist", "status", f"{folder}/results")
            yield _Look(done, memory, status)


ROWS = named(thirty_thousand_runs)
