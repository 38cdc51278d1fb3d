"""Figures of convergence: the gap of traced runs against passes over the bank, and seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkldist.analysis.convergence import COSTS, convergence_curves
from mkldist.report.charts import Chart, legend_below, logarithmic, new_figure
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST, slug, spans_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

WORDS = {"passes": "passes over the bank", "seconds": "seconds of a run"}


def convergence_charts(facts: Facts) -> list[Chart]:
    """Return the gap against passes and against seconds, for each data set with traces."""
    tables = {against: convergence_curves(facts.tree, against) for against in COSTS}
    return [
        _chart(dataset, against, table[table["dataset"] == dataset], facts)
        for dataset in facts.datasets[:MOST]
        for against, table in tables.items()
        if dataset in set(table["dataset"])
    ]


def _chart(dataset: str, against: str, table: pd.DataFrame, facts: Facts) -> Chart:
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
