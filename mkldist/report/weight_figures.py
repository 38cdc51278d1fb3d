"""Figures of kernel weights: by width, function, feature group, features and kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.analysis.kernel_selection import weight_by
from mkldist.report.charts import Chart, legend_below, logarithmic, new_figure
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST, slug

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

MOST_GROUPS, MOST_WIDTHS = 12, 40
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
        found += [_by_name(dataset, own, facts, *names) for names in NAMES.items()]
        charts += [replace(one, caption=one.caption + said) for one in found if one is not None]
    return charts


def _of_largest_bank(own: Weights) -> tuple[Weights, str]:
    """Return the weights on the bank of most kernels, and a sentence if there are several banks."""
    sizes = {place["bank"]: weights.sizes["kernel"] for place, weights in own}
    if len(sizes) < 2:
        return own, ""
    largest = max(sizes, key=lambda bank: sizes[bank])
    kept = [(place, weights) for place, weights in own if place["bank"] == largest]
    return kept, f" Of {len(sizes)} banks, the one of most kernels is shown, {largest}."


def _shares(own: Weights, coordinate: str) -> pd.DataFrame:
    """Return the share of each value of a coordinate, for each method that has any weight."""
    parts = []
    for place, weights in own:
        if coordinate in weights.coords and np.any(weights.to_numpy()):
            table = weight_by(weights, coordinate).rename("share").reset_index()
            parts.append(table.assign(method=place["method"]))
    columns = [coordinate, "share", "method"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _by_width(dataset: str, own: Weights, facts: Facts) -> Chart | None:
    table = _shares(own, "width").sort_values("width", kind="stable")
    if table["width"].nunique() < 2:
        return None
    if table["width"].nunique() > MOST_WIDTHS:  # random widths: twenty parts of equal numbers
        parts = pd.cut(table["width"].rank(method="dense"), 20, labels=False)
        table["width"] = table.groupby(parts)["width"].transform("median")
        table = table.groupby(["method", "width"])[["share"]].sum().reset_index()

    def draw() -> Figure:
        figure, axes = new_figure()
        (ax,) = axes.flat
        for method, some in table.groupby("method", sort=False):
            look = facts.looks[str(method)]
            ax.plot(some["width"], some["share"], color=look.colour, marker=look.marker,
                    linestyle=look.line, label=str(method))  # fmt: skip
        logarithmic(ax, "x")
        ax.set(xlabel="width of the kernel", ylabel="share of the weights")
        legend_below(figure)
        return figure

    return Chart(
        f"widths-{slug(dataset)}",
        f"{dataset}: kernel weights by width",
        "Share of the kernel weights on kernels of each width, mean over the splits, at the "
        "method's chosen setting.",
        table,
        draw,
    )


def _by_name(
    dataset: str, own: Weights, facts: Facts, coordinate: str, called: tuple[str, str]
) -> Chart | None:
    """Return the shares of the largest values of a coordinate; None for fewer than two values."""
    table = _shares(own, coordinate)
    n_groups = table[coordinate].nunique()
    if n_groups < 2:
        return None
    name, words = called
    largest = table.groupby(coordinate)["share"].max().nlargest(MOST_GROUPS).index
    table = table[table[coordinate].isin(largest)]
    which = f"; the {len(largest)} of {n_groups} that weigh most with some method"

    def draw() -> Figure:
        names = list(largest)
        figure, axes = new_figure(height=0.8 + 0.19 * len(names))
        (ax,) = axes.flat
        methods = list(dict.fromkeys(table["method"]))
        for place, method in enumerate(methods):
            look = facts.looks[method]
            some = table[table["method"] == method].set_index(coordinate)["share"]
            offset = (place - 0.5 * (len(methods) - 1)) * 0.7 / max(len(methods), 1)
            ax.plot(
                [some.get(one, 0.0) for one in names], np.arange(len(names)) + offset,
                color=look.colour, marker=look.marker, linestyle="none", label=method,
            )  # fmt: skip
        ax.set_yticks(range(len(names)), [_short(one) for one in names])
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlabel("share of the weights")
        legend_below(figure)
        return figure

    return Chart(
        f"{name}-{slug(dataset)}",
        f"{dataset}: kernel weights by {words}",
        f"Share of the kernel weights on each {words}, mean over the splits"
        f"{which if n_groups > len(largest) else ''}.",
        table,
        draw,
    )


def _short(name: Any, most: int = 28) -> str:
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"
