"""Every method of the registry against the optimum of an independent solver.

The optima are recorded, see :mod:`tests.methods.references.recorded`; a sample of them is computed
anew among the slow tests, where four of the seven instances are, too, and for methods that take
long all but the balanced one.  What no loss can change is asked of one case a method.
"""

from contextlib import suppress
from datetime import date

import cvxpy as cp
import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.references import Case, all_cases
from tests.methods.references.recorded import (
    Point,
    all_points,
    compute,
    extreme_points,
    key,
    optimum,
    recorded,
    smallest_points,
    usual_points,
)

CASES = all_cases()
SAMPLE = 30  # recorded optima that are computed anew in every session
SEED = date.today().toordinal()  # of the sample: another one every day
AGREEMENT = 1e-6  # of two conic solutions, on different machines
EXTREME_TOL = 1e-3
CROSSING = 1e-9  # of the objective, by which rounding may place the lower bound above it
# These solve their problem in one iteration, which no limit cuts short.
DIRECT = {"easymkl", "laprls", "lapsvm", "lsvm", "majority", "rls", "uniform"}

# one case of each method, and all that run another algorithm, the paper's
OF_METHODS = [
    case
    for number, case in enumerate(CASES)
    if case.method not in {other.method for other in CASES[:number]} or "printed" in str(case)
]
every_method = pytest.mark.parametrize("case", OF_METHODS, ids=str)
LATER = {
    instances.duplicated_kernels, instances.not_normalised, instances.unbalanced,
    instances.zero_kernel,
}  # fmt: skip
LONG = {"l0_mkl-two", "level-printed", "rmkl", "silp-printed", "simplemkl-printed"}


def is_later(case: Case, make) -> bool:
    return make in LATER or (str(case) in LONG and make is not instances.balanced)


def later(value, *, is_slow: bool, name: str):
    """Return a parameter of a test that runs with the slow ones where `is_slow` says so."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=[pytest.mark.slow] if is_slow else [], id=name)


every_case_and_instance = pytest.mark.parametrize(
    ("make", "case"),
    [
        later((f, case), is_slow=is_later(case, f), name=f"{f.__name__}-{case}")
        for f in instances.INSTANCES
        for case in CASES
    ],
)
every_case_at_extremes = pytest.mark.parametrize(
    "case", [later(case, is_slow=str(case).endswith("-printed"), name=str(case)) for case in CASES]
)


def point_of(case: Case, make) -> Point:
    return next(point for point in usual_points(case) if point.name == make.__name__)


def solve(case: Case, grams: np.ndarray, y: np.ndarray, order=slice(None), **params) -> Solution:
    """Solve a case; `order` is that of kernels that were moved, whose groups move with them."""
    laplacian = None if case.laplacian is None else case.laplacian(grams)
    groups = None if case.groups is None else case.groups(len(grams))[order]
    graph_and_groups = {"laplacian": laplacian, "groups": groups}
    return plain_bank.solve(case.method, grams, y, **graph_and_groups, **params)


def finite(solution: Solution) -> bool:
    numbers = [solution.objective, solution.dual_objective, solution.bias]
    arrays = (solution.kernel_weights, solution.coefficients, solution.dual_variables)
    return bool(np.isfinite(numbers).all() and all(np.isfinite(a).all() for a in arrays))


def test_every_method_has_an_independent_reference():
    known = {case.method for case in CASES}
    assert set(METHODS) == known, "write the method's CASES in tests/methods/references"


def test_every_recorded_optimum_is_of_a_point_of_the_suite():
    wanted = {key(case, point) for case in CASES for point in all_points(case)}
    assert recorded().keys() == wanted, "run python -m tests.methods.references"


def agrees(case: Case, point: Point) -> bool:
    return compute(case, point) == pytest.approx(optimum(case, point), rel=AGREEMENT)


@pytest.mark.slow
def test_a_sample_of_the_recorded_optima_is_what_the_independent_solver_says():
    rng, solved = np.random.default_rng(SEED), 0
    for case in rng.choice(np.array(CASES), SAMPLE, replace=False):
        points = [*usual_points(case), *smallest_points(case)]
        point = points[rng.integers(len(points))]
        with suppress(cp.SolverError):  # rounding of some processors stops Clarabel now and then
            assert agrees(case, point), f"{key(case, point)}, drawn by seed {SEED}"
            solved += 1
    assert solved >= SAMPLE - 2


@every_case_and_instance
def test_objective_is_the_independent_optimum(case, make):
    point = point_of(case, make)
    instance, y, params = point.instance, point.y, point.params
    solution = solve(case, instance.grams, y, tol=case.tol, trace=True, **params)
    expected = optimum(case, point)
    assert solution.stop_reason is StopReason.CONVERGED
    if case.relaxed:
        assert solution.gap <= case.tol or solution.stationarity <= case.tol
    else:
        assert solution.gap <= case.tol
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
    assert (lower - upper <= CROSSING * np.abs(upper)).all()
    assert (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= 0).all()


@pytest.mark.slow
@every_method
def test_order_of_samples_and_kernels_does_not_matter(case):
    instance = instances.balanced()
    y, params = case.labels(instance), case.params(instance)
    rng = np.random.default_rng(0)
    rows, kernels = rng.permutation(len(y)), rng.permutation(len(instance.grams))
    if case.folds:
        rows = np.arange(len(y))
    shuffled = instance.grams[kernels][:, rows][:, :, rows]
    plain = solve(case, instance.grams, y, tol=case.tol, **params)
    moved = solve(case, shuffled, y[rows], kernels, tol=case.tol, **params)
    assert moved.objective == pytest.approx(plain.objective, rel=10 * case.tol)
    weights = plain.kernel_weights[kernels]
    np.testing.assert_allclose(moved.kernel_weights, weights, atol=1e-3 * weights.max())


def assert_converged_to_the_optimum(case: Case, point: Point, tol: float) -> None:
    """Hold stop reason, both bounds and the returned predictor to the optimum."""
    solution = solve(case, point.instance.grams, point.y, tol=tol, **point.params)
    expected = optimum(case, point)
    slack = case.extreme_accuracy * max(abs(expected), 1e-9)
    assert finite(solution)
    assert solution.stop_reason is StopReason.CONVERGED
    assert expected - slack <= solution.objective <= expected + slack + tol * abs(expected)
    assert solution.dual_objective <= expected + slack
    assert solution.gap <= tol or (case.relaxed and solution.stationarity <= tol)
    value = case.value(point.instance, point.y, point.params, solution)
    assert solution.objective == pytest.approx(value, rel=1e-5, abs=1e-9)


@pytest.mark.slow
@every_case_at_extremes
def test_permitted_extremes_converge_to_the_optimum(case):
    for point in extreme_points(case):
        assert_converged_to_the_optimum(case, point, EXTREME_TOL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "name"),
    [(case, "two points") for case in CASES]
    + [(case, name) for case in OF_METHODS for name in ("one kernel", "zero kernels")],
    ids=str,
)
def test_smallest_inputs_converge_to_the_optimum(case, name):
    point = next(point for point in smallest_points(case) if point.name == name)
    assert_converged_to_the_optimum(case, point, 1e-6)


@pytest.mark.slow
@every_method
@pytest.mark.parametrize(
    ("limit", "reason"),
    [({"max_iter": 2}, StopReason.MAX_ITER), ({"time_limit": 1e-9}, StopReason.TIME_LIMIT)],
    ids=str,
)
def test_limits_are_stated_reasons_with_honest_bounds(case, limit, reason):
    point, tol = point_of(case, instances.more_kernels_than_points), 1e-13
    expected = optimum(case, point)
    slack = case.accuracy * abs(expected)
    solution = solve(case, point.instance.grams, point.y, tol=tol, **point.params, **limit)
    assert finite(solution)
    cut_short = case.staged and reason is StopReason.TIME_LIMIT
    if not cut_short and (case.method in DIRECT or solution.gap <= tol):
        assert solution.stop_reason is StopReason.CONVERGED
    else:
        assert solution.stop_reason is reason
    if cut_short:
        assert solution.dual_objective <= solution.objective + slack
    else:
        assert solution.dual_objective <= expected + slack
        assert solution.objective >= expected - slack
    assert solution.counters.outer_iterations <= limit.get("max_iter", 1)
