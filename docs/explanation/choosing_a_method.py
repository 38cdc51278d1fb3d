"""Draw the chart of `choosing_a_method.md`: ``python docs/explanation/choosing_a_method.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

BRANCHES = (
    (
        "two or\nmore classes",
        "#dbe7f5",
        (
            ("few kernels, to be read", "level"),
            ("a probability model", "spicymkl, logistic loss"),
            ("all kernels help a little", "lp_mkl, elastmkl"),
            ("few views, each whole", "group_mkl"),
            ("at most k kernels", "l0_mkl"),
            ("weights without a joint fit", "align, easymkl"),
        ),
    ),
    (
        "real values",
        "#dff0df",
        (
            ("few kernels", "spicymkl, primalmkl"),
            ("all kernels help a little", "elastmkl"),
            ("outliers in the labels", "spicymkl, epsilon loss"),
        ),
    ),
    ("one class", "#f6ecd2", (("rows unlike the others", "primalmkl, one-class"),)),
    (
        "few labels,\nmany without",
        "#f3dfe3",
        (
            ("many kernels", "lapmkl, mklsvm"),
            ("kernels of graphs", "glks"),
            ("one kernel or their mean", "lapsvm, laprls"),
        ),
    ),
)
STYLE = {"ha": "left", "va": "center", "fontsize": 11, "color": "#1b1b1b"}


def draw() -> plt.Figure:
    """Return the chart, a line for each answer."""
    n_lines = sum(len(answers) for *_, answers in BRANCHES)
    figure, ax = plt.subplots(figsize=(8.0, 0.36 * n_lines + 1.0))
    ax.set(xlim=(0, 11), ylim=(n_lines + 0.9, -1.3))
    ax.axis("off")
    for x, words in ((0.1, "your labels"), (2.8, "what you want"), (7.0, "try first")):
        ax.text(x, -0.85, words, **STYLE, weight="bold")
    line = 0
    for labels, colour, answers in BRANCHES:
        top, bottom = line - 0.45, line + len(answers) - 0.55
        box = mpl.patches.FancyBboxPatch(
            (0.0, top),
            10.95,
            bottom - top,
            boxstyle="round,pad=0,rounding_size=0.15",
            fc=colour,
            ec="none",
        )
        ax.add_patch(box)
        ax.text(0.1, (top + bottom) / 2, labels, **STYLE, weight="bold")
        for wish, methods in answers:
            ax.text(2.8, line, wish, **STYLE)
            ax.text(7.0, line, methods, **STYLE, family="monospace")
            line += 1
    ax.text(
        0.1, n_lines + 0.2, "Beside each: uniform and majority, or rls, as yardsticks.", **STYLE
    )
    return figure


if __name__ == "__main__":
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "mkldist", "font.family": "sans-serif"}
    chart = draw()
    chart.savefig(
        Path(__file__).with_suffix(".svg"),
        bbox_inches="tight",
        facecolor="white",
        metadata={"Date": None},
    )
