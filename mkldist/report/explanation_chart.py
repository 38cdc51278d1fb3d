"""One figure of what carries the decision: by features, and by width or function."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.explanation import Explanation, Share
from mkldist.durable import check_free, replacing, writing
from mkldist.errors import OutputError, ending_words
from mkldist.figures.palette import looks
from mkldist.report.charts import FORMATS, STYLE, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.4  # inches of a column of print
MOST_NAMES, MOST_WIDTHS = 10, 40
WEIGHT, DECISION = "of the weights", "of the decision's variance"
_SIZES: dict[Any, Any] = {
    "font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8, "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "grid.color": "#d9d9d9",
    "lines.markersize": 4,
}  # fmt: skip


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Draw an explanation and write it as PDF, SVG or PNG, by the ending of the file.

    Raises
    ------
    mkldist.errors.OutputError
        For another ending, without matplotlib, and if the file cannot be written.
    """
    import matplotlib as mpl

    with mpl.rc_context({**STYLE, **_SIZES, "svg.hashsalt": explanation.dataset}):
        figure = draw(explanation)
        with writing(path), replacing(path) as temporary:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(
                temporary, format=path.suffix[1:], dpi=300, facecolor="white", metadata=metadata
            )


def check_figure(path: Path, *, overwrite: bool) -> None:
    """Refuse a file of another kind, one that is there, and any without matplotlib.

    Raises
    ------
    mkldist.errors.OutputError
        With the remedy.
    """
    from importlib.util import find_spec

    if path.suffix[1:] not in FORMATS:
        ending = ending_words(path.suffix)
        raise OutputError(str(path), ending, "a name ending in .pdf, .svg or .png")
    check_free(path, overwrite=overwrite)
    if find_spec("matplotlib") is None:
        raise OutputError(
            str(path),
            "a figure without matplotlib",
            "the package matplotlib",
            "pip install 'mkldist[figures]' installs it",
        )


def draw(explanation: Explanation) -> Figure:
    """Return the figure: shares by features above, by width or function below."""
    from matplotlib.figure import Figure

    panels = _panels(explanation)
    heights = [0.55 + (1.5 if along else 0.19 * len(shares)) for _, shares, along in panels]
    figure = Figure(figsize=(COLUMN, 0.5 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for ax, (_, shares, along) in zip(axes.flat, panels, strict=True):
        (_along if along else _named)(ax, shares)
    figure.suptitle(f"{explanation.dataset}: {explanation.method}", fontsize=8)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _panels(explanation: Explanation) -> list[tuple[str, tuple[Share, ...], bool]]:
    """Return what is drawn: name, shares, and True for widths along an axis."""
    found: list[tuple[str, tuple[Share, ...], bool]] = []
    features = explanation.grouping("features")
    if features is not None:
        found.append(("features", features.shares[:MOST_NAMES], False))
    width, function = explanation.grouping("width"), explanation.grouping("function")
    if width is not None and len(width.shares) <= MOST_WIDTHS:
        found.append(("width", width.shares, True))
    elif function is not None:
        found.append(("function", function.shares[:MOST_NAMES], False))
    return found or [("kernel", explanation.kernels, False)]


def _series(shares: tuple[Share, ...]) -> list[tuple[str, list[float], list[float]]]:
    """Return label, means and deviations of the weights, and of the decision where it is known."""
    found = [(WEIGHT, [one.weight for one in shares], [one.weight_sd for one in shares])]
    if not np.isnan([one.decision for one in shares]).all():
        decision = [one.decision for one in shares]
        found.append((DECISION, decision, [one.decision_sd for one in shares]))
    return found


def _named(ax: Axes, shares: tuple[Share, ...]) -> None:
    """Draw shares of names, one below the other."""
    look = looks([WEIGHT, DECISION])
    places = np.arange(len(shares))
    series = _series(shares)
    for number, (label, means, sds) in enumerate(series):
        offset = 0.3 * (number - 0.5 * (len(series) - 1))
        ax.errorbar(
            means, places + offset, xerr=np.nan_to_num(sds), label=label, linestyle="none",
            color=look[label].colour, marker=look[label].marker, elinewidth=0.8,
        )  # fmt: skip
    ax.set_yticks(places, [_short(str(one.name)) for one in shares])
    ax.set_ylim(len(shares) - 0.5, -0.5)
    ax.set_xlabel("share, mean ± sd over the splits")


def _along(ax: Axes, shares: tuple[Share, ...]) -> None:
    """Draw shares of widths along an axis."""
    look = looks([WEIGHT, DECISION])
    widths = [float(one.name) for one in shares]
    for number, (label, means, sds) in enumerate(_series(shares)):
        # Marks of one width stand side by side where the axis is logarithmic.
        places = [width * (1.0 + 0.08 * number) for width in widths]
        ax.errorbar(
            places, means, yerr=np.nan_to_num(sds), label=label, color=look[label].colour,
            marker=look[label].marker, linewidth=1.0, elinewidth=0.8,
        )  # fmt: skip
    if min(widths) > 0.0:
        logarithmic(ax, "x")
    ax.set(xlabel="width of the kernel", ylabel="share")


def _short(text: str, most: int = 26) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
