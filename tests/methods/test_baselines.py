"""Baselines: alignment, single kernels by cross-validation, fixed weights, EasyMKL."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.svm import SVC

from mkldist.bank.requests import Combine, Quadratic
from mkldist.errors import SpecError
from mkldist.methods.alignment import nonnegative_quadratic
from mkldist.methods.registry import METHODS
from mkldist.methods.single_kernel import cross_validate, stratified_folds
from mkldist.solvers.base import Counters, Solution
from mkldist.solvers.progress import StopReason
from tests.methods import instances
from tests.methods.plain_bank import solve
from tests.methods.references.baselines import choice, cv_scores, weights
from tests.variants import quick


def alignment(K: np.ndarray, L: np.ndarray) -> float:
    H = np.eye(len(K)) - 1 / len(K)
    K, L = H @ K @ H, H @ L @ H
    return (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))


def combined(grams: np.ndarray, solution: Solution) -> np.ndarray:
    return np.einsum("m,mij->ij", solution.kernel_weights, grams)


@instances.every_instance
def test_weights_are_proportional_to_the_alignments(make):
    instance = make()
    target = np.outer(instance.y, instance.y)
    rho = np.array([alignment(K, target) if K.any() else 0.0 for K in instance.grams])
    solution = solve("align", instance.grams, instance.y)
    np.testing.assert_allclose(solution.kernel_weights, rho / rho.sum(), rtol=1e-9)
    K = combined(instance.grams, solution)
    assert solution.extra["alignment"] == pytest.approx(alignment(K, target), rel=1e-9)


def test_a_kernel_that_is_aligned_against_the_labels_gets_no_weight():
    instance = instances.balanced()
    against = -np.outer(instance.y, instance.y)[None]
    solution = solve("align", np.concatenate([against, instance.grams]), instance.y)
    alone = solve("align", instance.grams, instance.y)
    np.testing.assert_allclose(solution.kernel_weights, [0.0, *alone.kernel_weights], rtol=1e-9)


@pytest.mark.parametrize("name", ["align", "alignf"])
@pytest.mark.parametrize("entry", [0.0, 0.1, 1.0])
def test_kernels_that_are_constant_get_no_weight(name, entry):
    instance = instances.balanced()
    n = len(instance.y)
    constant = np.full((2, n, n), entry)
    solution = solve(name, np.concatenate([constant, instance.grams]), instance.y)
    assert not solution.kernel_weights[:2].any()
    assert solution.kernel_weights[2:].all() or name == "alignf"
    alone = solve(name, constant, instance.y)
    assert alone.kernel_weights.tolist() == [0.5, 0.5]
    assert alone.extra["alignment"] == 0.0


def test_classes_share_the_alignment_with_all_of_them():
    instance = instances.balanced()
    y = np.column_stack([instance.y, np.where(np.arange(len(instance.y)) % 3 == 0, 1.0, -1.0)])
    rho = np.array([alignment(K, y @ y.T) for K in instance.grams])
    solution = solve("align", instance.grams, y)
    np.testing.assert_allclose(solution.kernel_weights, rho / rho.sum(), rtol=1e-9)


def test_kernels_are_read_once_and_a_few_at_a_time():
    instance, asked = instances.balanced(), []
    solution = solve("align", instance.grams, instance.y, lambda request, _: asked.append(request))
    *singles, last = asked
    assert all(isinstance(request, Combine) for request in asked)
    assert [request.kernels.tolist() for request in singles] == [[0, 1, 2], [3, 4, 5], [6]]
    assert last.kernels is None
    assert solution.counters.passes == METHODS["align"].typical_passes(len(instance.grams)) == 2


def test_without_time_the_kernels_that_were_read_are_weighted():
    instance = instances.balanced()
    solution = solve("align", instance.grams, instance.y, time_limit=1e-9)
    target = np.outer(instance.y, instance.y)
    rho = np.array([alignment(K, target) for K in instance.grams[:3]])
    assert solution.stop_reason is StopReason.TIME_LIMIT
    np.testing.assert_allclose(solution.kernel_weights[:3], rho / rho.sum(), rtol=1e-9)
    assert not solution.kernel_weights[3:].any()


def centred(grams):
    H = np.eye(grams.shape[-1]) - 1 / grams.shape[-1]
    return H @ grams @ H


def gram_of(instance):
    flat = centred(instance.grams).reshape(len(instance.grams), -1)
    return flat @ flat.T, flat @ centred(np.outer(instance.y, instance.y)).ravel()


@instances.every_instance
def test_the_alignment_reported_is_that_of_the_combination(make):
    instance = make()
    solution = solve("alignf", instance.grams, instance.y)
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    target = np.outer(instance.y, instance.y)
    assert solution.extra["alignment"] == pytest.approx(alignment(K, target), rel=1e-7)
    assert solution.kernel_weights.sum() == pytest.approx(1.0)
    assert solution.kernel_weights.min() >= 0.0
    singles = [alignment(k, target) for k in instance.grams if k.any()]
    assert solution.extra["alignment"] >= max(singles) - 1e-9


@pytest.mark.parametrize("make", [instances.balanced, instances.not_normalised])
def test_no_other_combination_is_better_aligned(make):
    instance = make()
    target = np.outer(instance.y, instance.y)
    lengths = np.linalg.norm(centred(instance.grams), axis=(1, 2))
    units = instance.grams / lengths[:, None, None]
    rng = np.random.default_rng(0)
    best = solve("alignf", instance.grams, instance.y).extra["alignment"]
    found = [
        -scipy.optimize.minimize(
            lambda v: -alignment(np.einsum("m,mij->ij", v, units), target),
            rng.uniform(0.1, 1, len(units)),
            bounds=[(0, None)] * len(units),
            method="L-BFGS-B",
        ).fun
        for _ in range(3)
    ]
    assert max(found) <= best + 1e-9
    assert max(found) == pytest.approx(best, rel=1e-3)


@instances.every_instance
@pytest.mark.parametrize("route", ["active set", "trust region"])
def test_weights_satisfy_the_first_order_conditions(make, route, monkeypatch):
    def cycle(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached.")

    if route == "trust region":
        monkeypatch.setattr(scipy.optimize, "nnls", cycle)
    M, a = gram_of(make())
    v = nonnegative_quadratic(M, a)
    lengths = np.sqrt(np.maximum(np.diagonal(M), 1e-300))
    slope = (M @ v - a) / lengths / np.sqrt(a @ a)
    accuracy = 1e-8 if route == "active set" else 1e-5
    assert v.min() >= 0.0
    assert slope.min() >= -accuracy * np.abs(a / lengths).max() / np.sqrt(a @ a)
    assert abs(v @ (M @ v - a)) <= accuracy * abs(v @ a)


def test_columns_are_asked_for_a_few_at_a_time():
    instance, asked = instances.balanced(), []
    solution = solve("alignf", instance.grams, instance.y, lambda request, _: asked.append(request))
    chunks = [len(request.matrices) for request in asked if hasattr(request, "matrices")]
    assert chunks == [3, 3, 1]
    assert solution.counters.passes == 1 + len(chunks)
    assert solution.counters.combines == len(instance.grams) + 1
    assert len(asked) == 1 + 2 * len(chunks) + 1


def test_without_time_the_kernels_that_were_compared_are_weighted():
    instance = instances.balanced()
    solution = solve("alignf", instance.grams, instance.y, time_limit=1e-9)
    few = solve("alignf", instance.grams[:3], instance.y)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    np.testing.assert_allclose(solution.kernel_weights[:3], few.kernel_weights, atol=1e-12)
    assert not solution.kernel_weights[3:].any()
    assert solution.extra["alignment"] == pytest.approx(few.extra["alignment"])


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_ties_go_to_the_smallest_C_and_the_first_kernel():
    y = np.repeat([1.0, -1.0], 10)
    K = np.outer(y, y) + 0.01 * np.eye(20)
    solution = solve("svm", np.array([K, K, K]), y, C_min=1e3, C_max=1e5, C_num=3, tol=1e-8)
    assert (solution.extra["chosen_kernel"], solution.extra["chosen_C"]) == (0.0, 1e3)


@pytest.mark.parametrize("name", ["svm", "best_single"])
def test_a_choice_reads_every_kernel_once_and_the_chosen_one_again(name):
    instance = instances.balanced()
    asked = []
    solution = solve(name, instance.grams, instance.y, lambda request, _: asked.append(request))
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


def test_folds_keep_groups_together():
    y, groups = np.tile([1.0, 1.0, -1.0], 10), np.repeat(np.arange(6), 5)
    folds = np.array(stratified_folds(y, 5, groups))
    assert folds.sum(axis=0).tolist() == [1] * 30
    for fold in folds:
        assert not set(groups[fold]) & set(groups[~fold])
    assert len(stratified_folds(y, 5, groups % 2)) == 2
    assert stratified_folds(y, 5, np.zeros(30, dtype=int)) == []


def test_best_single_with_one_point_of_a_class_still_answers():
    y = np.array([1.0, -1.0, -1.0])
    solution = solve("best_single", np.array([np.eye(3), 2 * np.eye(3)]), y, C=1.0)
    assert np.isfinite(solution.objective)


@pytest.mark.slow
@pytest.mark.parametrize("lam", [0.01, 0.5, 1.0])
@instances.every_instance
def test_weights_are_shares_of_the_squared_distance(make, lam):
    instance = make()
    solution = solve("easymkl", instance.grams, instance.y, lam=lam)
    expected = weights(instance.grams, instance.y, lam)
    np.testing.assert_allclose(solution.kernel_weights, expected, atol=1e-6)
    assert solution.kernel_weights.sum() == pytest.approx(1.0)


def test_with_lam_0_the_machine_is_the_hard_margin_machine():
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], 20)
    x = rng.normal(size=(40, 3)) + 4 * y[:, None]
    K = x @ x.T
    solution = solve("easymkl", np.array([K, 2 * K]), y, lam=0.0, tol=1e-6)
    combined = np.einsum("m,mij->ij", solution.kernel_weights, [K, 2 * K])
    reference = SVC(C=1e10, kernel="precomputed", tol=1e-10).fit(combined, y)
    f, g = solution.decision_function(np.array([K, 2 * K])), reference.decision_function(combined)
    # The hulls' points lie at f = -Q/2 and Q/2, the margins at g = -1 and 1.
    np.testing.assert_allclose(f, g * solution.objective / 2, rtol=1e-5, atol=1e-7)
    beta = reference.dual_coef_.ravel()
    norm = beta @ combined[np.ix_(reference.support_, reference.support_)] @ beta
    assert solution.objective == pytest.approx(4 / norm, rel=1e-6)
    assert solution.stop_reason is StopReason.CONVERGED
    np.testing.assert_allclose(solution.kernel_weights, [1 / 3, 2 / 3])


def test_hulls_that_meet_are_told_to_have_no_distance():
    rng = np.random.default_rng(1)
    y = np.repeat([1.0, -1.0], 20)
    x = rng.normal(size=(40, 2))
    solution = solve("easymkl", np.array([x @ x.T]), y, lam=0.0)
    assert 0.0 <= solution.dual_objective <= solution.objective < 1e-6
    assert np.isfinite(solution.coefficients).all()


def test_zero_is_midway_between_the_points_of_the_hulls():
    instance = instances.balanced()
    y = instance.y
    solution = solve("easymkl", instance.grams, y, lam=0.2, tol=1e-8)
    f = solution.decision_function(instance.grams)
    gamma = solution.dual_variables
    assert gamma[y > 0] @ f[y > 0] == pytest.approx(-gamma[y < 0] @ f[y < 0])
    assert gamma[y > 0].sum() == pytest.approx(1.0)
    assert gamma[y < 0].sum() == pytest.approx(1.0)
    assert gamma.min() >= 0.0


def test_three_passes_are_enough():
    instance, asked = instances.balanced(), []
    solution = solve(
        "easymkl", instance.grams, instance.y, lambda request, _: asked.append(type(request))
    )
    assert asked == [Combine, Quadratic, Combine]
    assert (solution.counters.passes, solution.counters.combines) == (3, 2)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("lam", [0.5, 0.01, 1e-4])
def test_bounds_enclose_the_optimum_where_rounding_exceeds_the_margins(scale, lam):
    # Both classes have the same points: Q = lam ||gamma||^2, at best lam (1/5 + 1/5).
    grams, y = np.full((1, 10, 10), scale), np.repeat([1.0, -1.0], 5)
    solution = solve("easymkl", grams, y, lam=lam, tol=1e-7)
    optimum = lam * 0.4
    assert solution.dual_objective <= optimum * (1 + 1e-15)
    assert solution.objective >= optimum * (1 - 1e-15)
    assert solution.converged == (solution.gap <= 1e-7)
