"""Figures of losses and objectives along hyperparameters, and of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkldist.analysis.comparison import OverDataSets
from mkldist.analysis.objective_paths import objective_path
from mkldist.analysis.paired_losses import LABEL_UNITS, in_units
from mkldist.metrics import loss_words, metric_of_variable
from mkldist.report.charts import Chart, legend_below, line_with_band, logarithmic, new_figure
from mkldist.report.facts import Facts, records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST = 6  # data sets that have figures of their own


def path_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss along the regularisation, a figure for each data set."""
    charts = []
    for dataset in facts.datasets[:MOST]:
        axis = facts.axis(dataset)
        rows = facts.summary[facts.summary["dataset"] == dataset]
        if axis is None or axis not in rows:
            continue
        loss = facts.loss(dataset)
        table = _along(rows, axis, loss)
        if table.empty:
            continue

        def draw(table: pd.DataFrame = table, axis: str = axis, loss: str = loss) -> Figure:
            figure, axes = new_figure()
            (ax,) = axes.flat
            for method, some in table.groupby("method", sort=False):
                mean, sd = some["mean"], some["sd"]
                line_with_band(ax, facts.looks[str(method)], str(method), some[axis], mean,
                               mean - sd, mean + sd)  # fmt: skip
            if spans_decades(table[axis]):
                logarithmic(ax, "x")
            ax.set(xlabel=axis, ylabel=label(loss))
            legend_below(figure)
            return figure

        charts.append(
            Chart(
                f"path-{slug(dataset)}",
                f"{dataset}: {loss_words(loss)} along {axis}",
                f"Mean over the splits; the band is one standard deviation. For each value of "
                f"{axis}, other hyperparameters have the value of least mean loss.",
                table,
                draw,
                loss_units(loss, "mean", "sd"),
            )
        )
    return charts


def objective_charts(facts: Facts) -> list[Chart]:
    """Return the mean objective of methods that minimise the same function, on one bank each.

    A data set without two such methods has no figure.
    """
    axes_of = {dataset: facts.axis(dataset) for dataset in facts.datasets[:MOST]}
    paths = {axis: objective_path(facts.tree, axis) for axis in set(axes_of.values()) if axis}
    charts = []
    for dataset, axis in axes_of.items():
        if axis is None:
            continue
        rows = paths[axis][paths[axis]["dataset"] == dataset]
        if rows.empty:
            continue
        rows = rows[rows["bank"] == facts.largest_bank(dataset, rows["bank"].tolist())]
        methods = rows.groupby("problem")["method"].nunique()
        if methods.max() < 2:
            continue
        table = rows[rows["problem"] == methods.idxmax()]

        def draw(table: pd.DataFrame = table, axis: str = axis) -> Figure:
            figure, axes = new_figure()
            (ax,) = axes.flat
            for method, some in table.groupby("method", sort=False):
                mean, sd = some["objective"], some["objective_sd"]
                line_with_band(ax, facts.looks[str(method)], str(method), some[axis], mean,
                               mean - sd, mean + sd)  # fmt: skip
            logarithmic(ax, *(["x"] * spans_decades(table[axis])),
                        *(["y"] * spans_decades(table["objective"])))  # fmt: skip
            ax.set(xlabel=axis, ylabel="objective")
            legend_below(figure)
            return figure

        on = f" on the kernels of {table['bank'].iloc[0]}" * facts.several_banks
        charts.append(
            Chart(
                f"objective-{slug(dataset)}",
                f"{dataset}: objective along {axis}",
                f"These methods minimise the same function{on}, and differ by their gaps at most. "
                "Mean over the splits; the band is one standard deviation.",
                table,
                draw,
                loss_units(facts.loss(dataset), "loss"),
            )
        )
    return charts


def rank_chart(over: OverDataSets, facts: Facts) -> Chart | None:
    """Return the diagram of mean ranks with Nemenyi's critical difference."""
    ranks = over.ranks
    if ranks is None:
        return None
    table = ranks.mean_ranks.sort_values().rename_axis("method").rename("mean_rank").reset_index()

    def draw() -> Figure:
        figure, axes = new_figure(height=0.8 + 0.2 * len(table))
        (ax,) = axes.flat
        for place, row in enumerate(records(table)):
            look = facts.looks[facts.method_of(row["method"])]
            ax.plot(
                row["mean_rank"], place, marker=look.marker, color=look.colour, linestyle="none"
            )
            half = 0.5 * ranks.critical_difference
            ax.plot(
                [row["mean_rank"] - half, row["mean_rank"] + half],
                [place, place],
                color=look.colour,
            )
        ax.set_yticks(range(len(table)), table["method"])
        ax.invert_yaxis()
        ax.set_xlabel("mean rank over the data sets; 1 is best")
        return figure

    return Chart(
        "ranks",
        "Mean ranks over the data sets",
        f"Bars are Nemenyi's critical difference {ranks.critical_difference:.2f} wide (level "
        f"0.05): methods whose bars do not overlap differ. Friedman's test in the form of Iman and "
        f"Davenport: p = {ranks.p_value:.2g}. Mean ranks depend on which other methods take part, "
        f"so the signed-rank tests of pairs are the better evidence.",
        table,
        draw,
    )


def _along(rows: pd.DataFrame, axis: str, loss: str) -> pd.DataFrame:
    """Return mean and deviation of the loss of each method at each value of a hyperparameter."""
    mean, sd = f"{loss}_mean", f"{loss}_sd"
    known = rows.dropna(subset=[axis, mean])
    known = known.assign(**{mean: metric_of_variable(loss).loss(known[mean])})
    at_best = known.loc[known.groupby(["bank", "method", axis], sort=False)[mean].idxmin()]
    table = at_best.assign(loss=loss)[["dataset", "bank", "method", axis, "loss", mean, sd]]
    table = table.rename(columns={mean: "mean", sd: "sd"})
    return table.loc[table.groupby(["method", axis], sort=False)["mean"].idxmin()].sort_values(
        ["method", axis]
    )


def spans_decades(values: pd.Series) -> bool:
    """Return True if an axis of these values is better logarithmic."""
    positive = values[values > 0]
    spans = len(positive) == len(values) and float(positive.max()) >= 20 * float(positive.min())
    return bool(spans)


def label(loss: str) -> str:
    """Return the label of an axis of a loss."""
    units = f", {LABEL_UNITS}" if in_units(loss) else ""
    return loss_words(loss) + units


def loss_units(loss: str, *columns: str) -> dict[str, str]:
    """Return the units of columns that hold values of a loss."""
    return dict.fromkeys(columns, LABEL_UNITS) if in_units(loss) else {}


def slug(text: str) -> str:
    """Return a name in small letters, digits and hyphens."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())
