"""Weights of rows: a fit with them is that of rows repeated, with everything that is fitted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

import mkldist
from mkldist import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    OneClassMKL,
    SemiSupervisedMKLClassifier,
)
from mkldist.kernels import Gaussian, Linear, Spectrum

RNG = np.random.default_rng(0)
N = 36
X = np.round(RNG.normal(size=(N, 4)), 1)  # values occur several times
X[RNG.random((N, 4)) < 0.1] = np.nan
Y = np.where(np.nan_to_num(X[:, 0]) + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
WEIGHTS = RNG.integers(0, 4, N)
ROWS = np.repeat(np.arange(N), WEIGHTS)
KERNELS = [Gaussian(relative_widths=[0.5, 1.0], features=["all", "each"]), Linear()]
SCALES = {"zscore": StandardScaler(), "minmax": MinMaxScaler((-1, 1))}

ESTIMATORS = [
    MKLClassifier(tol=1e-8),
    MKLClassifier(tol=1e-8, class_weight="balanced"),
    MKLClassifierCV(cv=2, Cs=[0.1, 1.0], tol=1e-8),
    MKLRegressor(tol=1e-8),
    OneClassMKL(tol=1e-8),
    SemiSupervisedMKLClassifier(tol=1e-8),
]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("form", ["dense", "sparse", "factors"])
def test_checks_of_scikit_learn(estimator, form):
    name, estimator = type(estimator).__name__, clone(estimator)
    if form == "factors":
        if isinstance(estimator, SemiSupervisedMKLClassifier):
            pytest.skip("its method takes no factors")
        estimator.set_params(backend="factors")
    if form != "sparse":
        check_sample_weight_equivalence_on_dense_data(name, estimator)
        return
    kernels = [Gaussian(relative_widths=[0.5, 1.0]), Linear()]
    estimator.set_params(scale=None, impute=None, kernels=kernels)
    check_sample_weight_equivalence_on_sparse_data(name, estimator)


@pytest.mark.parametrize("impute", ["median", "mean", "most_frequent"])
@pytest.mark.parametrize(
    ("scale", "normalisation"),
    [("zscore", "variance"), ("minmax", "trace"), ("zscore", ["centre", "trace"])],
)
def test_all_that_is_fitted_counts_rows_as_often_as_they_weigh(impute, scale, normalisation):
    steps = make_pipeline(SimpleImputer(strategy=impute), clone(SCALES[scale])).fit(X[ROWS])
    bank = mkldist.KernelBank(steps.transform(X[ROWS]), KERNELS, normalisation=normalisation)
    settings = {"method": "lp_mkl", "tol": 1e-10, "method_params": {"p": 2.0}}
    solution = mkldist.solve("lp_mkl", bank, Y[ROWS], C=2.0, tol=1e-10, p=2.0)
    expected = solution.decision_function(bank.on(steps.transform(X)))
    fitted = {"impute": impute, "scale": scale, "normalisation": normalisation}
    model = MKLClassifier(C=2.0, kernels=KERNELS, **settings, **fitted)
    model.fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(model.preparation_.applied(X), steps.transform(X), atol=1e-12)
    np.testing.assert_allclose(model.kernel_weights_["width"], bank.kernels["width"])
    assert model.objective_ == pytest.approx(solution.objective, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-4)
    saved = model.to_model().decision_function(X)
    np.testing.assert_allclose(saved, model.decision_function(X), rtol=1e-9)
    again = clone(model).fit(X[ROWS[::-1]], Y[ROWS[::-1]])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_rows_may_lack_a_view():
    views = {"a": [0, 1], "b": [2, 3]}
    x = np.where(np.isnan(X), 0.0, X)
    x[::5, 2:] = np.nan
    model = MKLClassifier(views=views, tol=1e-8)
    one, two = clone(model).fit(x, Y, WEIGHTS), clone(model).fit(x[ROWS], Y[ROWS])
    np.testing.assert_array_equal(one.decision_function(x), two.decision_function(x))


def test_folds_are_those_of_different_rows_in_their_order():
    kernels = [Gaussian(1.0)]
    model = MKLClassifierCV(cv=3, kernels=kernels, impute="mean", calibration="sigmoid")
    one, two = clone(model).fit(X, Y, WEIGHTS), clone(model).fit(X[ROWS], Y[ROWS])
    for name, values in one.cv_results_.items():
        np.testing.assert_array_equal(values, two.cv_results_[name])
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_class_of_weight_zero_is_no_class():
    classes = np.arange(N) % 3
    model = MKLClassifier().fit(X, classes, sample_weight=(classes < 2).astype(float))
    assert model.classes_.tolist() == [0, 1]
    assert model.decision_function(X).shape == (N,)


def test_equal_rows_stay_apart_where_a_method_counts_rows_alone():
    x = np.nan_to_num(X)
    model = MKLClassifier("easymkl", kernels=[Gaussian(1.0)]).fit(x[ROWS], Y[ROWS])
    assert model.solutions_[0].coefficients.shape == (len(ROWS),)
    joined = MKLClassifier(kernels=[Gaussian(1.0)]).fit(x[ROWS], Y[ROWS])
    assert len(joined.solutions_[0].coefficients) < len(ROWS)


def test_texts_and_labels_tell_rows_apart():
    frame = pd.DataFrame({"a": np.zeros(12), "word": ["aab", "bba", "abc"] * 4})
    y = np.arange(12) // 6
    model = MKLClassifier(kernels=[Spectrum(1, features="word")], texts=["word"]).fit(frame, y)
    assert model.solutions_[0].coefficients.shape == (6,)  # three texts of two classes
