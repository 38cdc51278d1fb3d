"""The inner support vector machine against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

from mkldist.solvers.svm import best_bias, solve_svm
from tests.methods import instances

every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


@every_instance
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_agrees_with_libsvm(make, C):
    instance = make()
    K, y = instance.grams.mean(axis=0), instance.y
    svm = solve_svm(K, y, C, tol=1e-10)
    reference = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    signed = np.zeros(len(y))
    signed[reference.support_] = reference.dual_coef_[0]
    dual = np.abs(signed).sum() - 0.5 * signed @ K @ signed
    assert svm.gap <= 1e-10
    assert svm.dual_objective == pytest.approx(dual, rel=1e-5)
    assert svm.dual_objective >= dual * (1 - 1e-9)
    ours = K @ svm.signed + svm.bias
    theirs = K @ signed + reference.intercept_[0]
    sure = np.abs(theirs) > 0.05
    np.testing.assert_array_equal(np.sign(ours[sure]), np.sign(theirs[sure]))


@every_instance
def test_solution_is_feasible_and_its_bounds_are_recomputed_by_hand(make):
    instance = make()
    K, y, C = instance.grams.mean(axis=0), instance.y, instance.C
    svm = solve_svm(K, y, C, tol=1e-6)
    assert (svm.alpha >= 0).all()
    assert (svm.alpha <= C).all()
    assert svm.alpha @ y == pytest.approx(0.0, abs=1e-10 * C * len(y))
    f = K @ (svm.alpha * y)
    hinge = np.maximum(0, 1 - y * (f + svm.bias)).sum()
    assert svm.objective == pytest.approx(0.5 * svm.signed @ f + C * hinge, rel=1e-12)
    assert svm.dual_objective == pytest.approx(svm.alpha.sum() - 0.5 * svm.signed @ f, rel=1e-12)


def test_warm_start_takes_fewer_updates_than_a_cold_one():
    instance = instances.unbalanced()
    first, second = instance.grams.mean(axis=0), 0.9 * instance.grams.mean(axis=0)
    start = solve_svm(first, instance.y, 20.0, tol=1e-8)
    cold = solve_svm(second, instance.y, 20.0, tol=1e-8)
    warm = solve_svm(second, instance.y, 20.0, tol=1e-8, start=start.alpha)
    assert warm.dual_objective == pytest.approx(cold.dual_objective, rel=1e-7)
    assert warm.iterations < 0.5 * cold.iterations


def test_start_outside_the_box_and_off_the_hyperplane_is_made_feasible():
    instance = instances.balanced()
    K, y = instance.grams.mean(axis=0), instance.y
    start = np.where(y > 0, 50.0, -3.0)
    svm = solve_svm(K, y, 5.0, tol=1e-9, start=start)
    assert svm.dual_objective == pytest.approx(solve_svm(K, y, 5.0, tol=1e-9).dual_objective)


def test_zero_kernel_has_the_value_of_the_smaller_class():
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    svm = solve_svm(np.zeros((5, 5)), y, 3.0, tol=1e-10)
    assert svm.objective == pytest.approx(2 * 3.0 * 2)
    assert svm.gap <= 1e-10


@given(
    st.lists(st.floats(-10, 10), min_size=2, max_size=30),
    st.randoms(use_true_random=False),
)
def test_best_bias_is_no_worse_than_any_kink(values, random):
    f = np.array(values)
    y = np.array([random.choice((-1.0, 1.0)) for _ in values])
    y[0], y[-1] = 1.0, -1.0

    def loss(b: float) -> float:
        return float(np.maximum(0, 1 - y * (f + b)).sum())

    best = loss(best_bias(f, y))
    assert all(best <= loss(kink) + 1e-9 for kink in y - f)


@every_instance
def test_a_bound_for_each_point_agrees_with_libsvm(make):
    instance = make()
    K, y = instance.grams.mean(axis=0), instance.y
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    svm = solve_svm(K, y, 10.0 * weights, tol=1e-10)
    reference = SVC(C=10.0, kernel="precomputed", tol=1e-6).fit(K, y, sample_weight=weights)
    signed = np.zeros(len(y))
    signed[reference.support_] = reference.dual_coef_[0]
    dual = np.abs(signed).sum() - 0.5 * signed @ K @ signed
    assert svm.gap <= 1e-10
    assert (svm.alpha <= 10.0 * weights).all()
    assert svm.dual_objective == pytest.approx(dual, rel=1e-5)
    hinge = weights @ np.maximum(0, 1 - y * (K @ svm.signed + svm.bias))
    norm = svm.signed @ K @ svm.signed
    assert svm.objective == pytest.approx(0.5 * norm + 10.0 * hinge, rel=1e-9)


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(0.01, 10)), min_size=2, max_size=30),
    st.randoms(use_true_random=False),
)
def test_the_weighted_bias_is_no_worse_than_any_kink(values, random):
    f, weights = np.array(values).T
    y = np.array([random.choice((-1.0, 1.0)) for _ in values])
    y[0], y[-1] = 1.0, -1.0

    def loss(b: float) -> float:
        return float(weights @ np.maximum(0, 1 - y * (f + b)))

    best = loss(best_bias(f, y, weights))
    assert all(best <= loss(kink) * (1 + 1e-9) + 1e-9 for kink in y - f)
    assert best_bias(f, y, np.full(len(f), 0.3)) == pytest.approx(best_bias(f, y), abs=1e-12)
