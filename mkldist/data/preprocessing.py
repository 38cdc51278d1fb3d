"""Imputation and scaling of features, and scaling of real labels, by statistics of chosen rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Bools, Floats
from mkldist.data.dataset import Dataset, Split
from mkldist.data.missing import replacements, with_replacements
from mkldist.errors import DataError
from mkldist.spec.datasets import PreprocessingSpec
from mkldist.spec.kinds import Imputation


def preprocessed(spec: PreprocessingSpec, dataset: Dataset, split: Split | None = None) -> Floats:
    """Return all rows of a data set of features, filled and scaled: the points of kernels.

    Parameters
    ----------
    spec : PreprocessingSpec
        Kind of scaling, and the rows to fit scaling and imputation on.
    dataset : Dataset
        Features, and the replacement of missing values.
    split : Split, optional
        As for :func:`scaled`.

    Returns
    -------
    (n, d) float64

    Raises
    ------
    DataError
        As for :func:`scaled`.
    """
    return scaled(spec, filled(spec, dataset, split), split)


def filled(spec: PreprocessingSpec, dataset: Dataset, split: Split | None = None) -> Floats:
    """Return all rows of a data set of features, missing values filled by those of fitted rows.

    Parameters
    ----------
    spec, dataset, split
        As for :func:`preprocessed`.

    Returns
    -------
    (n, d) float64
        In the units of the data; the features themselves if no value is missing.  Features of a
        view that a point lacks stay NaN, and statistics are those of points that have them.
    """
    if dataset.x is None:
        raise ValueError(f"{dataset.name}: no features")
    if dataset.impute is None:
        return dataset.x
    values = replacements(dataset.impute, _fitted_rows(spec, dataset.x, split))
    return with_replacements(dataset.x, values, dataset.absent)


def _fitted_rows(spec: PreprocessingSpec, x: Floats, split: Split | None) -> Floats:
    """Return the rows on which preprocessing is fitted."""
    return x if spec.fit == "all" or split is None else x[split.known]


def scaled(spec: PreprocessingSpec, x: Floats, split: Split | None = None) -> Floats:
    """Return all rows of `x`, scaled by statistics of the fitted rows.

    ``zscore`` subtracts the mean and divides by the standard deviation (of the population);
    ``minmax`` maps the range of the fitted rows onto [-1, 1].  A feature that is constant on the
    fitted rows is only shifted, to 0 on these rows.  ``tfidf`` multiplies counts by the inverse
    document frequency, as scikit-learn's ``TfidfTransformer(norm=None)`` does.

    Parameters
    ----------
    spec : PreprocessingSpec
        Kind of scaling, and the rows to fit it on.
    x : (n, d) float64
        Features, finite, or NaN where a point lacks a view.
    split : Split, optional
        Split whose training and unlabelled rows are fitted with ``fit = "train"``.  None fits on
        all rows.

    Returns
    -------
    (n, d) float64
        Scaled features; `x` itself with ``scale = "none"``.

    Raises
    ------
    DataError
        If values are so large that their spread is not finite in float64.
    """
    if spec.scale == "none":
        return x
    scale = feature_scale(spec, x, split)
    with np.errstate(over="ignore", invalid="ignore"):
        result = scale.scaled(x)
    finite = np.isfinite(result) | np.isnan(x)
    bad = np.flatnonzero(~finite.all(axis=0) | ~np.isfinite(scale.spread))
    if len(bad):
        raise DataError(
            f"scaling of feature {bad[0]} (from 0)",
            f"values from {np.nanmin(x[:, bad[0]]):g} to {np.nanmax(x[:, bad[0]]):g}",
            "values whose squares are finite in float64",
            "Rescale this feature in the data",
        )
    return result


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """The affine map ``(x - centre) / spread`` of each feature.

    Parameters
    ----------
    centre, spread : (d,) float64
        In the units of the data.
    """

    centre: Floats
    spread: Floats

    def scaled(self, x: Floats) -> Floats:
        """Return points (r, d) in the scale that kernels use."""
        return np.asarray((x - self.centre) / self.spread)


def feature_scale(spec: PreprocessingSpec, x: Floats, split: Split | None = None) -> FeatureScale:
    """Return the scaling that :func:`scaled` applies, for rows of `x` or new points.

    Parameters
    ----------
    spec, x, split
        As for :func:`scaled`.
    """
    if spec.scale == "none":
        return FeatureScale(np.zeros(x.shape[1]), np.ones(x.shape[1]))
    fitted = _fitted_rows(spec, x, split)
    if spec.scale == "tfidf":
        return FeatureScale(np.zeros(x.shape[1]), 1.0 / _inverse_document_frequency(fitted))
    low, high = np.asarray(np.fmin.reduce(fitted)), np.asarray(np.fmax.reduce(fitted))
    with np.errstate(over="ignore", invalid="ignore"):
        if spec.scale == "zscore" and np.isnan(fitted).any():
            centre, spread = np.nanmean(fitted, axis=0), np.nanstd(fitted, axis=0)
        elif spec.scale == "zscore":
            centre, spread = fitted.mean(axis=0), fitted.std(axis=0)
        else:
            centre, spread = low / 2 + high / 2, high / 2 - low / 2
    # Rounding can give a constant feature a tiny spread, and a mean next to its value.
    constant = (low == high) | (spread == 0)
    return FeatureScale(np.where(constant, low, centre), np.where(constant, 1.0, spread))


def _inverse_document_frequency(counts: Floats) -> Floats:
    """Return ``ln((1 + n) / (1 + n_t)) + 1`` of each term, (d,), by counts (n, d); NaN is none."""
    n_t = np.count_nonzero(np.nan_to_num(counts), axis=0)
    return np.asarray(np.log((1.0 + len(counts)) / (1.0 + n_t)) + 1.0)


@dataclass(frozen=True, eq=False)
class FittedPreprocessing:
    """Imputation and scaling with the statistics of fitted rows, apart from these rows.

    Parameters
    ----------
    fill : (d,) float64, or None
        Value of each feature where it is missing; None if missing values are not filled.
    scale : FeatureScale
        The scaling.
    """

    fill: Floats | None
    scale: FeatureScale

    def applied(self, x: Floats, absent: Bools | None = None) -> Floats:
        """Return rows (r, d) as kernels take them; values that are missing and not filled stay.

        Features of views that rows lack, where `absent` (r, d) is True, stay missing.
        """
        filled = x if self.fill is None else with_replacements(x, self.fill, absent)
        return self.scale.scaled(filled)


def fitted_preprocessing(
    spec: PreprocessingSpec, dataset: Dataset, impute: Imputation | None, split: Split | None = None
) -> FittedPreprocessing:
    """Return the preprocessing that :func:`preprocessed` applies, for new rows.

    Parameters
    ----------
    spec, dataset, split
        As for :func:`preprocessed`.
    impute : {"median", "mean", "most_frequent"} or None
        Replacement of values that new rows miss; the data set itself may miss none.
    """
    if dataset.x is None:  # sparse features, or views of Gram matrices alone
        d = dataset.n_features
        return FittedPreprocessing(None, FeatureScale(np.zeros(d), np.ones(d)))
    fill = None if impute is None else replacements(impute, _fitted_rows(spec, dataset.x, split))
    return FittedPreprocessing(fill, feature_scale(spec, filled(spec, dataset, split), split))


@dataclass(frozen=True)
class TargetScale:
    """The units of labels in solvers: ``(y - centre) / spread``.

    Parameters
    ----------
    centre, spread : float
        Numbers in the user's units; 0 and 1 leave labels unchanged.
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
    """Return the units of labels in solvers.

    ``zscore`` takes the mean and the standard deviation (of the population) of the training labels;
    constant training labels are only shifted.  Labels of classes are not scaled.

    Parameters
    ----------
    spec : PreprocessingSpec
        Kind of scaling.
    dataset : Dataset
        Data set, for its labels.
    split : Split
        Split whose training rows are fitted; `fit` of `spec` concerns features only.
    """
    if spec.target == "none" or dataset.task == "classification":
        return TargetScale()
    y = dataset.y[split.train]
    spread = float(y.std())
    constant = spread == 0 or bool((y == y[0]).all())
    return TargetScale(float(y[0] if constant else y.mean()), 1.0 if constant else spread)
