"""MKLRegressor, OneClassMKL and SemiSupervisedMKLClassifier."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_friedman1, make_moons
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC, SVR

from mkldist import MKLRegressor, OneClassMKL, SemiSupervisedMKLClassifier
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


def test_constant_values_are_predicted(friedman):
    X, _ = friedman
    model = MKLRegressor().fit(X, np.full(200, 3.5))
    np.testing.assert_allclose(model.predict(X), 3.5)


def test_without_a_parameter_it_is_better_than_svr(friedman):
    for X, y in (friedman, load_diabetes(return_X_y=True)):
        ours, theirs = (cross_val_score(m, X, y, cv=3).mean() for m in (MKLRegressor(), SVR()))
        assert ours > theirs + 0.1


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("d", [2, 10])
def test_about_a_tenth_of_the_training_rows_is_outside(n, d):
    X = RNG.normal(size=(n, d))
    assert 0.02 < np.mean(OneClassMKL().fit_predict(X) == -1) < 0.25


def test_rows_from_elsewhere_are_outside():
    X = RNG.normal(size=(150, 3))
    new, far = RNG.normal(size=(80, 3)), RNG.normal([5, 0, -5], size=(80, 3))
    model = OneClassMKL().fit(X)
    values = model.decision_function(np.vstack([new, far]))
    assert roc_auc_score(np.repeat([1, 0], 80), values) > 0.95
    assert (model.predict(far) == -1).mean() > 0.9
    np.testing.assert_allclose(model.score_samples(far) - model.offset_, values[80:])


def test_rows_repeated_change_nothing():
    X = RNG.normal(size=(60, 2))
    one = OneClassMKL(tol=1e-7).fit(X)
    two = OneClassMKL(tol=1e-7).fit(np.repeat(X, 2, axis=0))
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-5)
    scale = np.abs(one.score_samples(X)).max()
    np.testing.assert_allclose(two.score_samples(X), one.score_samples(X), atol=1e-3 * scale)


def test_a_larger_alpha_leaves_more_outside():
    X = RNG.normal(size=(120, 2))
    shares = [np.mean(OneClassMKL(C=C).fit_predict(X) == -1) for C in (1000, 100, 10)]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


@pytest.mark.parametrize(
    ("X", "settings", "said"),
    [
        (np.zeros((20, 2)), {}, "20 training rows, all outliers: the kernels are zero on them"),
        (RNG.normal(size=(20, 2)), {"kernels": [Linear()]}, "add up to zero as centred ones do"),
        (RNG.normal(size=(20, 2)), {"normalisation": ["centre", "trace"]}, "use kernels such as"),
        (RNG.normal(size=(20, 2)), {"C": 1e-3}, r"C=0.001 is too small\. Raise C"),
    ],
)
def test_a_description_that_leaves_all_rows_outside_is_told(X, settings, said):
    model = OneClassMKL(**settings)
    with pytest.warns(UserWarning, match=said):
        model.fit(X)
    assert (model.predict(X) == -1).all()


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(160, noise=0.08, random_state=0)
    return X, y, np.where(np.arange(160) < 8, y, -1)


def test_rows_without_labels_help(moons):
    X, y, few = moons
    model = SemiSupervisedMKLClassifier().fit(X, few)
    supervised = SVC().fit(X[few >= 0], y[few >= 0])
    assert model.score(X, y) > supervised.score(X, y) + 0.05
    assert model.classes_.tolist() == [0, 1]


def test_several_classes_of_text_keep_the_labels_given():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    few = names.copy()
    few[np.arange(150) % 10 != 0] = -1
    model = SemiSupervisedMKLClassifier().fit(X, few)
    assert model.decision_function(X).shape == (150, 3)
    assert (model.transduction_[::10] == names[::10]).all()
    assert (model.transduction_ == names).mean() > 0.85
    assert set(model.predict(X)) <= set(names)


def test_the_graph_is_that_of_a_sweep_file(moons):
    X, _, few = moons
    near = SemiSupervisedMKLClassifier(graph={"neighbours": 3, "weights": "heat"}).fit(X, few)
    other = SemiSupervisedMKLClassifier().fit(X, few)
    assert near.objective_ != pytest.approx(other.objective_, rel=1e-3)
    rls = [SemiSupervisedMKLClassifier("rls", gamma_i=g).fit(X, few) for g in (0.0, 1.0)]
    assert rls[0].objective_ == rls[1].objective_


@pytest.mark.parametrize("unlabelled", [["a", "b", -1], np.array(["a", "b", "-1"], dtype=object)])
def test_the_text_of_minus_one_is_no_class(unlabelled):
    with pytest.raises(ValueError, match=r"y\[2\]: found the text '-1' .* dtype=object"):
        SemiSupervisedMKLClassifier().fit(np.eye(3), unlabelled)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"graph": {"neighbors": 3}}, "graph.*neighbours"),
        ({"graph": 6}, r"graph: found 6; expected a dict, such as"),
        ({"graph": {"distance": "precomputed"}}, "graph.distance: found 'precomputed'"),
        ({"method": "level"}, "'level', which learns two classes; expected a method that learns"),
    ],
)
def test_mistakes_are_told(settings, message, moons):
    X, _, few = moons
    with pytest.raises(ValueError, match=message):
        SemiSupervisedMKLClassifier(**settings).fit(X, few)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.r_[np.ones(100, int), -np.ones(60, int)],
         "found one class, 1, and 60 unlabelled rows; expected two classes or more, and -1 for "
         "unlabelled rows alone. Write the classes as other labels, such as 0 and 1"),
        (np.r_[np.ones(159, int), -1], "found one class, 1, and 1 unlabelled row;"),
        (np.full(160, -1), "found no labels, and 160 unlabelled rows; expected two classes"),
        (np.full(160, "a"), "found one class, 'a', and 0 unlabelled rows; expected two classes"),
    ],
)  # fmt: skip
def test_labels_of_one_class_are_met_by_the_meaning_of_minus_one(labels, said, moons):
    with pytest.raises(ValueError, match=said):
        SemiSupervisedMKLClassifier().fit(moons[0], labels)
