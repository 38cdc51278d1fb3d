"""Imputation and scaling, by steps of scikit-learn that are fitted on the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from mkldist.arrays import Floats
from mkldist.counted import counted
from mkldist.data.dataset import View, absent_of
from mkldist.data.listing import first_of
from mkldist.errors import DataError, SpecError, nearest
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
