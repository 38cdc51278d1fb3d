"""Support vector machines against scikit-learn and exact arithmetic."""

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from cvxpy.error import SolverError
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel
from sklearn.svm import SVC

from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.base import Counters, Problem, Search
from mkldist.solvers.progress import StopReason
from mkldist.solvers.queries import best_multiple, gram_matrices, largest_forms
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import (
    InnerSvm,
    SvmSolution,
    ascent_on,
    best_bias,
    fixed_weights_solution,
    slack_spread,
    solve_svm,
    sum_over_classes,
    train,
)
from tests.methods import instances, plain_bank
from tests.methods.references.simplex_svm import simplex_optimum


@instances.every_instance
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


@instances.every_instance
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


@instances.every_instance
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
def test_the_best_bias_is_no_worse_than_any_kink(values, random):
    f, weights = np.array(values).T
    y = np.array([random.choice((-1.0, 1.0)) for _ in values])
    y[0], y[-1] = 1.0, -1.0

    def loss(b: float) -> float:
        return float(weights @ np.maximum(0, 1 - y * (f + b)))

    best = loss(best_bias(f, y, weights))
    assert all(best <= loss(kink) * (1 + 1e-9) + 1e-9 for kink in y - f)
    assert best_bias(f, y, np.full(len(f), 0.3)) == pytest.approx(best_bias(f, y), abs=1e-12)
    weights = np.ones(len(f))
    assert loss(best_bias(f, y)) <= min(map(loss, y - f)) + 1e-9


def points(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    y = instances._labels(rng, n, n // 2)
    return instances._points(rng, y, 3), y


def unscaled(factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return polynomial and linear kernels of points in large units, and labels."""
    x, y = points()
    kernels = [polynomial_kernel(factor * x, degree=d, gamma=1.0) for d in (2, 3)]
    return np.array([*kernels, linear_kernel(factor * x)]), y


def exact_primal(K: np.ndarray, y: np.ndarray, C: float, beta: np.ndarray, bias: float) -> Fraction:
    """Return ``1/2 beta'K beta + C sum_i hinge_i`` in fractions."""
    exact = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])
    b, f = exact(beta), exact(K) @ exact(beta)
    hinges = (
        max(Fraction(0), 1 - int(s) * (v + Fraction(bias))) for s, v in zip(y, f, strict=True)
    )
    return sum(b * f) / 2 + Fraction(C) * sum(hinges)


@pytest.mark.parametrize("factor", [1.0, 100.0, 1e3, 1e4])
def test_an_enlarged_function_is_worth_no_more_than_its_upper_bound(factor):
    grams, y = unscaled(factor)
    K = np.ascontiguousarray(grams.mean(axis=0))
    svm = solve_svm(K, y, 1.0, tol=1e-12)
    exact = exact_primal(K, y, 1.0, svm.coefficients, float(svm.bias))
    # svm.rounding allows 1.3e-11 of the objective at the larger factors
    assert exact <= Fraction(svm.objective) * (1 + Fraction(1, 10**11))
    assert svm.gap <= 1e-8
    assert svm.scale >= 1.0
    np.testing.assert_allclose(svm.values, K @ svm.coefficients + svm.bias, rtol=0, atol=1e-9)
    if factor >= 1e3:  # the plain function costs C times its rounding
        assert svm.scale > 1.0
        plain = exact_primal(K, y, 1.0, svm.signed, float(svm.bias))
        assert plain > 1.5 * Fraction(svm.objective)


PLAIN = {"acceleration": "none"}


def optimum_without_bounds(grams: np.ndarray, y: np.ndarray, largest: float) -> float:
    """Return the conic optimum at a C that exceeds all dual variables, of which one is `largest`.

    On some processors rounding makes Clarabel give up at one C and not at its neighbour.
    """
    for factor in (2.0, 2.5, 1.5):
        C = factor * largest
        with suppress(SolverError, TypeError):
            return simplex_optimum(instances.Instance("unit", grams, y, C), y, {"C": C})
    raise AssertionError("Clarabel gave up at every C")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("level", {}), ("level", PLAIN), ("silp", {}), ("silp", PLAIN), ("simplemkl", {}),
        ("hessianmkl", {}),
    ],
)  # fmt: skip
def test_wrappers_converge_on_unscaled_kernels(name, own):
    """With kernels t K and bound C, the optimum is 1/t times that of K and t C."""
    grams, y = unscaled(1e3)
    t = float(np.trace(grams.mean(axis=0)))
    solution = plain_bank.solve(name, grams, y, C=1.0, tol=1e-4, **own)
    assert solution.converged
    assert solution.gap <= 1e-4
    # t C is out of reach of a conic solver
    optimum = optimum_without_bounds(grams / t, y, t * np.abs(solution.dual_variables).max()) / t
    assert solution.dual_objective <= optimum * (1 + 1e-6)
    assert solution.objective >= optimum * (1 - 1e-6)


def test_the_spread_is_that_of_points_below_their_bounds():
    slack, beta = np.array([3.0, 1.0, -2.0, 9.0]), np.array([0.0, 0.5, -1.0, 1.0])
    lower, upper = np.array([0.0, 0.0, -1.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0])
    assert slack_spread(slack, beta, lower, upper) == 3.0 - 1.0
    assert slack_spread(slack[3:], beta[3:], lower[3:], upper[3:]) == 0.0


C = 10.0


def labels() -> np.ndarray:
    """Labels of two classes, one column each, that share no relation."""
    y = instances.balanced().y
    return np.column_stack([y, np.roll(y, 7)])


def test_machines_of_classes_are_those_of_each_class_side_by_side():
    K, y, counters = instances.balanced().grams.mean(axis=0), labels(), Counters()
    joint = train(K, y, C, 1e-10, counters)
    alone = [solve_svm(K, np.ascontiguousarray(column), C, tol=1e-10) for column in y.T]
    assert joint.objective == pytest.approx(sum(svm.objective for svm in alone), rel=1e-9)
    assert joint.dual_objective <= joint.objective
    for c, svm in enumerate(alone):
        np.testing.assert_array_equal(joint.alpha[:, c], svm.alpha)
        assert joint.bias[c] == svm.bias
    assert counters.svm_solves == 2
    assert counters.svm_iterations == sum(svm.iterations for svm in alone)


def test_a_machine_starts_from_the_last_or_from_a_given_one():
    instance, counters = instances.unbalanced(), Counters()
    K = instance.grams.mean(axis=0)
    svm_at = InnerSvm(instance.y, 20.0, 1e-6, counters)
    first = svm_at(K)
    assert svm_at(K).iterations < 0.5 * first.iterations
    fresh = InnerSvm(instance.y, 20.0, 1e-6, counters)
    fresh.begin_at(first.alpha)
    assert fresh(K).iterations < 0.5 * first.iterations
    assert counters.svm_solves == 3


def test_machines_are_solved_to_a_share_of_the_tolerance_and_exactly_once_sharpened():
    instance = instances.unbalanced()
    K = instance.grams.mean(axis=0)
    svm_at = InnerSvm(instance.y, 20.0, 0.1, Counters())
    assert 1e-12 < svm_at(K).gap <= 0.05 * 0.1
    svm_at.sharpen()
    assert svm_at(K).gap < 1e-12


def test_forms_are_added_up_over_classes():
    q = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert sum_over_classes(q).tolist() == [3.0, 7.0]
    assert sum_over_classes(q[0]).tolist() == [1.0, 2.0]


G = np.random.default_rng(0).normal(size=(40, 6))
Y = np.where(G[:, 0] > 0.1, 1.0, -1.0)
BOUNDS = np.minimum(Y, 0.0), np.maximum(Y, 0.0)


@pytest.mark.parametrize("thin", [True, False])
def test_an_ascent_ends_where_no_pair_violates_optimality(thin):
    K = FactoredMatrix(np.ones(1), [G], (G**2).sum(axis=1)[None], 40) if thin else G @ G.T
    beta, slack = np.zeros(40), Y.copy()
    updates, _ = ascent_on(K, Y, *BOUNDS, lambda *_: False)(beta, slack, 1e-9)
    np.testing.assert_allclose(slack, Y - G @ (G.T @ beta), atol=1e-10)
    assert updates > 0
    assert slack[beta < BOUNDS[1]].max() - slack[beta > BOUNDS[0]].min() <= 1e-8


def test_an_ascent_ends_on_request():
    K = FactoredMatrix(np.ones(1), [G], (G**2).sum(axis=1)[None], 40)
    assert ascent_on(K, Y, *BOUNDS, lambda *_: True)(np.zeros(40), Y.copy(), 0.0) == (0, 0)


# What several methods ask of a bank, and solutions of machines at fixed weights.


def test_the_matrices_come_in_the_order_asked_for():
    grams = np.random.default_rng(0).normal(size=(5, 3, 3))
    found = plain_bank.run(gram_matrices(np.array([3, 0, 4])), grams)
    np.testing.assert_array_equal(found, grams[[3, 0, 4]])


def test_forms_are_at_least_those_of_extended_precision():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 40, 3))
    grams = roots @ roots.swapaxes(1, 2)
    vectors = rng.normal(size=(40, 4))
    for root in roots:  # near the null space the terms cancel
        vectors -= root @ np.linalg.lstsq(root, vectors, rcond=None)[0]
    found = plain_bank.run(largest_forms(vectors), grams)
    exact = np.einsum(
        "ir,mij,jr->mr", vectors, grams.astype(np.longdouble), vectors.astype(np.longdouble)
    )
    assert (found >= exact).all()
    assert (found <= exact + 1e-11).all()


@pytest.mark.parametrize(("height", "form"), [(2.0, 1.0), (2.0, 2.0), (2.0, 9.0), (2.0, 0.0)])
def test_no_multiple_has_a_greater_dual_value(height, form):
    best = minimize_scalar(
        lambda t: 0.5 * t**2 * form - t * height, bounds=(0, 1), method="bounded"
    )
    value, [t] = best_multiple(np.ones(1), height, form)
    assert value == pytest.approx(-best.fun, abs=1e-4)
    assert value >= -best.fun * (1 - 1e-12)
    assert value == t * height - 0.5 * t**2 * form


@pytest.mark.parametrize("form", [0.0, 1e-12, 1e-3])
def test_a_height_that_rounding_makes_negative_bounds_by_zero(form):
    assert best_multiple(np.ones(1), -1e-9, form).value == 0.0


Y_SMALL = np.array([1.0, -1.0])
WEIGHTS = np.array([0.25, 0.75])
PROBLEM = Problem(Y_SMALL, n_kernels=2)


def test_the_machine_is_the_solution_and_its_gap_the_certificate():
    svm = solve_svm(np.eye(2), Y_SMALL, C=10.0, tol=1e-10)
    counters = Counters(svm_solves=1)
    params = SolverParams(tol=1e-9, trace=True)
    solution = fixed_weights_solution(PROBLEM, params, WEIGHTS, svm, counters)
    np.testing.assert_array_equal(solution.kernel_weights, WEIGHTS)
    np.testing.assert_allclose(solution.dual_variables, [1.0, 1.0], rtol=1e-5)
    np.testing.assert_allclose(solution.coefficients, [1.0, -1.0], rtol=1e-5)
    assert solution.bias == pytest.approx(0.0, abs=1e-6)
    assert solution.dual_objective <= 1.0 <= solution.objective * (1 + 1e-15)
    assert solution.objective == pytest.approx(1.0, rel=1e-9)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.counters == Counters(outer_iterations=1, svm_solves=1)
    assert solution.trace["largest_kernels"].tolist() == [[1, 0]]
    assert solution.trace["objective"].tolist() == [solution.objective]


@pytest.mark.parametrize(
    ("tol", "reason"), [(0.1, StopReason.CONVERGED), (0.09, StopReason.STALLED)]
)
def test_a_machine_of_too_large_a_gap_has_stalled(tol, reason):
    alpha = np.array([1.0, 1.0])
    svm = SvmSolution(alpha, alpha * Y_SMALL, 0.0, 10.0, 9.0, 4, 0, np.empty(0))
    solution = fixed_weights_solution(PROBLEM, SolverParams(tol=tol), WEIGHTS, svm, Counters())
    assert (solution.stop_reason, solution.trace) == (reason, {})
    assert solution.gap == pytest.approx(0.1)


def test_a_method_has_bounds_and_numbers_of_its_own():
    alpha = np.array([1.0, 1.0])
    svm = SvmSolution(alpha, alpha * Y_SMALL, 0.5, 10.0, 9.0, 4, 0, np.empty(0))
    search = Search(PROBLEM, SolverParams(), svm, 6.0, upper=8.0)
    fields = {"coefficients": svm.coefficients, "bias": svm.bias, "extra": {"margin": 2.0}}
    solution = search.finish(None, kernel_weights=WEIGHTS, **fields)
    assert solution.stop_reason is StopReason.MAX_ITER
    assert (solution.objective, solution.dual_objective, solution.bias) == (8.0, 6.0, 0.5)
    assert solution.gap == pytest.approx(0.25)
    assert solution.extra == {"margin": 2.0}
