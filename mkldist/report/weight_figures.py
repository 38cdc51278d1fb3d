"""Figures of kernel weights by width, and of how often splits select a width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mkldist.analysis.kernel_selection import kernel_shares
from mkldist.figures.palette import looks
from mkldist.report.charts import Chart, legend_below, logarithmic, new_figure, slug
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

MOST_WIDTHS, N_PARTS, MOST_LINES = 40, 20, 8
LETTERS = 24  # of a name in a figure
GROUP_WIDTH = "group and width"
FREQUENCY = "frequency"
PANELS = {"share": "share of weights", FREQUENCY: "share of splits"}
"""Columns that the two panels of a figure draw, with the labels of their axes."""
WHOLE = (-0.08, 1.08)
"""Limits of an axis of shares of splits, with room for marks at its ends."""
Weights = list[tuple[dict[str, str], "xr.DataArray"]]


def weight_charts(facts: Facts) -> list[Chart]:
    """Return the weights of each data set by width of the kernels."""
    found = []
    for dataset in facts.datasets[:MOST]:
        own = [(place, weights) for place, weights in facts.weights if place["dataset"] == dataset]
        found.append(_by_width(dataset, *_of_largest_bank(own), facts))
    return [chart for chart in found if chart is not None]


def _of_largest_bank(own: Weights) -> tuple[Weights, str]:
    """Return the weights on the bank of most kernels, and a sentence if there are several banks."""
    sizes = {place["bank"]: weights.sizes["kernel"] for place, weights in own}
    if len(sizes) < 2:
        return own, ""
    largest = max(sizes, key=lambda bank: sizes[bank])
    kept = [(place, weights) for place, weights in own if place["bank"] == largest]
    return kept, f" Of {len(sizes)} banks, the one of most kernels is shown, {largest}."


def _by_width(dataset: str, own: Weights, said: str, facts: Facts) -> Chart | None:
    """Return the shares of each width; of several groups of features, those of the best method.

    Widths on different groups, such as views, are of different units: each group has its line.
    """
    found = [
        kernel_shares(_with_widths_of_groups(weights), GROUP_WIDTH).assign(**place)
        for place, weights in own
        if "width" in weights.coords and np.any(weights.to_numpy())
    ]
    if not found:
        return None
    columns = ["dataset", "bank", "method", GROUP_WIDTH, "n_kernels", "share", FREQUENCY]
    table = pd.concat(found, ignore_index=True)[columns]
    parts = table.pop(GROUP_WIDTH).str.rsplit("\n", n=1, expand=True)
    table.insert(3, "feature_group", parts[0])
    table.insert(4, "width", parts[1].astype(float))
    table = table.sort_values(["method", "feature_group", "width"], kind="stable")
    groups = table.groupby("feature_group")["share"].sum()
    groups = groups.nlargest(MOST_LINES)[lambda sums: sums > 0.0]
    if table["width"].nunique() < 2:
        return None
    shown, line, which = table, "method", "mean over the splits, at the method's chosen setting"
    if len(groups) > 1:
        best = facts.best_of(dataset, table["method"].unique())
        shown = table[(table["method"] == best) & table["feature_group"].isin(groups.index)]
        line, which = "feature_group", f"by group of features, mean over the splits of {best}"
    styles = facts.looks if line == "method" else looks(groups.index)
    several = any(weights.sizes["split"] > 1 for _, weights in own)
    panels = [column for column in PANELS if several or column != FREQUENCY]
    selecting = ", and the share of the splits that select a kernel of the width" * several

    def draw() -> Figure:
        figure, axes = new_figure(len(panels), height=1.4 + 1.1 * len(panels), shared=True)
        for ax, column in zip(axes.flat, panels, strict=True):
            for name, some in shown.groupby(line, sort=False):
                look = styles[str(name)]
                ax.plot(some["width"], some[column], color=look.colour, marker=look.marker,
                        linestyle=look.line, label=_short(str(name)))  # fmt: skip
            ax.set_ylabel(PANELS[column])
            if column == FREQUENCY:
                ax.set_ylim(*WHOLE)
        logarithmic(ax, "x")
        ax.set_xlabel("width of the kernel")
        legend_below(figure)
        return figure

    return Chart(
        f"widths-{slug(dataset)}",
        f"{dataset}: kernel weights by width",
        f"Share of the kernel weights on kernels of each width, {which}{selecting}.{said}",
        table,
        draw,
    )


def _with_widths_of_groups(weights: xr.DataArray) -> xr.DataArray:
    """Return weights with group of features and width of each kernel in one text.

    Of many random widths the medians of twenty parts of equal numbers stand for all.
    """
    widths = pd.Series(weights["width"].to_numpy())
    groups = pd.Series("all", widths.index)
    if "feature_group" in weights.coords:
        groups = pd.Series(weights["feature_group"].to_numpy())
    if widths.nunique() > MOST_WIDTHS:
        rank = widths.groupby(groups).rank(method="dense", pct=True)
        parts = np.ceil(rank * N_PARTS)
        widths = widths.groupby([groups, parts]).transform("median")
    texts = groups.astype(str) + "\n" + widths.map(repr)
    return weights.assign_coords(
        {GROUP_WIDTH: ("kernel", texts.where(widths.notna(), "").to_numpy(object))}
    )


def _short(text: str) -> str:
    """Return a name without its middle if it is long: names differ at both ends."""
    tail = LETTERS // 2 - 2
    return text if len(text) <= LETTERS else f"{text[: LETTERS - tail - 1]}…{text[-tail:]}"
