"""Imputation and scaling of features, and scaling of real labels, by statistics of chosen rows.

The statistics are those of scikit-learn's transformers, fitted a few megabytes at a time, and so
are rows filled and scaled, so that memory takes the result and little else beside features that are
mapped from a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.data.checks import row_blocks
from mkldist.data.dataset import Dataset, Split
from mkldist.errors import DataError
from mkldist.kernel_functions.bases import is_sparse
from mkldist.spec.datasets import GraphTable, PreprocessingSpec
from mkldist.spec.kinds import Imputation

ROUNDING = 1e-12  # of sums of weights, relative


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """The affine map ``(x - centre) / spread`` of each feature, (d,), in the units of the data."""

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


@dataclass(frozen=True, eq=False)
class FittedPreprocessing:
    """Imputation and scaling with the statistics of fitted rows, apart from these rows."""

    fill: Floats | None  # (d,), in place of missing values; None if none is filled
    scale: FeatureScale

    def applied(self, x: Floats, absent: Bools | None = None) -> Floats:
        """Return rows (r, d) as kernels take them; values that are missing and not filled stay.

        Features of views that rows lack, where `absent` (r, d) is True, stay missing.
        """
        result: Floats = self.scale.scaled(_filled(x, self.fill, absent))
        return result


def _filled(x: Floats, fill: Floats | None, absent: Bools | None = None) -> Floats:
    """Return features (r, d) with the values `fill` in the place of missing ones."""
    if fill is None:
        return x
    missing = np.isnan(x)
    return np.where(missing if absent is None else missing & ~absent, fill, x)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Features whose missing values are filled where rows are asked for."""

    x: Floats  # (n, d)
    fitted: Ints | None  # rows whose statistics count; None for all
    weights: Floats | None = None  # (n,) how often each of them counts; None for once
    fill: Floats | None = None
    absent: Bools | None = None  # (n, d) features of views that points lack; they stay missing

    @classmethod
    def of(
        cls,
        spec: PreprocessingSpec,
        dataset: Dataset,
        split: Split | None,
        impute: Imputation | None,
    ) -> _Rows:
        """Return the rows of a data set, filled by the values of those that are fitted."""
        if dataset.x is None:
            raise ValueError(f"{dataset.name}: no features")
        x, (fitted, weights) = dataset.x, _fitted_rows(spec, split, dataset.weights)
        if impute is None:
            return cls(x, fitted, weights)
        fill = np.empty(x.shape[1])
        for some in row_blocks(
            x.shape[1], x.itemsize * (len(x) if fitted is None else len(fitted))
        ):
            block = x[:, some] if fitted is None else x[fitted, some]
            fill[some] = imputed_values(block, impute, weights)
        return cls(x, fitted, weights, fill, dataset.absent)

    def __getitem__(self, rows: slice | Ints) -> Floats:
        """Return some rows."""
        return _filled(self.x[rows], self.fill, None if self.absent is None else self.absent[rows])

    def statistics(self, kind: str = "zscore") -> tuple[Any, Any]:
        """Return ``MinMaxScaler`` and, for ``zscore``, ``StandardScaler`` of the fitted rows."""
        from sklearn.preprocessing import MinMaxScaler, StandardScaler

        ranges, moments = MinMaxScaler(), StandardScaler()
        fitted = np.arange(len(self.x)) if self.fitted is None else self.fitted
        with np.errstate(over="ignore", invalid="ignore"):
            for block in row_blocks(len(fitted), self.x.itemsize * self.x.shape[1]):
                rows = self[fitted[block]]
                ranges.partial_fit(rows)
                if kind == "zscore":
                    own = None if self.weights is None else self.weights[block]
                    moments.partial_fit(rows, sample_weight=own)
        return ranges, moments

    def scale(self, spec: PreprocessingSpec) -> FeatureScale:
        """Return the scaling of rows as they are filled, by statistics of the fitted ones."""
        d = self.x.shape[1]
        if spec.scale == "none":
            return FeatureScale(np.zeros(d), np.ones(d))
        if spec.scale == "tfidf":
            fitted = np.arange(len(self.x)) if self.fitted is None else self.fitted
            weights = np.ones(len(fitted)) if self.weights is None else self.weights
            blocks = row_blocks(len(fitted), self.x.itemsize * d)
            counts = sum(weights[b] @ (np.nan_to_num(self[fitted[b]]) != 0.0) for b in blocks)
            return _term_scale(float(weights.sum()), np.asarray(counts, dtype=np.float64))
        ranges, moments = self.statistics(spec.scale)
        low, high = ranges.data_min_, ranges.data_max_
        with np.errstate(over="ignore", invalid="ignore"):
            if spec.scale == "zscore":
                centre, spread = moments.mean_, np.sqrt(moments.var_)
            else:
                centre, spread = low / 2 + high / 2, high / 2 - low / 2
        # Rounding can give a constant feature a tiny spread, and a mean next to its value.
        constant = (low == high) | (spread == 0)
        return FeatureScale(np.where(constant, low, centre), np.where(constant, 1.0, spread))


def imputed_values(x: Floats, strategy: str, weights: Floats | None) -> Floats:
    """Return what replaces missing values, (d,), where rows (n, d) count as often as they weigh.

    Without weights these are the statistics of ``SimpleImputer``, and so they are with whole
    weights, of rows repeated.  A feature without any value gets 0.
    """
    if weights is None:
        from sklearn.impute import SimpleImputer

        imputer = SimpleImputer(strategy=strategy, keep_empty_features=True)
        return np.asarray(imputer.fit(x).statistics_)
    found = np.zeros(x.shape[1])
    for j, column in enumerate(x.T):
        known = ~np.isnan(column)
        if not known.any():
            continue
        values, number = np.unique(column[known], return_inverse=True)
        sums = np.bincount(number, weights[known])
        if strategy == "mean":
            found[j] = np.average(values, weights=sums)
        elif strategy == "most_frequent":
            found[j] = values[(sums >= sums.max() * (1.0 - ROUNDING)).argmax()]
        else:  # the mean of the least and the greatest median
            shares = np.cumsum(sums) / sums.sum()
            least, greatest = (
                (shares >= 0.5 - ROUNDING).argmax(),
                (shares > 0.5 + ROUNDING).argmax(),
            )
            found[j] = values[least] / 2 + values[greatest] / 2
    return found


def _fitted_rows(
    spec: PreprocessingSpec, split: Split | None, weights: Floats | None
) -> tuple[Ints | None, Floats | None]:
    """Return the rows on which preprocessing is fitted, None for all, and their weights above 0."""
    rows = None if spec.fit == "all" or split is None else split.known
    if weights is None:
        return rows, None
    rows = np.arange(len(weights)) if rows is None else rows
    rows = rows[weights[rows] > 0.0]
    return rows, weights[rows]


def _term_scale(n_rows: float, n_t: Floats) -> FeatureScale:
    """Return the scaling of counts of terms by ``TfidfTransformer(norm=None)``."""
    idf = np.log((1.0 + n_rows) / (1.0 + n_t)) + 1.0
    return FeatureScale(np.zeros(len(n_t)), 1.0 / idf)


def _sparse_scale(spec: PreprocessingSpec, dataset: Dataset, split: Split | None) -> FeatureScale:
    """Return the scaling of sparse features (n, d), of which no zero is stored."""
    x, (fitted, weights) = dataset.sparse, _fitted_rows(spec, split, dataset.weights)
    d = x.shape[1]
    if spec.scale == "none":
        return FeatureScale(np.zeros(d), np.ones(d))
    if spec.scale != "tfidf":
        raise ValueError(f"scale {spec.scale!r} of sparse features")
    rows = x if fitted is None else x[fitted]
    own = np.ones(rows.shape[0]) if weights is None else weights
    n_t = np.bincount(rows.indices, np.repeat(own, np.diff(rows.indptr)), minlength=d)
    return _term_scale(float(own.sum()), np.asarray(n_t, dtype=np.float64))


def preprocessed(spec: PreprocessingSpec, dataset: Dataset, split: Split | None = None) -> Floats:
    """Return all rows of a data set of features (n, d), filled and scaled: the points of kernels.

    Sparse features stay sparse: they are as they are, or scaled by ``"tfidf"``. With ``fit =
    "train"``, the training and unlabelled rows of `split` are fitted, else all rows.

    ``zscore`` subtracts the mean and divides by the standard deviation (of the population);
    ``minmax`` maps the range of the fitted rows onto [-1, 1]. A feature that is constant on the
    fitted rows is only shifted, to 0 on these rows.  ``tfidf`` multiplies counts by the inverse
    document frequency.  Rows that have weights count as often as these say, and those of weight 0
    are not fitted on.
    """
    if dataset.sparse is not None:
        kept: Floats = _sparse_scale(spec, dataset, split).scaled(dataset.sparse)
        return kept
    rows = _Rows.of(spec, dataset, split, dataset.impute)
    if spec.scale == "none" and rows.fill is None:
        return rows.x
    scale = rows.scale(spec)
    # Each feature is contiguous, as the loops of kernels read it.
    result, bad = np.empty((rows.x.shape[1], len(rows.x))).T, ~np.isfinite(scale.spread)
    for block in row_blocks(len(result), result.itemsize * result.shape[1]):
        before = rows[block]
        with np.errstate(over="ignore", invalid="ignore"):
            after = scale.scaled(before)
        bad |= ~(np.isfinite(after) | np.isnan(before)).all(axis=0)
        result[block] = after
    if bad.any():
        column = int(bad.argmax())
        values = rows.x[:, column]
        place = f"scaling of feature {column} (from 0)"
        found = f"values from {np.nanmin(values):g} to {np.nanmax(values):g}"
        expected = "values whose squares are finite in float64"
        raise DataError(place, found, expected, "Rescale this feature in the data")
    return result


def filled(spec: PreprocessingSpec, dataset: Dataset, split: Split | None = None) -> Floats:
    """Return all rows (n, d), missing values filled by those of fitted rows, in the data's units.

    Features of a view that a point lacks stay NaN, and statistics are those of points that have
    them.
    """
    rows = _Rows.of(spec, dataset, split, dataset.impute)
    return rows.x if rows.fill is None else rows[slice(None)]


def graph_points(
    graph: GraphTable,
    spec: PreprocessingSpec,
    dataset: Dataset,
    split: Split | None = None,
    x: Any = None,
) -> Any:
    """Return the points that a graph joins, those known in a split; or the distances between them.

    Without a split, they are all points; `x` are all rows, preprocessed, if they are at hand.
    """
    known = np.arange(dataset.n_points) if split is None else split.known
    if graph.distances is not None:
        return dataset.distances[graph.distances][np.ix_(known, known)]
    if graph.of_raw_features:
        x = filled(spec, dataset, split)
    return (preprocessed(spec, dataset, split) if x is None else x)[known]


def feature_deviations(spec: PreprocessingSpec, dataset: Dataset) -> Floats:
    """Return the standard deviation of each feature over all rows, filled and scaled, (d,).

    Scaling and imputation are fitted on all rows, whatever `spec` says.  A feature that is constant
    has 0; features of a view count the rows that have it.
    """
    if dataset.sparse is not None:
        from sklearn.utils.sparsefuncs import mean_variance_axis

        variances = mean_variance_axis(dataset.sparse, axis=0, weights=dataset.weights)[1]
        return np.asarray(np.sqrt(variances) / _sparse_scale(spec, dataset, None).spread)
    rows = _Rows.of(spec, dataset, None, dataset.impute)
    ranges, moments = rows.statistics()
    varies = ranges.data_min_ != ranges.data_max_
    return np.asarray(np.where(varies, np.sqrt(moments.var_), 0.0) / rows.scale(spec).spread)


def fitted_preprocessing(
    spec: PreprocessingSpec, dataset: Dataset, impute: Imputation | None, split: Split | None = None
) -> FittedPreprocessing:
    """Return the preprocessing that :func:`preprocessed` applies, for new rows."""
    if dataset.sparse is not None:
        return FittedPreprocessing(None, _sparse_scale(spec, dataset, split))
    if dataset.x is None:  # views of Gram matrices alone
        d = dataset.n_features
        return FittedPreprocessing(None, FeatureScale(np.zeros(d), np.ones(d)))
    rows = _Rows.of(spec, dataset, split, dataset.impute)
    fill = rows.fill
    if impute != dataset.impute:
        fill = _Rows.of(spec, dataset, split, impute).fill
    return FittedPreprocessing(fill, rows.scale(spec))


@dataclass(frozen=True)
class TargetScale:
    """The units of labels in solvers: ``(y - centre) / spread``, numbers in the user's units."""

    centre: float = 0.0
    spread: float = 1.0

    def scaled(self, y: Floats) -> Floats:
        """Return labels in the solver's units."""
        return (y - self.centre) / self.spread

    def restored(self, values: Floats) -> Floats:
        """Return values of a decision function in the user's units."""
        return self.centre + self.spread * values


def target_scale(spec: PreprocessingSpec, dataset: Dataset, split: Split) -> TargetScale:
    """Return the units of labels in solvers, by the training rows of a split.

    ``zscore`` takes the mean and the standard deviation (of the population) of the training labels;
    constant training labels are only shifted.  Labels of classes are not scaled.
    """
    if spec.target == "none" or dataset.task == "classification":
        return TargetScale()
    y = dataset.y[split.train]
    weights = None if dataset.weights is None else dataset.weights[split.train]
    mean = np.average(y, weights=weights)
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
    constant = spread == 0 or bool((y == y[0]).all())
    return TargetScale(float(y[0] if constant else mean), 1.0 if constant else spread)
