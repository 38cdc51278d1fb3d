"""Uniform weights, best single kernel and majority class against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.svm import SVC

from mkldist.solvers.cross_validation import stratified_folds
from mkldist.solvers.registry import METHODS
from tests.solvers import instances, plain_bank


def solve(name, grams, y, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams)


def test_uniform_is_the_machine_on_the_mean_kernel():
    instance = instances.more_kernels_than_points()
    K = instance.grams.mean(axis=0)
    solution = solve("uniform", instance.grams, instance.y, C=20.0, tol=1e-9)
    reference = SVC(C=20.0, kernel="precomputed", tol=1e-8).fit(K, instance.y)
    np.testing.assert_allclose(
        solution.decision_function(instance.grams), reference.decision_function(K), atol=1e-4
    )
    assert (solution.kernel_weights == 1 / len(instance.grams)).all()


def test_best_single_finds_the_kernel_that_separates():
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], 15)
    noise = [np.exp(-((x[:, None] - x) ** 2)) for x in rng.normal(size=(20, 30))]
    signal = np.outer(y, y) + np.eye(30)
    grams = np.array([*noise[:17], signal, *noise[17:]])
    solution = solve("best_single", grams, y, C=10.0)
    assert solution.active().tolist() == [17]
    assert solution.extra == {"chosen_kernel": 17.0, "cv_error": 0.0}
    assert solution.gap <= 0.01


def test_best_single_scores_every_kernel_as_a_loop_over_scikit_learn_does():
    instance = instances.balanced()
    y, C, grams = instance.y, 10.0, instance.grams
    errors = []
    for K in grams:
        wrong = 0
        for held_out in stratified_folds(y, 5):
            kept = ~held_out
            svc = SVC(C=C, kernel="precomputed").fit(K[np.ix_(kept, kept)], y[kept])
            wrong += (svc.predict(K[np.ix_(held_out, kept)]) != y[held_out]).sum()
        errors.append(wrong / len(y))
    solution = solve("best_single", grams, y, C=C)
    chosen = int(solution.extra["chosen_kernel"])
    assert errors[chosen] == pytest.approx(min(errors), abs=0.02)
    assert solution.extra["cv_error"] == pytest.approx(errors[chosen], abs=0.02)


def test_folds_are_stratified_and_cover_every_point_once():
    y = np.array([1.0] * 23 + [-1.0] * 7)
    folds = stratified_folds(y, 5)
    assert np.sum(folds, axis=0).tolist() == [1] * 30
    assert {int((y[fold] < 0).sum()) for fold in folds} == {1, 2}
    assert len(stratified_folds(np.array([1.0, 1.0, -1.0, -1.0]), 5)) == 2


def test_best_single_with_one_point_of_a_class_still_answers():
    y = np.array([1.0, -1.0, -1.0])
    solution = solve("best_single", np.array([np.eye(3), 2 * np.eye(3)]), y, C=1.0)
    assert np.isfinite(solution.objective)


@pytest.mark.parametrize("positives", [3, 5, 8])
def test_majority_predicts_what_the_dummy_classifier_does(positives):
    y = np.where(np.arange(10) < positives, 1.0, -1.0)
    solution = solve("majority", np.ones((2, 10, 10)), y, C=2.0)
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((10, 1)), y)
    if positives != 5:
        assert np.sign(solution.bias) == dummy.predict(np.zeros((1, 1)))[0]
    assert solution.gap == 0.0
    assert solution.objective == 2 * 2.0 * min(positives, 10 - positives)
    assert solution.dual_variables @ y == pytest.approx(0)
    assert solution.dual_variables.sum() == pytest.approx(solution.dual_objective)
    assert solution.dual_variables.max() <= 2.0 + 1e-12
