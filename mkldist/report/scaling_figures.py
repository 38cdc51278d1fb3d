"""Figures of a scaling study: time against a size with its fits, and the parts of the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.growth import SIZES, Growth, part_shares, seconds_text
from mkldist.report.charts import (
    HEIGHT,
    LETTERS,
    Chart,
    legend_below,
    logarithmic,
    new_figure,
    slug,
)
from mkldist.report.facts import records
from mkldist.report.palette import Look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

MOST_BARS = 24  # in one figure; of more, each method shows its least, middle and largest size
ROW, FRAME = 0.19, 1.0  # inches: height of a bar or heading, and of axis and legend together
CLEAR = 1.25  # ratio of neighbouring sizes that leaves room for the label of each
TINTS = {"build": 0.0, "passes": 0.45, "solver": 1.0}  # of a method's colour, in stacking order
HATCH = "////"  # of builds


def charts_of(growth: Growth, looks: Mapping[str, Look], most: int | None = None) -> list[Chart]:
    """Return the figures of a study, two for each data set and bank."""
    places = list(dict.fromkeys(growth.fits[["dataset", "bank"]].itertuples(index=False)))
    charts = []
    for dataset, bank in places[:most]:
        named = [str(name) for name in (dataset, bank)]
        several = [len({place[at] for place in places}) > 1 for at in range(2)]
        words = [name for name, told in zip(named, several, strict=True) if told]
        ending = "".join(f"-{slug(word)}" for word in [growth.over.replace("_", "-"), *words])
        of = f" ({', '.join(words)})" if words else ""
        own = growth.on(*named)
        charts += [_time_chart(own, looks, f"time{ending}", of)]
        charts += _parts_chart(own, looks, f"parts{ending}", of)
    return charts


def _time_chart(growth: Growth, looks: Mapping[str, Look], name: str, of: str) -> Chart:
    """Return the time of a run against the size, a panel for the ends of the other size."""
    other, panels = growth.other, growth.ends_of_other
    counted = growth.times[growth.times["counted"] > 0]
    table = counted[counted[other].isin(panels)]
    table = table[["method", *SIZES, "split", "seconds", "counted", "counted_early"]]

    def draw() -> Figure:
        figure, axes = new_figure(len(panels), height=HEIGHT * (1 + 0.75 * (len(panels) - 1)))
        for ax, value in zip(axes.flat, panels, strict=True):
            _draw_panel(ax, growth, table, value, looks)
        low = min(ax.get_ylim()[0] for ax in axes.flat)
        high = max(ax.get_ylim()[1] for ax in axes.flat)
        lines: dict[str, Any] = {}
        for ax in axes.flat:
            ax.set_ylim(low, high)
            logarithmic(ax, "y")
            ax.set(ylabel="seconds of a run")
            lines |= {str(line.get_label()): line for line in ax.get_legend_handles_labels()[0]}
        legend_below(figure, list(lines.values()), most=2)
        return figure

    at = [f"at {value:,} {SIZES[other]}: " if len(panels) > 1 else "" for value in panels]
    said = [
        start + "; ".join(map(_exponent, records(growth.of_runs[growth.of_runs[other] == value])))
        for start, value in zip(at, panels, strict=True)
    ]
    return Chart(
        name,
        f"Time against the number of {SIZES[growth.over]}{of}",
        f"A mark is the mean over the settings on one split, hollow where a run stopped before its "
        f"tolerance. Lines are fits of seconds = a size^k; exponents k with 95 % intervals "
        f"{'' if at[0] else 'are '}{', and '.join(said)}.",
        table,
        draw,
    )


def _draw_panel(
    ax: Axes, growth: Growth, table: pd.DataFrame, value: int, looks: Mapping[str, Look]
) -> None:
    """Draw marks and fits of all methods at one value of the other size."""
    over, other, fits = growth.over, growth.other, growth.of_runs
    alone = len(growth.ends_of_other) == 1
    for fit in records(fits[fits[other] == value]):
        method = str(fit["method"])
        some = table[(table["method"] == method) & (table[other] == value)]
        label = f"{method}: exponent {fit['exponent']:.2f}" if alone else method
        _draw_fit(ax, some, fit, over, looks[method], label)
    logarithmic(ax, "x", "y")
    _mark_sizes(ax, table[over].to_numpy(float))
    ax.set(xlabel=SIZES[over], title="" if alone else f"{value:,} {SIZES[other]}")


def _draw_fit(
    ax: Axes, some: pd.DataFrame, fit: Mapping[str, float], over: str, look: Look, label: str
) -> None:
    """Draw the marks of one method and the line of its fit."""
    early = some["counted_early"] > 0
    for marked, face in ((some[~early], look.colour), (some[early], "none")):
        ax.plot(marked[over], marked["seconds"], color=look.colour, marker=look.marker,
                markerfacecolor=face, linestyle="none", markersize=4)  # fmt: skip
    ends = np.array([fit["smallest"], fit["largest"]])
    ax.plot(ends, fit["factor"] * ends ** fit["exponent"], color=look.colour, marker=look.marker,
            markevery=[], linestyle=look.line, label=label)  # fmt: skip


def _mark_sizes(ax: Axes, sizes: np.ndarray) -> None:
    """Label the sizes themselves where their labels have room."""
    values = np.unique(sizes)
    if len(values) <= 6 and (values[1:] >= CLEAR * values[:-1]).all():
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.set_xticks([], minor=True)


def _exponent(fit: Mapping[str, float]) -> str:
    interval = f" [{fit['low']:.2f}, {fit['high']:.2f}]" if np.isfinite(fit["low"]) else ""
    return f"{fit['method']} {fit['exponent']:.2f}{interval}"


def _parts_chart(growth: Growth, looks: Mapping[str, Look], name: str, of: str) -> Iterator[Chart]:
    """Yield the shares of build, passes and solver, a bar for each method and size."""
    other, value = growth.other, growth.ends_of_other[-1]
    table = part_shares(growth.means[growth.means[other] == value])
    if table.empty:
        return
    table = table[["method", growth.over, other, "build", "passes", "solver", "split_seconds"]]
    shown = _thinned(table, growth.over)

    def draw() -> Figure:
        n_rows = len(shown) + shown["method"].nunique()
        figure, axes = new_figure(height=FRAME + ROW * n_rows)
        (ax,) = axes.flat
        ticks, place = {}, 0
        for method, some in shown.groupby("method", sort=False):
            ax.text(0.7, place, str(method), va="center", weight="bold")
            for row in records(some):
                place += 1
                ticks[place] = f"{row[growth.over]:,}"
                _draw_bar(ax, place, row, looks[str(method)].colour)
            place += 1
        ax.set_yticks(list(ticks), list(ticks.values()))
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, 100), ylim=(place - 0.3, -0.7), ylabel=SIZES[growth.over])
        ax.set_xlabel("share of the seconds on a split, %")
        ax.grid(visible=False, axis="y")
        ax.set_axisbelow(True)
        parts = [part for part in TINTS if shown[part].any()]
        legend_below(figure, _handles(parts))
        return figure

    at = f", at {value:,} {SIZES[other]}" if len(growth.ends_of_other) > 1 else ""
    missing = "" if shown["build"].any() else " The results hold no times of builds."
    yield Chart(
        name,
        f"Parts of the time by the number of {SIZES[growth.over]}{of}",
        f"Shares of the build of the bank, which counts once a split, and of the passes and the "
        f"solvers of all settings of a method{at}. At the right are the seconds of a split in "
        f"all.{missing}",
        table,
        draw,
    )


def _thinned(table: pd.DataFrame, over: str) -> pd.DataFrame:
    """Return the rows at three sizes of each method where there are too many for a figure."""
    if len(table) <= MOST_BARS:
        return table
    sizes = np.unique(table[over])
    return table[table[over].isin([sizes[0], sizes[len(sizes) // 2], sizes[-1]])]


def _draw_bar(ax: Axes, place: int, row: Mapping[str, float], colour: str) -> None:
    """Draw the stacked shares of one method at one size, and its seconds beside them."""
    left = 0.0
    for part in TINTS:
        share = 100.0 * row[part]
        ax.barh(place, share, left=left, height=0.8, **_look(part, colour))
        left += share
    ax.text(102.0, place, f"{seconds_text(row['split_seconds'])} s", va="center", fontsize=LETTERS)


def _look(part: str, colour: str) -> dict[str, Any]:
    """Return how a part is filled: the solver fully, passes with a tint, the build with lines."""
    from matplotlib.colors import to_rgba

    return {
        "facecolor": to_rgba(colour, TINTS[part]),
        "edgecolor": colour,
        "linewidth": 0.6,
        "hatch": HATCH if part == "build" else "",
    }


def _handles(parts: Iterable[str]) -> list[Patch]:
    from matplotlib.patches import Patch

    words = {"build": "build of the bank"}
    return [Patch(label=words.get(part, part), **_look(part, "#777777")) for part in parts]
