"""What several methods ask of a bank, and solutions of machines at fixed weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mkldist.core.counters import Counters
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import StopReason, Trace
from mkldist.solvers.queries import best_multiple, gram_matrices, largest_forms
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution, fixed_weights_solution, solve_svm, svm_solution
from tests.methods import plain_bank


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


Y = np.array([1.0, -1.0])
WEIGHTS = np.array([0.25, 0.75])
PROBLEM = Problem(Y, n_kernels=2)


def test_the_machine_is_the_solution_and_its_gap_the_certificate():
    svm = solve_svm(np.eye(2), Y, C=10.0, tol=1e-10)
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
    assert solution.counters == Counters(svm_solves=1)
    assert solution.trace["largest_kernels"].tolist() == [[1, 0]]
    assert solution.trace["objective"].tolist() == [solution.objective]


@pytest.mark.parametrize(
    ("tol", "reason"), [(0.1, StopReason.CONVERGED), (0.09, StopReason.STALLED)]
)
def test_a_machine_of_too_large_a_gap_has_stalled(tol, reason):
    alpha = np.array([1.0, 1.0])
    svm = SvmSolution(alpha, alpha * Y, 0.0, 10.0, 9.0, 4, 0)
    solution = fixed_weights_solution(PROBLEM, SolverParams(tol=tol), WEIGHTS, svm, Counters())
    assert (solution.stop_reason, solution.trace) == (reason, {})
    assert solution.gap == pytest.approx(0.1)


def test_a_method_has_bounds_and_numbers_of_its_own():
    alpha = np.array([1.0, 1.0])
    svm = SvmSolution(alpha, alpha * Y, 0.5, 10.0, 9.0, 4, 0)
    trace = Trace(False, PROBLEM.clock)
    solution = svm_solution(
        WEIGHTS, svm, 8.0, 6.0, StopReason.MAX_ITER, Counters(), trace, {"margin": 2.0}
    )
    assert (solution.objective, solution.dual_objective, solution.bias) == (8.0, 6.0, 0.5)
    assert solution.gap == pytest.approx(0.25)
    assert solution.extra == {"margin": 2.0}
