"""MKLClassifierCV: the choice of C against a loop over C and the folds of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import balanced_accuracy_score, hinge_loss
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mkldist import MKLClassifier, MKLClassifierCV
from mkldist.errors import DataError, SpecError
from mkldist.kernels import Gaussian, Linear

CS = [0.02, 0.3, 5.0]
KERNELS = [Gaussian(widths=[1.0, 4.0]), Linear()]
PLAIN = {"kernels": KERNELS, "impute": None, "scale": None, "tol": 1e-4}


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:100, :8]), y[:100]


def less_hinge(model, X, y, sample_weight=None):
    """Return a score that depends on decision values without steps."""
    return -hinge_loss(y, model.decision_function(X), sample_weight=sample_weight)


def by_a_loop(X, y, folds, method="level", weights=None):
    """Return the scores of folds by C, each of a fit of its own."""
    found = np.empty((len(CS), len(folds)))
    for c, C in enumerate(CS):
        for f, (train, test) in enumerate(folds):
            own, out = (None, None) if weights is None else (weights[train], weights[test])
            model = MKLClassifier(method, C=C, **PLAIN).fit(X[train], y[train], own)
            found[c, f] = less_hinge(model, X[test], y[test], out)
    return found


def of_folds(model):
    n = sum(name.startswith("split") for name in model.cv_results_)
    return np.column_stack([model.cv_results_[f"split{f}_test_score"] for f in range(n)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["level", "lp_mkl", "uniform"])
def test_scores_of_folds_are_those_of_fits_apart(method, wdbc):
    X, y = wdbc
    model = MKLClassifierCV(method, Cs=CS, scoring=less_hinge, **PLAIN).fit(X, y)
    folds = list(StratifiedKFold(3).split(X, y))
    expected = by_a_loop(X, y, folds, method)
    np.testing.assert_allclose(of_folds(model), expected, rtol=0.02, atol=5e-3)
    means = expected.mean(axis=1)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], means, atol=5e-3)
    assert CS[int(means.argmax())] == model.C_
    alone = MKLClassifier(method, C=model.C_, **PLAIN).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("Cs", "nearest"), [([0.1, 3.0, 0.5, 2.5], 0.5), ([3.0, 1.0, 0.3], 1.0)])
def test_of_equal_scores_the_c_nearest_to_one_is_chosen(wdbc, Cs, nearest):
    model = MKLClassifierCV(Cs=Cs, scoring=lambda model, X, y: 0.5, **PLAIN).fit(*wdbc)
    assert nearest == model.C_


@pytest.mark.slow
def test_several_classes_and_weights():
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    X, names = StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    folds = list(StratifiedKFold(3).split(X, names))
    model = MKLClassifierCV(Cs=CS, cv=3, scoring=less_hinge, **PLAIN)
    model.fit(X, names, sample_weight=weights)
    expected = by_a_loop(X, names, folds, weights=weights)
    np.testing.assert_allclose(of_folds(model), expected, rtol=0.02, atol=5e-3)
    assert CS[int(expected.mean(axis=1).argmax())] == model.C_


def test_one_kernel_is_the_machine_of_scikit_learn(wdbc):
    X, y = wdbc
    own = PLAIN | {"kernels": [Gaussian(widths=2.0)], "normalisation": "none"}
    folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    Cs = CS[1:]  # below, all dual variables are at their bounds, which leaves the intercept open
    model = MKLClassifierCV(
        Cs=Cs, cv=folds, scoring="balanced_accuracy", class_weight="balanced", **own
    ).fit(X, y)
    expected = np.empty((len(Cs), len(folds)))
    for c, C in enumerate(Cs):
        for f, (train, test) in enumerate(folds):
            svc = SVC(C=C, gamma=1 / 8, tol=1e-6, class_weight="balanced").fit(X[train], y[train])
            expected[c, f] = balanced_accuracy_score(y[test], svc.predict(X[test]))
    np.testing.assert_allclose(of_folds(model), expected, atol=1e-9)


def test_there_are_no_more_folds_than_groups(wdbc):
    X, y = wdbc[0][:60], wdbc[1][:60]
    model = MKLClassifierCV(Cs=[1.0], kernels=[Linear()]).fit(X, y, groups=np.repeat([0, 1], 30))
    assert "split1_test_score" in model.cv_results_
    assert "split2_test_score" not in model.cv_results_


@pytest.mark.slow
def test_groups_of_rows_stay_together(wdbc):
    X, y = wdbc
    groups = np.repeat(np.arange(25), 4)
    score = {"scoring": "roc_auc", "Cs": CS, **PLAIN}
    by_default = MKLClassifierCV(**score).fit(X, y, groups=groups)
    folds = list(StratifiedGroupKFold(3).split(X, y, groups))
    np.testing.assert_array_equal(
        of_folds(by_default), of_folds(MKLClassifierCV(cv=folds, **score).fit(X, y))
    )
    asked = MKLClassifierCV(cv=GroupKFold(3), **score).fit(X, y, groups=groups)
    folds = list(GroupKFold(3).split(X, y, groups))
    np.testing.assert_array_equal(
        of_folds(asked), of_folds(MKLClassifierCV(cv=folds, **score).fit(X, y))
    )


def test_few_rows_of_a_class_make_few_folds(wdbc):
    X, y = wdbc
    rows = np.concatenate([np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[:2]])
    model = MKLClassifierCV(Cs=CS, **PLAIN).fit(X[rows], y[rows])
    assert of_folds(model).shape == (len(CS), 2)


def test_mistakes(wdbc):
    with pytest.raises(SpecError):
        MKLClassifierCV(scoring="neg_log_loss", **PLAIN).fit(*wdbc)
    X, y = wdbc
    with pytest.raises(SpecError, match="easymkl"):
        MKLClassifierCV("easymkl").fit(X, y)
    with pytest.raises(SpecError, match="Cs"):
        MKLClassifierCV(Cs=[1.0, -1.0]).fit(X, y)
    first = [(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]
    with pytest.raises(DataError, match="fold 0"):
        MKLClassifierCV(cv=first).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n_solutions"), [("level", 1), ("spicymkl", 3)])
def test_classes_share_weights_where_the_method_can(method, n_solutions):
    X, y = (part[::5] for part in load_iris(return_X_y=True))
    model = MKLClassifierCV(method, Cs=CS, cv=2, kernels=KERNELS).fit(X, y)
    assert len(model.solutions_) == n_solutions
