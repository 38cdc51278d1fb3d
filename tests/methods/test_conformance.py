"""Every method of the registry against the optimum of an independent solver."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution, StopReason
from tests.methods import instances, plain_bank
from tests.methods.references import Case, all_cases, optimum

CASES = all_cases()
TOL = 1e-8

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def solve(case: Case, grams: np.ndarray, y: np.ndarray, **params) -> Solution:
    method = METHODS[case.method]
    laplacian = None if case.laplacian is None else case.laplacian(grams)
    steps = method.solve(plain_bank.problem(grams, y, laplacian), method.params(**params))
    return plain_bank.run(steps, grams)


def finite(solution: Solution) -> bool:
    numbers = [solution.objective, solution.dual_objective, solution.bias]
    arrays = (solution.kernel_weights, solution.coefficients, solution.dual_variables)
    return bool(np.isfinite(numbers).all() and all(np.isfinite(a).all() for a in arrays))


def test_every_method_has_an_independent_reference():
    assert set(METHODS) == {case.method for case in CASES}


@every_case
@every_instance
def test_objective_is_the_independent_optimum(case, make):
    instance = make()
    y, params = case.labels(instance), case.params(instance)
    solution = solve(case, instance.grams, y, tol=TOL, trace=True, **params)
    expected = optimum(case, make)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.gap <= TOL
    assert solution.objective == pytest.approx(expected, rel=case.accuracy)
    assert solution.dual_objective == pytest.approx(expected, rel=case.accuracy)
    # The certificate belongs to the predictor that is returned.
    value = case.value(instance, y, params, solution)
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert solution.trace
    slack = case.accuracy * abs(expected)
    upper, lower = solution.trace["objective"], solution.trace["dual_objective"]
    assert len(upper) == solution.counters.outer_iterations
    assert (upper >= expected - slack).all()
    assert (lower <= expected + slack).all()
    assert (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= 0).all()


@every_case
def test_order_of_samples_and_kernels_does_not_matter(case):
    instance = instances.balanced()
    y, params = case.labels(instance), case.params(instance)
    rng = np.random.default_rng(0)
    rows, kernels = rng.permutation(len(y)), rng.permutation(len(instance.grams))
    if case.folds:
        rows = np.arange(len(y))
    shuffled = instance.grams[kernels][:, rows][:, :, rows]
    plain = solve(case, instance.grams, y, tol=TOL, **params)
    moved = solve(case, shuffled, y[rows], tol=TOL, **params)
    assert moved.objective == pytest.approx(plain.objective, rel=10 * TOL)
    weights = plain.kernel_weights[kernels]
    np.testing.assert_allclose(moved.kernel_weights, weights, atol=1e-3 * weights.max())


@every_case
def test_permitted_extremes_return_a_certified_answer_or_say_why_not(case):
    instance = instances.not_normalised()
    for extreme in case.extremes:
        params = case.params(instance) | extreme
        solution = solve(case, instance.grams, case.labels(instance), tol=1e-3, **params)
        assert finite(solution)
        assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 1e-3)


@every_case
@pytest.mark.parametrize("shape", ["one kernel", "two points", "zero kernels"])
def test_smallest_inputs(case, shape):
    instance = instances.balanced()
    if shape == "one kernel":
        grams, y = instance.grams[:1], case.labels(instance)
    elif shape == "two points":
        grams = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]])
        y = np.array([1.0, -1.0])
    else:
        grams, y = np.zeros((3, 60, 60)), case.labels(instance)
    solution = solve(case, grams, y, tol=1e-6, **case.params(instance))
    assert finite(solution)
    assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 1e-6)


@every_case
def test_limits_are_stated_reasons_with_honest_bounds(case):
    make = instances.more_kernels_than_points
    instance = make()
    y, params = case.labels(instance), case.params(instance)
    expected = optimum(case, make)
    slack = case.accuracy * abs(expected)
    for limit in ({"max_iter": 2}, {"time_limit": 1e-9}):
        solution = solve(case, instance.grams, y, tol=1e-13, **params, **limit)
        assert finite(solution)
        if case.staged and solution.stop_reason is StopReason.TIME_LIMIT:
            assert solution.dual_objective <= solution.objective + slack
        else:
            assert solution.dual_objective <= expected + slack
            assert solution.objective >= expected - slack
        if "max_iter" in limit:
            assert solution.counters.outer_iterations <= 2
