"""Time until the first results: code not compiled yet, and sweeps that are small.

Each command runs in a process of its own, with its own folder of compiled code.  CPU seconds are
those of this process and of its workers.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from tests.benchmarks.measuring import Measured, named

TINY = """
name = "tiny"
[[datasets]]
name = "two_moons"
options = { n = 80, noise = 0.3 }
[splits]
repeats = 2
[[banks]]
normalisation = "trace"
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 0.3, 1.0, 3.0]
features = ["all", "each"]
[[methods]]
name = "level"
C = [1.0, 10.0, 100.0]
"""
SOLVE = """
import numpy as np, mkldist
x = np.random.default_rng(0).normal(size=(100, 5))
y = np.where(x[:, 0] > 0, 1.0, -1.0)
grams = np.array([np.exp(-(f[:, None] - f) ** 2) for f in x.T])
mkldist.solve("level", grams, y, C=10.0)
"""


@dataclass(frozen=True)
class Spent:
    """Seconds of a command, from start to end, and of all its processors."""

    wall: float
    cpu: float


def spent(folder: Path, *arguments: str) -> Spent:
    """Run Python with some arguments and the code compiled in a folder; return its seconds."""
    environ = os.environ | {
        "NUMBA_CACHE_DIR": str(folder / "compiled"),
        "MKLDIST_CACHE": str(folder / "cache"),
    }
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environ)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(wall, cpu)


def sweep(folder: Path, file: str | Path, output: str) -> Spent:
    """Run a sweep in a process of its own, into a folder that does not exist."""
    where = folder / output / "results"
    return spent(folder, "-m", "mkldist", "sweep", str(file), "--quiet", "--output", str(where))


def cold_start(data_dir: Path | None) -> Iterator[Measured]:
    """Run the quickstart and one call from Python before and after code is compiled.

    The quickstart runs before and after in two folders, and the shorter times count.  A run that
    does not count goes first: on a virtual machine, memory and files that nobody used for a while
    cost the first program seconds, compiled or not.
    """
    with tempfile.TemporaryDirectory() as name:
        sweep(Path(name) / "uncounted", "quickstart", "first")
        pairs = [
            [sweep(Path(name) / folder, "quickstart", output).wall for output in ("cold", "warm")]
            for folder in ("one", "two")
        ]
    cold, warm = map(min, zip(*pairs, strict=True))
    note = f"{cold:.1f} s and {warm:.1f} s"
    yield Measured("quickstart, not compiled / compiled", cold / warm, "1.3", unit="", note=note)
    yield Measured("quickstart, compiled", warm, "20 s")
    with tempfile.TemporaryDirectory() as name:
        for state, reach in (("not compiled", "5 s"), ("compiled", "0.8 s")):
            took = spent(Path(name), "-c", SOLVE)
            work = f"level, 5 kernels of 100 points, {state}: CPU"
            yield Measured(work, took.cpu, reach, note=f"wall {took.wall:.1f} s")


def small_sweep(data_dir: Path | None) -> Iterator[Measured]:
    """Run six tiny runs as a command, compiled."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "tiny.toml"
        file.write_text(TINY)
        sweep(Path(name), file, "first")
        took = sweep(Path(name), file, "second")
    yield Measured("sweep of six tiny runs", took.wall, "5 s", note=f"CPU {took.cpu:.1f} s")


# Seconds of processor time that commands and imports take, each in a process of its own.


REPEATS = 5
MKLDIST = (sys.executable, "-m", "mkldist")
# The quickstart's data and kernels on two splits, with a method that is soon finished.
SWEEP = (
    *(*MKLDIST, "sweep", "quickstart", "--set", "splits.repeats=2"),
    *("--set", 'methods=[{name="uniform", C=[10, 100, 1000]}]'),
)
COMMANDS = {
    "mkldist --help": ((*MKLDIST, "--help"), "0.15"),
    "mkldist list methods": ((*MKLDIST, "list", "methods"), "0.3"),
    "mkldist plan quickstart": ((*MKLDIST, "plan", "quickstart"), "1.0"),
    "mkldist status": ((*MKLDIST, "status", "results/quickstart"), "0.6"),
    "mkldist sweep, finished": (SWEEP, "0.8"),
    "import mkldist": ((sys.executable, "-c", "import mkldist"), ""),
    "mkldist.solve": ((sys.executable, "-c", "import mkldist; mkldist.solve"), ""),
    "mkldist.open_results": ((sys.executable, "-c", "import mkldist; mkldist.open_results"), ""),
    "import numpy": ((sys.executable, "-c", "import numpy"), ""),
}


def commands(_: Path | None) -> Iterator[Measured]:
    """Time commands and imports (medians), and the import of numpy, which most of them need."""
    with tempfile.TemporaryDirectory() as folder:
        used(SWEEP, folder)
        for words, (command, reach) in COMMANDS.items():
            used(command, folder)  # writes the compiled modules
            taken = [used(command, folder) for _ in range(REPEATS)]
            cpu, wall = (statistics.median(seconds) for seconds in zip(*taken, strict=True))
            note = f"CPU; {wall:.2f} s wall"
            yield Measured(words, cpu, f"{reach} s" if reach else "", note=note)


def used(command: Sequence[str], folder: str) -> tuple[float, float]:
    """Run a command in a folder; return its seconds of processor time and by the clock."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join([root, environment.get("PYTHONPATH", "")])
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    wall, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cpu, wall


ROWS = named(cold_start, small_sweep, commands)
