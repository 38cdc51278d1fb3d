"""Figures of the best method's predictions: ROC, precision and recall, calibration, values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mkldist.analysis.decision_curves import (
    calibration,
    classes_of,
    decisions_of,
    precision_recall,
    roc,
)
from mkldist.analysis.paired_losses import LABEL_UNITS
from mkldist.analysis.pairing import Chosen
from mkldist.report.charts import Chart, line_with_band, new_figure, slug
from mkldist.results.schema import DECISION_VALUES, LABEL, SAMPLE, SPLIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mkldist.figures.palette import Look

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
