"""Figures of learning curves: the loss against the number of training points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkldist.analysis.learning_curves import curves_of
from mkldist.report.charts import Chart, legend_below, line_with_band, logarithmic, new_figure
from mkldist.report.facts import LOSS_WORDS, Facts
from mkldist.report.loss_figures import MOST, label, loss_units, slug

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def learning_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss against the training points, a figure for each data set of sizes."""
    curves = curves_of(facts.compared)
    if curves.empty:
        return []
    curves["look"] = curves["method"].map(facts.method_of)
    tables = [table for _, table in curves.groupby("dataset", sort=False)]
    return [_chart(table, facts) for table in tables[:MOST]]


def _chart(table: pd.DataFrame, facts: Facts) -> Chart:
    """Return the figure of one data set; of a method on several banks, the best one."""
    dataset, loss = str(table["dataset"].iloc[0]), str(table["loss"].iloc[0])
    largest = table[table["n_train"] == table["n_train"].max()]
    shown = set(largest.loc[largest.groupby("look")["mean"].idxmin(), "method"])

    def draw() -> Figure:
        figure, axes = new_figure()
        (ax,) = axes.flat
        for name, some in table[table["method"].isin(shown)].groupby("method", sort=False):
            look = facts.looks[str(some["look"].iloc[0])]
            line_with_band(ax, look, str(name), some["n_train"], some["mean"], some["low"],
                           some["high"])  # fmt: skip
        logarithmic(ax, "x")
        ax.set(xlabel="training points", ylabel=label(loss))
        legend_below(figure)
        return figure

    banks = " Of several banks, that of least loss at the largest size." * facts.several_banks
    return Chart(
        f"learning-{slug(dataset)}",
        f"{dataset}: {LOSS_WORDS[loss]} against training points",
        "Mean over the splits at the setting chosen for each size; the band is the 95 % interval "
        f"corrected for overlapping training parts (Nadeau & Bengio 2003).{banks}",
        table.drop(columns="look"),
        draw,
        loss_units(loss, "mean", "low", "high"),
    )
