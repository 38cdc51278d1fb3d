"""ROC, precision-recall and calibration curves of the decisions on test rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.pairing import Chosen, Results, methods_by_data_set
from mkldist.calibration import fit_calibration
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

GRID = np.linspace(0.0, 1.0, 101)
"""Rates at which curves of splits are averaged."""
BINS, ROUNDING = 10, 1e-12


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decision values of one class at the test rows of one split.

    Parameters
    ----------
    split : int
        The split.
    rows : (t,) intp
        The rows.
    positive : (t,) bool
        True for rows of the class.
    values : (t,) float64
        Decision values: the larger, the more likely the class.
    """

    split: int
    rows: Ints
    positive: Bools
    values: Floats


def decisions_of(side: Chosen, class_name: str | None = None) -> list[Decisions]:
    """Return the decisions of a method on the test rows of each split that has recorded them.

    Parameters
    ----------
    side : Chosen
        A method on a data set of classes, at its setting.
    class_name : str, optional
        The class that is positive; by default the second of two classes, and of more the first.

    Returns
    -------
    list of Decisions
        Empty where the sweep kept no predictions, and for real values.  Splits whose test rows are
        all of one kind are left out.
    """
    data, found = side.data, []
    if "label" not in data.coords or side.node.attrs.get("task") == "regression":
        return []
    labels, n_test = data["label"].to_numpy(), data["n_test"].to_numpy()
    names = classes_of(side)
    place = names.index(class_name) if class_name in names else (1 if len(names) == 2 else 0)
    for split, record in enumerate(side.records):
        if record is None or not len(record.decision_values):
            continue
        test = slice(int(n_test[split]))
        rows, values = record.test_rows[test], np.atleast_2d(record.decision_values)[:, test]
        own = labels[rows]
        if len(values) > 1:
            positive, decided = own == place, values[place]
        else:
            positive = (own > 0) == (place == 1)
            decided = values[0] if place == 1 else -values[0]
        if positive.any() and not positive.all():
            found.append(Decisions(split, rows, positive, decided))
    return found


def classes_of(side: Chosen) -> list[str]:
    """Return the names of the classes of a method's data set, of two first that of -1."""
    names = side.data.coords.get("class_name")
    if names is None:
        names = side.node.ds.coords.get("class_name")
    return ["-1", "+1"] if names is None else [str(name) for name in names.to_numpy().tolist()]


def roc(decisions: list[Decisions]) -> pd.DataFrame:
    """Return the mean ROC curve of the splits.

    Returns
    -------
    DataFrame
        Columns ``false_positive_rate``, from 0 to 1, and ``true_positive_rate``, its mean over the
        splits, with ``sd`` over them.  A curve of one split has the thresholds' own rates.
    """
    from sklearn.metrics import roc_curve

    def curve(one: Decisions) -> tuple[Floats, Floats]:
        rate, hits, _ = roc_curve(one.positive, one.values)
        return rate, hits

    return _mean_curve(decisions, curve, "false_positive_rate", "true_positive_rate")


def precision_recall(decisions: list[Decisions]) -> pd.DataFrame:
    """Return the mean precision-recall curve of the splits.

    Returns
    -------
    DataFrame
        Columns ``recall``, from 0 to 1, and ``precision``, its mean over the splits, with ``sd``
        over them.  The precision at a recall is that of the least recall of any threshold that is
        no less, as in the average precision.
    """
    from sklearn.metrics import precision_recall_curve

    def curve(one: Decisions) -> tuple[Floats, Floats]:
        precision, recall, _ = precision_recall_curve(one.positive, one.values)
        return GRID, precision[::-1][np.searchsorted(recall[::-1], GRID - ROUNDING)]

    return _mean_curve(decisions, curve, "recall", "precision")


def _mean_curve(
    decisions: list[Decisions],
    curve: Callable[[Decisions], tuple[Floats, Floats]],
    x: str,
    y: str,
) -> pd.DataFrame:
    """Return the mean of curves over the splits, at equally spaced places of several."""
    import pandas as pd

    curves = [curve(one) for one in decisions]
    if len(curves) == 1:
        [(places, heights)] = curves
        return pd.DataFrame({x: places, y: heights, "sd": np.nan})
    found = np.array([np.interp(GRID, places, heights) for places, heights in curves])
    sd = found.std(axis=0, ddof=1) if len(found) else np.full(len(GRID), np.nan)
    mean = found.mean(axis=0) if len(found) else np.full(len(GRID), np.nan)
    return pd.DataFrame({x: GRID, y: mean, "sd": sd})


def out_of_split_probabilities(decisions: list[Decisions]) -> list[Floats]:
    """Return probabilities of the class at the rows of each split, by a sigmoid of other splits.

    Rows that both have do not count.  One split has a sigmoid of its own rows, whose probabilities
    are fitted to their labels.

    Parameters
    ----------
    decisions : list of Decisions
        Those of all splits.
    """
    found = []
    for one in decisions:
        others = [other for other in decisions if other is not one]
        new = [~np.isin(other.rows, one.rows) for other in others]
        values = [other.values[own] for other, own in zip(others, new, strict=True)]
        positive = [other.positive[own] for other, own in zip(others, new, strict=True)]
        if not sum(map(len, values)):
            values, positive = [one.values], [one.positive]
        fitted = fit_calibration(np.concatenate(values), np.concatenate(positive))
        found.append(fitted.probabilities(one.values))
    return found


def calibration(decisions: list[Decisions], n_bins: int = BINS) -> pd.DataFrame:
    """Return how often rows of about equal probability are of the class.

    Probabilities are those of :func:`out_of_split_probabilities`, of all splits together.

    Parameters
    ----------
    decisions : list of Decisions
        Those of all splits.
    n_bins : int
        Number of bins of about equal numbers of rows.

    Returns
    -------
    DataFrame
        A row for each bin: ``probability``, the mean, ``frequency``, the share of rows of the
        class, and the number ``n`` of rows.
    """
    import pandas as pd
    from sklearn.calibration import calibration_curve

    named = ["probability", "frequency", "n"]
    if not decisions:
        return pd.DataFrame(columns=named, dtype=float)
    probabilities = np.concatenate(out_of_split_probabilities(decisions))
    positive = np.concatenate([one.positive for one in decisions])
    n_bins = max(1, min(n_bins, len(positive) // 5))
    frequency, mean = calibration_curve(positive, probabilities, n_bins=n_bins, strategy="quantile")
    edges = np.percentile(probabilities, np.linspace(0.0, 100.0, n_bins + 1))
    bins = np.bincount(np.searchsorted(edges[1:-1], probabilities), minlength=n_bins)
    return pd.DataFrame({"probability": mean, "frequency": frequency, "n": bins[bins > 0]})


def prediction_curves(
    results: str | Path | Results, dataset: str, method: str, class_name: str | None = None
) -> dict[str, pd.DataFrame]:
    """Return the curves of a method's decisions on test rows.

    Parameters
    ----------
    results : str, Path or Results
        Output folder of a sweep with ``[outputs] predictions = true``.
    dataset, method : str
        Names in the results, the method as METHOD or BANK/METHOD.
    class_name : str, optional
        As for :func:`decisions_of`.

    Returns
    -------
    dict of str to DataFrame
        ``roc``, ``precision_recall`` and ``calibration``, as of the functions of these names.

    Raises
    ------
    mkldist.errors.InputError
        If the results have no such method, or no decisions of it.

    Examples
    --------
    >>> from mkldist import analysis
    >>> analysis.prediction_curves("results/mine", "mine", "level")["roc"]  # doctest: +SKIP
    """
    found = results if isinstance(results, Results) else Results.of(results)
    sides: dict[str, Any] = dict(methods_by_data_set(found, [method])).get(dataset, {})
    decisions = decisions_of(next(iter(sides.values())), class_name) if sides else []
    if not decisions:
        where = f"prediction_curves({dataset!r}, {method!r})"
        expected = "classes, with [outputs] predictions = true"
        raise InputError(where, "no decision values of test rows", expected)
    return {
        "roc": roc(decisions),
        "precision_recall": precision_recall(decisions),
        "calibration": calibration(decisions),
    }
