"""Figures of the page of a sweep, each with its data, as SVG inside the page and as files.

Losses and objectives along hyperparameters; selected settings on inner folds and test parts;
ranks; gaps by passes and seconds; losses by sizes; kernel weights by width; what decisions rest on;
and the best method's predictions: ROC, precision and recall, calibration, values.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from mkldist.analysis.curves import (
    COSTS,
    calibration,
    classes_of,
    convergence_curves,
    curves_of,
    decisions_of,
    loss_by_active_kernels,
    loss_by_bank_size,
    objective_path,
    precision_recall,
    roc,
)
from mkldist.analysis.explanation import LEVELS, Explanation, Share
from mkldist.analysis.losses import LABEL_UNITS, RanksOverDataSets, in_units
from mkldist.analysis.pairing import Chosen
from mkldist.analysis.selection import kernel_shares
from mkldist.analysis.statistics import Interval
from mkldist.core.durable import check_free, replacing, write_file, writing
from mkldist.core.metrics import loss_words, metric_of_variable
from mkldist.errors import OutputError, ending_words
from mkldist.report.facts import COLOURS, Facts, Look, looks, records, slug
from mkldist.report.sentences import LEAST, shown_shares
from mkldist.results.schema import DECISION_VALUES, LABEL, SAMPLE, SPLIT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 3.5, 2.5  # inches: a column of a paper, in which no letter is below 7 points
LETTERS = 7.0  # points, of the smallest letters
KEY, LETTER = 4.5, 0.56  # widths of a key of a legend with its room, and of a letter, in letters
LINE = 0.15  # inches, height of a line of a legend
TICKS = {50.0: (1.0, 2.0, 5.0), 1000.0: (1.0, 3.0)}
"""Labels of each decade of a logarithmic axis, up to a ratio of its ends; beyond, powers of ten."""
INK, RULE = "#010203", "#010204"  # stand for the colours of text and rules, which the page sets
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": LETTERS,
    "xtick.labelsize": LETTERS,
    "ytick.labelsize": LETTERS,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
_THEMED: dict[Any, Any] = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
) | {"grid.color": RULE, "axes.facecolor": "none", "figure.facecolor": "none"}
FORMATS = ("pdf", "svg", "png")
UNITS = {"seconds": "s", "split_seconds": "s"}
"""Units of columns in all figures; other numbers have none, unless their figure says more."""
MOST = 6  # data sets that have figures of their own
CORRECTED = "95 % interval corrected for overlapping training parts (Nadeau & Bengio 2003)"


def printed(name: str) -> dict[Any, Any]:
    """Return the style of a file of a figure, whose content depends on nothing else."""
    return {**STYLE, "grid.color": "#d9d9d9", "svg.hashsalt": name}


@dataclass(frozen=True, eq=False)
class Chart:
    """One figure; screen readers read its caption as the text of the picture."""

    name: str  # of its files, in lower case with hyphens
    title: str
    caption: str
    data: pd.DataFrame  # what is drawn
    draw: Callable[[], Figure]
    units: Mapping[str, str] = field(default_factory=dict)  # of columns, beside UNITS

    def svg(self) -> str:
        """Return the figure as an ``<svg>`` element whose text and rules take the page's colours.

        Its ids begin with the figure's name, so that they stay apart from those of others.
        """
        import matplotlib as mpl

        buffer = io.StringIO()
        with mpl.rc_context({**STYLE, **_THEMED, "svg.hashsalt": self.name}):
            self.draw().savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
        text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
        text = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{self.name}-", text)
        text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
        text = text.replace(INK, "currentColor").replace(RULE, "var(--rule)")
        label = f'<svg role="img" aria-labelledby="{self.name}-title" '
        return text.replace("<svg ", label, 1)

    def table(self) -> pd.DataFrame:
        """Return the data with the units of its numbers in the headings, as in ``seconds (s)``."""
        known = {**UNITS, **self.units}
        numbers = self.data.select_dtypes("number")
        return self.data.rename(
            columns={name: f"{name} ({known.get(str(name), '1')})" for name in numbers}
        )

    def files(self, folder: Path) -> list[Path]:
        """Return ``NAME.pdf``, ``.svg``, ``.png`` and ``.csv`` in a folder."""
        return [folder / f"{self.name}.{suffix}" for suffix in (*FORMATS, "csv")]

    def write(self, folder: Path) -> None:
        """Write the :meth:`files` to a folder, which is there."""
        import matplotlib as mpl

        *pictures, table = self.files(folder)
        with mpl.rc_context(printed(self.name)):
            figure = self.draw()
            for file in pictures:
                with replacing(file) as temporary:
                    figure.savefig(temporary, format=file.suffix[1:], dpi=220, facecolor="white")
        write_file(table, [self.table().to_csv(index=False).encode()])


def new_figure(
    n_rows: int = 1, height: float = HEIGHT, *, shared: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure of the report's width, and its axes from above; `shared` ones share x."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(n_rows, 1, squeeze=False, sharex="col" if shared else "none")
    return figure, list(axes.flat)


def legend_below(figure: Figure, handles: Sequence[Artist] = (), most: int = 3) -> None:
    """Add a legend below the axes, in at most `most` columns, and make room for its rows.

    It names the handles, by default the labelled artists of the first axes, which are drawn.
    """
    shown = list(handles) or figure.axes[0].get_legend_handles_labels()[0]
    if not shown:
        return
    longest = max(len(str(handle.get_label())) for handle in shown)
    width = LETTERS * (KEY + LETTER * longest) / 72
    columns = min(most, max(1, int(figure.get_figwidth() / width)), len(shown))
    rows = -(-len(shown) // columns)
    figure.set_figheight(figure.get_figheight() + LINE * (rows - 1))
    figure.legend(handles=shown, loc="outside lower center", ncols=columns)


def logarithmic(axes: Axes, *names: str) -> None:
    """Make the axes ``"x"`` or ``"y"`` logarithmic, with labels such as 0.01 of one size.

    Exponents as superscripts would be too small to read in print.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in names:
        getattr(axes, f"set_{name}scale")("log")
        axis = axes.xaxis if name == "x" else axes.yaxis
        low, high = getattr(axes, f"get_{name}lim")()
        subs = next((some for most, some in TICKS.items() if high <= most * low), (1.0,))
        axis.set_major_locator(LogLocator(subs=subs, numticks=7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def spans_decades(values: pd.Series) -> bool:
    """Return True if an axis of these values is better logarithmic."""
    positive = values[values > 0]
    return len(positive) == len(values) and bool(positive.max() >= 20 * positive.min())


def label(loss: str) -> str:
    """Return the label of an axis of a loss."""
    return loss_words(loss) + f", {LABEL_UNITS}" * in_units(loss)


def loss_units(loss: str, *columns: str) -> dict[str, str]:
    """Return the units of columns that hold values of a loss."""
    return dict.fromkeys(columns, LABEL_UNITS) if in_units(loss) else {}


def _curves(
    name: str,
    title: str,
    caption: str,
    table: pd.DataFrame,
    facts: Facts,
    x: str,
    y: str,
    labels: tuple[str, str],
    *,
    units: Mapping[str, str],
    shown: pd.DataFrame | None = None,
    band: tuple[str, str] = ("low", "high"),
    log: Sequence[str] = (),
    markers: bool = True,
    joined: bool = True,
) -> Chart:
    """Return the figure of y against x, a line for each method, with a band of two columns.

    `shown` is drawn, by default the whole table.
    """
    drawn = table if shown is None else shown

    def draw() -> Figure:
        figure, [ax] = new_figure()
        for method, some in drawn.groupby("method", sort=False):
            look = facts.looks[facts.method_of(str(method))]
            ax.plot(some[x], some[y], color=look.colour, marker=look.marker if markers else "",
                    linestyle=look.line if joined else "none", label=str(method))  # fmt: skip
            if joined and some[band[0]].notna().any():
                ax.fill_between(some[x], some[band[0]], some[band[1]], color=look.colour,
                                alpha=0.12, linewidth=0)  # fmt: skip
        logarithmic(ax, *log)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        legend_below(figure)
        return figure

    return Chart(name, title, caption, table, draw, units)


def _with_deviation(table: pd.DataFrame, mean: str, sd: str) -> pd.DataFrame:
    return table.assign(low=table[mean] - table[sd], high=table[mean] + table[sd])


def path_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss along the regularisation, a figure for each data set."""
    charts = []
    for dataset in facts.datasets[:MOST]:
        axis, loss = facts.axis(dataset), facts.loss(dataset)
        rows = facts.summary[facts.summary["dataset"] == dataset]
        if axis is None or (table := _along(rows, axis, loss)).empty:
            continue
        charts.append(_curves(
            f"path-{slug(dataset)}", f"{dataset}: {loss_words(loss)} along {axis}",
            f"Mean over the splits; the band is one standard deviation. For each value of "
            f"{axis}, other hyperparameters have the value of least mean loss.",
            table, facts, axis, "mean", (axis, label(loss)),
            units=loss_units(loss, "mean", "sd"), shown=_with_deviation(table, "mean", "sd"),
            log=["x"] * spans_decades(table[axis]),
        ))  # fmt: skip
    return charts


def _along(rows: pd.DataFrame, axis: str, loss: str) -> pd.DataFrame:
    """Return mean and deviation of the loss of each method at each value of a hyperparameter."""
    known = rows.dropna(subset=[axis, f"{loss}_mean"])
    known = known.rename(columns={f"{loss}_mean": "mean", f"{loss}_sd": "sd"}).assign(loss=loss)
    known["mean"] = metric_of_variable(loss).loss(known["mean"])
    at_best = known.loc[known.groupby(["method", axis], sort=False)["mean"].idxmin()]
    columns = ["dataset", "bank", "method", axis, "loss", "mean", "sd"]
    return at_best[columns].sort_values(["method", axis])


def objective_charts(facts: Facts) -> list[Chart]:
    """Return the mean objective of methods that minimise the same function, on one bank each.

    A data set without two such methods has no figure.
    """
    axes = {dataset: axis for dataset in facts.datasets[:MOST] if (axis := facts.axis(dataset))}
    paths = {axis: objective_path(facts.tree, axis) for axis in set(axes.values())}
    charts = []
    for dataset, axis in axes.items():
        rows = paths[axis][paths[axis]["dataset"] == dataset]
        if rows.empty:
            continue
        rows = rows[rows["bank"] == facts.largest_bank(dataset, rows["bank"].tolist())]
        methods = rows.groupby("problem")["method"].nunique()
        if methods.max() < 2:
            continue
        table = rows[rows["problem"] == methods.idxmax()]
        on = f" on the kernels of {table['bank'].iloc[0]}" * facts.several_banks
        charts.append(_curves(
            f"objective-{slug(dataset)}", f"{dataset}: objective along {axis}",
            f"These methods minimise the same function{on}, and differ by their gaps at most. Mean "
            "over the splits; the band is one standard deviation.",
            table, facts, axis, "objective", (axis, "objective"),
            units=loss_units(facts.loss(dataset), "loss"),
            shown=_with_deviation(table, "objective", "objective_sd"),
            log=[name for name, column in (("x", axis), ("y", "objective"))
                 if spans_decades(table[column])],
        ))  # fmt: skip
    return charts


def rank_chart(over: RanksOverDataSets, facts: Facts) -> Chart | None:
    """Return the diagram of mean ranks with Nemenyi's critical difference."""
    ranks = over.ranks
    if ranks is None:
        return None
    table = ranks.mean_ranks.sort_values().rename_axis("method").rename("mean_rank").reset_index()

    def draw() -> Figure:
        figure, [ax] = new_figure(height=0.8 + 0.2 * len(table))
        for place, row in enumerate(records(table)):
            look = facts.looks[facts.method_of(row["method"])]
            ax.errorbar(row["mean_rank"], place, xerr=0.5 * ranks.critical_difference,
                        marker=look.marker, color=look.colour)  # fmt: skip
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


LOSSES_OF_BIAS: dict[str, tuple[str, str, Literal["none", "full"]]] = {
    "validation": ("selected setting, inner folds", "o", "none"),
    "test": ("selected setting, test part", "o", "full"),
    "least_test": ("least of all settings, test part", "|", "full"),
}
"""Columns that a figure of the bias of a selection draws: label, marker, and how it is filled."""


def selection_bias_charts(bias: pd.DataFrame, facts: Facts) -> list[Chart]:
    """Return the losses of each method's settings of least validation loss, by data set."""
    if bias.empty:
        return []
    tables = bias[bias["rule"] == "best"].groupby("dataset", sort=False)
    return [_of_bias(str(dataset), table, facts) for dataset, table in [*tables][:MOST]]


def _of_bias(dataset: str, table: pd.DataFrame, facts: Facts) -> Chart:
    loss, names = str(table["loss"].iloc[0]), [facts.name_of(row) for row in records(table)]

    def draw() -> Figure:
        import matplotlib as mpl
        from matplotlib.lines import Line2D

        figure, [ax] = new_figure(height=0.9 + 0.2 * len(table))
        for place, row in enumerate(records(table)):
            colour = facts.looks[row["method"]].colour
            ax.plot([row["validation"], row["test"]], [place, place], color=colour, zorder=1)
            for column, (_, marker, filled) in LOSSES_OF_BIAS.items():
                ax.plot(row[column], place, marker=marker, fillstyle=filled, color=colour,
                        linestyle="none", markersize=5)  # fmt: skip
        ax.set_yticks(np.arange(len(table)), names)
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.set_xlabel(label(loss))
        handles = [
            Line2D([], [], color=mpl.rcParams["text.color"], marker=marker, fillstyle=filled,
                   linestyle="none", label=words)
            for words, marker, filled in LOSSES_OF_BIAS.values()
        ]  # fmt: skip
        legend_below(figure, handles, most=1)
        return figure

    return Chart(
        f"optimism-{slug(dataset)}",
        f"{dataset}: selected settings on inner folds and test parts",
        "Means over the splits of the loss of the settings selected on the inner folds. The bar "
        "from inner folds to test part is their optimism. The tick is the least loss of all "
        "settings on the test part, which a selection there would report.",
        table.assign(method=names).drop(columns="bank"),
        draw,
        loss_units(loss, *LOSSES_OF_BIAS, "optimism", "low", "high"),
    )


COST_WORDS = {"passes": "passes over the bank", "seconds": "seconds of a run"}


def convergence_charts(facts: Facts) -> list[Chart]:
    """Return the gap against passes and against seconds, for each data set with traces."""
    charts = []
    tables = {cost: convergence_curves(facts.tree, cost) for cost in COSTS}
    for dataset, cost in product(facts.datasets[:MOST], COSTS):
        table = tables[cost][tables[cost]["dataset"] == dataset]
        if table.empty:
            continue
        bank = facts.largest_bank(dataset, banks := table["bank"].unique().tolist())
        shown = table[(table["bank"] == bank) & (table["gap"] > 0.0)]
        which = f" Of {len(banks)} banks, the one of most kernels is shown, {bank}."
        charts.append(_curves(
            f"convergence-{cost}-{slug(dataset)}", f"{dataset}: gap against {COST_WORDS[cost]}",
            "Best certified gap so far: the median over all traced runs of a method, of all "
            "settings and splits; the band holds the middle half of them."
            f"{which * (len(banks) > 1)}",
            table, facts, cost, "gap", (COST_WORDS[cost], "relative duality gap"), units={},
            shown=shown, band=("gap_low", "gap_high"), markers=False,
            log=["y", *["x"] * spans_decades(shown[cost])],
        ))  # fmt: skip
    return charts


def _losses(
    name: str, against: str, caption: str, table: pd.DataFrame, facts: Facts, x: str, words: str,
    **options: Any,
) -> Chart:  # fmt: skip
    """Return the figure of the mean losses on one data set against a number."""
    dataset, loss = (str(table[column].iloc[0]) for column in ("dataset", "loss"))
    return _curves(
        f"{name}-{slug(dataset)}", f"{dataset}: {loss_words(loss)} against {against}", caption,
        table, facts, x, "mean", (words, label(loss)), log=["x"],
        units=loss_units(loss, "mean", "low", "high"), **options,
    )  # fmt: skip


def learning_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss against the training points, a figure for each data set of sizes.

    Of a method on several banks, the line of least loss at the largest size is drawn.
    """
    charts = []
    for _, table in [*curves_of(facts.compared).groupby("dataset", sort=False)][:MOST]:
        largest = table[table["n_train"] == table["n_train"].max()]
        best = largest.groupby(largest["method"].map(facts.method_of))["mean"].idxmin()
        banks = " Of several banks, that of least loss at the largest size." * facts.several_banks
        caption = (
            f"Mean over the splits at the setting chosen for each size; the band is the {CORRECTED}"
            f".{banks}"
        )
        shown = table[table["method"].isin(largest.loc[best, "method"])]
        words = "training points"
        charts += [_losses("learning", words, caption, table, facts, "n_train", words, shown=shown)]
    return charts


def kernel_number_charts(facts: Facts) -> list[Chart]:
    """Return the loss against the number of active kernels, a figure for each data set."""
    table = loss_by_active_kernels(facts.tree)
    tables = table[table["active_kernels"] > 0].groupby("dataset", sort=False)
    return [
        _losses(
            "kernels", "the number of kernels",
            "Each mark is one setting of a method. Low and left is better: fewer kernels for the "
            "same loss.",
            some, facts, "active_kernels", "active kernels, mean over the splits", joined=False,
        )
        for some in [some for _, some in tables if len(some) > 1][:MOST]
    ]  # fmt: skip


def bank_size_charts(facts: Facts) -> list[Chart]:
    """Return the loss against the number of candidates, for each data set and bank of sizes."""
    charts = []
    tables = loss_by_bank_size(facts.tree).groupby(["dataset", "bank"], sort=False)
    for (_, bank), table in [*tables][:MOST]:
        band = f"; the band is the {CORRECTED}" if table["low"].notna().any() else ""
        caption = f"Mean over the splits at the setting chosen for each size{band}."
        against, words = f"the number of candidates, bank {bank}", "candidate kernels"
        chart = _losses("candidates", against, caption, table, facts, "n_kernels", words)
        charts.append(replace(chart, name=f"{chart.name}-{slug(bank)}"))
    return charts


MOST_WIDTHS, N_PARTS, MOST_LINES = 40, 20, 8
LONGEST = 24  # letters of a name in a figure
GROUP_WIDTH = "group and width"
FREQUENCY = "frequency"
PANELS = {"share": "share of weights", FREQUENCY: "share of splits"}
"""Columns that the two panels of a figure draw, with the labels of their axes."""


def weight_charts(facts: Facts) -> list[Chart]:
    """Return the weights of each data set by width of the kernels, on its bank of most kernels."""
    found = []
    for dataset in facts.datasets[:MOST]:
        own = [(place, weights) for place, weights in facts.weights if place["dataset"] == dataset]
        sizes, which = {place["bank"]: weights.sizes["kernel"] for place, weights in own}, ""
        if len(sizes) > 1:
            largest = max(sizes, key=lambda bank: sizes[bank])
            own = [(place, weights) for place, weights in own if place["bank"] == largest]
            which = f" Of {len(sizes)} banks, the one of most kernels is shown, {largest}."
        found.append(_by_width(dataset, own, which, facts))
    return [chart for chart in found if chart is not None]


def _by_width(
    dataset: str, own: list[tuple[dict[str, str], xr.DataArray]], bank: str, facts: Facts
) -> Chart | None:
    """Return the shares of each width; of several groups of features, those of the best method.

    Widths on different groups, such as views, are of different units: each group has its line.
    """
    found = [
        kernel_shares(_with_widths_of_groups(weights), GROUP_WIDTH).assign(**place)
        for place, weights in own
        if "width" in weights.coords and np.any(weights.to_numpy())
    ]
    if not found:
        return None
    columns = ["dataset", "bank", "method", GROUP_WIDTH, "n_kernels", "share", FREQUENCY]
    table = pd.concat(found, ignore_index=True)[columns]
    parts = table.pop(GROUP_WIDTH).str.rsplit("\n", n=1, expand=True)
    table.insert(3, "feature_group", parts[0])
    table.insert(4, "width", parts[1].astype(float))
    table = table.sort_values(["method", "feature_group", "width"], kind="stable")
    if table["width"].nunique() < 2:
        return None
    groups = table.groupby("feature_group")["share"].sum()
    groups = groups.nlargest(MOST_LINES)[lambda sums: sums > 0.0]
    shown, line, styles = table, "method", facts.looks
    which = "mean over the splits, at the method's chosen setting"
    if len(groups) > 1:
        best = facts.best_of(dataset, table["method"].unique())
        shown = table[(table["method"] == best) & table["feature_group"].isin(groups.index)]
        line, styles = "feature_group", looks(groups.index)
        which = f"by group of features, mean over the splits of {best}"
    several = any(weights.sizes["split"] > 1 for _, weights in own)
    panels = [column for column in PANELS if several or column != FREQUENCY]
    selecting = ", and the share of the splits that select a kernel of the width" * several

    def draw() -> Figure:
        figure, axes = new_figure(len(panels), height=1.4 + 1.1 * len(panels), shared=True)
        for ax, column in zip(axes, panels, strict=True):
            for name, some in shown.groupby(line, sort=False):
                look = styles[str(name)]
                ax.plot(some["width"], some[column], color=look.colour, marker=look.marker,
                        linestyle=look.line, label=_short(str(name)))  # fmt: skip
            ax.set_ylabel(PANELS[column])
            if column == FREQUENCY:
                ax.set_ylim(-0.08, 1.08)  # room for marks at its ends
        logarithmic(ax, "x")
        ax.set_xlabel("width of the kernel")
        legend_below(figure)
        return figure

    return Chart(
        f"widths-{slug(dataset)}",
        f"{dataset}: kernel weights by width",
        f"Share of the kernel weights on kernels of each width, {which}{selecting}.{bank}",
        table,
        draw,
    )


def _with_widths_of_groups(weights: xr.DataArray) -> xr.DataArray:
    """Return weights with group of features and width of each kernel in one text.

    Of many random widths the medians of twenty parts of equal numbers stand for all.
    """
    widths = pd.Series(weights["width"].to_numpy())
    groups = pd.Series("all", widths.index)
    if "feature_group" in weights.coords:
        groups = pd.Series(weights["feature_group"].to_numpy())
    if widths.nunique() > MOST_WIDTHS:
        parts = np.ceil(N_PARTS * widths.groupby(groups).rank(method="dense", pct=True))
        widths = widths.groupby([groups, parts]).transform("median")
    texts = groups.astype(str) + "\n" + widths.map(repr)
    return weights.assign_coords(
        {GROUP_WIDTH: ("kernel", texts.where(widths.notna(), "").to_numpy(object))}
    )


def _short(text: str) -> str:
    """Return a name without its middle if it is long: names differ at both ends."""
    tail = LONGEST // 2 - 2
    return text if len(text) <= LONGEST else f"{text[: LONGEST - tail - 1]}…{text[-tail:]}"


MOST_POINTS = 2000  # of a scatter in the page
UNIT = (-0.02, 1.02)  # limits of an axis of shares, with room for marks at its ends
BAND = "Mean over the splits of test rows, with one standard deviation."
CURVES = {
    "roc": ("ROC curve", roc, "false_positive_rate", "true_positive_rate", BAND),
    "precision-recall": ("precision and recall", precision_recall, "recall", "precision", BAND),
    "calibration": (
        "calibration", calibration, "probability", "frequency",
        "How often rows of about equal probability are of the class; probabilities of each split "
        "are by a sigmoid of the decision values of the other splits. On the line they are right.",
    ),
}  # fmt: skip
"""Title, data, columns of both axes and caption of each figure of two classes."""


def prediction_charts(side: Chosen, look: Look) -> Iterator[Chart]:
    """Yield the figures of a method at its chosen setting, where its decision values are known."""
    dataset, method = side.place["dataset"], side.place["method"]
    if side.node.attrs.get("task") == "regression":
        yield from _of_values(side, look)
        return
    decisions, classes = decisions_of(side), classes_of(side)
    if not decisions or len(classes) != 2:
        return
    for name, (title, curve, x, y, caption) in CURVES.items():
        table = curve(decisions)

        def draw(table: pd.DataFrame = table, x: str = x, y: str = y) -> Figure:
            figure, [ax] = new_figure(height=3.0)
            marker = look.marker if "n" in table else ""
            ax.plot(table[x], table[y], color=look.colour, marker=marker, linestyle=look.line)
            if "sd" in table and table["sd"].notna().any():
                low, high = table[y] - table["sd"], table[y] + table["sd"]
                ax.fill_between(table[x], low.clip(lower=0.0), high.clip(upper=1.0),
                                color=look.colour, alpha=0.12, linewidth=0)  # fmt: skip
            if y != "precision":
                ax.plot(UNIT, UNIT, color="0.5", linestyle=":", linewidth=1.0)
            ax.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "), xlim=UNIT, ylim=UNIT)
            return figure

        yield Chart(
            f"{name}-{slug(dataset)}",
            f"{dataset}: {title} of {classes[1]}, {method}",
            caption,
            table.assign(dataset=dataset, method=method),
            draw,
        )


def _of_values(side: Chosen, look: Look) -> Iterator[Chart]:
    """Yield predicted against true values, where decision values are known."""
    data = side.data
    if DECISION_VALUES.name not in data or LABEL not in data.coords:
        return
    values = data[DECISION_VALUES.name].transpose(SPLIT, SAMPLE).to_numpy()
    splits, rows = np.nonzero(~np.isnan(values))
    true, predicted = data[LABEL].to_numpy()[rows], values[splits, rows]
    columns = {"split": data[SPLIT].to_numpy()[splits], "row": rows}
    table = pd.DataFrame({**columns, "true": true, "predicted": predicted})
    drawn = table.iloc[:: max(1, -(-len(table) // MOST_POINTS))]

    def draw() -> Figure:
        figure, [ax] = new_figure(height=3.0)
        ax.plot(drawn["true"], drawn["predicted"], linestyle="none", marker=".", alpha=0.5,
                color=look.colour)  # fmt: skip
        ends = [drawn["true"].min(), drawn["true"].max()]
        ax.plot(ends, ends, color="0.5", linestyle=":", linewidth=1.0)
        ax.set(xlabel="true value", ylabel="predicted value")
        return figure

    yield Chart(
        f"predicted-{slug(side.place['dataset'])}",
        f"{side.place['dataset']}: predicted against true values, {side.place['method']}",
        "Test rows of all splits; on the line both are equal.",
        table,
        draw,
        dict.fromkeys(("true", "predicted"), LABEL_UNITS),
    )


ROW = 0.165  # inches, of a bar of an explanation
MOST_BARS_OF_LEVEL, LONGEST_LABEL = 8, 22
LETTERS_WIDE = 18  # of the label of the second panel
LIMITS = (-25.0, 125.0)
"""Shares in per cent beyond which an axis does not reach; intervals end there."""


def explanation_chart(explanation: Explanation) -> Chart:
    """Return the figure of what the decision rests on, with the whole table as its data."""
    return Chart(
        f"explanation-{slug(explanation.dataset)}",
        f"{explanation.dataset}: what the decision of {explanation.method} rests on",
        "Shares of the decision as bars and shares of the weights as diamonds, with those that "
        "have less than 1 % of both left out; and how much worse the metric is without each. Means "
        "over the splits with 95 % intervals.",
        explanation.table,
        lambda: draw_explanation(explanation),
    )


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Draw an explanation and write it as PDF, SVG or PNG, by the ending of the file."""
    import matplotlib as mpl

    with mpl.rc_context(printed(explanation.dataset)):
        figure = draw_explanation(explanation)
        with writing(path), replacing(path) as temporary:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(
                temporary, format=path.suffix[1:], dpi=300, facecolor="white", metadata=metadata
            )


def check_figure(path: Path, *, overwrite: bool) -> None:
    """Refuse a file of another kind, one that is there, and any without matplotlib."""
    from importlib.util import find_spec

    if path.suffix[1:] not in FORMATS:
        ending = ending_words(path.suffix)
        raise OutputError(str(path), ending, "a name ending in .pdf, .svg or .png")
    check_free(path, overwrite=overwrite)
    if find_spec("matplotlib") is None:
        raise OutputError(
            str(path),
            "a figure without matplotlib",
            "the package matplotlib",
            "pip install 'mkldist[figures]' installs it",
        )


def draw_explanation(explanation: Explanation) -> Figure:
    """Return the figure: shares of the decision, and the loss without each set, side by side."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = _rows_of(explanation)
    shares = {y: row for y, row in enumerate(rows) if isinstance(row, Share)}
    decided, ink = not explanation.no_decision, mpl.rcParams["text.color"]
    figure = Figure(figsize=(WIDTH, 1.3 + ROW * len(rows)), layout="constrained")
    axes = figure.subplots(
        1, 1 + decided, sharey=True, squeeze=False, width_ratios=[1.6, 1][: 1 + decided]
    )[0]
    first, weights = axes[0], {y: row.weight for y, row in shares.items()}
    drawn = {y: row.decision for y, row in shares.items()} if decided else weights
    _bars(first, drawn, 100.0, COLOURS[0])
    first.set_xlabel(f"share of the {'decision' if decided else 'weights'}, %")
    if decided:
        means = [100.0 * one.mean for one in weights.values()]
        if not np.isnan(means).all():
            first.plot(means, [*weights], linestyle="none", marker="D", label="weights",
                       markerfacecolor="white", markeredgecolor=ink,
                       markeredgewidth=0.8)  # fmt: skip
        if explanation.n_permutations:
            null = [100.0 * row.null for row in shares.values()]
            first.plot(null, [*shares], linestyle="none", marker="|", markersize=9,
                       color="#767676", markeredgewidth=1.6, label="permuted labels")  # fmt: skip
        first.set_xlim(*np.clip(first.get_xlim(), *LIMITS))
        metric = explanation.metric
        scale, unit = (100.0, ", points") if metric.unit == "%" else (1.0, "")
        _bars(axes[1], {y: row.left_out for y, row in shares.items()}, scale, COLOURS[1])
        axes[1].set_xlabel(fill(f"worse when left out: {metric.words}{unit}", LETTERS_WIDE))
    first.set_yticks(range(len(rows)), [_label_of(row) for row in rows])
    first.set_ylim(len(rows) - 0.4, -0.6)
    for text, row in zip(first.get_yticklabels(), rows, strict=True):
        text.set_fontweight("normal" if isinstance(row, Share) else "bold")
    for ax in axes:
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        ax.axvline(0.0, color=ink, linewidth=0.7)
    figure.suptitle(f"{explanation.dataset}: {explanation.method}", fontsize=8)
    handles, labels = first.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _rows_of(explanation: Explanation) -> list[Share | str]:
    """Return what stands in the figure from above: headings and shares."""
    rows: list[Share | str] = []
    for level in ("view", "group", "feature"):
        matter, _ = shown_shares(explanation, level)
        sizes = [np.nanmax(np.abs([one.decision.mean, one.weight.mean])) for one in matter]
        tall = [one for one, size in zip(matter, sizes, strict=True) if size >= LEAST]
        tall = tall[:MOST_BARS_OF_LEVEL] or matter[:1]
        rows += [LEVELS[level], *tall] if tall else []
    kernels = shown_shares(explanation, "kernel")[0]
    return rows or [LEVELS["kernel"], *kernels[:MOST_BARS_OF_LEVEL]]


def _bars(ax: Axes, found: dict[int, Interval], scale: float, colour: str) -> None:
    """Draw a bar for each mean, with its interval."""
    import matplotlib as mpl

    means = scale * np.array([one.mean for one in found.values()])
    ends = scale * np.array([[one.low, one.high] for one in found.values()])
    ax.barh([*found], np.nan_to_num(means), height=0.62, color=colour, alpha=0.55)
    if not np.isnan(ends).all():
        errors = np.nan_to_num(np.abs(ends - means[:, None]).T)
        ax.errorbar(means, [*found], xerr=errors, linestyle="none", elinewidth=0.8, capsize=1.5,
                    capthick=0.8, color=mpl.rcParams["text.color"])  # fmt: skip


def _label_of(row: Share | str) -> str:
    if not isinstance(row, Share):
        return row
    text = f"{row.name:g}" if isinstance(row.name, float) else row.name
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
