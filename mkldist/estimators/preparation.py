"""Imputation and scaling, by steps of scikit-learn that are fitted on the training rows."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from mkldist.errors import SpecError, nearest

IMPUTERS = ("median", "mean", "most_frequent", "none")
SCALERS = ("zscore", "minmax", "none")


def preparation(impute: Any, scale: Any) -> Pipeline:
    """Return the steps before the kernels, not yet fitted.

    Parameters
    ----------
    impute : str or transformer
        ``"median"``, ``"mean"`` or ``"most_frequent"`` of each feature for its missing values,
        None, or an imputer of scikit-learn.
    scale : str or transformer
        ``"zscore"`` to mean 0 and standard deviation 1, ``"minmax"`` to the range from -1 to 1,
        None, or a transformer of scikit-learn.

    Raises
    ------
    mkldist.errors.SpecError
        For other words.
    """
    return Pipeline([("impute", _imputer(impute)), ("scale", _scaler(scale))])


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
        raise SpecError(where, f"{word!r}", expected, nearest(word, known))


def _own(where: str, given: Any, known: tuple[str, ...]) -> Any:
    """Return a copy of the user's transformer."""
    if not hasattr(given, "fit") or not hasattr(given, "transform"):
        expected = f"one of {', '.join(known)}, or a transformer of scikit-learn"
        raise SpecError(where, f"{given!r:.60}", expected)
    return clone(given)
