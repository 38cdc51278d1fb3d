"""The optimism of selected settings: a table, and a figure for each data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from mkldist.analysis.selection import selection_bias
from mkldist.core.metrics import metric_of_variable
from mkldist.report.charts import Chart, legend_below, new_figure, slug
from mkldist.report.facts import Facts, records
from mkldist.report.sweep_charts import MOST, label, loss_units
from mkldist.report.tables import Cell, Row, Table, identity_columns, numbers
from mkldist.results.rows import method_nodes
from mkldist.results.schema import RUNGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

CAPTION = (
    "The loss of a selected setting on the inner folds is the least of many, and so too low on "
    "average; its loss on the test part, which took no part in the selection, is not (Varma & "
    "Simon 2006; Cawley & Talbot 2010). Their difference is the optimism, with an interval "
    "corrected for overlapping training parts; rows whose interval leaves out 0 are marked. "
    "Machines on inner folds have fewer training points, which raises the loss there. The second "
    "rule takes the sparsest setting within one standard error of the least loss. The least test "
    "loss is that of the best setting on the test part, which nobody can select."
)
RULES = {"best": "least loss", "sparsest": "sparsest within 1 s.e."}
LOSSES: dict[str, tuple[str, str, Literal["none", "full"]]] = {
    "validation": ("selected setting, inner folds", "o", "none"),
    "test": ("selected setting, test part", "o", "full"),
    "least_test": ("least of all settings, test part", "|", "full"),
}
"""Columns that a figure draws: label, marker, and how it is filled."""


def bias_of_selection(facts: Facts) -> pd.DataFrame:
    """Return the table of :func:`selection_bias`; empty where nothing was selected in splits.

    A search by halving validates its settings at unequal resources, and has none either.
    """
    halved = any(RUNGS in node.attrs for node in method_nodes(facts.tree))
    return pd.DataFrame() if halved or not facts.validated else selection_bias(facts.tree)


def optimism_table(optimism: pd.DataFrame) -> Table:
    """Return a row for each method and rule: losses on inner folds and test parts."""

    def loss(name: str) -> Callable[[Row], Cell]:
        return lambda row: Cell(metric_of_variable(row["loss"]).text(row[name]), float(row[name]))

    columns = {
        **(identity_columns(optimism) if len(optimism) else {}),
        "rule": lambda row: Cell(RULES[row["rule"]]),
        "settings": numbers("n_settings", "{:.0f}"),
        "inner folds": loss("validation"),
        "test part": loss("test"),
        "optimism (95 %)": _optimism,
        "least test loss": loss("least_test"),
        "kernels": numbers("active_kernels", "{:.1f}"),
    }
    return Table(
        "optimism", optimism, columns, lambda row: row["low"] > 0.0 or row["high"] < 0.0, CAPTION
    )


def _optimism(row: Row) -> Cell:
    mean, low, high = (row[name] for name in ("optimism", "low", "high"))
    form = metric_of_variable(row["loss"]).number
    ends = "" if np.isnan(low) else f" [{form(low)}, {form(high)}]"
    return Cell(form(mean) + ends, float(mean))


def optimism_charts(optimism: pd.DataFrame, facts: Facts) -> list[Chart]:
    """Return the losses of each method's settings of least validation loss, by data set."""
    if optimism.empty:
        return []
    best = optimism[optimism["rule"] == "best"]
    tables = [table for _, table in best.groupby("dataset", sort=False)]
    return [_chart(table, facts) for table in tables[:MOST]]


def _handles() -> list[Line2D]:
    """Return what the legend shows, in the colour of text: each method has a colour of its own."""
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    ink = mpl.rcParams["text.color"]
    return [
        Line2D([], [], color=ink, marker=marker, fillstyle=fill, linestyle="none", label=said)
        for said, marker, fill in LOSSES.values()
    ]


def _chart(table: pd.DataFrame, facts: Facts) -> Chart:
    dataset, loss = str(table["dataset"].iloc[0]), str(table["loss"].iloc[0])
    names = table["method"]
    if facts.several_banks:
        names = names + " (" + table["bank"] + ")"

    def draw() -> Figure:
        figure, axes = new_figure(height=0.9 + 0.2 * len(table))
        (ax,) = axes.flat
        for place, row in enumerate(records(table)):
            colour = facts.looks[row["method"]].colour
            ax.plot([row["validation"], row["test"]], [place, place], color=colour, zorder=1)
            for column, (_, marker, fill) in LOSSES.items():
                ax.plot(row[column], place, marker=marker, fillstyle=fill, color=colour,
                        linestyle="none", markersize=5)  # fmt: skip
        ax.set_yticks(np.arange(len(table)), names)
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.set_xlabel(label(loss))
        legend_below(figure, _handles(), most=1)
        return figure

    return Chart(
        f"optimism-{slug(dataset)}",
        f"{dataset}: selected settings on inner folds and test parts",
        "Means over the splits of the loss of the settings selected on the inner folds. The bar "
        "from inner folds to test part is their optimism. The tick is the least loss of all "
        "settings on the test part, which a selection there would report.",
        table.assign(method=names).drop(columns="bank"),
        draw,
        loss_units(loss, *LOSSES, "optimism", "low", "high"),
    )
