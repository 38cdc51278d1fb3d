"""Imputation and scaling of features, and scaling of real labels, by statistics of chosen rows.

Rows are filled, counted and scaled a few megabytes at a time, so that memory takes the result and
little else beside features that are mapped from a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.data.dataset import Dataset, Split
from mkldist.data.missing import replacements, with_replacements
from mkldist.data.row_blocks import row_blocks
from mkldist.errors import DataError
from mkldist.kernel_functions.bases import is_sparse
from mkldist.spec.datasets import PreprocessingSpec
from mkldist.spec.kinds import Imputation


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Statistics of the known values of each column.

    Parameters
    ----------
    count : (d,) float64
        Known values.
    mean : (d,) float64
        Their means; NaN where there is no value, as the following.
    squares : (d,) float64
        Sums of squared deviations from the means.
    low, high : (d,) float64
        The least and the largest.
    """

    count: Floats
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats

    @property
    def deviation(self) -> Floats:
        """Standard deviation of the population, (d,)."""
        with np.errstate(invalid="ignore"):
            found: Floats = np.sqrt(self.squares / self.count)
        return found

    def merged(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of the rows of both."""
        count = self.count + other.count
        with np.errstate(over="ignore", invalid="ignore"):
            difference = other.mean - self.mean
            mean = self.mean + difference * (other.count / count)
            between = difference**2 * (self.count * (other.count / count))
            squares = self.squares + other.squares + between
        first, second = self.count == 0.0, other.count == 0.0
        return ColumnStatistics(
            count,
            np.where(first, other.mean, np.where(second, self.mean, mean)),
            np.where(first, other.squares, np.where(second, self.squares, squares)),
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
        )


def column_statistics(blocks: Iterable[Floats], n_columns: int) -> ColumnStatistics:
    """Return the statistics of all rows of some blocks.

    Parameters
    ----------
    blocks : iterable of (r, d) float64
        Successive rows, NaN where a value is missing.
    n_columns : int
        Number d of columns.
    """
    nothing = np.full(n_columns, np.nan)
    found = ColumnStatistics(np.zeros(n_columns), nothing, nothing, nothing, nothing)
    for block in blocks:
        found = found.merged(_of_block(block))
    return found


def _of_block(block: Floats) -> ColumnStatistics:
    """Return the statistics of one block: sums of few values, then of their deviations."""
    missing = np.isnan(block)
    complete = not missing.any()
    count = np.full(block.shape[1], float(len(block)))
    known = block
    if not complete:
        count -= missing.sum(axis=0)
        known = np.where(missing, 0.0, block)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = known.sum(axis=0) / count
        deviations = known - mean
        if not complete:
            deviations[missing] = 0.0
        np.multiply(deviations, deviations, out=deviations)
        squares = deviations.sum(axis=0)
    low, high = np.fmin.reduce(block), np.fmax.reduce(block)
    return ColumnStatistics(count, mean, squares, np.asarray(low), np.asarray(high))


def preprocessed(spec: PreprocessingSpec, dataset: Dataset, split: Split | None = None) -> Floats:
    """Return all rows of a data set of features, filled and scaled: the points of kernels.

    Sparse features stay sparse: they are as they are, or scaled by ``"tfidf"``.

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
    (n, d) float64 array or csr_array

    Raises
    ------
    DataError
        As for :func:`scaled`.
    """
    if dataset.sparse is not None:
        kept: Floats = _sparse_scale(spec, dataset.sparse, split).scaled(dataset.sparse)
        return kept
    if dataset.x is None:
        raise ValueError(f"{dataset.name}: no features")
    return _scaled(spec, _rows_of(spec, dataset, dataset.impute, split), split)


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
    rows = _rows_of(spec, dataset, dataset.impute, split)
    if rows.fill is None:
        return dataset.x
    result = np.empty(dataset.x.shape)
    for block in row_blocks(*_sizes(result)):
        result[block] = rows[block]
    return result


@dataclass(frozen=True, eq=False)
class _Rows:
    """Features whose missing values are filled where rows are asked for."""

    x: Floats  # (n, d)
    fill: Floats | None = None  # (d,) values for what is missing; None fills nothing
    absent: Bools | None = None  # (n, d) features of views that points lack; they stay missing

    def __getitem__(self, rows: slice | Ints) -> Floats:
        """Return some rows."""
        if self.fill is None:
            return self.x[rows]
        return with_replacements(
            self.x[rows], self.fill, None if self.absent is None else self.absent[rows]
        )

    def blocks(self, rows: Ints | None) -> Iterator[Floats]:
        """Yield some rows, by default all, a few megabytes at a time."""
        n_rows = len(self.x) if rows is None else len(rows)
        for block in row_blocks(n_rows, _sizes(self.x)[1]):
            yield self[block if rows is None else rows[block]]


def _rows_of(
    spec: PreprocessingSpec, dataset: Dataset, impute: Imputation | None, split: Split | None
) -> _Rows:
    """Return the rows of a data set of features, filled by the values of the fitted ones."""
    x = np.empty((0, 0)) if dataset.x is None else dataset.x
    if impute is None:
        return _Rows(x)
    return _Rows(x, replacements(impute, x, _fitted_rows(spec, split)), dataset.absent)


def _fitted_rows(spec: PreprocessingSpec, split: Split | None) -> Ints | None:
    """Return the rows on which preprocessing is fitted; None for all."""
    return None if spec.fit == "all" or split is None else split.known


def _sizes(x: Floats) -> tuple[int, int]:
    """Return the number of rows of an array, and the bytes of each."""
    return len(x), x.itemsize * x.shape[1]


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
    return _scaled(spec, _Rows(x), split)


def _scaled(spec: PreprocessingSpec, rows: _Rows, split: Split | None) -> Floats:
    """Return all rows, filled and scaled, in memory that is taken once.

    Each feature is contiguous there, as the loops of kernels read it.
    """
    if spec.scale == "none" and rows.fill is None:
        return rows.x
    scale = _scale_of(spec, rows, split)
    result, bad = np.empty(rows.x.shape[::-1]).T, ~np.isfinite(scale.spread)
    for block in row_blocks(*_sizes(result)):
        before = rows[block]
        with np.errstate(over="ignore", invalid="ignore"):
            after = scale.scaled(before)
        bad |= ~(np.isfinite(after) | np.isnan(before)).all(axis=0)
        result[block] = after
    if bad.any():
        column = int(bad.argmax())
        values = rows.x[:, column]
        raise DataError(
            f"scaling of feature {column} (from 0)",
            f"values from {np.nanmin(values):g} to {np.nanmax(values):g}",
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

    def scaled(self, x: Any) -> Any:
        """Return points (r, d) in the scale that kernels use; sparse ones, of centre 0, as such."""
        if not is_sparse(x):
            return np.asarray((x - self.centre) / self.spread)
        if (self.spread == 1.0).all():
            return x
        result = x.copy()
        result.data = x.data / self.spread[x.indices]
        return result


def feature_scale(spec: PreprocessingSpec, x: Floats, split: Split | None = None) -> FeatureScale:
    """Return the scaling that :func:`scaled` applies, for rows of `x` or new points.

    Parameters
    ----------
    spec, x, split
        As for :func:`scaled`.
    """
    return _scale_of(spec, _Rows(x), split)


def _scale_of(spec: PreprocessingSpec, rows: _Rows, split: Split | None) -> FeatureScale:
    """Return the scaling of rows as they are filled, by statistics of the fitted ones."""
    d, fitted = rows.x.shape[1], _fitted_rows(spec, split)
    if spec.scale == "none":
        return FeatureScale(np.zeros(d), np.ones(d))
    if spec.scale == "tfidf":
        n_rows = len(rows.x) if fitted is None else len(fitted)
        n_t = sum(np.count_nonzero(np.nan_to_num(b), axis=0) for b in rows.blocks(fitted))
        return _term_scale(n_rows, np.asarray(n_t, dtype=np.float64))
    found = column_statistics(rows.blocks(fitted), d)
    low, high = found.low, found.high
    with np.errstate(over="ignore", invalid="ignore"):
        if spec.scale == "zscore":
            centre, spread = found.mean, found.deviation
        else:
            centre, spread = low / 2 + high / 2, high / 2 - low / 2
    # Rounding can give a constant feature a tiny spread, and a mean next to its value.
    constant = (low == high) | (spread == 0)
    return FeatureScale(np.where(constant, low, centre), np.where(constant, 1.0, spread))


def _term_scale(n_rows: int, n_t: Floats) -> FeatureScale:
    """Return the scaling of counts of terms, each of which stands in n_t of the fitted rows."""
    idf = np.log((1.0 + n_rows) / (1.0 + n_t)) + 1.0
    return FeatureScale(np.zeros(len(n_t)), 1.0 / idf)


def _sparse_scale(spec: PreprocessingSpec, x: Any, split: Split | None) -> FeatureScale:
    """Return the scaling of sparse features (n, d), of which no zero is stored."""
    d, fitted = x.shape[1], _fitted_rows(spec, split)
    if spec.scale == "none":
        return FeatureScale(np.zeros(d), np.ones(d))
    if spec.scale != "tfidf":
        raise ValueError(f"scale {spec.scale!r} of sparse features")
    rows = x if fitted is None else x[fitted]
    n_t = np.bincount(rows.indices, minlength=d).astype(np.float64)
    return _term_scale(rows.shape[0], n_t)


def feature_deviations(spec: PreprocessingSpec, dataset: Dataset) -> Floats:
    """Return the standard deviation of each feature over all rows, filled and scaled, (d,).

    Scaling and imputation are fitted on all rows, whatever `spec` says.  A feature that is constant
    has 0; features of a view count the rows that have it.
    """
    if dataset.sparse is not None:
        from sklearn.utils.sparsefuncs import mean_variance_axis

        variances = mean_variance_axis(dataset.sparse, axis=0)[1]
        return np.asarray(np.sqrt(variances) / _sparse_scale(spec, dataset.sparse, None).spread)
    if dataset.x is None:
        raise ValueError(f"{dataset.name}: no features")
    rows = _rows_of(spec, dataset, dataset.impute, None)
    found = column_statistics(rows.blocks(None), rows.x.shape[1])
    deviation = np.where(found.low == found.high, 0.0, found.deviation)
    return np.asarray(deviation / _scale_of(spec, rows, None).spread)


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
        result: Floats = self.scale.scaled(filled)
        return result


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
    if dataset.sparse is not None:
        return FittedPreprocessing(None, _sparse_scale(spec, dataset.sparse, split))
    if dataset.x is None:  # views of Gram matrices alone
        d = dataset.n_features
        return FittedPreprocessing(None, FeatureScale(np.zeros(d), np.ones(d)))
    fill = None
    if impute is not None:
        fill = replacements(impute, dataset.x, _fitted_rows(spec, split))
    return FittedPreprocessing(
        fill, _scale_of(spec, _rows_of(spec, dataset, dataset.impute, split), split)
    )


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
