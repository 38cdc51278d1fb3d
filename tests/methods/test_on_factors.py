"""Methods on thin factors: the plain solution on their products, and true bounds for the kernels.

The optima with the kernels are those of an independent solver, see
:mod:`tests.methods.references.recorded`; on random instances they are computed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

from mkldist.bank.factor_bank import FactorBank, FactorCache, factorised
from mkldist.bank.requests import Combine
from mkldist.bank.sources import ArraySource
from mkldist.bank.view import BankView
from mkldist.methods.registry import METHODS
from mkldist.optim import factored_matrix
from mkldist.optim.factored_matrix import ThinSystem
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.lockstep import Job, solve_alone
from tests.methods import instances, plain_bank
from tests.methods.instances import Instance
from tests.methods.references import Case, all_cases, baselines
from tests.methods.references.recorded import extreme_points, optimum, smallest_points, usual_points
from tests.methods.test_random_instances import conic_optimum, instance
from tests.variants import quick

CHOOSE_FIRST = ("best_single", "svm")  # a kernel, by cross-validation: on factors perhaps another
WEIGH_FIRST = ("align", "alignf", "easymkl")  # and on factors perhaps otherwise
EVERY = [case for case in all_cases() if METHODS[case.method].exact_bound is not None]
CASES = [case for case in EVERY if case.method not in CHOOSE_FIRST + WEIGH_FIRST]
# The papers' plain algorithms may take minutes to a gap of TOL, or stall before it.
FAST = [case for case in CASES if not case.label.startswith("printed")]
SIMPLEX = ("level", "silp", "simplemkl", "hessianmkl", "group_mkl")
TOL = 1e-5

SOON = {
    "elastmkl-squared-elastic-net",
    "primalmkl-squared-hinge-1-1",
    "primalmkl-squared-hinge-1.5-100",
    "spicymkl-epsilon-block-q",
    "spicymkl-hinge-block1",
    "spicymkl-logistic-block1",
}  # of the methods that have many cases
NEWTON_CG = (
    "spicymkl-logistic-block1",
    "elastmkl-squared-elastic-net",
    "primalmkl-squared-hinge-1-1",
    "primalmkl-squared-hinge-1.5-100",
)
ONE_EACH = [
    *{case.method: case for case in reversed(EVERY)}.values(),
    *(case for case in EVERY if str(case) in NEWTON_CG),
]


def later(case: Case) -> bool:
    return case.method in {name.split("-")[0] for name in SOON} and str(case) not in SOON


def with_slow(cases: list[Case], slow: Callable[[Case], bool] = later):
    marked = [pytest.param(one, marks=pytest.mark.slow) if slow(one) else one for one in cases]
    return pytest.mark.parametrize("case", marked, ids=str)


every_case = with_slow(FAST)
every_instance = pytest.mark.parametrize(
    "make",
    [
        instances.balanced,
        *(pytest.param(f, marks=pytest.mark.slow) for f in instances.INSTANCES[1:]),
    ],
    ids=lambda f: f.__name__,
)


@dataclass(frozen=True, eq=False)
class Certified:
    """A solution on factors, and the lower bound of the optimum with the kernels."""

    solution: Solution
    lower: float

    @property
    def exact_gap(self) -> float:
        return (self.solution.objective - self.lower) / abs(self.solution.objective)


def factors_of(grams: np.ndarray, rank: int) -> FactorBank:
    source = ArraySource(grams)
    return FactorBank(
        [factorised(source, m, rank=rank, tolerance=0.0, seed=0) for m in range(len(grams))]
    )


@cache
def factors_on(make: Callable[[], Instance], rank: int) -> FactorBank:
    """Return the factors of an instance, which all cases share."""
    return factors_of(make().grams, rank)


def products_of(factors: FactorBank) -> np.ndarray:
    return np.array([factor.values @ factor.values.T for factor in factors.factors])


def certified(method: Method, factors: FactorBank, problem: Problem, grams, **params) -> Certified:
    settings = method.params(**params)
    job = Job(method.name, BankView.whole(factors), problem, method.solve(problem, settings))
    solution = solve_alone(factors, job)
    assert method.exact_bound is not None
    bound = method.exact_bound(problem, settings, solution)
    return Certified(solution, plain_bank.run(bound, grams).value)


def solve(case: Case, make, rank: int, tol: float = TOL) -> tuple[Certified, FactorBank, float]:
    """Return the solution of a case on factors, these, and the optimum with the kernels."""
    point = next(point for point in usual_points(case) if point.name == make.__name__)
    grams = point.instance.grams
    groups = None if case.groups is None else case.groups(len(grams))
    problem, factors = plain_bank.problem(grams, point.y, groups=groups), factors_on(make, rank)
    found = certified(METHODS[case.method], factors, problem, grams, tol=tol, **point.params)
    return found, factors, optimum(case, point)


@pytest.mark.slow
@every_case
@every_instance
def test_bounds_enclose_the_optimum_with_the_kernels(case, make):
    found, _, expected = solve(case, make, rank=12)
    slack = case.accuracy * abs(expected)
    assert found.solution.converged
    assert found.lower <= expected + slack
    assert found.solution.objective >= expected - slack


@pytest.mark.parametrize("name", NEWTON_CG)
def test_operators_that_stay_operators_are_solved_by_conjugate_gradients(monkeypatch, name):
    monkeypatch.setattr(factored_matrix, "FEW_POINTS", 0)
    systems, minimiser = [], ThinSystem.minimiser

    def noted(system: ThinSystem, *arguments: object) -> np.ndarray:
        systems.append(system)
        return minimiser(system, *arguments)

    monkeypatch.setattr(ThinSystem, "minimiser", noted)
    case = next(case for case in CASES if str(case) == name)
    found, _, expected = solve(case, instances.balanced, rank=12, tol=1e-4)
    slack = case.accuracy * abs(expected)
    assert found.solution.converged
    assert any(system.steps for system in systems)
    assert found.lower <= expected + slack
    assert found.solution.objective >= expected - slack


@pytest.mark.slow
@pytest.mark.parametrize("case", ONE_EACH, ids=str)
@pytest.mark.parametrize("stays_operator", quick([False, True]))
def test_factors_that_lie_in_a_file_change_no_solution(monkeypatch, case, stays_operator):
    if stays_operator:
        monkeypatch.setattr(factored_matrix, "FEW_POINTS", 0)
    point = next(usual_points(case))
    grams, factors = point.instance.grams, factors_on(instances.balanced, 12)
    groups = None if case.groups is None else case.groups(len(grams))
    problem = plain_bank.problem(grams, point.y, groups=groups)
    cache = FactorCache(0)
    in_file = FactorBank([cache.put(one) for one in factors.factors], cache=cache)
    settings = {"tol": 1e-3, "max_iter": 30, **point.params}
    method = METHODS[case.method]
    expected, found = (certified(method, one, problem, grams, **settings)
                       for one in (factors, in_file))  # fmt: skip
    assert (cache.cached_bytes, cache.n_written) == (0, len(grams))
    assert cache.n_read >= len(grams)
    assert found.solution.objective == expected.solution.objective
    assert found.lower == expected.lower
    np.testing.assert_array_equal(found.solution.coefficients, expected.solution.coefficients)


@pytest.mark.slow
@with_slow(CASES)
def test_the_solution_is_the_plain_one_on_the_products_of_the_factors(case):
    found, factors, _ = solve(case, instances.balanced, rank=9)
    grams, labelled = products_of(factors), case.labels(instances.balanced())
    method, params = METHODS[case.method], case.params(instances.balanced())
    groups = None if case.groups is None else case.groups(len(grams))
    problem = plain_bank.problem(grams, labelled, groups=groups)
    plain = plain_bank.run(method.solve(problem, method.params(tol=TOL, **params)), grams)
    assert found.solution.objective == pytest.approx(plain.objective, rel=TOL)
    assert found.solution.dual_objective <= plain.objective + 1e-9 * abs(plain.objective)
    on_products = replace(instances.balanced(), grams=grams)
    value = case.value(on_products, labelled, params, found.solution)
    assert found.solution.objective == pytest.approx(value, rel=1e-7)


@pytest.mark.slow
@with_slow(FAST, lambda case: later(case) or str(case) in SOON)  # hundreds of long steps of CG
def test_factors_of_full_rank_close_the_exact_gap(case):
    found, _, _ = solve(case, instances.more_kernels_than_points, rank=40)
    assert found.exact_gap <= 2 * TOL


@pytest.mark.slow
@every_case
def test_extremes_and_smallest_inputs_leave_the_bounds_true(case):
    for point in [*extreme_points(case), *smallest_points(case)]:
        grams, expected = point.instance.grams, optimum(case, point)
        groups = None if case.groups is None else case.groups(len(grams))
        problem = plain_bank.problem(grams, point.y, groups=groups)
        method, factors = METHODS[case.method], factors_of(grams, rank=15)
        found = certified(method, factors, problem, grams, tol=1e-3, **point.params)
        slack = case.extreme_accuracy * max(abs(expected), 1e-9)
        assert np.isfinite([found.solution.objective, found.lower]).all()
        assert found.lower <= expected + slack
        assert found.solution.objective >= expected - slack


@with_slow(EVERY)
def test_no_sum_of_kernels_is_multiplied_out(case):
    method, point = METHODS[case.method], next(usual_points(case))
    grams = point.instance.grams
    groups = None if case.groups is None else case.groups(len(grams))
    problem = plain_bank.problem(grams, point.y, groups=groups)
    asked = []
    steps = method.solve(problem, method.params(tol=1e-3, **point.params))
    plain_bank.run(steps, grams, lambda request, answer: asked.append(request))
    assert all(request.thin for request in asked if isinstance(request, Combine))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOOSE_FIRST)
@pytest.mark.parametrize("seed", [3, 6])
def test_a_chosen_kernel_is_certified_for_the_machine_on_that_kernel(name, seed):
    grams, y, _ = instance(seed)
    problem, params = Problem(y, len(grams)), {} if name == "svm" else {"C": 2.0}
    method = METHODS[name]
    for rank in (2, len(y)):
        found = certified(method, factors_of(grams, rank), problem, grams, tol=TOL, **params)
        kernel = int(found.solution.extra["chosen_kernel"])
        C = found.solution.extra.get("chosen_C", 2.0)
        assert_true(found, conic_optimum(grams[[kernel]], y, C))
    plain = plain_bank.run(method.solve(problem, method.params(tol=TOL, **params)), grams)
    assert found.solution.extra == plain.extra
    assert found.exact_gap <= 2 * TOL


@pytest.mark.parametrize("name", ["align", "alignf"])
@pytest.mark.parametrize("seed", [3, 6])
def test_aligned_weights_are_those_of_the_factors_and_their_machine_is_certified(name, seed):
    grams, y, _ = instance(seed)
    problem, method = Problem(y, len(grams)), METHODS[name]
    for rank in (2, len(y)):
        factors = factors_of(grams, rank)
        found = certified(method, factors, problem, grams, C=2.0, tol=TOL)
        d = found.solution.kernel_weights
        plain = method.solve(problem, method.params(C=2.0, tol=TOL))
        expected = plain_bank.run(plain, products_of(factors))
        both = [np.tensordot(w, products_of(factors), 1) for w in (d, expected.kernel_weights)]
        np.testing.assert_allclose(*both, atol=1e-6)  # duplicates share a weight in any way
        alignment = expected.extra["alignment"]
        assert found.solution.extra["alignment"] == pytest.approx(alignment, rel=1e-6, abs=1e-9)
        assert_true(found, conic_optimum(np.tensordot(d, grams, 1)[None], y, 2.0))
    assert found.exact_gap <= 2 * TOL


@pytest.mark.parametrize("lam", [0.5, 0.01, 1.0])
@pytest.mark.parametrize("rank", [3, 12, 40])
def test_easymkl_on_factors_is_bounded_from_below_by_these_and_by_its_kernels_from_above(lam, rank):
    instance = instances.balanced()
    grams, y, factors = instance.grams, instance.y, factors_on(instances.balanced, rank)
    method = METHODS["easymkl"]
    settings, problem = method.params(lam=lam, tol=TOL), plain_bank.problem(grams, y)
    job = Job("", BankView.whole(factors), problem, method.solve(problem, settings))
    solution = solve_alone(factors, job)
    plain = plain_bank.run(method.solve(problem, settings), products_of(factors))
    np.testing.assert_allclose(solution.kernel_weights, plain.kernel_weights, atol=1e-6)
    assert solution.objective == pytest.approx(plain.objective, rel=1e-5)
    assert solution.gap <= TOL
    assert method.exact_objective is not None
    upper = plain_bank.run(method.exact_objective(problem, settings, solution), grams)
    K = np.tensordot(solution.kernel_weights, grams, 1)
    gamma = solution.coefficients
    value = (1.0 - lam) * gamma @ K @ gamma + lam * gamma @ gamma
    assert upper == pytest.approx(value, rel=1e-9)
    alone = baselines.q_value(K, baselines.hull_points(K, y, lam), lam)
    assert solution.dual_objective <= alone * (1 + 1e-6)
    assert alone * (1 - 1e-6) <= upper


def assert_true(found: Certified, expected: float) -> None:
    """Hold the bounds to the optimum with the kernels, and so the exact gap to the true one."""
    slack = 1e-6 * expected
    assert found.lower <= expected + slack
    assert found.solution.objective >= expected - slack


def random_instance(seed: int, methods: tuple[str, ...]) -> None:
    grams, y, rng = instance(seed)
    C, rank = 10.0 ** rng.uniform(-2, 2), int(rng.integers(1, 20))
    factors, expected = factors_of(grams, rank), conic_optimum(grams, y, C)
    for name in methods:
        problem = Problem(y, len(grams))
        assert_true(certified(METHODS[name], factors, problem, grams, C=C, tol=1e-3), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3, 8, 10])
def test_the_exact_gap_is_never_below_the_true_one(seed):
    random_instance(seed, SIMPLEX)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 2150, 25))
def test_the_exact_gap_is_never_below_the_true_one_on_hundreds(first):
    compared = 0
    for seed in range(first, first + 25):
        with suppress(cp.SolverError):  # the conic solver misses its own tolerance on a few
            random_instance(seed, SIMPLEX)
            compared += 1
    assert compared >= 22
