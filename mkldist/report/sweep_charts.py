"""Figures of the page of a sweep, each a :class:`~mkldist.report.charts.Chart` with its data.

Losses and objectives along hyperparameters; ranks; gaps by passes and seconds; losses and times by
sizes; kernel weights by width; and the best method's predictions: ROC, precision and recall,
calibration, values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
from mkldist.analysis.losses import LABEL_UNITS, RanksOverDataSets, in_units
from mkldist.analysis.pairing import Chosen
from mkldist.analysis.selection import kernel_shares
from mkldist.core.metrics import loss_words, metric_of_variable
from mkldist.report.charts import Chart, legend_below, line_with_band, logarithmic, new_figure, slug
from mkldist.report.facts import Facts, records
from mkldist.report.palette import looks
from mkldist.report.scaling_figures import charts_of
from mkldist.results.schema import DECISION_VALUES, LABEL, SAMPLE, SPLIT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from mkldist.report.palette import Look


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


def rank_chart(over: RanksOverDataSets, facts: Facts) -> Chart | None:
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


MOST_WIDTHS, N_PARTS, MOST_LINES = 40, 20, 8
LETTERS = 24  # of a name in a figure
GROUP_WIDTH = "group and width"
FREQUENCY = "frequency"
PANELS = {"share": "share of weights", FREQUENCY: "share of splits"}
"""Columns that the two panels of a figure draw, with the labels of their axes."""
WHOLE = (-0.08, 1.08)
"""Limits of an axis of shares of splits, with room for marks at its ends."""
Weights = list[tuple[dict[str, str], "xr.DataArray"]]


def weight_charts(facts: Facts) -> list[Chart]:
    """Return the weights of each data set by width of the kernels."""
    found = []
    for dataset in facts.datasets[:MOST]:
        own = [(place, weights) for place, weights in facts.weights if place["dataset"] == dataset]
        found.append(_by_width(dataset, *_of_largest_bank(own), facts))
    return [chart for chart in found if chart is not None]


def _of_largest_bank(own: Weights) -> tuple[Weights, str]:
    """Return the weights on the bank of most kernels, and a sentence if there are several banks."""
    sizes = {place["bank"]: weights.sizes["kernel"] for place, weights in own}
    if len(sizes) < 2:
        return own, ""
    largest = max(sizes, key=lambda bank: sizes[bank])
    kept = [(place, weights) for place, weights in own if place["bank"] == largest]
    return kept, f" Of {len(sizes)} banks, the one of most kernels is shown, {largest}."


def _by_width(dataset: str, own: Weights, said: str, facts: Facts) -> Chart | None:
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
    groups = table.groupby("feature_group")["share"].sum()
    groups = groups.nlargest(MOST_LINES)[lambda sums: sums > 0.0]
    if table["width"].nunique() < 2:
        return None
    shown, line, which = table, "method", "mean over the splits, at the method's chosen setting"
    if len(groups) > 1:
        best = facts.best_of(dataset, table["method"].unique())
        shown = table[(table["method"] == best) & table["feature_group"].isin(groups.index)]
        line, which = "feature_group", f"by group of features, mean over the splits of {best}"
    styles = facts.looks if line == "method" else looks(groups.index)
    several = any(weights.sizes["split"] > 1 for _, weights in own)
    panels = [column for column in PANELS if several or column != FREQUENCY]
    selecting = ", and the share of the splits that select a kernel of the width" * several

    def draw() -> Figure:
        figure, axes = new_figure(len(panels), height=1.4 + 1.1 * len(panels), shared=True)
        for ax, column in zip(axes.flat, panels, strict=True):
            for name, some in shown.groupby(line, sort=False):
                look = styles[str(name)]
                ax.plot(some["width"], some[column], color=look.colour, marker=look.marker,
                        linestyle=look.line, label=_short(str(name)))  # fmt: skip
            ax.set_ylabel(PANELS[column])
            if column == FREQUENCY:
                ax.set_ylim(*WHOLE)
        logarithmic(ax, "x")
        ax.set_xlabel("width of the kernel")
        legend_below(figure)
        return figure

    return Chart(
        f"widths-{slug(dataset)}",
        f"{dataset}: kernel weights by width",
        f"Share of the kernel weights on kernels of each width, {which}{selecting}.{said}",
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
        rank = widths.groupby(groups).rank(method="dense", pct=True)
        parts = np.ceil(rank * N_PARTS)
        widths = widths.groupby([groups, parts]).transform("median")
    texts = groups.astype(str) + "\n" + widths.map(repr)
    return weights.assign_coords(
        {GROUP_WIDTH: ("kernel", texts.where(widths.notna(), "").to_numpy(object))}
    )


def _short(text: str) -> str:
    """Return a name without its middle if it is long: names differ at both ends."""
    tail = LETTERS // 2 - 2
    return text if len(text) <= LETTERS else f"{text[: LETTERS - tail - 1]}…{text[-tail:]}"


MOST_POINTS = 2000  # of a scatter in the page
UNIT = (-0.02, 1.02)
"""Limits of an axis of shares, with room for marks at its ends."""
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
    decisions = decisions_of(side)
    classes = classes_of(side)
    if not decisions or len(classes) != 2:
        return
    for name, (title, curve, x, y, caption) in CURVES.items():
        table = curve(decisions)

        def draw(table: pd.DataFrame = table, x: str = x, y: str = y) -> Figure:
            figure, axes = new_figure(height=3.0)
            (ax,) = axes.flat
            sd = table["sd"] if "sd" in table else np.nan * table[y]
            low, high = (table[y] - sd).clip(lower=0.0), (table[y] + sd).clip(upper=1.0)
            marked = look if "n" in table else look._replace(marker="")
            line_with_band(ax, marked, method, table[x], table[y], low, high)
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
        figure, axes = new_figure(height=3.0)
        (ax,) = axes.flat
        ax.plot(drawn["true"], drawn["predicted"], linestyle="none", marker=".", alpha=0.5,
                color=look.colour)  # fmt: skip
        ends = [drawn["true"].min(), drawn["true"].max()]
        ax.plot(ends, ends, color="0.5", linestyle=":", linewidth=1.0)
        ax.set(xlabel="true value", ylabel="predicted value")
        return figure

    dataset, method = side.place["dataset"], side.place["method"]
    yield Chart(
        f"predicted-{slug(dataset)}",
        f"{dataset}: predicted against true values, {method}",
        "Test rows of all splits; on the line both are equal.",
        table,
        draw,
        dict.fromkeys(("true", "predicted"), LABEL_UNITS),
    )
