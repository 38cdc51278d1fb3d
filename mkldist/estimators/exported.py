"""Models of fitted estimators, apart from scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.errors import SpecError
from mkldist.estimators.preparation import PresentImputer


def exported_preparation(preparation: Pipeline, n_features: int) -> FittedPreprocessing:
    """Return fitted imputation and scaling as plain numbers.

    Parameters
    ----------
    preparation : Pipeline
        Fitted steps, see :func:`mkldist.estimators.preparation.preparation`.
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
    raise _own("impute", imputer, "'median', 'mean', 'most_frequent' or None")


def _scale(scaler: Any, n_features: int) -> FeatureScale:
    if _does_nothing(scaler):
        return FeatureScale(np.zeros(n_features), np.ones(n_features))
    if type(scaler) is StandardScaler and scaler.with_mean and scaler.with_std:
        return FeatureScale(scaler.mean_, scaler.scale_)
    if type(scaler) is MinMaxScaler and not scaler.clip:
        return FeatureScale(-scaler.min_ / scaler.scale_, 1.0 / scaler.scale_)
    raise _own("scale", scaler, "'zscore', 'minmax' or None")


def _does_nothing(step: Any) -> bool:
    return type(step) is FunctionTransformer and step.func is None


def _own(where: str, step: Any, expected: str) -> SpecError:
    return SpecError(
        where,
        f"{type(step).__name__}, which a file of numbers cannot hold",
        expected,
        "Or keep the estimator itself, by joblib.dump",
    )
