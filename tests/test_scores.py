"""Scores against scikit-learn on random values, and where scikit-learn has no score."""

import math

import numpy as np
import pytest
from sklearn import metrics
from sklearn.dummy import DummyClassifier

from mkldist.calibration import best_threshold
from mkldist.core.metrics import metrics_of
from mkldist.scores import (
    constant_answers,
    constant_score,
    log_odds_scores,
    multiclass_scores,
    part_scores,
    pooled_scores,
    predicted_classes,
    probability_scores,
    regression_scores,
    score_over_folds,
    two_class_scores,
)

SEEDS = range(20)


def tied_values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return values of which many are equal, some of them 0."""
    return np.round(rng.normal(size=shape), 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_two_classes_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    values, y = tied_values(rng, n), np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    predicted = np.where(values >= 0, 1.0, -1.0)
    found, of_classes = two_class_scores(values, y)
    assert found == {
        "test_error": pytest.approx(1.0 - metrics.accuracy_score(y, predicted)),
        "balanced_error": pytest.approx(1.0 - metrics.balanced_accuracy_score(y, predicted)),
        "auc": pytest.approx(metrics.roc_auc_score(y, values)),
        "average_precision": pytest.approx(metrics.average_precision_score(y, values)),
        "f1": pytest.approx(metrics.f1_score(y, predicted)),
        "mcc": pytest.approx(metrics.matthews_corrcoef(y, predicted)),
        "sensitivity": pytest.approx(metrics.recall_score(y, predicted)),
        "specificity": pytest.approx(metrics.recall_score(y, predicted, pos_label=-1.0)),
    }
    np.testing.assert_array_equal(of_classes["confusion"], metrics.confusion_matrix(y, predicted))
    errors = 1.0 - metrics.recall_score(y, predicted, average=None)
    np.testing.assert_allclose(of_classes["class_error"], errors, atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_many_classes_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    values, numbers = tied_values(rng, 4, 50), np.arange(50) % 4
    order = rng.permutation(4)
    found, of_classes = multiclass_scores(values, numbers, order)
    predicted = predicted_classes(values, order)
    members = [numbers == c for c in range(4)]
    aucs = [metrics.roc_auc_score(own, f) for own, f in zip(members, values, strict=True)]
    precisions = map(metrics.average_precision_score, members, values)
    assert found == {
        "test_error": pytest.approx(1.0 - metrics.accuracy_score(numbers, predicted)),
        "balanced_error": pytest.approx(1.0 - metrics.balanced_accuracy_score(numbers, predicted)),
        "auc": pytest.approx(np.mean(aucs)),
        "average_precision": pytest.approx(np.mean(list(precisions))),
        "f1": pytest.approx(metrics.f1_score(numbers, predicted, average="macro")),
        "mcc": pytest.approx(metrics.matthews_corrcoef(numbers, predicted)),
    }
    recalls = metrics.recall_score(numbers, predicted, average=None)
    np.testing.assert_allclose(of_classes["class_error"], 1.0 - recalls, atol=1e-15)
    confusion = metrics.confusion_matrix(numbers, predicted)
    np.testing.assert_array_equal(of_classes["confusion"], confusion)


def test_the_log_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    log_odds, y = 5.0 * rng.normal(size=40), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    expected = metrics.log_loss(y, 1.0 / (1.0 + np.exp(-log_odds)))
    found = log_odds_scores(log_odds, y)
    assert found["log_loss"] == pytest.approx(expected)
    brier = metrics.brier_score_loss(y, 1.0 / (1.0 + np.exp(-log_odds)))
    assert found["brier"] == pytest.approx(brier)
    assert log_odds_scores(np.array([1e4]), np.array([-1.0])) == {"log_loss": 1e4, "brier": 1.0}


@pytest.mark.parametrize("k", [2, 4])
def test_scores_of_probabilities_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(k)
    probabilities, numbers = rng.dirichlet(np.ones(k), 50), rng.integers(0, k, 50)
    numbers[:k] = np.arange(k)
    found = probability_scores(probabilities, numbers)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(numbers, probabilities))
    brier = metrics.brier_score_loss(numbers, probabilities, scale_by_half=True)
    assert found["brier"] == pytest.approx(brier)


@pytest.mark.parametrize("k", [2, 3])
def test_scores_of_folds_pool_predictions_and_average_ranks(k):
    rng = np.random.default_rng(k)
    folds = []
    for n in (20, 30, 25):
        values, numbers = rng.normal(size=(1 if k == 2 else k, n)), np.arange(n) % k
        predicted = (values[0] >= 0).astype(int) if k == 2 else values.argmax(axis=0)
        folds.append((values + 9.0 * len(folds), numbers, predicted))
    alone = (folds[0][0][:, :4], np.zeros(4, int), np.zeros(4, int))  # has no pair of classes
    found, of_classes = pooled_scores([*folds, alone], k)
    numbers, predicted = (np.concatenate([fold[i] for fold in (*folds, alone)]) for i in (1, 2))
    assert found["test_error"] == pytest.approx(1.0 - metrics.accuracy_score(numbers, predicted))
    average = "binary" if k == 2 else "macro"
    assert found["f1"] == pytest.approx(metrics.f1_score(numbers, predicted, average=average))
    confusion = metrics.confusion_matrix(numbers, predicted)
    np.testing.assert_array_equal(of_classes["confusion"], confusion)
    classes = [1] if k == 2 else range(k)

    def auc(values, own):
        return np.mean(
            [metrics.roc_auc_score(own == c, values[0 if k == 2 else c]) for c in classes]
        )

    of_all = np.concatenate([values for values, _, _ in (*folds, alone)], axis=1)
    assert found["auc"] == pytest.approx(auc(of_all, numbers))
    own = pooled_scores(folds, k)[0]["auc"]  # each fold has every class, and so an AUC of its own
    assert own == pytest.approx(np.mean([auc(values, one) for values, one, _ in folds]))


@pytest.mark.parametrize(
    ("name", "k", "score"),
    [
        ("auc", 2, lambda y, v, p: metrics.roc_auc_score(y, v[0])),
        (
            "auc",
            3,
            lambda y, v, p: np.mean([metrics.roc_auc_score(y == c, v[c]) for c in (0, 1, 2)]),
        ),
        ("average_precision", 2, lambda y, v, p: metrics.average_precision_score(y, v[0])),
        ("balanced_error", 3, lambda y, v, p: 1 - metrics.balanced_accuracy_score(y, p)),
        ("f1", 2, lambda y, v, p: metrics.f1_score(y, p)),
        ("f1", 3, lambda y, v, p: metrics.f1_score(y, p, average="macro")),
        ("r2", 0, lambda y, v, p: metrics.r2_score(y, v[0])),
    ],
)
def test_folds_are_scored_together_and_spread_as_the_jackknife(name, k, score):
    rng = np.random.default_rng(5)
    folds = np.sort(np.arange(24) % 8)
    values = tied_values(rng, k if k > 2 else 1, 24)
    y = rng.permutation(np.arange(24) % k) if k else rng.normal(size=24)
    predicted = values.argmax(axis=0) if k > 2 else (values[0] >= 0).astype(int)
    confusion = np.array([
        metrics.confusion_matrix(y[folds == f], predicted[folds == f], labels=range(k)) if k else []
        for f in range(8)
    ])  # fmt: skip
    found = score_over_folds(name, values, y, folds, k, confusion)
    assert found.mean() == pytest.approx(score(y, values, predicted))
    without = [
        score(y[kept], values[:, kept], predicted[kept])
        for kept in (folds != fold for fold in range(8))
    ]
    assert found.std() == pytest.approx(7 * np.std(without))


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_a_regression_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n, unit = int(rng.integers(2, 60)), 10.0 ** rng.uniform(-6, 6)
    y = unit * rng.normal(size=n)
    values = y + unit * rng.normal(size=n)
    assert regression_scores(values, y) == {
        "rmse": pytest.approx(metrics.root_mean_squared_error(y, values), rel=1e-12),
        "mae": pytest.approx(metrics.mean_absolute_error(y, values), rel=1e-12),
        "r2": pytest.approx(metrics.r2_score(y, values), rel=1e-9),
    }


def test_a_tie_goes_to_the_first_class_in_order():
    values = np.array([[0.0, 1.0], [0.0, 2.0], [-1.0, 2.0]])
    assert predicted_classes(values, np.array([1, 2, 0])).tolist() == [1, 1]
    assert predicted_classes(values, np.array([2, 0, 1])).tolist() == [0, 2]


@pytest.mark.parametrize(("label", "missing", "given"), [(1.0, 0, 1), (-1.0, 1, 0)])
def test_one_class_alone_has_no_scores_that_need_both(label, missing, given):
    values, y = np.array([1.0, -3.0]), np.full(2, label)
    one, of_classes = two_class_scores(values, y)
    assert one["test_error"] == of_classes["class_error"][given] == 0.5
    assert one["mcc"] == metrics.matthews_corrcoef(y, np.sign(values)) == 0.0
    names = ("specificity", "sensitivity")
    assert one[names[given]] == 0.5
    undefined = ("balanced_error", "auc", names[missing])
    assert all(math.isnan(one[name]) for name in undefined)
    assert math.isnan(of_classes["class_error"][missing])
    assert math.isnan(one["average_precision"]) == (label < 0)


def test_a_class_that_is_neither_there_nor_predicted_has_no_f1():
    found, _ = two_class_scores(np.array([-1.0, -2.0]), np.array([-1.0, -1.0]))
    assert math.isnan(found["f1"])
    assert found["test_error"] == 0.0


def test_a_class_without_points_has_no_error():
    values = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    found, of_classes = multiclass_scores(values, np.array([0, 0]), np.arange(3))
    assert found["test_error"] == 0.5
    assert math.isnan(found["balanced_error"])
    np.testing.assert_array_equal(of_classes["class_error"], [0.5, np.nan, np.nan])


@pytest.mark.parametrize("y", [[2.0, 2.0], [0.1] * 10, [7.0], [1e-200, 2e-200]])
def test_labels_that_do_not_vary_have_no_explained_variance(y):
    found = regression_scores(np.array(y) + 1.0, np.array(y))
    assert found["rmse"] == found["mae"] == pytest.approx(1.0)
    assert math.isnan(found["r2"])


def test_values_that_are_not_finite_have_no_error_in_units():
    with pytest.raises(ValueError, match="not finite"):
        regression_scores(np.array([1.0, np.inf]), np.array([1.0, 2.0]))


def test_scores_of_another_part_carry_its_name():
    found = {"test_error": 0.5, "class_error": 0.25}
    assert part_scores(found, "test") == found
    other = {"unlabelled_error": 0.5, "unlabelled_class_error": 0.25}
    assert part_scores(found, "unlabelled") == other


@pytest.mark.parametrize("strategy", ["most_frequent", "prior"])
def test_a_constant_prediction_scores_what_the_dummy_of_scikit_learn_does(strategy):
    rng = np.random.default_rng(3)
    for k in (2, 3):
        train, test = np.minimum(rng.integers(0, k + 2, 60), k - 1), np.arange(40) % k
        dummy = DummyClassifier(strategy=strategy).fit(np.zeros((60, 1)), train)
        guess = dummy.predict(np.zeros((40, 1)))
        expected = {
            "error": 1.0 - metrics.accuracy_score(test, guess),
            "balanced_error": 1.0 - metrics.balanced_accuracy_score(test, guess),
            "auc": 0.5,
        }
        if strategy == "prior":
            shares = dummy.predict_proba(np.zeros((40, 1)))
            expected = {
                "log_loss": metrics.log_loss(test, shares, labels=range(k)),
                "brier": metrics.brier_score_loss(
                    test, shares, labels=range(k), scale_by_half=True
                ),
            }
        elif k == 2:
            always = np.ones(40)
            expected["f1"] = metrics.f1_score(test, always)
            expected["average_precision"] = metrics.average_precision_score(test, np.zeros(40))
        else:
            expected["f1"] = metrics.f1_score(test, guess, average="macro")
        for name, value in expected.items():
            assert constant_score(name, constant_answers(train, k), test, k) == pytest.approx(
                value
            ), name


def test_a_constant_value_is_the_mean_or_the_median():
    answers, test = constant_answers(np.array([0.0, 1.0, 5.0]), 0), np.array([1.0, 3.0])
    assert constant_score("rmse", answers, test, 0) == pytest.approx(1.0)
    assert constant_score("mae", answers, test, 0) == pytest.approx(1.0)
    assert constant_score("r2", answers, test, 0) == 0.0


@pytest.mark.parametrize("metric", metrics_of("classification"), ids=lambda metric: metric.name)
def test_every_metric_of_classes_has_what_sweeps_and_models_need(metric):
    rng = np.random.default_rng(0)
    values, numbers, folds = tied_values(rng, 1, 40), rng.integers(2, size=40), np.arange(40) % 4
    answers = constant_answers(numbers, 2)
    assert 0.0 < metric.loss(constant_score(metric.name, answers, numbers, 2)) <= metric.most
    if metric.contrasts:
        counts = np.array([
            metrics.confusion_matrix(numbers[folds == fold], values[0, folds == fold] >= 0)
            for fold in range(4)
        ])  # fmt: skip
        of_folds = score_over_folds(metric.name, values, numbers, folds, 2, counts)
        assert np.isfinite(of_folds).all()
    threshold = best_threshold(values[0], 2.0 * numbers - 1.0, metric.name)
    if not metric.by_confusion:
        assert threshold == 0.0
        return

    def loss(at: float) -> float:
        predicted = (values[0] >= at).astype(np.intp)
        return metric.loss(pooled_scores([(values, numbers, predicted)], 2)[0][metric.variable()])

    assert loss(threshold) == pytest.approx(min(map(loss, np.linspace(-9.0, 9.0, 3601))))


@pytest.mark.parametrize("metric", metrics_of("regression"), ids=lambda metric: metric.name)
def test_every_metric_of_values_has_what_sweeps_need(metric):
    values, y = np.random.default_rng(0).normal(size=(2, 40))
    folds = np.arange(40) % 4
    assert metric.loss(constant_score(metric.name, constant_answers(y, 0), y, 0)) <= metric.most
    of_folds = score_over_folds(metric.name, values[None], y, folds, 0, np.zeros((4, 0, 0)))
    assert np.isfinite(of_folds).all()
