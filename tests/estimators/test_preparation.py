"""Imputation and scaling before kernels: scikit-learn's own, and a sweep's scaling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import RobustScaler

import mkldist
from mkldist.data.preprocessing import feature_scale
from mkldist.errors import DataError, SpecError
from mkldist.fit.preprocess import preparation
from mkldist.spec.datasets import PreprocessingSpec

X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 10, 0.1, 0] + [0, 3, 5, 7]


@pytest.mark.parametrize("word", ["zscore", "minmax", "none"])
def test_words_scale_as_in_a_sweep(word):
    found = preparation(None, word).fit(X).transform(X)
    expected = feature_scale(PreprocessingSpec(scale=word), X).scaled(X)
    np.testing.assert_allclose(found[:, :3], expected[:, :3], atol=1e-12)
    assert np.ptp(found[:, 3]) == 0.0


def test_missing_values_are_filled_before_scaling_and_empty_columns_kept():
    holes = X.copy()
    holes[:5, 0], holes[:, 2] = np.nan, np.nan
    found = preparation("mean", "none").fit(holes).transform(holes)
    assert found[:5, 0] == pytest.approx(X[5:, 0].mean())
    assert found.shape == X.shape


def test_transformers_are_copied_not_fitted():
    imputer, scaler = KNNImputer(), RobustScaler()
    found = preparation(imputer, scaler).fit(X).transform(X)
    np.testing.assert_allclose(found, RobustScaler().fit_transform(X))
    assert not hasattr(scaler, "scale_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("medain", None), "impute: found 'medain'.*Did you mean 'median'"),
        ((None, "z-score"), "scale: found 'z-score'.*Did you mean 'zscore'"),
        ((None, "standard"), "scale: found 'standard'; expected one of zscore"),
        ((0, None), "impute: found 0; expected one of median"),
    ],
)
def test_other_words_are_refused(given, message):
    with pytest.raises(SpecError, match=message):
        preparation(*given)


@pytest.mark.parametrize(
    "model",
    [
        mkldist.MKLClassifier(),
        mkldist.MKLRegressor(impute="mean"),
        mkldist.OneClassMKL(impute="most_frequent"),
        mkldist.SemiSupervisedMKLClassifier(),
        mkldist.MKLClassifier(views={"v": [0, 2]}),
    ],
    ids=str,
)
def test_a_column_without_any_value_is_refused_as_in_a_sweep(model):
    holes, y = X.copy(), np.arange(30) % 2
    holes[:, 2] = np.nan
    with pytest.raises(DataError, match=r"X: found columns without any value in 'x2' \(30\)"):
        model.fit(holes, y)
    frame = pd.DataFrame(holes, columns=["a", "b", "c", "d"])
    with pytest.raises(DataError, match=r"X: found columns without any value in 'c' \(30\)"):
        model.fit(frame, y)


def test_an_imputer_of_the_user_may_fill_a_column_without_any_value():
    holes = np.where(np.arange(4) == 2, np.nan, X)
    model = mkldist.MKLClassifier(impute=SimpleImputer(keep_empty_features=True))
    assert model.fit(holes, np.arange(30) % 2).predict(holes).shape == (30,)
    assert mkldist.MKLClassifier().fit(X, np.arange(30) % 2).predict(holes).shape == (30,)
