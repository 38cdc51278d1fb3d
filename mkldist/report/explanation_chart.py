"""One figure of what carries the decision: a bar for each view, group and feature."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.explanation import LEVELS, Explanation, Share
from mkldist.analysis.statistics import Interval
from mkldist.core.durable import check_free, replacing, writing
from mkldist.errors import OutputError, ending_words
from mkldist.report.charts import FORMATS, WIDTH, Chart, printed, slug
from mkldist.report.explanation_words import LEAST, shown_shares
from mkldist.report.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.165  # inches
MOST = 8  # bars of a level
LETTERS_WIDE = 18  # of the label of the second panel
NULL = "#767676"
CAPTION = (
    "Shares of the decision as bars and shares of the weights as diamonds, with those that have "
    "less than 1 % of both left out; and how much worse the metric is without each. Means over the "
    "splits with 95 % intervals."
)
LIMITS = (-0.25, 1.25)
"""Shares beyond which an axis does not reach; intervals end there."""


def explanation_chart(explanation: Explanation) -> Chart:
    """Return the figure for the report, with the whole table as its data."""
    return Chart(
        f"explanation-{slug(explanation.dataset)}",
        f"{explanation.dataset}: what the decision of {explanation.method} rests on",
        CAPTION,
        explanation.table,
        lambda: draw(explanation),
    )


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Draw an explanation and write it as PDF, SVG or PNG, by the ending of the file."""
    import matplotlib as mpl

    with mpl.rc_context(printed(explanation.dataset)):
        figure = draw(explanation)
        with writing(path), replacing(path) as temporary:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(
                temporary, format=path.suffix[1:], dpi=300, facecolor="white", metadata=metadata
            )


def check_figure(path: Path, *, overwrite: bool) -> None:
    """Refuse a file of another kind, one that is there, and any without matplotlib."""
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
    """Return the figure: shares of the decision, and the loss without each set, side by side."""
    from matplotlib.figure import Figure

    rows = _rows(explanation)
    shares = {y: row for y, row in enumerate(rows) if isinstance(row, Share)}
    decided = not explanation.no_decision
    figure = Figure(figsize=(WIDTH, 1.3 + ROW * len(rows)), layout="constrained")
    axes = figure.subplots(
        1, 1 + decided, sharey=True, squeeze=False, width_ratios=[1.6, 1][: 1 + decided]
    )[0]
    _shares(axes[0], explanation, shares)
    if decided:
        metric, scale = explanation.metric, 100.0 if explanation.metric.unit == "%" else 1.0
        _bars(axes[1], {y: row.left_out for y, row in shares.items()}, scale, COLOURS[1])
        unit = ", points" if metric.unit == "%" else ""
        axes[1].set_xlabel(fill(f"worse when left out: {metric.words}{unit}", LETTERS_WIDE))
    axes[0].set_yticks(range(len(rows)), [_label(row) for row in rows])
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    for label, row in zip(axes[0].get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if isinstance(row, Share) else "bold")
    for ax in axes:
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        ax.axvline(0.0, color=_ink(), linewidth=0.7)
    figure.suptitle(f"{explanation.dataset}: {explanation.method}", fontsize=8)
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _rows(explanation: Explanation) -> list[Share | str]:
    """Return what stands in the figure from above: headings and shares."""
    rows: list[Share | str] = []
    for level in ("view", "group", "feature"):
        matter, _ = shown_shares(explanation, level)
        tall = [share for share in matter if _size(share) >= LEAST][:MOST] or matter[:1]
        rows += [LEVELS[level], *tall] if tall else []
    return rows or [LEVELS["kernel"], *shown_shares(explanation, "kernel")[0][:MOST]]


def _ink() -> Any:
    """Return the colour of text, which a page sets."""
    import matplotlib as mpl

    return mpl.rcParams["text.color"]


def _size(share: Share) -> float:
    return float(np.nanmax(np.abs([share.decision.mean, share.weight.mean])))


def _shares(ax: Axes, explanation: Explanation, shares: dict[int, Share]) -> None:
    """Draw the shares of the decision with those of the weights, or the latter alone."""
    weights = {y: row.weight for y, row in shares.items()}
    if explanation.no_decision:
        _bars(ax, weights, 100.0, COLOURS[0])
        ax.set_xlabel("share of the weights, %")
        return
    _bars(ax, {y: row.decision for y, row in shares.items()}, 100.0, COLOURS[0])
    means = [100.0 * one.mean for one in weights.values()]
    if not np.isnan(means).all():
        ax.plot(means, [*weights], linestyle="none", marker="D", markersize=3.5, label="weights",
                markerfacecolor="white", markeredgecolor=_ink(), markeredgewidth=0.8)  # fmt: skip
    if explanation.n_permutations:
        null = [100.0 * row.null for row in shares.values()]
        ax.plot(null, [*shares], linestyle="none", marker="|", markersize=9, color=NULL,
                markeredgewidth=1.6, label="permuted labels")  # fmt: skip
    low, high = ax.get_xlim()
    ax.set_xlim(max(low, 100.0 * LIMITS[0]), min(high, 100.0 * LIMITS[1]))
    ax.set_xlabel("share of the decision, %")


def _bars(ax: Axes, found: dict[int, Interval], scale: float, colour: str) -> None:
    """Draw a bar for each mean, with its interval."""
    means = scale * np.array([one.mean for one in found.values()])
    ends = scale * np.array([[one.low, one.high] for one in found.values()])
    ax.barh([*found], np.nan_to_num(means), height=0.62, color=colour, alpha=0.55)
    if not np.isnan(ends).all():
        errors = np.nan_to_num(np.abs(ends - means[:, None]).T)
        ax.errorbar(means, [*found], xerr=errors, linestyle="none", color=_ink(),
                    elinewidth=0.8, capsize=1.5, capthick=0.8)  # fmt: skip


def _label(row: Share | str, most: int = 22) -> str:
    if not isinstance(row, Share):
        return row
    text = f"{row.name:g}" if isinstance(row.name, float) else row.name
    return text if len(text) <= most else f"{text[: most - 1]}…"
