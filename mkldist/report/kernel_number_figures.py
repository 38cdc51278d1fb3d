"""Figures of the loss against the number of kernels: of selected ones, and of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkldist.analysis.kernel_number_curves import loss_by_active_kernels, loss_by_bank_size
from mkldist.report.charts import Chart, legend_below, line_with_band, logarithmic, new_figure
from mkldist.report.facts import LOSS_WORDS, Facts
from mkldist.report.loss_figures import MOST, label, loss_units, slug

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def kernel_number_charts(facts: Facts) -> list[Chart]:
    """Return the loss against the number of active kernels, a figure for each data set."""
    table = loss_by_active_kernels(facts.tree)
    table = table[table["active_kernels"] > 0]
    tables = [some for _, some in table.groupby("dataset", sort=False) if len(some) > 1]
    return [_by_active_kernels(some, facts) for some in tables[:MOST]]


def _by_active_kernels(table: pd.DataFrame, facts: Facts) -> Chart:
    dataset, loss = str(table["dataset"].iloc[0]), str(table["loss"].iloc[0])

    def draw() -> Figure:
        figure, axes = new_figure()
        (ax,) = axes.flat
        for method, some in table.groupby("method", sort=False):
            look = facts.looks[str(method)]
            ax.scatter(some["active_kernels"], some["mean"], label=str(method),
                       color=look.colour, marker=look.marker, s=14)  # fmt: skip
        logarithmic(ax, "x")
        ax.set(xlabel="active kernels, mean over the splits", ylabel=label(loss))
        legend_below(figure)
        return figure

    return Chart(
        f"kernels-{slug(dataset)}",
        f"{dataset}: {LOSS_WORDS[loss]} against the number of kernels",
        "Each mark is one setting of a method. Low and left is better: fewer kernels for the same "
        "loss.",
        table,
        draw,
        loss_units(loss, "mean", "low", "high"),
    )


def bank_size_charts(facts: Facts) -> list[Chart]:
    """Return the loss against the number of candidates, for each data set and bank of sizes."""
    table = loss_by_bank_size(facts.tree)
    tables = [some for _, some in table.groupby(["dataset", "bank"], sort=False)]
    return [_by_bank_size(some, facts) for some in tables[:MOST]]


def _by_bank_size(table: pd.DataFrame, facts: Facts) -> Chart:
    dataset, bank = str(table["dataset"].iloc[0]), str(table["bank"].iloc[0])
    loss = str(table["loss"].iloc[0])
    band = ""
    if table["low"].notna().any():
        band = (
            "; the band is the 95 % interval corrected for overlapping training parts (Nadeau & "
            "Bengio 2003)"
        )

    def draw() -> Figure:
        figure, axes = new_figure()
        (ax,) = axes.flat
        for method, some in table.groupby("method", sort=False):
            line_with_band(ax, facts.looks[str(method)], str(method), some["n_kernels"],
                           some["mean"], some["low"], some["high"])  # fmt: skip
        logarithmic(ax, "x")
        ax.set(xlabel="candidate kernels", ylabel=label(loss))
        legend_below(figure)
        return figure

    return Chart(
        f"candidates-{slug(dataset)}-{slug(bank)}",
        f"{dataset}: {LOSS_WORDS[loss]} against the number of candidates, bank {bank}",
        f"Mean over the splits at the setting chosen for each size{band}.",
        table,
        draw,
        loss_units(loss, "mean", "low", "high"),
    )
