"""Seconds of processor time that commands and imports take, each in a process of its own.

Processes inherit compiled modules of Python, as an installation has them, but nothing else.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from tests.benchmarks.measuring import Measured, named

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


ROWS = named(commands)
