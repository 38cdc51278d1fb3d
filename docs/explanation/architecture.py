"""Draw the picture of `architecture.md`: ``python docs/explanation/architecture.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

INK = "#1b1b1b"
# Name, rooms, centre, width and colour of each box.
BOXES = {
    "file": ("sweep file", "spec/", (1.1, 3), 1.9, "#f6ecd2"),
    "data": ("data, splits", "data/", (1.1, 1), 1.9, "#f6ecd2"),
    "plan": ("plan", "planning/", (3.7, 3), 2.3, "#dbe7f5"),
    "bank": ("bank of kernels", "bank/  kernels/", (3.7, 1), 2.3, "#dff0df"),
    "solvers": ("a solver a run", "solvers/  methods/", (7.0, 1), 2.5, "#dff0df"),
    "records": ("records, journal", "results/", (7.0, 3), 2.5, "#dbe7f5"),
    "answer": ("tree, tests, page", "analysis/  report/", (10.3, 3), 2.4, "#f3dfe3"),
    "model": ("model", "fit/", (10.3, 1), 2.4, "#f3dfe3"),
}
# From, to, words, and how far the arrow is moved up.
ARROWS = (
    ("file", "plan", "", 0.0),
    ("data", "plan", "", 0.0),
    ("data", "bank", "", 0.0),
    ("plan", "bank", "", 0.0),
    ("solvers", "bank", "requests", 0.22),
    ("bank", "solvers", "answers", -0.22),
    ("solvers", "records", "", 0.0),
    ("records", "answer", "", 0.0),
    ("records", "model", "", 0.0),
)
HEIGHT = 1.0


def draw() -> plt.Figure:
    """Return the picture."""
    figure, ax = plt.subplots(figsize=(9.6, 4.4))
    ax.set(xlim=(0, 11.6), ylim=(-0.6, 5.2))
    ax.axis("off")
    words = {"ha": "center", "va": "center", "color": INK}
    for y, text in (
        (4.6, "from_python/, cli/: Python and the commands"),
        (-0.25, "run/: work queue, workers, retries, resume, search, progress"),
    ):
        band = mpl.patches.Rectangle((0.1, y - 0.28), 11.4, 0.56, fc="#ececec", ec="none")
        ax.add_patch(band)
        ax.text(5.8, y, text, fontsize=10, **words)
    for name, rooms, (x, y), width, colour in BOXES.values():
        box = mpl.patches.FancyBboxPatch(
            (x - width / 2, y - HEIGHT / 2),
            width,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.12",
            fc=colour,
            ec="#8a8a8a",
        )
        ax.add_patch(box)
        ax.text(x, y + 0.16, name, fontsize=10, weight="bold", **words)
        ax.text(x, y - 0.22, rooms, fontsize=9, family="monospace", **words)
    for start, end, text, shift in ARROWS:
        _arrow(ax, start, end, shift)
        if text:
            middle = (_edge(start, end)[0] + _edge(end, start)[0]) / 2
            ax.text(middle, 1 + 1.9 * shift, text, fontsize=9, **words)
    return figure


def _edge(start: str, end: str) -> tuple[float, float]:
    """Return the point of a box where an arrow to another box begins."""
    (x, y), width = BOXES[start][2:4]
    other_x, other_y = BOXES[end][2]
    if other_y == y:
        return x + (width / 2 if other_x > x else -width / 2), y
    lean = 0.0 if other_x == x else (width / 4 if other_x > x else -width / 4)
    return x + lean, y + (HEIGHT / 2 if other_y > y else -HEIGHT / 2)


def _arrow(ax: plt.Axes, start: str, end: str, shift: float) -> None:
    (x, y), (to_x, to_y) = _edge(start, end), _edge(end, start)
    style = {"arrowstyle": "-|>", "color": "#555555", "shrinkA": 2, "shrinkB": 2, "lw": 1.2}
    ax.annotate("", (to_x, to_y + shift), (x, y + shift), arrowprops=style)


if __name__ == "__main__":
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "mkldist", "font.family": "sans-serif"}
    draw().savefig(
        Path(__file__).with_suffix(".svg"),
        bbox_inches="tight",
        facecolor="white",
        metadata={"Date": None},
    )
