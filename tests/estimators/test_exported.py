"""Models of estimators: they predict as the estimators do, after a file too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import KNNImputer
from sklearn.preprocessing import RobustScaler

import mkldist
from mkldist.errors import SpecError
from mkldist.fit.preprocess import fitted_numbers, preparation
from mkldist.kernels import Gaussian

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), RNG.normal(size=(25, 3))
KERNELS = [Gaussian(widths=[1.0, 2.0], features=["all", "each"])]
TWO = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
THREE = np.where(X[:, 2] > 0.5, 7, np.where(X[:, 0] > 0, 3, 5))
FEW = np.where(np.arange(60) < 20, X[:, 0] > 0, -1).astype(int)


@pytest.fixture(params=["array", "frame"])
def rows(request: pytest.FixtureRequest):
    """Return a function that makes rows of an array, or of a frame with missing values."""
    if request.param == "array":
        return lambda x: x
    return lambda x: pd.DataFrame(np.where(x > 1.5, np.nan, x), columns=["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["zscore", "minmax", None])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (mkldist.MKLClassifier(kernels=KERNELS), TWO),
        (mkldist.MKLClassifier(kernels=KERNELS), TWO == "same"),
        (mkldist.MKLClassifier(kernels=KERNELS, C=10.0), THREE),
        (mkldist.MKLClassifier(kernels=KERNELS, shared_weights=True), THREE),
        (mkldist.MKLRegressor(kernels=KERNELS), 5.0 + 3.0 * X[:, 0]),
        (mkldist.OneClassMKL(kernels=KERNELS), None),
        (mkldist.SemiSupervisedMKLClassifier(kernels=KERNELS), FEW),
    ],
    ids=["two", "truth", "three", "shared", "values", "one-class", "few-labels"],
)
def test_a_model_predicts_as_its_estimator(estimator, y, scale, rows, tmp_path):
    estimator.set_params(scale=scale).fit(rows(X), y)
    estimator.to_model().save(tmp_path / "a.model")
    model = mkldist.load_model(tmp_path / "a.model")
    expected = estimator.predict(rows(NEW))
    found = model.predict(rows(NEW))
    if y is not None and np.asarray(y).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        return
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind
    decided = estimator.decision_function(rows(NEW))
    np.testing.assert_allclose(model.decision_function(rows(NEW)), decided, rtol=1e-9, atol=1e-11)


def test_a_decision_of_zero_predicts_the_first_class_as_the_estimator_does(tmp_path: Path):
    symmetric = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    estimator = mkldist.MKLClassifier("uniform", kernels=[Gaussian(widths=1.0)], scale=None)
    estimator.fit(symmetric, [0, 0, 1, 1])
    far = np.array([[1e6]])  # where all kernels vanish
    assert estimator.decision_function(far) == estimator.intercept_ == 0.0
    assert estimator.to_model().predict(far) == estimator.predict(far) == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"impute": KNNImputer()}, "impute: found KNNImputer, which a file of numbers cannot hold"),
        (
            {"scale": RobustScaler()},
            "scale: found RobustScaler, which a file of numbers cannot hold",
        ),
    ],
)
def test_transformers_of_the_user_are_refused(settings, said):
    estimator = mkldist.MKLClassifier(kernels=KERNELS, **settings).fit(X, TWO)
    with pytest.raises(SpecError, match=said):
        estimator.to_model()


def test_a_feature_without_a_value_is_filled_as_by_scikit_learn():
    x = np.array([[np.nan, 1.0], [np.nan, 3.0]])
    steps = preparation("median", None).fit(x)
    np.testing.assert_array_equal(fitted_numbers(steps, 2).applied(x), steps.transform(x))
