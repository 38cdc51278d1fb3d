"""Classifiers: against SVC and loops over C, with weights of rows, calibration, mistakes."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.metrics import balanced_accuracy_score, hinge_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mkldist
from mkldist import MKLClassifier, MKLClassifierCV, SemiSupervisedMKLClassifier
from mkldist.errors import ConvergenceWarning, DataError, SpecError
from mkldist.fit.estimators import BANKS
from mkldist.kernels import Gaussian, Linear

PLAIN = {"normalisation": "none", "impute": None, "scale": None}


@pytest.fixture(scope="module")
def wdbc():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:240], y[:240]


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("method", ["level", "simplemkl", "lp_mkl", "uniform"])
def test_one_kernel_is_the_machine_of_scikit_learn(method, C, wdbc):
    X, y = StandardScaler().fit_transform(wdbc[0]), wdbc[1]
    train, test = slice(0, 180), slice(180, None)
    model = MKLClassifier(method, C=C, kernels=[Gaussian(widths=4.0)], tol=1e-7, **PLAIN)
    model.fit(X[train], y[train])
    gamma = 1 / (2 * 4.0**2)
    svc = SVC(C=C, kernel="precomputed", tol=1e-8).fit(rbf_kernel(X[train], gamma=gamma), y[train])
    cross = rbf_kernel(X[test], X[train], gamma=gamma)
    found, expected = model.decision_function(X[test]), svc.decision_function(cross)
    assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()
    np.testing.assert_array_equal(model.predict(X[test]), svc.predict(cross))


def test_weights_of_rows_and_classes_are_those_of_scikit_learn(wdbc):
    X, y = StandardScaler().fit_transform(wdbc[0]), wdbc[1]
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weights[::7] = 0.0
    classes = {0: 3.0, 1: 0.5}
    model = MKLClassifier(
        kernels=[Gaussian(widths=4.0)], tol=1e-7, class_weight=classes, **PLAIN
    ).fit(X, y, sample_weight=weights)
    svc = SVC(gamma=1 / 32, tol=1e-8, class_weight=classes).fit(X, y, weights)
    expected = svc.decision_function(X)
    assert np.abs(model.decision_function(X) - expected).max() <= 1e-3 * np.abs(expected).max()
    assert model.gap_ <= 1e-7


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [3, 7], [0.0, 1.0]])
def test_labels_are_of_any_type(names, wdbc):
    X, y = wdbc
    labels = np.array(names)[y]
    model = MKLClassifier().fit(X, labels)
    assert model.classes_.tolist() == names
    np.testing.assert_array_equal(model.predict(X) == names[1], model.decision_function(X) > 0)


@pytest.mark.slow
def test_the_bank_of_a_split_is_made_once_in_a_search(monkeypatch, wdbc):
    made = []

    class Counted(mkldist.KernelBank):
        def __init__(self, X, *args, **settings):
            made.append(X.n_points)
            super().__init__(X, *args, **settings)

    monkeypatch.setattr("mkldist.fit.bank.KernelBank", Counted)
    BANKS.clear()
    grid = {"C": [0.1, 1.0, 10.0], "method": ["level", "uniform", "alignf"]}
    search = GridSearchCV(MKLClassifier(), grid, cv=4).fit(*wdbc)
    assert len(search.cv_results_["params"]) == 9
    assert sorted(made) == [180] * 4 + [240]


def test_C_means_the_same_at_any_number_of_rows():
    """A point repeated weighs twice; values of kernels stay as they are."""
    X, y = make_moons(100, noise=0.2, random_state=0)
    twice = np.repeat(np.arange(100), 2)
    one = MKLClassifier(C=2.0, tol=1e-8).fit(X, y)
    two = MKLClassifier(C=1.0, tol=1e-8).fit(X[twice], y[twice])
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-7)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-3)


def test_groups_and_columns_are_named_in_kernels():
    X, y = load_wine(as_frame=True, return_X_y=True)
    model = MKLClassifier(
        kernels=[Gaussian(widths=1.0, features=["ash", "colour"]), Linear(features="each")],
        groups={"colour": ["color_intensity", "hue"]},
    ).fit(X, y)
    features = model.kernel_weights_["features"]
    assert {"colour", "ash"} < set(features)
    shares = model.contributions(X, by="features")
    assert set(shares.columns.get_level_values("part")) <= {*features, "intercept"}


CALIBRATED = MKLClassifier(
    calibration="sigmoid", kernels=[Gaussian(widths=3.0)], impute=None, scale=None, tol=1e-6
)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("names", [(0, 1), ("a", "b")], ids=str)
def test_probabilities_are_those_of_scikit_learn(names, method, wdbc):
    X, y = StandardScaler().fit_transform(wdbc[0]), wdbc[1]
    y = np.array(names)[(y[:150] == y[0]).astype(int)]
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = clone(CALIBRATED).set_params(calibration=method).fit(X[:150], y, weights)
    plain = clone(CALIBRATED).set_params(calibration=None)
    other = CalibratedClassifierCV(plain, method=method, ensemble=False, cv=5)
    expected = other.fit(X[:150], y, sample_weight=weights).predict_proba(X)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert (model.predict(X) == model.classes_[found.argmax(axis=1)]).all()
    kept = model.to_model()
    np.testing.assert_allclose(kept.predict_proba(X), found, rtol=1e-9)
    assert (kept.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("several", [False, True])
def test_classes_that_weigh_more_are_predicted_from_smaller_probabilities(several, wdbc):
    X, y = load_iris(return_X_y=True) if several else wdbc
    X, names = StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]
    of_classes = {"a": 1.0, "b": 4.0, **({"c": 2.0} if several else {})}
    model = clone(CALIBRATED).set_params(class_weight=of_classes).fit(X, names)
    found = model.predict_proba(X)
    weighted = found * [of_classes[name] for name in model.classes_]
    assert (model.predict(X) == model.classes_[weighted.argmax(axis=1)]).all()
    assert (model.to_model().predict(X) == model.predict(X)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_path_gives_the_probabilities_of_its_best_value(wdbc):
    X, y = StandardScaler().fit_transform(wdbc[0]), wdbc[1]
    settings = {k: v for k, v in CALIBRATED.get_params().items() if k != "C"}
    groups = np.repeat(np.arange(60), 4)
    path = settings | {"Cs": [0.1, 1.0], "cv": 5, "tol": 1e-3}
    model = MKLClassifierCV(**path).fit(X, y, groups=groups)
    single = MKLClassifier(**settings | {"C": model.C_, "tol": 1e-2}).fit(X, y, groups=groups)
    np.testing.assert_allclose(model.predict_proba(X), single.predict_proba(X), atol=0.02)
    apart = MKLClassifier(**settings | {"C": model.C_, "tol": 1e-2}).fit(X, y)
    assert np.abs(single.predict_proba(X) - apart.predict_proba(X)).max() > 1e-4


def test_rows_of_weight_zero_are_not_calibrated_on(wdbc):
    X, y = wdbc
    weights = np.r_[np.ones(100), np.zeros(20)]
    model = MKLClassifier(calibration="sigmoid", kernels=[Gaussian(widths=1.0)])
    y = np.where(weights > 0, y[:120].astype(str), "none")
    found = clone(model).fit(X[:120], y, sample_weight=weights).predict_proba(X[:5])
    few = clone(model).fit(X[:100], y[:100], sample_weight=weights[:100]).predict_proba(X[:5])
    np.testing.assert_allclose(found, few, rtol=1e-12)


def test_inner_folds_know_the_names_of_features(wdbc):
    X, y = wdbc
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    named = MKLClassifier(calibration="sigmoid", kernels=[Gaussian(widths=1.0, features="f3")])
    assert named.fit(frame, y).predict_proba(frame).shape == (240, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "levl"}, "method: found 'levl'.*Did you mean 'level'"),
        ({"method": "lapmkl"}, "'lapmkl', which learns two classes from partly labelled points"),
        ({"C": -1.0}, r"C: found -1.0; expected a finite number above 0"),
        ({"method": "easymkl", "C": 2.0}, "C: found 2.0 for easymkl, which has no C"),
        ({"kernels": "xu2009"}, "kernels: found 'xu2009'.*'default'.*Did you mean 'xu2008'"),
        ({"kernels": [Gaussian(widths=-1.0)]}, "widths"),
        ({"normalisation": "trase"}, "normalisation"),
        ({"impute": "medain"}, "impute: found 'medain'.*Did you mean 'median'"),
        ({"scale": 3}, "scale: found 3; expected one of zscore, minmax, or None"),
        ({"method_params": {"max_itr": 3}}, "max_itr.*max_iter"),
        ({"method_params": 3}, "method_params: found 3"),
        ({"calibration": "platt"}, "calibration: found 'platt'"),
        ({"random_state": None}, "random_state: found None; expected a whole number"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "class_weight: found"),
        ({"class_weight": {7: 2.0}}, "class_weight: found {7: 2.0}; expected .*of 0, 1, 2"),
        ({"class_weight": "balance"}, "class_weight: found 'balance'; expected 'balanced', None"),
        ({"method": "gmkl", "shared_weights": True}, "shared_weights: found True for gmkl"),
        ({"method": "skm", "class_weight": "balanced"}, "weights for skm.*level"),
    ],
)
def test_a_mistake_is_a_value_error_that_says_what_to_do(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        MKLClassifier(**settings).fit(X[:148], y[:148])


@pytest.mark.parametrize("groups", [None, np.arange(41) % 20])
def test_folds_need_two_rows_or_groups_of_a_class(groups, wdbc):
    X, y = wdbc[0][:41], np.r_[np.zeros(40), 1.0]
    message = f"y: found class 1.0 in one {'row' if groups is None else 'group'}.*calibration=None"
    with pytest.raises(ValueError, match=message):
        MKLClassifier(calibration="sigmoid").fit(X, y, groups=groups)


def test_one_class_is_refused_by_name(wdbc):
    with pytest.raises(ValueError, match="y: found one class, 1; expected two classes or more"):
        MKLClassifier().fit(wdbc[0], np.ones(240, dtype=int))


def test_an_early_stop_is_told_and_kept(wdbc):
    model = MKLClassifier(tol=1e-8, method_params={"max_iter": 1})
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(*wdbc)
    assert model.stop_reason_ == "max_iter"
    assert model.gap_ > 1e-8


def data_sets():
    yield "iris", *load_iris(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    yield "wdbc", *load_breast_cancer(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    yield "digits", X[:600], y[:600]
    yield "moons", *make_moons(300, noise=0.25, random_state=0)
    yield "made", *make_classification(300, 20, n_informative=4, random_state=1)


@pytest.mark.slow
def test_without_a_parameter_it_is_no_worse_than_svc():
    """Less than one standard error worse anywhere, and better on average."""
    gains = {}
    for name, X, y in data_sets():
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        ours, theirs = (cross_val_score(m, X, y, cv=folds) for m in (MKLClassifier(), SVC()))
        gains[name] = float(ours.mean() - theirs.mean())
        error = np.sqrt(max(theirs.mean() * (1 - theirs.mean()), 1e-3) / len(y))
        assert gains[name] > -error, (gains, error)
    assert np.mean(list(gains.values())) > 0.02, gains


@pytest.mark.parametrize(
    "kernels", [[mkldist.kernels.Precomputed(np.eye(4))], np.eye(4), np.eye(4)[None], [np.eye(4)]]
)
def test_given_matrices_are_refused_since_rows_are_divided(kernels):
    model = mkldist.MKLClassifier(kernels=kernels)
    said = "kernels: found (Precomputed|an array) in an estimator, whose rows scikit.*Give the numb"
    with pytest.raises(SpecError, match=said):
        model.fit(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("kernels", "said"),
    [("precomputed", "Give the numbers of rows as X"), (5, "found 5; expected a list of kernels")],
)
def test_other_words_for_kernels_are_refused(kernels, said):
    with pytest.raises(SpecError, match=f"kernels: .*{said}"):
        mkldist.MKLClassifier(kernels=kernels).fit(np.eye(4), [0, 1, 0, 1])


def test_probabilities_without_calibration_are_told_how_to_be_had():
    with pytest.raises(AttributeError) as caught:
        MKLClassifier().predict_proba([[0.0]])
    said = "predict_proba: found calibration=None.*expected 'sigmoid' or 'isotonic'. Make the"
    assert re.match(said, str(caught.value))
    assert "calibrated probabilities" in MKLClassifier.predict_proba.__doc__


@pytest.fixture(params=[MKLClassifier, SemiSupervisedMKLClassifier])
def classifier(request):
    return request.param()


def test_the_second_of_two_classes_has_positive_values_alone(classifier):
    numbers = classifier._learn_classes(np.array(["no", "yes", "no"]))
    assert numbers.tolist() == [0, 1, 0]
    predicted = classifier._predicted(np.array([[-2.0], [0.0], [1e-300]]))
    assert predicted.tolist() == ["no", "no", "yes"]
    assert classifier._function_names is None


def test_ties_of_several_classes_go_to_the_most_frequent_one(classifier):
    classifier._learn_classes(np.array([7, 5, 7, 9, 9, 9]))
    values = [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [3.0, 2.0, 2.0]]
    assert classifier._predicted(np.array(values)).tolist() == [9, 7, 9, 5]
    assert classifier._function_names == [5, 7, 9]


CS = [0.02, 0.3, 5.0]
KERNELS = [Gaussian(widths=[1.0, 4.0]), Linear()]
PLAIN_PATH = {"kernels": KERNELS, "impute": None, "scale": None, "tol": 1e-4}


@pytest.fixture(scope="module")
def wdbc_path():
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
            model = MKLClassifier(method, C=C, **PLAIN_PATH).fit(X[train], y[train], own)
            found[c, f] = less_hinge(model, X[test], y[test], out)
    return found


def of_folds(model):
    n = sum(name.startswith("split") for name in model.cv_results_)
    return np.column_stack([model.cv_results_[f"split{f}_test_score"] for f in range(n)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["level", "lp_mkl", "uniform"])
def test_scores_of_folds_are_those_of_fits_apart(method, wdbc_path):
    X, y = wdbc_path
    model = MKLClassifierCV(method, Cs=CS, scoring=less_hinge, **PLAIN_PATH).fit(X, y)
    folds = list(StratifiedKFold(3).split(X, y))
    expected = by_a_loop(X, y, folds, method)
    np.testing.assert_allclose(of_folds(model), expected, rtol=0.02, atol=5e-3)
    means = expected.mean(axis=1)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], means, atol=5e-3)
    assert CS[int(means.argmax())] == model.C_
    alone = MKLClassifier(method, C=model.C_, **PLAIN_PATH).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("Cs", "nearest"), [([0.1, 3.0, 0.5, 2.5], 0.5), ([3.0, 1.0, 0.3], 1.0)])
def test_of_equal_scores_the_c_nearest_to_one_is_chosen(wdbc_path, Cs, nearest):
    model = MKLClassifierCV(Cs=Cs, scoring=lambda model, X, y: 0.5, **PLAIN_PATH).fit(*wdbc_path)
    assert nearest == model.C_


@pytest.mark.slow
def test_several_classes_and_weights():
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    X, names = StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    folds = list(StratifiedKFold(3).split(X, names))
    model = MKLClassifierCV(Cs=CS, cv=3, scoring=less_hinge, **PLAIN_PATH)
    model.fit(X, names, sample_weight=weights)
    expected = by_a_loop(X, names, folds, weights=weights)
    np.testing.assert_allclose(of_folds(model), expected, rtol=0.02, atol=5e-3)
    assert CS[int(expected.mean(axis=1).argmax())] == model.C_


def test_one_kernel_is_the_machine_of_scikit_learn_path(wdbc_path):
    X, y = wdbc_path
    own = PLAIN_PATH | {"kernels": [Gaussian(widths=2.0)], "normalisation": "none"}
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


def test_there_are_no_more_folds_than_groups(wdbc_path):
    X, y = wdbc_path[0][:60], wdbc_path[1][:60]
    model = MKLClassifierCV(Cs=[1.0], kernels=[Linear()]).fit(X, y, groups=np.repeat([0, 1], 30))
    assert "split1_test_score" in model.cv_results_
    assert "split2_test_score" not in model.cv_results_


@pytest.mark.slow
def test_groups_of_rows_stay_together(wdbc_path):
    X, y = wdbc_path
    groups = np.repeat(np.arange(25), 4)
    score = {"scoring": "roc_auc", "Cs": CS, **PLAIN_PATH}
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


@pytest.mark.parametrize(
    "groups", [np.arange(59), np.arange(60)[:, None], [None, *range(59)], [np.nan, *range(59)]]
)
def test_each_row_needs_a_group(wdbc_path, groups):
    X, y = wdbc_path[0][:60], wdbc_path[1][:60]
    with pytest.raises(DataError) as caught:
        MKLClassifierCV(Cs=[1.0], kernels=[Linear()]).fit(X, y, groups=groups)
    assert caught.value.where == "groups"


def test_few_rows_of_a_class_make_few_folds(wdbc_path):
    X, y = wdbc_path
    rows = np.concatenate([np.flatnonzero(y == 0)[:20], np.flatnonzero(y == 1)[:2]])
    model = MKLClassifierCV(Cs=CS, **PLAIN_PATH).fit(X[rows], y[rows])
    assert of_folds(model).shape == (len(CS), 2)


def test_mistakes(wdbc_path):
    with pytest.raises(SpecError):
        MKLClassifierCV(scoring="neg_log_loss", **PLAIN_PATH).fit(*wdbc_path)
    X, y = wdbc_path
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


X, Y = load_iris(return_X_y=True)


def test_the_bank_and_each_class_are_told(capsys):
    BANKS.clear()
    model = mkldist.MKLClassifier(verbose=True, shared_weights=False).fit(X, Y)
    said = capsys.readouterr().out
    assert "[MKLClassifier] makes the kernels of 149 different rows and 4 features" in said
    assert "[MKLClassifier] 7 kernels on 149 points, 0.7 MiB of float64, memory" in said
    for number, solution in enumerate(model.solutions_):
        assert f"[MKLClassifier] class {number} against the rest, {number + 1} of 3" in said
        assert f"[level] converged at {solution.objective:.6g}, " in said


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (mkldist.MKLRegressor(verbose=1), "primalmkl"),
        (mkldist.OneClassMKL(verbose=1), "primalmkl"),
        (mkldist.SemiSupervisedMKLClassifier(verbose=1), "lapmkl"),
        (mkldist.MKLClassifier(verbose=1, shared_weights=True), "level"),
    ],
    ids=str,
)
def test_every_estimator_tells_how_its_solver_ended(model, method, capsys):
    model.fit(X, Y)
    said = capsys.readouterr().out
    assert f"[{type(model).__name__}] " in said
    assert f"[{method}] converged at " in said


def test_it_is_silent_unless_asked(capsys):
    mkldist.MKLClassifier().fit(X, Y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["weights", "verbose", "laplacian"])
def test_arguments_of_solve_are_no_parameters_of_a_method(name):
    model = mkldist.MKLClassifier(method_params={name: np.ones(150)})
    with pytest.raises(ValueError, match=rf"level\.{name}: found an unknown parameter"):
        model.fit(X, Y)
