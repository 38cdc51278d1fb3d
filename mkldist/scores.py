"""How well decision values agree with the labels of a test part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats, Ints
from mkldist.spec.kinds import Task

Score = TypeVar("Score")


def scores(decision_values: Floats, y: Floats, task: Task) -> dict[str, float]:
    """Return the scores of decision values on one test part.

    Parameters
    ----------
    decision_values : (n,) float64
        Values of f.
    y : (n,) float64
        Labels.
    task : {"classification", "regression"}
        What the labels are.

    Returns
    -------
    dict of str to float
        As :func:`classification_scores` or :func:`regression_scores` says.
    """
    if task == "regression":
        return regression_scores(decision_values, y)
    return classification_scores(decision_values, y)


def predicted_classes(values: Floats, order: Ints) -> Ints:
    """Return the class of the greatest decision value of each point, (n,).

    Parameters
    ----------
    values : (k, n) float64
        Decision values of each class against the rest.
    order : (k,) intp
        Classes in the order in which ties go to them.

    Examples
    --------
    >>> predicted_classes(np.array([[0.5, -1.0], [0.5, 2.0], [0.1, 2.0]]), np.array([2, 1, 0]))
    array([1, 2])
    """
    predicted: Ints = order[values[order].argmax(axis=0)]
    return predicted


def multiclass_scores(
    values: Floats, numbers: Ints, order: Ints
) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the scores of a classifier of k > 2 classes.

    Parameters
    ----------
    values : (k, n) float64
        Decision values of each class against the rest; the greatest one decides.
    numbers : (n,) intp
        Position of each point's class.
    order : (k,) intp
        Classes in the order in which ties go to them.

    Returns
    -------
    scores : dict of str to float
        ``test_error``, the share of wrong classes; ``balanced_error``, its mean over the classes;
        ``auc``, the mean over the classes of that of their decision values.  The last two are NaN
        when a class is lacking.
    of_classes : dict of str to array
        ``class_error`` (k,), the share of each class's points that is wrong, NaN where it has
        none; ``confusion`` (k, k), numbers of points by class and predicted class.
    """
    k = len(values)
    predicted = predicted_classes(values, order)
    confusion = np.zeros((k, k))
    np.add.at(confusion, (numbers, predicted), 1.0)
    sizes = confusion.sum(axis=1)
    hits = np.divide(np.diagonal(confusion), sizes, out=np.full(k, np.nan), where=sizes > 0)
    aucs = [_auc(f, numbers == c) for c, f in enumerate(values)]
    scored = {
        "test_error": float((predicted != numbers).mean()),
        "balanced_error": float((1.0 - hits).mean()),
        "auc": float(np.mean(aucs)),
    }
    return scored, {"class_error": 1.0 - hits, "confusion": confusion}


def part_scores(scored: Mapping[str, Score], part: str) -> dict[str, Score]:
    """Return scores, or arrays of classes, under the names that they have for a part of a split.

    Those of ``test`` keep their names; those of another part have its name in front, in place of
    ``test``.

    Examples
    --------
    >>> part_scores({"test_error": 0.5, "auc": 0.25}, "unlabelled")
    {'unlabelled_error': 0.5, 'unlabelled_auc': 0.25}
    """
    if part == "test":
        return dict(scored)
    return {f"{part}_{name.removeprefix('test_')}": value for name, value in scored.items()}


def classification_scores(decision_values: Floats, y: Floats) -> dict[str, float]:
    """Return the scores of a classifier, each in [0, 1].

    Parameters
    ----------
    decision_values : (n,) float64
        Values of f; f(x) >= 0 means the class +1.
    y : (n,) float64
        Labels in {-1, +1}.

    Returns
    -------
    dict of str to float
        ``test_error``, the share of wrong labels; ``balanced_error``, its mean over the classes;
        ``auc``, the probability that a positive point scores above a negative one, ties counting
        one half.  The last two are NaN when the test part lacks a class.

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


def _auc(decision_values: Floats, positive: npt.NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve; NaN without points of both kinds."""
    if positive.all() or not positive.any():
        return math.nan
    negatives = np.sort(decision_values[~positive])
    below = np.searchsorted(negatives, decision_values[positive], side="left")
    not_above = np.searchsorted(negatives, decision_values[positive], side="right")
    return float((below + not_above).mean() / 2 / len(negatives))


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
        units of the labels; ``r2``, the share of the variance of `y` that f explains, which is
        NaN for labels that do not vary.

    Examples
    --------
    >>> regression_scores(np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    {'rmse': 1.7320508075688772, 'mae': 1.0, 'r2': -3.5}
    """
    from sklearn import metrics

    varies = bool((y != y[0]).any())
    return {
        "rmse": float(metrics.root_mean_squared_error(y, decision_values)),
        "mae": float(metrics.mean_absolute_error(y, decision_values)),
        "r2": float(metrics.r2_score(y, decision_values)) if varies else math.nan,
    }
