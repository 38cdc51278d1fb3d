"""Probabilities and decision thresholds, learnt from decision values of held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.metrics import METRICS
from mkldist.scores import pooled_scores, predicted_classes, probability_scores

CalibrationMethod = Literal["sigmoid", "isotonic"]
METHODS: tuple[str, ...] = get_args(CalibrationMethod)
OF_THE_MOST_PROBABLE = ("error", "log_loss", "brier")
"""Metrics by which the class of the greatest probability is the best prediction."""
MOST_STEPS, GRADIENT = 100, 1e-10  # of Newton's method for a sigmoid
RIDGE, ROUNDING = 1e-12, 1e-14  # of curvatures, and of mean losses


@dataclass(frozen=True)
class Sigmoid:
    """``P(y = +1 | f) = 1 / (1 + exp(-slope f - intercept))``, with a slope of at least 0."""

    slope: float
    intercept: float

    def probabilities(self, values: Floats) -> Floats:
        """Return the probabilities of the class +1 at decision values of any shape."""
        found: Floats = scipy.special.expit(self.slope * values + self.intercept)
        return found

    def value_above(self, probability: float) -> float:
        """Return the decision value beyond which the probability is greater, or an infinity."""
        odds = math.log(probability / (1.0 - probability))
        if self.slope > 0.0:
            return (odds - self.intercept) / self.slope
        return -math.inf if self.intercept > odds else math.inf


@dataclass(frozen=True)
class Isotonic:
    """A function that does not decrease: linear between knots, constant beyond them."""

    values: tuple[float, ...]  # decision values of the knots, ascending
    heights: tuple[float, ...]  # probabilities there

    def probabilities(self, values: Floats) -> Floats:
        """Return the probabilities of the class +1 at decision values of any shape."""
        return np.interp(values, self.values, self.heights)

    def value_above(self, probability: float) -> float:
        """Return the least decision value with a greater probability, or an infinity."""
        heights = np.array(self.heights)
        above = int(np.searchsorted(heights, probability, side="right"))
        if above in (0, len(heights)):
            return math.inf if above else -math.inf
        (low, high), (left, right) = (
            heights[above - 1 : above + 1],
            self.values[above - 1 : above + 1],
        )
        found = left + (right - left) * (probability - low) / (high - low)
        return float(np.nextafter(min(found, right), math.inf)) if found < right else right


Calibration = Sigmoid | Isotonic
"""The step from decision values to probabilities of the class +1."""


@dataclass(frozen=True)
class Calibrated:
    """Probabilities of the classes from decision values, and the predictions that follow."""

    curves: tuple[Calibration, ...]  # of the second of two classes, or one for each of several
    threshold: float = 0.0  # of two classes, the second is predicted from this decision value on
    class_weights: tuple[float, ...] = ()
    """Of several classes, that of the greatest product of weight and probability is predicted;
    without weights, that of the greatest decision value."""

    def probabilities(self, values: Floats) -> Floats:
        """Return the probabilities (t, k) of the classes at decision values, (t, 1) or (t, k)."""
        each = [one.probabilities(own) for one, own in zip(self.curves, values.T, strict=True)]
        if len(each) == 1:
            return np.stack([1.0 - each[0], each[0]], axis=1)
        found = np.stack(each, axis=1)
        total, equal = found.sum(axis=1, keepdims=True), np.full(found.shape, 1.0 / len(each))
        result: Floats = np.divide(found, total, out=equal, where=total > 0.0)
        return result

    @property
    def probability_at_threshold(self) -> float:
        """Probability of the second of two classes at the threshold; NaN of an infinite one."""
        if not math.isfinite(self.threshold):
            return math.nan
        return float(self.curves[0].probabilities(np.array(self.threshold)))

    def predicted(self, values: Floats, order: Ints) -> Ints:
        """Return the positions (t,) of the predicted classes at decision values.

        `order` are the positions of several classes by precedence: a tie goes to the first.
        """
        if len(self.curves) == 1:
            return (values[:, 0] >= self.threshold).astype(np.intp)
        weighted = values
        if self.class_weights:
            weighted = self.probabilities(values) * self.class_weights
        return predicted_classes(weighted.T, order)


def fit_calibration(
    values: Floats, y: Floats, method: str = "sigmoid", weights: Floats | None = None
) -> Calibration:
    """Fit probabilities to held-out decision values (n,) and labels y (n,), above 0 for class +1.

    The sigmoid maximises the likelihood of Platt's targets, ``(n+ + 1) / (n+ + 2)`` for the class
    +1 and ``1 / (n- + 2)`` for the other (Platt 1999, "Probabilistic outputs for support vector
    machines"). Where larger decision values do not make the class +1 more probable, its slope is 0.

    >>> found = fit_calibration(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1, 1, -1, 1]))
    >>> bool(found.probabilities(np.array(2.0)) > 0.5)
    True
    """
    positive = np.asarray(y) > 0
    own = np.ones(len(positive)) if weights is None else np.asarray(weights, dtype=np.float64)
    if method == "sigmoid":
        return _sigmoid(values, positive, own)
    if method != "isotonic":
        raise ValueError(f"found method {method!r}; expected one of {', '.join(METHODS)}")
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    fitted.fit(values, positive.astype(np.float64), sample_weight=own)
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))


def _sigmoid(values: Floats, positive: Bools, weights: Floats) -> Sigmoid:
    """Return the sigmoid of greatest likelihood, by damped Newton steps on standardised values.

    Lin, Lin & Weng 2007, "A note on Platt's probabilistic outputs for support vector machines".
    """
    n_positive, n = float(weights[positive].sum()), float(weights.sum())
    targets = np.where(
        positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n - n_positive + 2.0)
    )
    shares = weights / n
    rate = float(shares @ targets)
    flat = Sigmoid(0.0, math.log(rate / (1.0 - rate)))
    centre = float(shares @ values)
    spread = math.sqrt(float(shares @ (values - centre) ** 2))
    if spread <= 1e-12 * max(1.0, abs(centre)):
        return flat
    z = np.stack([(values - centre) / spread, np.ones(len(values))])

    def loss(found: Floats) -> float:
        odds = found @ z
        return float(shares @ (np.logaddexp(0.0, odds) - targets * odds))

    found = np.array([0.0, flat.intercept])
    for _ in range(MOST_STEPS):
        rates = scipy.special.expit(found @ z)
        gradient = z @ (shares * (rates - targets))
        if np.abs(gradient).max() <= GRADIENT:
            break
        curvature = (z * (shares * rates * (1.0 - rates))) @ z.T
        step = -np.linalg.solve(curvature + RIDGE * np.eye(2), gradient)
        value, change, length = loss(found) + ROUNDING, float(gradient @ step), 1.0
        while loss(found + length * step) > value + 1e-4 * length * change:
            length /= 2.0
        found = found + length * step
    slope = float(found[0]) / spread
    return Sigmoid(slope, float(found[1]) - slope * centre) if slope > 0.0 else flat


def best_threshold(values: Floats, y: Floats, metric: str) -> float:
    """Return the decision value from which on the class +1 is best predicted.

    It is 0, or lies in the middle between two neighbouring values, or beyond all of them, if a
    threshold there does better; of equal ones, the nearest to 0. Metrics without a threshold, such
    as ``"auc"``, leave it at 0. The held-out `values` are (n,), the labels `y` (n,) above 0 for
    +1.

    >>> best_threshold(np.array([-3.0, -2.0, -1.0, 1.0]), np.array([-1, -1, 1, 1]), "error")
    -1.5
    """
    positive = np.asarray(y) > 0
    distinct, places = np.unique(values, return_inverse=True)
    if not METRICS[metric].by_confusion or positive.all() or not positive.any():
        return 0.0
    k, margin = len(distinct), 1.0 + distinct[-1] - distinct[0]
    below, above = distinct[0] - margin, distinct[-1] + margin  # thresholds of constant answers
    candidates = np.concatenate([[below], distinct[:-1] / 2 + distinct[1:] / 2, [above, 0.0]])
    # of the class +1 and of the other: rows below each candidate
    first = np.append(np.arange(k + 1), np.searchsorted(distinct, 0.0))
    missed = np.concatenate([[0], np.bincount(places[positive], minlength=k).cumsum()])[first]
    right = np.concatenate([[0], np.bincount(places[~positive], minlength=k).cumsum()])[first]
    n_positive = int(positive.sum())
    n_other = len(positive) - n_positive
    wrong = n_other - right
    if metric == "error":
        losses = (missed + wrong) / len(positive)
    elif metric == "balanced_error":
        losses = (missed / n_positive + wrong / n_other) / 2
    elif metric == "f1":
        hits = n_positive - missed
        losses = 1.0 - 2 * hits / (2 * hits + wrong + missed)
    else:
        raise NotImplementedError(f"a threshold by {metric}")
    best = candidates[losses <= losses.min() + 1e-12]
    return float(best[np.abs(best).argmin()])


def fit_curves(
    values: Floats, numbers: Ints, method: str = "sigmoid", weights: Floats | None = None
) -> tuple[Calibration, ...]:
    """Fit the probabilities of the second of two classes, or of each of several against the rest.

    The held-out decision values are (n, 1) for two classes, else (n, k); `numbers` (n,) are the
    classes of the rows, from 0.
    """
    first = 1 if values.shape[1] == 1 else 0
    return tuple(
        fit_calibration(own, numbers == c, method, weights) for c, own in enumerate(values.T, first)
    )


def fit_calibrated(values: Floats, numbers: Ints, method: str, metric: str) -> Calibrated:
    """Fit probabilities of classes, and the predictions that are best by a metric.

    ``"error"``, ``"log_loss"`` and ``"brier"`` predict the class of the greatest probability.
    ``"balanced_error"`` divides the probabilities of several classes by the shares of the rows
    that they have.  Of two classes, it and ``"f1"`` have the threshold of :func:`best_threshold`.
    """
    k, curves = values.shape[1], fit_curves(values, numbers, method)
    if k == 1:
        if metric in OF_THE_MOST_PROBABLE:
            return Calibrated(curves, curves[0].value_above(0.5))
        return Calibrated(curves, best_threshold(values[:, 0], numbers.astype(np.float64), metric))
    weights = np.ones(k)
    if metric == "balanced_error":
        weights = len(numbers) / (k * np.maximum(np.bincount(numbers, minlength=k), 1))
    return Calibrated(curves, class_weights=tuple(weights.tolist()))


def cross_calibrated(
    values: Floats, numbers: Ints, folds: Ints, method: str, metric: str, order: Ints
) -> tuple[Calibrated, dict[str, Any]]:
    """Fit :func:`fit_calibrated` to all rows, and score it on each fold by a fit to the others.

    Predictions that do not lower the loss there go by the sign, or the greatest, of the decision
    values, unless they are of the greatest probability.  Values are of decision functions without
    the row's fold, of which `folds` (n,) has the numbers; `order` (k,) are the positions of
    several classes by precedence.

    The figures are ``method``; the number of ``folds``; ``metric``, the sweep's, or ``"error"`` if
    it has no threshold; its value ``at_0``, without the calibration, and ``calibrated``;
    ``log_loss`` and ``brier`` of the probabilities, and ``log_loss_of_shares`` and
    ``brier_of_shares`` of the shares of the classes in their place.
    """
    k = max(2, values.shape[1])
    plain = (values[:, 0] >= 0.0).astype(np.intp)
    if values.shape[1] > 1:
        plain = predicted_classes(values.T, order)
    probabilities, shares = np.empty((len(values), k)), np.empty((len(values), k))
    predicted = np.empty_like(plain)
    for fold in np.unique(folds):
        own = folds == fold
        fitted = fit_calibrated(values[~own], numbers[~own], method, metric)
        probabilities[own] = fitted.probabilities(values[own])
        predicted[own] = fitted.predicted(values[own], order)
        shares[own] = (np.bincount(numbers[~own], minlength=k) + 1.0) / ((~own).sum() + k)
    scored = metric if METRICS[metric].by_confusion else "error"

    def score(predictions: Ints) -> float:
        found = pooled_scores([(values.T, numbers, predictions)], k)[0]
        return float(found[METRICS[scored].variable()])

    before, after = score(plain), score(predicted)
    found = fit_calibrated(values, numbers, method, metric)
    worse = before >= after if METRICS[scored].greater else before <= after
    if metric not in OF_THE_MOST_PROBABLE and worse:
        found, after = replace(found, threshold=0.0, class_weights=()), before
    own_scores = probability_scores(probabilities, numbers)
    of_shares = probability_scores(shares, numbers)
    figures = {"method": method, "folds": len(np.unique(folds)), "metric": scored}
    figures |= {"at_0": before, "calibrated": after, **own_scores}
    return found, figures | {f"{name}_of_shares": one for name, one in of_shares.items()}
