"""Cross-validation, and `best_single` and `svm`, which choose by it, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.methods.single_kernel import cross_validate, stratified_folds
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.references.baselines import choice, cv_scores
from tests.variants import quick


def solve(name, grams, y, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams)


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


def test_every_kernel_is_scored_at_every_C_as_scikit_learn_scores_it():
    instance = instances.balanced()
    y, Cs, grams = instance.y, [1.0, 10.0, 100.0, 1000.0], instance.grams[:5]
    folds = stratified_folds(y, 5)
    expected = cv_scores(grams, y, Cs)
    for m, K in enumerate(grams):
        scores = cross_validate(K, y, Cs, folds, 1e-9, Counters())
        for C, score in zip(Cs, scores, strict=True):
            np.testing.assert_allclose(score, expected[m, C], atol=2e-3)
            assert score[0] == expected[m, C][0]


@pytest.mark.parametrize("make", quick([instances.balanced, instances.more_kernels_than_points]))
def test_svm_chooses_the_kernel_and_C_that_scikit_learn_chooses(make):
    instance = make()
    Cs = [1.0, 10.0, 100.0]
    solution = solve("svm", instance.grams, instance.y, C_min=1.0, C_max=100.0, C_num=3, tol=1e-8)
    kernel, C = choice(instance.grams, instance.y, Cs)
    scores = cv_scores(instance.grams[[kernel]], instance.y, [C])
    assert solution.extra == {
        "chosen_kernel": kernel,
        "chosen_C": pytest.approx(C),
        "cv_error": pytest.approx(scores[0, C][0]),
    }
    assert solution.active().tolist() == [kernel]


@pytest.mark.parametrize("kernel", [0, 4])
def test_svm_on_one_kernel_chooses_the_C_that_scikit_learn_chooses(kernel):
    instance = instances.balanced()
    settings = {"C_min": 1.0, "C_max": 100.0, "C_num": 3, "tol": 1e-8}
    solution = solve("svm", instance.grams, instance.y, kernel_number=kernel, **settings)
    _, C = choice(instance.grams[[kernel]], instance.y, [1.0, 10.0, 100.0])
    assert solution.extra["chosen_kernel"] == kernel
    assert solution.extra["chosen_C"] == pytest.approx(C)
    assert solution.active().tolist() == [kernel]


def test_svm_on_a_kernel_that_is_not_there_is_refused():
    instance = instances.balanced()
    with pytest.raises(SpecError, match="kernel_number: found 99; expected a number from 0 to"):
        solve("svm", instance.grams, instance.y, kernel_number=99)


def test_svm_with_one_C_is_best_single():
    instance = instances.balanced()
    one = solve("svm", instance.grams, instance.y, C_min=20.0, C_max=20.0)
    same = solve("best_single", instance.grams, instance.y, C=20.0)
    assert one.objective == same.objective
    assert one.extra == same.extra | {"chosen_C": 20.0}
    np.testing.assert_array_equal(one.coefficients, same.coefficients)


def test_ties_go_to_the_smallest_C_and_the_first_kernel():
    y = np.repeat([1.0, -1.0], 10)
    K = np.outer(y, y) + 0.01 * np.eye(20)
    solution = solve("svm", np.array([K, K, K]), y, C_min=1e3, C_max=1e5, C_num=3, tol=1e-8)
    assert (solution.extra["chosen_kernel"], solution.extra["chosen_C"]) == (0.0, 1e3)


@pytest.mark.parametrize("name", ["svm", "best_single"])
def test_a_choice_reads_every_kernel_once_and_the_chosen_one_again(name):
    instance = instances.balanced()
    asked = []
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(instance.grams, instance.y), method.params())
    solution = plain_bank.run(steps, instance.grams, lambda request, _: asked.append(request))
    for request in asked[:-1]:
        np.testing.assert_array_equal(request.weights, np.eye(len(request.kernels)))
    kernels = np.concatenate([request.kernels for request in asked[:-1]])
    np.testing.assert_array_equal(kernels, np.arange(len(instance.grams)))
    np.testing.assert_array_equal(asked[-1].weights, solution.kernel_weights)
    assert max(len(request.kernels) for request in asked[:-1]) <= 3
    counters = solution.counters
    assert (counters.passes, counters.combines) == (1, len(instance.grams) + 1)


def test_a_choice_without_time_is_made_among_the_kernels_scored():
    instance = instances.balanced()
    solution = solve("svm", instance.grams, instance.y, time_limit=1e-9)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.active().tolist() == [0]


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
