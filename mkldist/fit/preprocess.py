"""Imputation, scaling and coding of labels for estimators, by transformers of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight as checked_sample_weight

from mkldist.arrays import Bools, Floats, Ints
from mkldist.counted import counted
from mkldist.data.dataset import View, absent_of
from mkldist.data.listing import first_of
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.errors import DataError, SpecError, nearest
from mkldist.fit.inputs import of_plain_type
from mkldist.spec.foreign import meant

IMPUTERS = ("median", "mean", "most_frequent", "none")
SCALERS = ("zscore", "minmax", "none")
SHOWN = 5


class PresentImputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An imputer that leaves the features of views which rows lack unfilled.

    Parameters
    ----------
    imputer : transformer
        The imputer of other missing values.
    views : mapping of str to View
        Blocks of the features.
    """

    imputer_: Any

    def __init__(self, imputer: Any, views: Mapping[str, View]) -> None:
        self.imputer = imputer
        self.views = views

    def fit(self, X: Floats, y: Any = None) -> Self:
        """Fit the imputer."""
        self.imputer_ = clone(self.imputer).fit(X)
        return self

    def transform(self, X: Floats) -> Floats:
        """Return rows whose single missing values are filled, NaN where they lack a view."""
        absent, filled = absent_of(X, self.views), np.asarray(self.imputer_.transform(X))
        if filled.shape != X.shape:
            found = f"{filled.shape[1]} columns of {X.shape[1]}"
            raise SpecError("impute", found, "as many, for views are blocks of them")
        return filled if absent is None else np.where(absent, np.nan, filled)


def preparation(impute: Any, scale: Any, views: Mapping[str, View] | None = None) -> Pipeline:
    """Return the steps before the kernels, not yet fitted.

    Parameters
    ----------
    impute : str or transformer
        ``"median"``, ``"mean"`` or ``"most_frequent"`` of each feature for its missing values,
        None, or an imputer of scikit-learn.
    scale : str or transformer
        ``"zscore"`` to mean 0 and standard deviation 1, ``"minmax"`` to the range from -1 to 1,
        None, or a transformer of scikit-learn.
    views : mapping of str to View, optional
        Blocks of features that rows may lack.

    Raises
    ------
    mkldist.errors.SpecError
        For other words.
    """
    imputer = _imputer(impute)
    if any(view.missing == "zero" for view in (views or {}).values()):
        imputer = PresentImputer(imputer, views or {})
    return Pipeline([("impute", imputer), ("scale", _scaler(scale))])


def check_fillable(x: Floats, names: Sequence[str] | None) -> None:
    """Refuse columns without any value, which nothing can fill, as a sweep does.

    Parameters
    ----------
    x : (n, d) float64
        Training rows; NaN where a value is missing.
    names : sequence of str, optional
        Names of the columns.

    Raises
    ------
    mkldist.errors.DataError
        Naming the first such columns.
    """
    empty = np.flatnonzero(np.isnan(x).all(axis=0)).tolist()
    if not empty:
        return
    columns = [f"column {j}" if names is None else f"column {names[j]!r}" for j in empty]
    if names is None:
        columns[0] += " (from 0)"
    raise DataError(
        "X",
        f"no value of {first_of(columns, SHOWN)} in its {counted(len(x), 'row')}",
        "a value of every column, to fill missing ones with",
        "Leave out columns without any value, or give an imputer of scikit-learn as impute",
    )


def _imputer(impute: Any) -> Any:
    if impute in (None, "none"):
        return FunctionTransformer()
    if not isinstance(impute, str):
        return _own("impute", impute, IMPUTERS)
    _check("impute", impute, IMPUTERS)
    return SimpleImputer(strategy=impute, keep_empty_features=True)


def _scaler(scale: Any) -> Any:
    if scale in (None, "none"):
        return FunctionTransformer()
    if not isinstance(scale, str):
        return _own("scale", scale, SCALERS)
    _check("scale", scale, SCALERS)
    return StandardScaler() if scale == "zscore" else MinMaxScaler((-1.0, 1.0))


def _check(where: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        expected = f"one of {', '.join(known)}, or a transformer of scikit-learn"
        raise SpecError(where, f"{word!r}", expected, nearest(word, known) or meant(word))


def _own(where: str, given: Any, known: tuple[str, ...]) -> Any:
    """Return a copy of the user's transformer."""
    if not hasattr(given, "fit") or not hasattr(given, "transform"):
        expected = f"one of {', '.join(known)}, or a transformer of scikit-learn"
        raise SpecError(where, f"{given!r:.60}", expected)
    return clone(given)


def exported_preparation(preparation: Pipeline, n_features: int) -> FittedPreprocessing:
    """Return fitted imputation and scaling as plain numbers.

    Parameters
    ----------
    preparation : Pipeline
        Fitted steps, see :func:`mkldist.fit.preprocess.preparation`.
    n_features : int
        Number d of features.

    Raises
    ------
    mkldist.errors.SpecError
        For transformers of the user's, which a file of numbers cannot hold.
    """
    imputer, scaler = preparation["impute"], preparation["scale"]
    if isinstance(imputer, PresentImputer):
        imputer = imputer.imputer_
    return FittedPreprocessing(_fill(imputer), _scale(scaler, n_features))


def _fill(imputer: Any) -> Any:
    if _does_nothing(imputer):
        return None
    if type(imputer) is SimpleImputer and imputer.strategy != "constant":
        values = np.asarray(imputer.statistics_, dtype=np.float64)
        return np.where(np.isnan(values), 0.0, values)  # of features without any value
    raise _no_numbers("impute", imputer, "'median', 'mean', 'most_frequent' or None")


def _scale(scaler: Any, n_features: int) -> FeatureScale:
    if _does_nothing(scaler):
        return FeatureScale(np.zeros(n_features), np.ones(n_features))
    if type(scaler) is StandardScaler and scaler.with_mean and scaler.with_std:
        return FeatureScale(scaler.mean_, scaler.scale_)
    if type(scaler) is MinMaxScaler and not scaler.clip:
        return FeatureScale(-scaler.min_ / scaler.scale_, 1.0 / scaler.scale_)
    raise _no_numbers("scale", scaler, "'zscore', 'minmax' or None")


def _does_nothing(step: Any) -> bool:
    return type(step) is FunctionTransformer and step.func is None


def _no_numbers(where: str, step: Any, expected: str) -> SpecError:
    return SpecError(
        where,
        f"{type(step).__name__}, which a file of numbers cannot hold",
        expected,
        "Or keep the estimator itself, by joblib.dump",
    )


def encoded(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """Return the classes in order, and the number of each label's class.

    Raises
    ------
    ValueError
        For labels that are real values.
    mkldist.errors.DataError
        For one class alone.
    """
    y = of_plain_type(y)
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) == 0:
        raise DataError("y", "no labels", "two classes or more")
    if len(classes) == 1:
        raise DataError("y", f"one class, {classes.tolist()[0]!r}", "two classes or more")
    return classes, numbers


def row_weights(
    X: Floats, y: npt.NDArray[Any], sample_weight: Any, class_weight: Any
) -> Floats | None:
    """Return the weight of each row, that of the sample times that of its class; None for ones.

    Parameters
    ----------
    X : (n, d) float64
        Rows.
    y : (n,) array
        Labels.
    sample_weight : (n,) array-like or None
        Weights of rows, zero or above.
    class_weight : dict, "balanced" or None
        Weights of classes, as scikit-learn takes them.

    Raises
    ------
    ValueError
        For weights of another shape or below zero, and for other class weights.
    mkldist.errors.DataError
        For a class weight that is not above zero.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights: Floats = checked_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if class_weight is not None:
        kept = weights > 0.0
        classes, numbers = np.unique(y[kept], return_inverse=True)
        of_class = compute_class_weight(class_weight, classes=classes, y=y[kept])
        if not (np.isfinite(of_class) & (of_class > 0.0)).all():
            raise DataError("class_weight", f"{class_weight!r:.60}", "weights above zero")
        weights = weights.copy()
        weights[kept] *= of_class[numbers]
    return None if bool((weights == 1.0).all()) else weights


def one_against_rest(numbers: Ints, n_classes: int, *, shared: bool) -> list[Floats]:
    """Return the problems of classes: labels in {-1, +1} of each problem.

    Parameters
    ----------
    numbers : (n,) int
        Number of each row's class.
    n_classes : int
        Number k of classes; two make one problem, in which the second class is +1.
    shared : bool
        True for one problem with a column for each class.
    """
    if n_classes == 2:
        return [np.where(numbers == 1, 1.0, -1.0)]
    columns = np.where(numbers[:, None] == np.arange(n_classes), 1.0, -1.0)
    return [columns] if shared else [np.ascontiguousarray(column) for column in columns.T]


def kept_rows(weights: Floats | None, n: int) -> Bools:
    """Return which rows take part: those of a weight above zero."""
    return np.ones(n, dtype=bool) if weights is None else weights > 0.0
