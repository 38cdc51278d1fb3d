"""Figures of time: convergence of single runs, and growth with the sizes of a scaling study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.report.charts import Chart, logarithmic, new_figure
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST, slug
from mkldist.report.scaling_figures import charts_of
from mkldist.results.schema import CONVERGENCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RUNS = 12  # of a method, drawn in one figure


def convergence_charts(facts: Facts) -> list[Chart]:
    """Return the duality gap against seconds, a figure for each data set with traces."""
    charts = []
    for dataset in facts.datasets[:MOST]:
        parts = [
            _trace(node[CONVERGENCE].to_dataset()).assign(method=place["method"])
            for place, node in facts.members(dataset)
            if CONVERGENCE in node.children
            and "gap" in node[CONVERGENCE].ds
            and node[CONVERGENCE].ds["gap"].notnull().any()
        ]
        table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        if table.empty:
            continue

        def draw(table: pd.DataFrame = table) -> Figure:
            figure, axes = new_figure()
            (ax,) = axes.flat
            for method, some in table.groupby("method", sort=False):
                look = facts.looks[str(method)]
                for number, (_, run) in enumerate(some.groupby("run", sort=False)):
                    ax.plot(run["seconds"], run["gap"], color=look.colour, alpha=0.6,
                            linestyle=look.line, linewidth=1.0,
                            label=str(method) if number == 0 else None)  # fmt: skip
            logarithmic(ax, "x", "y")
            ax.set(xlabel="seconds", ylabel="relative duality gap")
            figure.legend(loc="outside lower center", ncols=3)
            return figure

        charts.append(
            Chart(
                f"convergence-{slug(dataset)}",
                f"{dataset}: convergence",
                "Best certified gap so far against the run's own time and its share of the passes. "
                "A line is a run; of each method at most twelve runs are drawn.",
                table,
                draw,
            )
        )
    return charts


def _trace(data: Any) -> pd.DataFrame:
    """Return gap and seconds of at most twelve runs, a row an iteration."""
    gaps = data["gap"].to_numpy().reshape(-1, data.sizes["iteration"])
    seconds = data["seconds"].to_numpy().reshape(gaps.shape)
    complete = np.flatnonzero(np.isfinite(gaps).any(axis=1))
    rows: list[tuple[int, int, float, float]] = []
    for run in complete[:: max(1, -(-len(complete) // MOST_RUNS))]:
        best = np.fmin.accumulate(gaps[run])
        steps = np.flatnonzero(np.isfinite(gaps[run]) & (best > 0.0))
        rows.extend((int(run), int(s) + 1, float(seconds[run, s]), float(best[s])) for s in steps)
    return pd.DataFrame(rows, columns=["run", "iteration", "seconds", "gap"])


def scaling_charts(facts: Facts) -> list[Chart]:
    """Return time against each size that grows in a sweep, and the parts of that time."""
    return [
        chart
        for growth in facts.growths
        if not growth.fits.empty
        for chart in charts_of(growth, facts.looks, MOST)
    ]
