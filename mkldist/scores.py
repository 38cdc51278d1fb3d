"""Scores of predictions against labels: errors, ROC and precision-recall, log loss, RMSE, R².

scikit-learn has all of these, and the tests compare with it.  The formulas stand here for their
cost: in a worker, ``import sklearn.metrics`` takes 0.9 s of processor time before the first score,
and then its three scores of two classes on 300 points take 4 ms, those below 0.04 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import scipy

from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.metrics import METRICS

Score = TypeVar("Score")


def two_class_scores(values: Floats, y: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the scores of a classifier of two classes."""
    numbers, predicted = (y > 0).astype(np.intp), (values >= 0).astype(np.intp)
    found, of_classes = pooled_scores([(values[None], numbers, predicted)], 2)
    missed = of_classes["class_error"]
    found |= {"sensitivity": float(1.0 - missed[1]), "specificity": float(1.0 - missed[0])}
    return found, of_classes


def log_odds_scores(log_odds: Floats, y: Floats) -> dict[str, float]:
    """Return what :func:`probability_scores` does, from the log odds of two classes."""
    missed = scipy.special.expit(-y * log_odds)  # of the class of each point
    return {
        "log_loss": float(np.logaddexp(0.0, -y * log_odds).mean()),
        "brier": float((missed**2).mean()),
    }


def probability_scores(probabilities: Floats, class_numbers: Ints) -> dict[str, float]:
    """Return the scores of probabilities of k classes."""
    own = probabilities[np.arange(len(class_numbers)), class_numbers]
    squares = (probabilities**2).sum(axis=1) - 2.0 * own + 1.0
    return {
        "log_loss": float(-np.log(np.maximum(own, np.finfo(np.float64).eps)).mean()),
        "brier": float(0.5 * squares.mean()),
    }


def multiclass_scores(
    values: Floats, class_numbers: Ints, order: Ints
) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the scores of a classifier of k > 2 classes."""
    predicted = predicted_classes(values, order)
    return pooled_scores([(values, class_numbers, predicted)], len(values))


Fold: TypeAlias = tuple[Floats, Ints, Ints]
"""Decision values (k, n), or (1, n) of two classes; class and prediction of each point, (n,)."""


def pooled_scores(folds: Sequence[Fold], k: int) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the scores of classifiers of k classes, each on points of its own.

    Scores of the predictions are those of all points together.  ``auc`` and ``average_precision``
    are means over the classifiers, whose decision values need not compare; those of all points
    together where the points of a classifier are all of one kind.
    """
    confusion = sum(_confusion(numbers, predicted, k) for _, numbers, predicted in folds)
    found, of_classes = _of_confusion(np.asarray(confusion))
    own = range(1, 2) if k == 2 else range(k)
    for name, score in OF_VALUES.items():
        each = [
            _over_folds(
                [(values[c - own.start], numbers == c) for values, numbers, _ in folds], score
            )
            for c in own
        ]
        found[name] = float(np.mean(each))
    return found, of_classes


def _over_folds(
    folds: Sequence[tuple[Floats, Bools]], score: Callable[[Floats, Bools], float]
) -> float:
    """Return the mean score of some folds, or that of their points together."""
    if any(positive.all() or not positive.any() for _, positive in folds):
        values, positive = map(np.concatenate, zip(*folds, strict=True))
        return score(values, positive)
    return float(np.mean([score(*fold) for fold in folds]))


def score_over_folds(
    name: str, values: Floats, labels: Array, folds: Ints, k: int, confusion: Floats
) -> Floats:
    """Return the score of the points of K folds together as one value a fold, (K,), its jackknife.

    Their mean is the score S.  A fold's value is ``S + (K - 1) (mean_j S_j - S_i)``, with S_i the
    score without fold i: their spread is that of the pseudo-values by which the jackknife tells
    the variance of S (Tukey 1958).

    Shapes: values (k, n), or (1, n) of two classes and of real values; labels (n,) classes from 0,
    or values for k = 0; folds (n,) from 0; confusion (K, k, k).
    """
    whole = np.arange(folds.max() + 1)

    def score(left_out: int) -> float:
        kept = folds != left_out
        if METRICS[name].by_confusion:
            return _of_confusion(confusion[whole != left_out].sum(axis=0))[0][name]
        if not k:
            return regression_scores(values[0, kept], labels[kept])[name]
        of = OF_VALUES[name]
        own = range(1, 2) if k == 2 else range(k)
        each = [of(values[c - own.start, kept], labels[kept] == c) for c in own]
        return float(np.mean(each))

    together, without = score(-1), np.array([score(number) for number in whole.tolist()])
    known = without[~np.isnan(without)]
    mean = float(known.mean()) if len(known) else math.nan
    return together + (len(whole) - 1) * np.nan_to_num(mean - without)


def _confusion(class_numbers: Ints, predicted: Ints, k: int) -> Floats:
    """Return the numbers of points by class and prediction, (k, k)."""
    counts = np.bincount(class_numbers * k + predicted, minlength=k * k)
    return counts.reshape(k, k).astype(np.float64)


def _of_confusion(confusion: Floats) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return the scores that the numbers of points by class and prediction determine."""
    sizes, calls, right = confusion.sum(axis=1), confusion.sum(axis=0), np.diagonal(confusion)
    n = confusion.sum()
    missed = np.divide(sizes - right, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
    spread = math.sqrt((n**2 - (sizes**2).sum()) * (n**2 - (calls**2).sum()))
    f1 = _f1(confusion)
    found = {
        "test_error": float((n - right.sum()) / n),
        "balanced_error": float(missed.mean()),
        "f1": float(f1[1] if len(f1) == 2 else f1.mean()),
        # As in scikit-learn: 0 if all points are of one class, or are predicted so.
        "mcc": float((n * right.sum() - sizes @ calls) / spread) if spread else 0.0,
    }
    return found, {"class_error": missed, "confusion": confusion}


def _f1(confusion: Floats) -> Floats:
    """Return the F1 score of each class; NaN for one without points and predictions."""
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    right = 2.0 * np.diagonal(confusion)
    scores: Floats = np.divide(right, both, out=np.full(len(both), np.nan), where=both > 0)
    return scores


def predicted_classes(values: Floats, order: Ints) -> Ints:
    """Return the class of the greatest decision value of each point, (n,)."""
    predicted: Ints = order[values[order].argmax(axis=0)]
    return predicted


def regression_scores(decision_values: Floats, y: Floats) -> dict[str, float]:
    """Return the scores of a regression."""
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


def constant_answers(train: Array, k: int) -> tuple[float, ...]:
    """Return the shares of k classes from 0 in labels; mean and median of values for k = 0."""
    if not k:
        return float(np.mean(train)), float(np.median(train))
    return tuple((np.bincount(train.astype(np.intp), minlength=k) / len(train)).tolist())


def constant_score(name: str, answers: Sequence[float], test: Array, k: int) -> float:
    """Return the score of a constant prediction, the best that labels of training rows tell."""
    if not k:
        if name == "r2":
            return 0.0
        value = answers[name == "mae"]
        return regression_scores(np.full(len(test), value), test)[name]
    most = int(np.argmax(answers))
    if name in ("log_loss", "brier"):
        return probability_scores(np.tile(answers, (len(test), 1)), test.astype(np.intp))[name]
    if name == "f1":
        share = float((test == (1 if k == 2 else most)).mean())
        return 2.0 * share / (1.0 + share) / (1 if k == 2 else k)
    by_name = {
        "balanced_error": 1.0 - 1.0 / k,
        "auc": 0.5,
        "average_precision": float((test == 1).mean()) if k == 2 else 1.0 / k,
    }
    if name in by_name:
        return by_name[name]
    predicted = np.full(len(test), most)
    counts = _confusion(test.astype(np.intp), predicted, k)
    return _of_confusion(counts)[0][METRICS[name].variable()]


def part_scores(found: Mapping[str, Score], part: str) -> dict[str, Score]:
    """Return the scores of a part of a split under the names that records give them.

    Scores of the ``test`` part keep their names.  In the names of another part, its own name takes
    the place of ``test``, or stands in front.
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


def _average_precision(decision_values: Floats, positive: Bools) -> float:
    """Return the mean over the positives of the precision at their value; NaN without any."""
    if not positive.any():
        return math.nan
    order = np.argsort(-decision_values, kind="stable")
    ordered = decision_values[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of each tie
    found = np.cumsum(positive[order])[last]
    new = np.diff(found, prepend=0)
    return float((new * found / (last + 1)).sum() / found[-1])


OF_VALUES: dict[str, Callable[[Floats, Bools], float]] = {
    "auc": _auc, "average_precision": _average_precision,
}  # fmt: skip
"""Scores of the decision values of a class against the rest, of which several have the mean."""
