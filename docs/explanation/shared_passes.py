"""Draw the picture of `shared_passes.md`: ``python docs/explanation/shared_passes.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

RUNS = ("C = 0.1", "C = 1", "C = 10", "inner fold")
# Own work of each run before each of three passes, in parts of the longest.
WORK = ((0.5, 0.3, 0.4), (1.0, 0.6, 0.3), (0.7, 1.0, 0.8), (0.3, 0.5, 1.0))
PASS = 0.9
COLOURS = {"own work": "#4477aa", "waiting": "#dddddd", "a pass over all kernels": "#ccbb44"}


def draw() -> plt.Figure:
    """Return the picture: four runs that wait for each other, and the passes that answer all."""
    figure, ax = plt.subplots(figsize=(8.0, 2.6))
    start = 0.0
    for number in range(3):
        longest = max(work[number] for work in WORK)
        for row, work in enumerate(WORK):
            own = work[number]
            bar = {"height": 0.55, "edgecolor": "none"}
            ax.barh(row, own, left=start, color=COLOURS["own work"], **bar)
            ax.barh(row, longest - own, left=start + own, color=COLOURS["waiting"], **bar)
        start += longest
        middle = (len(WORK) - 1) / 2
        bar = mpl.patches.Rectangle(
            (start + 0.04, middle - 2.0), PASS - 0.08, 4.0, fc=COLOURS["a pass over all kernels"]
        )
        ax.add_patch(bar)
        ax.text(start + PASS / 2, middle, f"pass {number + 1}", ha="center", va="center")
        start += PASS
    ax.set(xlim=(-0.05, start + 0.05), ylim=(len(WORK) - 0.4, -0.6), yticks=range(len(WORK)))
    ax.set_yticklabels(RUNS)
    ax.set(xticks=[], xlabel="time")
    ax.tick_params(length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    handles = [mpl.patches.Patch(color=colour, label=name) for name, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="upper center", ncols=3, frameon=False)
    figure.subplots_adjust(top=0.86)
    return figure


if __name__ == "__main__":
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "mkldist", "font.family": "sans-serif"}
    draw().savefig(
        Path(__file__).with_suffix(".svg"),
        bbox_inches="tight",
        facecolor="white",
        metadata={"Date": None},
    )
