"""Figures of curves: gaps by passes and seconds, losses and times by sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkldist.analysis.convergence import COSTS, convergence_curves
from mkldist.analysis.kernel_number_curves import loss_by_active_kernels, loss_by_bank_size
from mkldist.analysis.learning_curves import curves_of
from mkldist.metrics import loss_words
from mkldist.report.charts import Chart, legend_below, line_with_band, logarithmic, new_figure
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST, label, loss_units, slug, spans_decades
from mkldist.report.scaling_figures import charts_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


WORDS = {"passes": "passes over the bank", "seconds": "seconds of a run"}


def convergence_charts(facts: Facts) -> list[Chart]:
    """Return the gap against passes and against seconds, for each data set with traces."""
    tables = {against: convergence_curves(facts.tree, against) for against in COSTS}
    return [
        _of_gaps(dataset, against, table[table["dataset"] == dataset], facts)
        for dataset in facts.datasets[:MOST]
        for against, table in tables.items()
        if dataset in set(table["dataset"])
    ]


def _of_gaps(dataset: str, against: str, table: pd.DataFrame, facts: Facts) -> Chart:
    banks = list(dict.fromkeys(table["bank"]))
    bank = facts.largest_bank(dataset, banks)
    shown = table[table["bank"] == bank]

    def draw() -> Figure:
        figure, axes = new_figure()
        (ax,) = axes.flat
        for method, some in shown.groupby("method", sort=False):
            look, drawn = facts.looks[str(method)], some[some["gap"] > 0.0]
            ax.plot(drawn[against], drawn["gap"], color=look.colour, linestyle=look.line,
                    label=str(method))  # fmt: skip
            ax.fill_between(drawn[against], drawn["gap_low"], drawn["gap_high"],
                            color=look.colour, alpha=0.15, linewidth=0)  # fmt: skip
        logarithmic(ax, "y", *["x"] * spans_decades(shown[against]))
        ax.set(xlabel=WORDS[against], ylabel="relative duality gap")
        legend_below(figure)
        return figure

    which = f" Of {len(banks)} banks, the one of most kernels is shown, {bank}."
    return Chart(
        f"convergence-{against}-{slug(dataset)}",
        f"{dataset}: gap against {WORDS[against]}",
        "Best certified gap so far: the median over all traced runs of a method, of all settings "
        f"and splits; the band holds the middle half of them.{which * (len(banks) > 1)}",
        table,
        draw,
    )


def learning_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss against the training points, a figure for each data set of sizes."""
    curves = curves_of(facts.compared)
    if curves.empty:
        return []
    curves["look"] = curves["method"].map(facts.method_of)
    tables = [table for _, table in curves.groupby("dataset", sort=False)]
    return [_of_training_points(table, facts) for table in tables[:MOST]]


def _of_training_points(table: pd.DataFrame, facts: Facts) -> Chart:
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
        f"{dataset}: {loss_words(loss)} against training points",
        "Mean over the splits at the setting chosen for each size; the band is the 95 % interval "
        f"corrected for overlapping training parts (Nadeau & Bengio 2003).{banks}",
        table.drop(columns="look"),
        draw,
        loss_units(loss, "mean", "low", "high"),
    )


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
        f"{dataset}: {loss_words(loss)} against the number of kernels",
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
        f"{dataset}: {loss_words(loss)} against the number of candidates, bank {bank}",
        f"Mean over the splits at the setting chosen for each size{band}.",
        table,
        draw,
        loss_units(loss, "mean", "low", "high"),
    )


def scaling_charts(facts: Facts) -> list[Chart]:
    """Return time against each size that grows in a sweep, and the parts of that time."""
    return [
        chart
        for growth in facts.growths
        if not growth.fits.empty
        for chart in charts_of(growth, facts.looks, MOST)
    ]
