"""Scaling of features, fitted on the rows known or on all, and of the values of regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.dataset import Dataset, Split
from mkldist.errors import DataError
from mkldist.spec.model import PreprocessingSpec


def scaled(spec: PreprocessingSpec, x: Floats, split: Split | None = None) -> Floats:
    """Return all rows of `x`, scaled by statistics of some or of all rows.

    ``zscore`` subtracts the mean and divides by the standard deviation (of the population);
    ``minmax`` maps the range of the fitted rows onto [-1, 1].  A feature that is constant on the
    fitted rows is only shifted, to 0 on these rows.

    Parameters
    ----------
    spec : PreprocessingSpec
        What to do and where to fit it.
    x : (n, d) float64
        Features, finite.
    split : Split, optional
        With ``fit = "train"``, whose training and unlabelled rows to fit on; None fits on all rows.

    Returns
    -------
    (n, d) float64
        Scaled features; `x` itself with ``scale = "none"``.

    Raises
    ------
    DataError
        If values are so large that their spread exceeds the range of float64.
    """
    if spec.scale == "none":
        return x
    scale = feature_scale(spec, x, split)
    with np.errstate(over="ignore", invalid="ignore"):
        result = scale.scaled(x)
    bad = np.flatnonzero(~np.isfinite(result).all(axis=0) | ~np.isfinite(scale.spread))
    if len(bad):
        raise DataError(
            f"scaling of feature {bad[0]} (from 0)",
            f"values from {x[:, bad[0]].min():g} to {x[:, bad[0]].max():g}",
            "values whose squares are finite in float64",
            "Rescale this feature in the data.",
        )
    return result


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """What is done to every feature: ``(x - centre) / spread``.

    Parameters
    ----------
    centre, spread : (d,) float64
        In the units of the data.
    """

    centre: Floats
    spread: Floats

    def scaled(self, x: Floats) -> Floats:
        """Return points (r, d) as kernels see them."""
        return np.asarray((x - self.centre) / self.spread)


def feature_scale(spec: PreprocessingSpec, x: Floats, split: Split | None = None) -> FeatureScale:
    """Return what :func:`scaled` does to points of these or other rows.

    Parameters
    ----------
    spec, x, split
        As for :func:`scaled`.
    """
    if spec.scale == "none":
        return FeatureScale(np.zeros(x.shape[1]), np.ones(x.shape[1]))
    fitted = x if spec.fit == "all" or split is None else x[split.known]
    low, high = fitted.min(axis=0), fitted.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        if spec.scale == "zscore":
            centre, spread = fitted.mean(axis=0), fitted.std(axis=0)
        else:
            centre, spread = low / 2 + high / 2, high / 2 - low / 2
    # Rounding gives a constant a tiny spread, or a mean beside it.
    constant = (low == high) | (spread == 0)
    return FeatureScale(np.where(constant, low, centre), np.where(constant, 1.0, spread))


@dataclass(frozen=True)
class TargetScale:
    """The units in which a solver sees the labels: ``(y - centre) / spread``.

    Parameters
    ----------
    centre, spread : float
        In the user's units; 0 and 1 for labels as they are.
    """

    centre: float = 0.0
    spread: float = 1.0

    def scaled(self, y: Floats) -> Floats:
        """Return labels in the solver's units."""
        return (y - self.centre) / self.spread

    def restored(self, values: Floats) -> Floats:
        """Return values of a decision function in the user's units."""
        return self.centre + self.spread * values


def target_scale(spec: PreprocessingSpec, dataset: Dataset, split: Split) -> TargetScale:
    """Return the units of the labels that a solver learns.

    ``zscore`` takes mean and standard deviation (of the population) of the training labels;
    labels that are constant there are only shifted.  Labels of classes stay as they are.

    Parameters
    ----------
    spec : PreprocessingSpec
        What to do.
    dataset : Dataset
        The labels.
    split : Split
        Whose training rows to fit on, whatever the features are fitted on.
    """
    if spec.target == "none" or dataset.task == "classification":
        return TargetScale()
    y = dataset.y[split.train]
    spread = float(y.std())
    constant = spread == 0 or bool((y == y[0]).all())
    return TargetScale(float(y[0] if constant else y.mean()), 1.0 if constant else spread)
