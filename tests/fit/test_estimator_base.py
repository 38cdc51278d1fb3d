"""The `base` of estimators and what is `fitted`: checks and tools of scikit-learn."""

import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.utils.estimator_checks import (
    parametrize_with_checks,
)

import mkldist
from mkldist import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    OneClassMKL,
    SemiSupervisedMKLClassifier,
)
from mkldist.errors import DataError
from mkldist.kernels import Additive

# Every check that is not passed, with its reason.  scikit-learn itself skips check_array_api_input
# unless SCIPY_ARRAY_API is set: the estimators take numpy arrays and data frames.
EXPECTED_TO_FAIL = {
    "SemiSupervisedMKLClassifier": {
        "check_classifiers_classes": "its classes are -1 and 1, and -1 marks a row without a label",
    },
}
LONG = re.compile(
    "check_classifiers_train|readonly_memmap|classifier_data_not_an_array|dtype_object"
)
ALL = [
    MKLClassifier(),
    MKLClassifierCV(cv=2, Cs=[0.1, 1.0]),
    MKLRegressor(),
    OneClassMKL(),
    SemiSupervisedMKLClassifier(),
]


def reasons(estimator: Any) -> dict[str, str]:
    return EXPECTED_TO_FAIL.get(type(estimator).__name__, {})


def checks() -> pytest.MarkDecorator:
    """Return scikit-learn's checks, those that take long with the slow ones but for the first.

    Estimators share the code that these checks try.
    """
    found = parametrize_with_checks(ALL, expected_failed_checks=reasons)
    names, cases = found.args
    cases = list({repr(case): case for case in cases}.values())  # some versions name one twice
    return pytest.mark.parametrize(names, [_later(case) for case in cases], **found.kwargs)


def _later(case: Any) -> Any:
    estimator, check = values = getattr(case, "values", case)
    if type(estimator) is MKLClassifier or not LONG.search(repr(check)):
        return case
    return pytest.param(*values, marks=[*getattr(case, "marks", ()), pytest.mark.slow])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*SCIPY_ARRAY_API is not set.*")
@pytest.mark.filterwarnings("ignore:OneClassMKL. .* all outliers")  # 15 rows of 30 features
@checks()
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True, return_X_y=True)


def fitted(estimator, X, y):
    return estimator.fit(X) if isinstance(estimator, OneClassMKL) else estimator.fit(X, y)


def test_a_pickle_leaves_the_bank_behind(wine):
    with mkldist.KernelBank(wine[0], "do2009") as bank:  # of 20 kernels
        assert len(pickle.dumps(MKLClassifier().fit(*wine))) < bank.view.bank.n_bytes


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ALL, ids=lambda one: type(one).__name__)
def test_the_fitted_attributes_speak_of_the_solutions(estimator, wine):
    X, y = wine
    model = fitted(clone(estimator), X, y)
    assert model.gap_ == max(one.gap for one in model.solutions_) <= model.tol
    assert model.stop_reason_ == "converged"
    assert model.n_iter_ == max(one.counters.outer_iterations for one in model.solutions_)
    table = model.kernel_weights_
    names = {"function", "width", "degree", "offset", "features", "name", "weight"}
    assert names <= set(table.columns)
    weights = np.concatenate([one.kernel_weights for one in model.solutions_])
    np.testing.assert_array_equal(table["weight"], weights)
    assert ("class" in table) == (len(model.solutions_) > 1)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ALL, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("by", ["kernels", "features", "views"])
def test_contributions_add_up_to_the_decision_function(estimator, by, wine):
    X, y = wine
    centred = "variance" if isinstance(estimator, OneClassMKL) else ["centre", "trace"]
    model = fitted(clone(estimator).set_params(normalisation=centred), X, y)
    shares = model.contributions(X, by=by)
    values = model.predict(X) if isinstance(model, MKLRegressor) else model.decision_function(X)
    if shares.columns.nlevels == 2:
        of_classes = shares.T.groupby(level=0, sort=False).sum().T
        total = of_classes[model.classes_.tolist()].to_numpy()
    else:
        total = shares.sum(axis=1).to_numpy()
    np.testing.assert_allclose(total, values, atol=1e-9 * np.abs(values).max())
    assert shares.index.equals(X.index)
    if isinstance(model, MKLClassifier):
        kept = model.to_model().contributions(X, by=by)
        np.testing.assert_allclose(kept, shares, atol=1e-9 * np.abs(values).max())
        if by != "kernels":
            assert kept.columns.tolist() == [
                (str(one[0]), one[1]) if isinstance(one, tuple) else one for one in shares.columns
            ]


def test_contributions_of_features_are_named_by_the_features(wine):
    X, y = wine
    model = MKLClassifier().fit(X, y == 1)
    shares, each = model.contributions(X), model.contributions(X, by="kernels")
    gaussians = [name for name in each.columns if name.startswith("gaussian(")]
    additive = [name for name in each.columns if name.startswith("additive(")]
    assert set(shares.columns) == {"all", *X.columns, "intercept"}
    np.testing.assert_allclose(shares["all"], each[gaussians].sum(axis=1), atol=1e-12)
    apart = shares[[*X.columns]].sum(axis=1)
    np.testing.assert_allclose(apart, each[additive].sum(axis=1), atol=1e-9)
    with pytest.raises(ValueError, match="by: found 'width'; expected one of 'views'"):
        model.contributions(X, by="width")


@pytest.mark.parametrize("estimator", ALL, ids=lambda one: type(one).__name__)
def test_its_html_shows_parameters(estimator):
    assert type(estimator).__name__ in estimator._repr_html_()
    found = repr(clone(estimator).set_params(tol=0.5))
    assert found.startswith(f"{type(estimator).__name__}(")
    assert found.endswith("tol=0.5)")


def test_a_column_of_text_is_named():
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "sex": ["f", "m", "f"]})
    with pytest.raises(DataError, match=r"X: found text in column 'sex' .*OneHot"):
        MKLClassifier().fit(frame, [0, 1, 0])
    with pytest.raises(DataError, match=r"'sex'.*'1,5'.*Write decimals with a point"):
        MKLClassifier().fit(frame.assign(sex="1,5"), [0, 1, 0])


@pytest.mark.parametrize("date", [pd.Timestamp("2020-01-31"), "31.1.2020"])
def test_dates_are_to_be_turned_into_numbers(date):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0]}).assign(seen=date)
    with pytest.raises(DataError, match=r"'seen'.*Turn dates into numbers.*dt\.days") as error:
        MKLClassifier().fit(frame, [0, 1, 0])
    assert "OneHot" not in str(error.value)


def test_weights_of_labelled_rows_count_and_rows_of_weight_zero_are_left_out():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 2))
    y = np.where(np.arange(60) < 24, (X[:, 0] + 0.8 * draw.normal(size=60) > 0).astype(int), -1)
    weights = draw.uniform(0.5, 4.0, 60)
    found = SemiSupervisedMKLClassifier().fit(X, y, weights)
    plain = SemiSupervisedMKLClassifier().fit(X, y)
    assert found.objective_ != plain.objective_
    heavy = SemiSupervisedMKLClassifier().fit(X, y, np.where(y == 1, 1e3, 1.0))
    assert (heavy.predict(X[y == 1]) == 1).all()
    some = draw.uniform(size=60) < 0.8
    left = SemiSupervisedMKLClassifier().fit(X, y, np.where(some, weights, 0.0))
    part = SemiSupervisedMKLClassifier().fit(X[some], y[some], weights[some])
    np.testing.assert_allclose(left.decision_function(X), part.decision_function(X))
    assert left.transduction_.shape == (60,)


def test_features_of_additive_kernels_stand_apart(wine):
    X, y = wine
    plain = {"impute": None, "scale": None, "normalisation": "none"}
    model = MKLClassifier(kernels=[Additive(widths=2.0)], **plain).fit(X, y == 1)
    found = model.contributions(X, by="features")
    values = np.asarray(X, dtype=float)
    [function] = model.to_model().functions
    for j, name in enumerate(X.columns):
        gram = 1.0 / (1.0 + ((values[:, [j]] - function.points[:, j]) / 2.0) ** 2)
        expected = function.weights[0] / values.shape[1] * gram @ function.coefficients[:, 0]
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-12)
    assert found.columns.tolist() == [*X.columns, "intercept"]
