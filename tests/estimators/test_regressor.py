"""MKLRegressor: against kernel ridge regression, in the units of the data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVR

import mkldist
from mkldist import MKLRegressor
from mkldist.kernels import Linear

PLAIN = {"normalisation": "none", "impute": None, "scale": None}


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(200, noise=0.5, random_state=0)


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_one_linear_kernel_is_ridge_regression(alpha, friedman):
    X, y = friedman
    model = MKLRegressor(C=1 / alpha, kernels=[Linear()], tol=1e-9, **PLAIN).fit(X, y)
    ridge = Ridge(alpha=alpha).fit(X, y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-4)


def test_predictions_follow_the_units_and_weights_do_not(friedman):
    X, y = friedman
    one = MKLRegressor(tol=1e-6).fit(X, y)
    other = MKLRegressor(tol=1e-6).fit(X, 1000.0 * y - 5.0)
    np.testing.assert_allclose(other.predict(X), 1000.0 * one.predict(X) - 5.0, rtol=1e-6)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)


@pytest.mark.parametrize("method", ["primalmkl", "spicymkl", "elastmkl"])
def test_every_method_for_values_does_well(method, friedman):
    X, y = friedman
    model = MKLRegressor(method).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.85
    assert model.gap_ <= 0.01


def test_constant_values_are_predicted(friedman):
    X, _ = friedman
    model = MKLRegressor().fit(X, np.full(200, 3.5))
    np.testing.assert_allclose(model.predict(X), 3.5)


def test_its_strength_is_searched(friedman):
    search = GridSearchCV(MKLRegressor(), {"C": [3.0, 1e-5]}, cv=3).fit(*friedman)
    assert search.best_params_ == {"C": 3.0}


def test_without_a_parameter_it_is_better_than_svr(friedman):
    for X, y in (friedman, load_diabetes(return_X_y=True)):
        ours, theirs = (cross_val_score(m, X, y, cv=3).mean() for m in (MKLRegressor(), SVR()))
        assert ours > theirs + 0.1


def test_methods_for_classes_are_refused_with_those_for_values():
    with pytest.raises(ValueError, match=r"'level', which learns two classes.*spicymkl, elastmkl"):
        mkldist.MKLRegressor("level").fit([[0.0], [1.0]], [0.0, 1.0])
