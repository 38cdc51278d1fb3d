"""Metrics by which the settings and methods of a sweep are ranked, selected and compared.

``[selection] metric`` names one of them.  :mod:`mkldist.scores` computes their values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

MetricName = Literal[
    "error", "balanced_error", "auc", "average_precision", "f1", "log_loss", "brier",
    "rmse", "mae", "r2",
]  # fmt: skip
PARTS = ("validation", "test", "unlabelled")
"""Parts of a split whose scores rank settings: the first that has them."""


@dataclass(frozen=True)
class Metric:
    """A score of the predictions for some rows; :mod:`mkldist.scores` has its values."""

    name: MetricName
    task: Literal["classification", "regression"]  # of the data sets that it suits
    words: str  # its name in text
    unit: str = "1"  # "%" of a share of errors, "1" of another pure number, "" for that of labels
    greater: bool = False  # greater values are better; the greatest is 1
    contrasts: bool = False  # rows of one class alone, or of one value, do not have it
    probabilities: bool = False
    by_confusion: bool = False  # the numbers of rows by class and prediction determine it
    bounded: bool = True  # its loss is at most 1

    def variable(self, part: str = "test") -> str:
        """Return the name of its variable in records and trees, by the part of the split.

        >>> error, auc = METRICS["error"], METRICS["auc"]
        >>> error.variable(), auc.variable(), auc.variable("validation")
        ('test_error', 'auc', 'validation_auc')
        """
        if part == "test":
            return "test_error" if self.name == "error" else self.name
        return f"{part}_{self.name}"

    def loss(self, value: Any) -> Any:
        """Return what is the less the better: the value, or 1 less a value that is better greater.

        The same function turns a loss into the value.  It takes numbers and arrays.
        """
        return 1.0 - value if self.greater else value

    def heading(self, part: str) -> str:
        """Return its name with that of the part of the split, such as ``test error``."""
        return f"{part} {self.words}"

    @property
    def most(self) -> float:
        """The greatest loss that there can be: 1, or infinity."""
        return 1.0 if self.bounded else math.inf

    def text(self, value: float, low: float = math.nan, high: float = math.nan) -> str:
        """Return a value in words: with its unit, and with an interval if its ends are known.

        >>> METRICS["error"].text(0.254), METRICS["auc"].text(0.7), METRICS["rmse"].text(12.3456)
        ('25.40 %', '0.700', '12.35')
        >>> METRICS["error"].text(0.254, 0.09, 0.331)
        '25.40 [9.0, 33.1] %'
        """
        unit = " %" if self.unit == "%" else ""
        return self.number(value, low, high).replace("[ ", "[") + unit

    def number(self, value: float, low: float = math.nan, high: float = math.nan) -> str:
        """Return a value, with its interval if that is known, for a cell of a table.

        Shares of errors are per cent.

        >>> METRICS["error"].number(0.254), METRICS["error"].number(0.254, 0.09, 0.331)
        ('25.40', '25.40 [ 9.0, 33.1]')
        >>> METRICS["auc"].number(0.7, 0.61, 0.78)
        '0.700 [0.61, 0.78]'
        """
        found, least = f"{value:#.4g}".rstrip("."), ".3g"
        if self.unit == "%":
            found, least, low, high = f"{100.0 * value:.2f}", "4.1f", 100.0 * low, 100.0 * high
        elif self.unit == "1":
            found, least = f"{value:.3f}", ".2f"
        known = not (math.isnan(low) or math.isnan(high))
        return found + f" [{low:{least}}, {high:{least}}]" * known

    def difference(self, value: float) -> str:
        """Return a difference of values with its sign, of shares of errors in percentage points.

        >>> METRICS["error"].difference(0.0254), METRICS["auc"].difference(-0.7)
        ('+2.54', '-0.700')
        """
        if self.unit == "%":
            return f"{round(100.0 * value, 2) + 0.0:+.2f}"
        return f"{round(value, 3) + 0.0:+.3f}" if self.unit == "1" else f"{value + 0.0:+.3g}"


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("error", "classification", "error", "%", by_confusion=True),
        Metric(
            "balanced_error", "classification", "balanced error", "%",
            contrasts=True, by_confusion=True,
        ),
        Metric("auc", "classification", "AUC", greater=True, contrasts=True),
        Metric(
            "average_precision", "classification", "average precision", greater=True, contrasts=True
        ),
        Metric("f1", "classification", "F1", greater=True, contrasts=True, by_confusion=True),
        Metric("log_loss", "classification", "log loss", probabilities=True, bounded=False),
        Metric("brier", "classification", "Brier score", probabilities=True),
        Metric("rmse", "regression", "RMSE", "", bounded=False),
        Metric("mae", "regression", "MAE", "", bounded=False),
        Metric("r2", "regression", "R²", greater=True, contrasts=True, bounded=False),
    )
}  # fmt: skip
"""Every metric by its name.  Problems of one class have those of classes."""


def metrics_of(task: str) -> tuple[Metric, ...]:
    """Return the metrics that suit a task, the default one first."""
    return tuple(metric for metric in METRICS.values() if metric.task == task)


def pooled_words(count: int, task: str) -> str:
    """Return how scores are found where so many test parts have none of their own."""
    noun = f"{count} test part{'s' * (count > 1)}"
    if task == "regression":
        found, scores = f"{noun} with one value", "R² is"
    else:
        found, scores = f"{noun} without a class", "scores such as AUC and balanced error are"
    return f"{found}, so {scores} of all test rows of a repetition together"


def default_metric(task: str) -> Metric:
    """Return the metric of a sweep that names none."""
    return METRICS["rmse" if task == "regression" else "error"]


BESIDE = {"classification": ("error", "balanced_error", "auc"), "regression": ("rmse", "r2")}
"""Metrics that are shown beside that of the sweep, by task."""


def metric_of_variable(name: str) -> Metric:
    """Return the metric of a variable such as ``test_error`` or ``validation_auc``."""
    return _BY_VARIABLE[name]


def variable_words(name: str) -> str:
    """Return a metric's variable in words.

    >>> variable_words("test_error"), variable_words("unlabelled_rmse"), variable_words("auc")
    ('test error', 'RMSE on unlabelled points', 'test AUC')
    """
    part, words = part_of_variable(name), _BY_VARIABLE[name].words
    return f"{words} on unlabelled points" if part == "unlabelled" else f"{part} {words}"


def loss_words(name: str) -> str:
    """Return the loss of a metric's variable in words, as comparisons and figures show it.

    >>> loss_words("test_error"), loss_words("unlabelled_rmse"), loss_words("auc")
    ('test error', 'RMSE on unlabelled points', '1 - test AUC')
    """
    return "1 - " * _BY_VARIABLE[name].greater + variable_words(name)


def part_of_variable(name: str) -> str:
    """Return the part of the split that a metric's variable is of, such as ``validation``."""
    return next((part for part in PARTS if name.startswith(f"{part}_")), "test")


_BY_VARIABLE = {
    metric.variable(part): metric for metric in METRICS.values() for part in (*PARTS, "train")
}

LEAST_P = 0.001  # p-values below it are not told apart
NOTHING = "–"  # noqa: RUF001, the dash that stands for a missing number


def p_value_text(value: float) -> str:
    """Return a p-value with three decimals, of which small ones are ``< 0.001``.

    >>> p_value_text(0.0421), p_value_text(2e-5)
    ('0.042', '< 0.001')
    """
    if value < LEAST_P:
        return f"< {LEAST_P}"
    return f"{value:.3f}" if value >= LEAST_P else NOTHING
