"""Figures of time: convergence of single runs, and growth with the number of kernels or points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.analysis.power_law import PowerLaw, fit_power_law
from mkldist.report.charts import Chart, logarithmic, new_figure
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import MOST, slug
from mkldist.results.schema import CONVERGENCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RUNS = 12  # of a method, drawn in one figure
SIZES = {"n_kernels": "kernels", "n_train": "training points"}


def convergence_charts(facts: Facts) -> list[Chart]:
    """Return the duality gap against seconds, a figure for each data set with traces."""
    charts = []
    for dataset in facts.datasets[:MOST]:
        parts = [
            _trace(node[CONVERGENCE].to_dataset()).assign(method=place["method"])
            for place, node in facts.members(dataset)
            if CONVERGENCE in node.children and "gap" in node[CONVERGENCE].ds
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


def size_fits(facts: Facts, size: str) -> tuple[pd.DataFrame, dict[str, PowerLaw]]:
    """Return seconds of complete runs by method and size, and the fitted law of each method.

    Parameters
    ----------
    facts : Facts
        Of the sweep.
    size : {"n_kernels", "n_train"}
        The size.
    """
    parts = []
    for place, node in facts.nodes:
        if size not in node.ds.coords or "seconds" not in node.ds:
            continue
        seconds = node.ds["seconds"].where(node.ds["state"] == "complete")
        values = seconds.transpose("split", ...).to_numpy().reshape(seconds.sizes["split"], -1)
        sizes = np.broadcast_to(np.asarray(node.ds[size].to_numpy()), (len(values),))
        for number, row in zip(sizes.tolist(), values, strict=True):
            known = row[np.isfinite(row) & (row > 0.0)]
            if len(known):
                parts.append((place["method"], place["dataset"], number, float(known.mean())))
    table = pd.DataFrame(parts, columns=["method", "dataset", size, "seconds"])
    laws = {}
    for method, some in table.groupby("method", sort=False):
        if some[size].nunique() > 1:
            laws[str(method)] = fit_power_law(
                some[size].to_numpy(float), some["seconds"].to_numpy()
            )
    return table, laws


def scaling_charts(facts: Facts) -> list[Chart]:
    """Return time against the number of kernels and of points, where the sweep has several."""
    charts = []
    for size, words in SIZES.items():
        table, laws = size_fits(facts, size)
        if not laws:
            continue

        def draw(
            table: pd.DataFrame = table, laws: dict[str, PowerLaw] = laws, size: str = size,
            words: str = words,
        ) -> Figure:  # fmt: skip
            figure, axes = new_figure()
            (ax,) = axes.flat
            for method, law in laws.items():
                some, look = table[table["method"] == method], facts.looks[method]
                ax.plot(some[size], some["seconds"], color=look.colour, marker=look.marker,
                        linestyle="none", markersize=3.5)  # fmt: skip
                ends = np.array([some[size].min(), some[size].max()], dtype=float)
                ax.plot(ends, [law.at(end) for end in ends], color=look.colour, linestyle=look.line,
                        label=f"{method}: exponent {law.exponent:.2f}")  # fmt: skip
            logarithmic(ax, "x", "y")
            ax.set(xlabel=words, ylabel="seconds a run")
            figure.legend(loc="outside lower center", ncols=2)
            return figure

        fits = "; ".join(
            f"{method} {law.exponent:.2f} [{law.low:.2f}, {law.high:.2f}]"
            for method, law in laws.items()
        )
        charts.append(
            Chart(
                f"time-{size.replace('_', '-')}",
                f"Time against the number of {words}",
                f"A mark is the mean over the settings of a split. Lines are fits of seconds = a "
                f"size^k; exponents k with 95 % intervals: {fits}.",
                table,
                draw,
            )
        )
    return charts
