"""Scores of decision values against labels: errors, area under the ROC curve, RMSE, MAE, R².

scikit-learn has all of these, and the tests compare with it.  The formulas stand here for their
cost: in a worker, ``import sklearn.metrics`` takes 0.9 s of processor time before the first score,
and then its three scores of two classes on 300 points take 4 ms, those below 0.04 ms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from mkldist.arrays import Bools, Floats, Ints
from mkldist.spec.kinds import Task

Score = TypeVar("Score")


def scores(decision_values: Floats, y: Floats, task: Task) -> dict[str, float]:
    """Return the scores of decision values, by the kind of the labels.

    Parameters
    ----------
    decision_values : (n,) float64
        Values of f.
    y : (n,) float64
        Labels.
    task : {"classification", "regression"}
        Kind of the labels.

    Returns
    -------
    dict of str to float
        Scores of :func:`classification_scores` or :func:`regression_scores`.
    """
    if task == "regression":
        return regression_scores(decision_values, y)
    return classification_scores(decision_values, y)


def classification_scores(decision_values: Floats, y: Floats) -> dict[str, float]:
    """Return the scores of a classifier of two classes, each in [0, 1].

    Parameters
    ----------
    decision_values : (n,) float64
        Values of f; f(x) >= 0 predicts the class +1.
    y : (n,) float64
        Labels in {-1, +1}.

    Returns
    -------
    dict of str to float
        ``test_error``, the share of points with a wrong prediction; ``balanced_error``, the mean of
        that share over the two classes; ``auc``, the probability that a positive point has a
        greater value than a negative one, where ties count one half.  The last two are NaN if `y`
        lacks a class.

    Examples
    --------
    >>> classification_scores(np.array([1.0, -1.0, 2.0]), np.array([1.0, -1.0, -1.0]))["auc"]
    0.5
    """
    wrong = np.where(decision_values >= 0, 1.0, -1.0) != y
    positive = y > 0
    result = {"test_error": float(wrong.mean()), "balanced_error": np.nan, "auc": np.nan}
    if positive.any() and not positive.all():
        result["balanced_error"] = float((wrong[positive].mean() + wrong[~positive].mean()) / 2)
        result["auc"] = _auc(decision_values, positive)
    return result


def multiclass_scores(
    values: Floats, class_numbers: Ints, order: Ints
) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the scores of a classifier of k > 2 classes.

    Parameters
    ----------
    values : (k, n) float64
        Decision values of each class against the rest; the greatest one decides.
    class_numbers : (n,) intp
        Class of each point, from 0 to k - 1.
    order : (k,) intp
        Classes by precedence: a tie goes to the first of them.

    Returns
    -------
    scores : dict of str to float
        ``test_error``, the share of points with a wrong prediction; ``balanced_error``, the mean of
        that share over the classes; ``auc``, the mean over the classes of the area under the ROC
        curve of their decision values.  The last two are NaN if a class has no points.
    of_classes : dict of str to array
        ``class_error`` (k,), the share of each class's points with a wrong prediction, NaN for a
        class without points; ``confusion`` (k, k), the numbers of points by class and prediction.
    """
    k = len(values)
    predicted = predicted_classes(values, order)
    confusion = np.zeros((k, k))
    np.add.at(confusion, (class_numbers, predicted), 1.0)
    sizes = confusion.sum(axis=1)
    recalls = np.divide(np.diagonal(confusion), sizes, out=np.full(k, np.nan), where=sizes > 0)
    aucs = [_auc(f, class_numbers == c) for c, f in enumerate(values)]
    found = {
        "test_error": float((predicted != class_numbers).mean()),
        "balanced_error": float((1.0 - recalls).mean()),
        "auc": float(np.mean(aucs)),
    }
    return found, {"class_error": 1.0 - recalls, "confusion": confusion}


def predicted_classes(values: Floats, order: Ints) -> Ints:
    """Return the class of the greatest decision value of each point, (n,).

    Parameters
    ----------
    values : (k, n) float64
        Decision values of each class against the rest.
    order : (k,) intp
        Classes by precedence: a tie goes to the first of them.

    Examples
    --------
    >>> predicted_classes(np.array([[0.5, -1.0], [0.5, 2.0], [0.1, 2.0]]), np.array([2, 1, 0]))
    array([1, 2])
    """
    predicted: Ints = order[values[order].argmax(axis=0)]
    return predicted


def regression_scores(decision_values: Floats, y: Floats) -> dict[str, float]:
    """Return the scores of a regression.

    Parameters
    ----------
    decision_values : (n,) float64
        Values of f, in the units of the labels.
    y : (n,) float64
        Real values.

    Returns
    -------
    dict of str to float
        ``rmse`` and ``mae``, the root mean square and the mean of the absolute errors, in the
        units of the labels; ``r2``, the share of the variance of `y` that f explains, NaN for
        labels that do not vary.

    Raises
    ------
    ValueError
        For decision values that are not finite: the run then counts as failed.

    Examples
    --------
    >>> regression_scores(np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    {'rmse': 1.7320508075688772, 'mae': 1.0, 'r2': -3.5}
    """
    if not np.isfinite(decision_values).all():
        raise ValueError("decision values are not finite")
    errors = y - decision_values
    result = {
        "rmse": float(np.sqrt((errors**2).mean())),
        "mae": float(np.abs(errors).mean()),
        "r2": math.nan,
    }
    squares = ((y - y.mean()) ** 2).sum()
    # The mean of equal numbers may differ from them by a rounding error: compare the labels too.
    if squares > 0 and (y != y[0]).any():
        result["r2"] = float(1.0 - (errors**2).sum() / squares)
    return result


def part_scores(found: Mapping[str, Score], part: str) -> dict[str, Score]:
    """Return the scores of a part of a split under the names that records give them.

    Scores of the ``test`` part keep their names.  In the names of another part, its own name takes
    the place of ``test``, or stands in front.

    Examples
    --------
    >>> part_scores({"test_error": 0.5, "auc": 0.25}, "unlabelled")
    {'unlabelled_error': 0.5, 'unlabelled_auc': 0.25}
    """
    if part == "test":
        return dict(found)
    return {f"{part}_{name.removeprefix('test_')}": value for name, value in found.items()}


def _auc(decision_values: Floats, positive: Bools) -> float:
    """Return the area under the ROC curve; NaN without points of both kinds."""
    if positive.all() or not positive.any():
        return math.nan
    negatives = np.sort(decision_values[~positive])
    below = np.searchsorted(negatives, decision_values[positive], side="left")
    not_above = np.searchsorted(negatives, decision_values[positive], side="right")
    return float((below + not_above).mean() / 2 / len(negatives))
