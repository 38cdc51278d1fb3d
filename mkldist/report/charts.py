"""Figures of the page of a sweep, each with its data, as SVG inside the page and as files.

Losses and objectives along hyperparameters; selected settings on inner folds and test parts;
ranks; gaps by passes and seconds; losses by sizes; kernel weights by width; what decisions rest on;
and the best method's predictions: ROC, precision and recall, calibration, values.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import mkldist.plot as plot
from mkldist.analysis.comparison import Chosen
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
from mkldist.analysis.explanation import Explanation, kernel_shares
from mkldist.analysis.losses import LABEL_UNITS, RanksOverDataSets, in_units
from mkldist.core.durable import check_free, replacing, write_file, writing
from mkldist.core.metrics import loss_words
from mkldist.errors import OutputError, ending_words
from mkldist.plot import Look
from mkldist.report.sentences import Facts, slug
from mkldist.results.schema import DECISION_VALUES, LABEL, SAMPLE, SPLIT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


WIDTH, HEIGHT = 3.5, 2.5  # inches: a column of a paper, in which no letter is below 7 points
LETTERS = 7.0  # points, of the smallest letters
KEY, LETTER = 4.5, 0.56  # widths of a key of a legend with its room, and of a letter, in letters
LINE = 0.15  # inches, height of a line of a legend
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


def figure_of(
    *panels: Callable[..., object], height: float = HEIGHT, shared: str = "", most: int = 3
) -> Figure:
    """Return a figure of the report's width with panels from above, and below them their legends.

    `shared` are the axes that panels share, ``"x"`` or ``"y"``; `most` is the number of columns of
    the legend at most.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(
        len(panels), 1, squeeze=False, sharex=shared == "x", sharey=shared == "y"
    )
    for draw, ax in zip(panels, axes.flat, strict=True):
        draw(ax=ax)
        if shared == "x":
            ax.label_outer()
    shown = taken_legends(figure)
    if not shown:
        return figure
    width = LETTERS * (KEY + LETTER * max(map(len, shown))) / 72
    columns = min(most, max(1, int(figure.get_figwidth() / width)), len(shown))
    rows = -(-len(shown) // columns)
    figure.set_figheight(figure.get_figheight() + LINE * (rows - 1))
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns)
    return figure


def taken_legends(figure: Figure) -> dict[str, Artist]:
    """Remove the legends of all axes and return their keys by their words."""
    found: dict[str, Artist] = {}
    for ax in figure.axes:
        if (legend := ax.get_legend()) is not None:
            words = [text.get_text() for text in legend.get_texts()]
            keys = [key for key in legend.legend_handles if key is not None]
            found |= dict(zip(words, keys, strict=True))
            legend.remove()
    return found


def _draws(
    facts: Facts, draw: Callable[..., object], table: pd.DataFrame, *arguments: Any, **options: Any
) -> Callable[[], Figure]:
    """Return what draws a table of the methods on one data set, each with its look."""
    shown = table.drop(columns=["dataset", "bank"], errors="ignore")
    panel = partial(draw, shown, *arguments, looks=facts.looks_of(table["method"]))
    return partial(figure_of, panel, **options)


def loss_units(loss: str, *columns: str) -> dict[str, str]:
    """Return the units of columns that hold values of a loss."""
    return dict.fromkeys(columns, LABEL_UNITS) if in_units(loss) else {}


def path_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss along the regularisation, a figure for each data set."""
    charts = []
    for dataset, axis, rows in _paths(facts):
        loss = facts.loss(dataset)
        table = rows.loc[rows.groupby(["method", axis], sort=False)["mean"].idxmin()]
        columns = ["dataset", "bank", "method", axis, "loss", "mean", "sd"]
        table = table[columns].sort_values(["method", axis])
        charts.append(Chart(
            f"path-{slug(dataset)}", f"{dataset}: {loss_words(loss)} along {axis}",
            f"Mean over the splits; the band is one standard deviation. For each value of "
            f"{axis}, other hyperparameters have the value of least mean loss.",
            table, _draws(facts, plot.path, table, axis),
            loss_units(loss, "mean", "sd"),
        ))  # fmt: skip
    return charts


def _paths(facts: Facts) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield the hyperparameter along which a data set has a figure, with the rows."""
    axes = {dataset: axis for dataset in facts.datasets[:MOST] if (axis := facts.axis(dataset))}
    paths = {axis: objective_path(facts.tree, axis) for axis in set(axes.values())}
    for dataset, axis in axes.items():
        rows = paths[axis][paths[axis]["dataset"] == dataset]
        if not rows.empty:
            yield dataset, axis, rows


def objective_charts(facts: Facts) -> list[Chart]:
    """Return the mean objective of methods that minimise the same function, on one bank each."""
    charts = []
    for dataset, axis, every in _paths(facts):
        rows = every[every["bank"] == facts.largest_bank(dataset, every["bank"].tolist())]
        methods = rows.groupby("problem")["method"].nunique()
        if methods.max() < 2:
            continue
        table = rows[rows["problem"] == methods.idxmax()]
        on = f" on the kernels of {table['bank'].iloc[0]}" * facts.several_banks
        charts.append(Chart(
            f"objective-{slug(dataset)}", f"{dataset}: objective along {axis}",
            f"These methods minimise the same function{on}, and differ by their gaps at most. Mean "
            "over the splits; the band is one standard deviation.",
            table, _draws(facts, plot.path, table, axis, "objective"),
            loss_units(facts.loss(dataset), "mean", "sd"),
        ))  # fmt: skip
    return charts


def rank_chart(over: RanksOverDataSets, facts: Facts) -> Chart | None:
    """Return the diagram of mean ranks with Nemenyi's critical difference."""
    ranks = over.ranks
    if ranks is None:
        return None
    table = ranks.mean_ranks.sort_values().rename_axis("method").rename("mean_rank").reset_index()
    panel = partial(plot.comparison, ranks, looks=facts.looks_of(table["method"]))
    return Chart(
        "ranks",
        "Mean ranks over the data sets",
        f"Bars are Nemenyi's critical difference {ranks.critical_difference:.2f} wide (level "
        f"0.05): methods whose bars do not overlap differ. Friedman's test in the form of Iman and "
        f"Davenport: p = {ranks.p_value:.2g}. Mean ranks depend on which other methods take part, "
        f"so the signed-rank tests of pairs are the better evidence.",
        table,
        partial(figure_of, panel, height=0.8 + 0.2 * len(table)),
    )


def convergence_charts(facts: Facts) -> list[Chart]:
    """Return the gap against passes and against seconds, for each data set with traces."""
    charts = []
    tables = {cost: convergence_curves(facts.tree, cost) for cost in COSTS}
    for dataset, cost in product(facts.datasets[:MOST], COSTS):
        table = tables[cost][tables[cost]["dataset"] == dataset]
        if table.empty:
            continue
        bank = facts.largest_bank(dataset, banks := table["bank"].unique().tolist())
        shown = table[table["bank"] == bank]
        which = f" Of {len(banks)} banks, the one of most kernels is shown, {bank}."
        words = plot.COST_WORDS[cost]
        charts.append(Chart(
            f"convergence-{cost}-{slug(dataset)}", f"{dataset}: gap against {words}",
            "Best certified gap so far: the median over all traced runs of a method, of all "
            "settings and splits; the band holds the middle half of them."
            f"{which * (len(banks) > 1)}",
            table, _draws(facts, plot.convergence, shown, cost),
        ))  # fmt: skip
    return charts


def _losses(
    name: str, against: str, caption: str, table: pd.DataFrame, facts: Facts, x: str,
    shown: pd.DataFrame | None = None,
) -> Chart:  # fmt: skip
    """Return the figure of the mean losses on one data set against a number."""
    dataset, loss = (str(table[column].iloc[0]) for column in ("dataset", "loss"))
    return Chart(
        f"{name}-{slug(dataset)}", f"{dataset}: {loss_words(loss)} against {against}", caption,
        table, _draws(facts, plot.loss, table if shown is None else shown, x),
        loss_units(loss, "mean", "low", "high"),
    )  # fmt: skip


def learning_charts(facts: Facts) -> list[Chart]:
    """Return the mean loss against the training points, a figure for each data set of sizes."""
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
        charts += [_losses("learning", "training points", caption, table, facts, "n_train", shown)]
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
            some, facts, "active_kernels",
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
        against = f"the number of candidates, bank {bank}"
        chart = _losses("candidates", against, caption, table, facts, "n_kernels")
        charts.append(replace(chart, name=f"{chart.name}-{slug(bank)}"))
    return charts


MOST_WIDTHS, N_PARTS, MOST_LINES = 40, 20, 8
LONGEST = 24  # letters of a name in a figure
GROUP_WIDTH = "group and width"


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
    """Return the shares of each width; of several groups of features, those of the best method."""
    found = [
        kernel_shares(_with_widths_of_groups(weights), GROUP_WIDTH).assign(**place)
        for place, weights in own
        if "width" in weights.coords and np.any(weights.to_numpy())
    ]
    if not found:
        return None
    columns = ["dataset", "bank", "method", GROUP_WIDTH, "n_kernels", "share", "frequency"]
    table = pd.concat(found, ignore_index=True)[columns]
    parts = table.pop(GROUP_WIDTH).str.rsplit("\n", n=1, expand=True)
    table.insert(3, "feature_group", parts[0])
    table.insert(4, "width", parts[1].astype(float))
    table = table.sort_values(["method", "feature_group", "width"], kind="stable")
    if table["width"].nunique() < 2:
        return None
    groups = table.groupby("feature_group")["share"].sum()
    groups = groups.nlargest(MOST_LINES)[lambda sums: sums > 0.0]
    shown, methods = table[table["feature_group"].isin(groups.index)], facts.looks
    which = "mean over the splits, at the method's chosen setting"
    if len(groups) > 1:
        best = facts.best_of(dataset, table["method"].unique())
        which = f"by group of features, mean over the splits of {best}"
        shown = shown[shown["method"] == best]
        shown = shown.assign(feature_group=shown["feature_group"].map(_short))
        methods = plot.looks_of(map(_short, groups.index))
    several = any(weights.sizes["split"] > 1 for _, weights in own)
    selecting = ", and the share of the splits that select a kernel of the width" * several
    panels = [partial(plot.weights, shown, "width", y, looks=methods)
              for y in ("share", "frequency")[: 1 + several]]  # fmt: skip
    return Chart(
        f"widths-{slug(dataset)}",
        f"{dataset}: kernel weights by width",
        f"Share of the kernel weights on kernels of each width, {which}{selecting}.{bank}",
        table,
        partial(figure_of, *panels, height=1.4 + 1.1 * len(panels), shared="x"),
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
BAND = "Mean over the splits of test rows, with one standard deviation."
CURVES = {
    "roc": ("ROC curve", roc, plot.roc, BAND),
    "precision-recall": ("precision and recall", precision_recall, plot.precision_recall, BAND),
    "calibration": (
        "calibration", calibration, plot.calibration,
        "How often rows of about equal probability are of the class; probabilities of each split "
        "are by a sigmoid of the decision values of the other splits. On the line they are right.",
    ),
}  # fmt: skip
"""Title, data, drawing and caption of each figure of two classes."""


def prediction_charts(side: Chosen, look: Look) -> Iterator[Chart]:
    """Yield the figures of a method at its chosen setting, where its decision values are known."""
    dataset, method = side.place["dataset"], side.place["method"]
    if side.node.attrs.get("task") == "regression":
        yield from _of_values(side, look)
        return
    decisions, classes = decisions_of(side), classes_of(side)
    if not decisions or len(classes) != 2:
        return
    for name, (title, curve, draw, caption) in CURVES.items():
        table = curve(decisions)
        panel = partial(draw, table.assign(method=""), looks={"": look})
        yield Chart(
            f"{name}-{slug(dataset)}",
            f"{dataset}: {title} of {classes[1]}, {method}",
            caption,
            table.assign(dataset=dataset, method=method),
            partial(figure_of, panel, height=3.0),
        )


def _of_values(side: Chosen, look: Look) -> Iterator[Chart]:
    """Yield predicted against true values, where decision values are known."""
    data = side.data
    if DECISION_VALUES.name not in data or LABEL not in data.coords:
        return
    values = data[DECISION_VALUES.name].transpose(SPLIT, SAMPLE).to_numpy()
    labels = data[LABEL].to_numpy()
    splits, rows = np.nonzero(~np.isnan(values) & ~np.isnan(labels))
    true, predicted = labels[rows], values[splits, rows]
    columns = {"split": data[SPLIT].to_numpy()[splits], "row": rows}
    table = pd.DataFrame({**columns, "true": true, "predicted": predicted})
    drawn = table.iloc[:: max(1, -(-len(table) // MOST_POINTS))]
    yield Chart(
        f"predicted-{slug(side.place['dataset'])}",
        f"{side.place['dataset']}: predicted against true values, {side.place['method']}",
        "Test rows of all splits; on the line both are equal.",
        table,
        partial(figure_of, partial(plot.predicted, drawn, look=look), height=3.0),
        dict.fromkeys(("true", "predicted"), LABEL_UNITS),
    )


ROW = 0.165  # inches, of a bar of an explanation


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
    from matplotlib.figure import Figure

    panels = [plot.shares, *[plot.left_out] * (not explanation.no_decision)]
    height = 1.3 + ROW * len(plot.shown_rows(explanation))
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    ratios = [1.6, 1][: len(panels)]
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=ratios)
    for draw, ax in zip(panels, axes.flat, strict=True):
        draw(explanation, ax=ax)
    figure.suptitle(plot.literal(f"{explanation.dataset}: {explanation.method}"), fontsize=8)
    if shown := taken_legends(figure):
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=2)
    return figure
