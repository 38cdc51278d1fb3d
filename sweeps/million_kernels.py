"""Draw ``million_kernels.svg``: the time of a study of 10⁶ kernels against the number of workers.

Nothing is run: ``mkldist.plan`` foretells it, by the rates of this machine.  In a clone::

    mkldist doctor
    python sweeps/million_kernels.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import mkldist

HERE = Path(__file__).parent
BACKENDS = {  # backend: words and colour
    "recompute": ("computed in every pass", "#c1272d"),
    "stream": ("read from a storage of 10 GB/s", "#0000a7"),
}
STORAGE = 10e9  # bytes a second, as of a parallel file system
MARKERS = {"processors": "o", "longest task": "s", "storage": "D", "scheduler": "^"}


def foretold(backend: str) -> pd.DataFrame:
    """Return the forecast of the study with a backend, a row for each number of workers."""
    plan = mkldist.plan(
        HERE / "million_kernels.toml",
        changes={"banks.random.backend": backend, "memory": "4GiB"},
        workers=100,
        storage=STORAGE,
    )
    return plan.forecast


def draw(axes: Axes, rows: pd.DataFrame, words: str, colour: str) -> None:
    """Draw the hours against the workers, with a marker for what limits each."""
    hours = rows.seconds / 3600
    axes.plot(rows.workers, hours, color=colour, lw=1.2, label=f"kernels {words}")
    for limit, marker in MARKERS.items():
        here = rows.limit == limit
        axes.plot(rows.workers[here], hours[here], marker, color=colour, ms=5, ls="none")
    ideal = hours.iloc[0] / rows.workers
    axes.plot(rows.workers, ideal, color=colour, lw=0.6, ls=":")


def main() -> None:
    """Draw the picture."""
    mpl.rcParams |= {"svg.hashsalt": "mkldist", "font.size": 9}
    figure = Figure(figsize=(7.0, 3.8), layout="constrained")
    axes = figure.subplots()
    for backend, (words, colour) in BACKENDS.items():
        draw(axes, foretold(backend), words, colour)
    for limit, marker in MARKERS.items():
        axes.plot([], [], marker, color="black", ms=5, ls="none", label=f"limited by {limit}")
    axes.plot([], [], color="black", lw=0.6, ls=":", label="ideal")
    axes.set(xscale="log", yscale="log", xlabel="workers of one thread", ylabel="hours, foretold")
    axes.set_title("10⁶ kernels, 100 splits, 20 settings")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "million_kernels.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
