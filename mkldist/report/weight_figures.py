"""Figures of kernel weights and of selected kernels: by width, function, features and kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mkldist.analysis.kernel_selection import kernel_shares
from mkldist.figures.palette import looks
from mkldist.report.charts import Chart, legend_below, logarithmic, new_figure
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST, slug

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_GROUPS, MOST_WIDTHS = 12, 40
N_PARTS = 20
MOST_LINES = 8
GROUP_WIDTH = "group and width"
LETTERS = (24, 32, 40)  # of a name in a figure
EQUAL = 1e-9  # relative difference of shares that counts as none
FREQUENCY = "frequency"
PANELS = {"share": "share of weights", FREQUENCY: "share of splits"}
"""Columns that the two panels of a figure draw, with the labels of their axes."""
WHOLE = (-0.08, 1.08)
"""Limits of an axis of shares of splits, with room for marks at its ends."""
NAMES = {
    "function": ("functions", "kernel function"),
    "feature_group": ("feature-groups", "group of features"),
    "features": ("features", "feature subset"),
    "kernel": ("single-kernels", "kernel"),
}
"""Coordinates along kernels by whose texts weights are summed: name of the figure, and in words."""
Weights = list[tuple[dict[str, str], "xr.DataArray"]]


def weight_charts(facts: Facts) -> list[Chart]:
    """Return the weights of each data set by width of the kernels and by their features."""
    charts = []
    for dataset in facts.datasets[:MOST]:
        own = [(place, weights) for place, weights in facts.weights if place["dataset"] == dataset]
        own, said = _of_largest_bank(own)
        found = [_by_width(dataset, own, facts)]
        twice = all(groups_are_features(weights) for _, weights in own)
        found += [
            _by_name(dataset, own, facts, coordinate, names)
            for coordinate, names in NAMES.items()
            if not (twice and coordinate == "feature_group")
        ]
        charts += [replace(one, caption=one.caption + said) for one in found if one is not None]
    return charts


def groups_are_features(weights: xr.DataArray) -> bool:
    """Return True if groups of features say nothing else than the features, as views do."""
    both = "features" in weights.coords and "feature_group" in weights.coords
    return both and bool((weights["features"] == weights["feature_group"]).all())


def _of_largest_bank(own: Weights) -> tuple[Weights, str]:
    """Return the weights on the bank of most kernels, and a sentence if there are several banks."""
    sizes = {place["bank"]: weights.sizes["kernel"] for place, weights in own}
    if len(sizes) < 2:
        return own, ""
    largest = max(sizes, key=lambda bank: sizes[bank])
    kept = [(place, weights) for place, weights in own if place["bank"] == largest]
    return kept, f" Of {len(sizes)} banks, the one of most kernels is shown, {largest}."


def _shares(own: Weights, coordinate: str) -> pd.DataFrame:
    """Return shares and frequencies of each value of a coordinate, for each method with weights."""
    parts = []
    for place, weights in own:
        if coordinate in weights.coords and np.any(weights.to_numpy()):
            parts.append(kernel_shares(weights, coordinate).assign(**place))
    columns = ["dataset", "bank", "method", coordinate, "n_kernels", "share", FREQUENCY]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return table.reindex(columns=columns)


def _by_width(dataset: str, own: Weights, facts: Facts) -> Chart | None:
    """Return the shares of each width; of several groups of features, those of the best method.

    Widths on different groups, such as views, are of different units: each group has its line.
    """
    named = [(place, _with_widths_of_groups(weights)) for place, weights in own]
    table = _shares(named, GROUP_WIDTH)
    if table.empty:
        return None
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
    panels = _panels(own)

    def draw() -> Figure:
        figure, axes = new_figure(len(panels), height=1.4 + 1.1 * len(panels), shared=True)
        for ax, column in zip(axes.flat, panels, strict=True):
            for name, some in shown.groupby(line, sort=False):
                look = styles[str(name)]
                ax.plot(some["width"], some[column], color=look.colour, marker=look.marker,
                        linestyle=look.line, label=_short(str(name), LETTERS[0]))  # fmt: skip
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
        f"Share of the kernel weights on kernels of each width, {which}"
        f"{_selecting(panels, 'a kernel of the width')}.",
        table,
        draw,
    )


def _with_widths_of_groups(weights: xr.DataArray) -> xr.DataArray:
    """Return weights with group of features and width of each kernel in one text, if it has both.

    Of many random widths the medians of twenty parts of equal numbers stand for all.
    """
    if "width" not in weights.coords:
        return weights
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


def _telling(table: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of the methods that tell groups apart; all if none does."""
    shares = table.groupby("method")["share"]
    differs = shares.transform("max") - shares.transform("min") > EQUAL * shares.transform("max")
    return table[differs] if differs.any() else table


def _by_name(
    dataset: str, own: Weights, facts: Facts, coordinate: str, called: tuple[str, str]
) -> Chart | None:
    """Return the shares of the largest values of a coordinate; None for fewer than two values."""
    table = _shares(own, coordinate)
    n_groups = table[coordinate].nunique()
    if n_groups < 2:
        return None
    name, words = called
    largest = _telling(table).groupby(coordinate)["share"].max().nlargest(MOST_GROUPS).index
    table = table[table[coordinate].isin(largest)]
    methods, panels = list(dict.fromkeys(table["method"])), _panels(own)
    which = f"; the {len(largest)} of {n_groups} that weigh most with some method"

    def draw() -> Figure:
        height = 0.95 + 0.19 * len(largest)
        figure, axes = new_figure(1, len(panels), height=height, shared=True)
        for ax, column in zip(axes.flat, panels, strict=True):
            values = table.pivot(index=coordinate, columns="method", values=column)
            _dots(ax, values.loc[largest, methods], facts)
            words = PANELS[column]
            ax.set_xlabel(words if len(panels) == 1 else words.replace("of ", "of\n"))
            ax.locator_params("x", nbins=3)
            if column == FREQUENCY:
                ax.set_xlim(*WHOLE)
        axes[0, 0].set_yticks(range(len(largest)), _labels([*map(str, largest)]))
        axes[0, 0].set_ylim(len(largest) - 0.4, -0.6)
        legend_below(figure)
        return figure

    selecting = _selecting(panels, "it" if coordinate == "kernel" else "a kernel of it")
    return Chart(
        f"{name}-{slug(dataset)}",
        f"{dataset}: kernel weights by {words}",
        f"Share of the kernel weights on each {words}, mean over the splits{selecting}"
        f"{which if n_groups > len(largest) else ''}.",
        table,
        draw,
    )


def _panels(own: Weights) -> list[str]:
    """Return the columns to draw: one split alone tells no frequency."""
    several = any(weights.sizes["split"] > 1 for _, weights in own)
    return [column for column in PANELS if several or column != FREQUENCY]


def _selecting(panels: Sequence[str], what: str) -> str:
    """Return what a caption says of the panel of frequencies, if it is there."""
    return f", and the share of the splits that select {what}" if FREQUENCY in panels else ""


def _dots(ax: Axes, values: pd.DataFrame, facts: Facts) -> None:
    """Draw a mark for each value (row) and method (column), the methods below each other."""
    middle = 0.5 * (values.shape[1] - 1)
    for place, method in enumerate(values.columns):
        look = facts.looks[str(method)]
        rows = np.arange(len(values)) + (place - middle) * 0.7 / values.shape[1]
        ax.plot(values[method].fillna(0.0), rows, color=look.colour, marker=look.marker,
                linestyle="none", label=str(method))  # fmt: skip


def _labels(names: list[str]) -> list[str]:
    """Return names in as few letters as tell them apart."""
    shorter = ([_short(name, most) for name in names] for most in LETTERS)
    return next((labels for labels in shorter if len({*labels}) == len(names)), names)


def _short(text: str, most: int) -> str:
    """Return a name without its middle if it is long: names of kernels differ at both ends."""
    tail = most // 2 - 2
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"
