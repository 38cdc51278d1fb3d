"""Probabilities and decision thresholds, learnt from decision values of held-out rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy

from mkldist.arrays import Bools, Floats

CalibrationMethod = Literal["sigmoid", "isotonic"]
METHODS: tuple[str, ...] = get_args(CalibrationMethod)
THRESHOLD_METRICS = ("error", "balanced_error", "f1")
"""Metrics that depend on the threshold; the others are of the order or of probabilities."""


@dataclass(frozen=True)
class Sigmoid:
    """``P(y = +1 | f) = 1 / (1 + exp(-slope f - intercept))``, with a slope of at least 0."""

    slope: float
    intercept: float

    def probabilities(self, values: Floats) -> Floats:
        """Return the probabilities of the class +1 at decision values of any shape."""
        found: Floats = scipy.special.expit(self.slope * values + self.intercept)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the method and the fields as JSON takes them."""
        return {"method": "sigmoid", "slope": self.slope, "intercept": self.intercept}


@dataclass(frozen=True)
class Isotonic:
    """A function that does not decrease: linear between knots, constant beyond them.

    Parameters
    ----------
    values : tuple of float
        Decision values of the knots, ascending.
    heights : tuple of float
        Probabilities there.
    """

    values: tuple[float, ...]
    heights: tuple[float, ...]

    def probabilities(self, values: Floats) -> Floats:
        """Return the probabilities of the class +1 at decision values of any shape."""
        found: Floats = np.interp(values, self.values, self.heights)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the method and the fields as JSON takes them."""
        return {"method": "isotonic", "values": [*self.values], "heights": [*self.heights]}


Calibration = Sigmoid | Isotonic
"""The step from decision values to probabilities of the class +1."""


def calibration_from_dict(fields: Mapping[str, Any]) -> Calibration:
    """Return the calibration of which ``as_dict`` gave the fields."""
    if fields["method"] == "sigmoid":
        return Sigmoid(float(fields["slope"]), float(fields["intercept"]))
    return Isotonic(tuple(map(float, fields["values"])), tuple(map(float, fields["heights"])))


def fit_calibration(
    values: Floats, y: Floats, method: str = "sigmoid", weights: Floats | None = None
) -> Calibration:
    """Fit probabilities to the labels of rows that the decision function was not fitted on.

    The sigmoid maximises the likelihood of Platt's targets, ``(n+ + 1) / (n+ + 2)`` for the class
    +1 and ``1 / (n- + 2)`` for the other.  Where larger decision values do not make the class +1
    more probable, its slope is 0.

    Parameters
    ----------
    values : (n,) float64
        Decision values of held-out rows.
    y : (n,) array
        Labels, above 0 for the class +1.
    method : {"sigmoid", "isotonic"}
        Kind of function.
    weights : (n,) float64, optional
        Weights of the rows.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines", Advances in Large Margin
    Classifiers, 1999.

    Examples
    --------
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
    """Return the sigmoid of greatest likelihood, by Newton steps on standardised values."""
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

    def loss(p: Floats) -> tuple[float, Floats]:
        odds = p @ z
        value = float(shares @ (np.logaddexp(0.0, odds) - targets * odds))
        return value, z @ (shares * (scipy.special.expit(odds) - targets))

    def curvature(p: Floats) -> Floats:
        own = scipy.special.expit(p @ z)
        found: Floats = (z * (shares * own * (1.0 - own))) @ z.T
        return found

    start = np.array([0.0, flat.intercept])
    found = scipy.optimize.minimize(
        loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
    ).x
    slope = float(found[0]) / spread
    return Sigmoid(slope, float(found[1]) - slope * centre) if slope > 0.0 else flat


def best_threshold(values: Floats, y: Floats, metric: str) -> float:
    """Return the decision value from which on the class +1 is best predicted.

    It is 0, or lies in the middle between two neighbouring values if a threshold there does better;
    of equal ones, the nearest to 0.  Metrics without a threshold, such as ``"auc"``, leave it at 0.

    Parameters
    ----------
    values : (n,) float64
        Decision values of held-out rows.
    y : (n,) array
        Labels, above 0 for the class +1.
    metric : str
        Name of a metric in :data:`mkldist.metrics.METRICS`.

    Examples
    --------
    >>> best_threshold(np.array([-3.0, -2.0, -1.0, 1.0]), np.array([-1, -1, 1, 1]), "error")
    -1.5
    """
    positive = np.asarray(y) > 0
    distinct, places = np.unique(values, return_inverse=True)
    if metric not in THRESHOLD_METRICS or positive.all() or not positive.any():
        return 0.0
    candidates = np.append(distinct[:-1] / 2 + distinct[1:] / 2, 0.0)
    k = len(distinct)
    # of the class +1 and of the other: rows below each candidate
    first = np.append(np.arange(1, k), np.searchsorted(distinct, 0.0))
    missed = np.concatenate([[0], np.bincount(places[positive], minlength=k).cumsum()])[first]
    right = np.concatenate([[0], np.bincount(places[~positive], minlength=k).cumsum()])[first]
    n_positive = int(positive.sum())
    n_other = len(positive) - n_positive
    wrong = n_other - right
    if metric == "error":
        losses = (missed + wrong) / len(positive)
    elif metric == "balanced_error":
        losses = (missed / n_positive + wrong / n_other) / 2
    else:
        hits = n_positive - missed
        losses = 1.0 - 2 * hits / (2 * hits + wrong + missed)
    best = candidates[losses <= losses.min() + 1e-12]
    return float(best[np.abs(best).argmin()])
