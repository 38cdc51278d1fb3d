"""Solutions on factors, bounds with the kernels themselves, states on kernels that have grown."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.bank import factored_kernels
from mkldist.bank.factor_bank import FactorBank, FactorCache, factorised
from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.requests import Combine
from mkldist.bank.sources import ArraySource
from mkldist.bank.view import BankView
from mkldist.methods.cut_bundle import exact_bound
from mkldist.methods.registry import METHODS
from mkldist.optim import factored_matrix
from mkldist.optim.factored_matrix import ThinSystem
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.lockstep import Job, solve_alone
from mkldist.solvers.on_factors import solve_on_factors
from tests.methods import instances, plain_bank
from tests.methods.instances import Instance
from tests.methods.references import Case, all_cases, baselines
from tests.methods.references.recorded import extreme_points, optimum, smallest_points, usual_points
from tests.methods.test_drawn_problems import conic_optimum, instance
from tests.variants import quick

DRAWS = (*range(15), 18, 43, 46, 68, 70, 116, 129)  # earlier versions failed at the last seven
METHODS_AND_PARAMS = {
    "uniform": {},
    "level": {},
    "level-none": {"acceleration": "none"},
    "silp": {},
    "silp-none": {"acceleration": "none"},
    "simplemkl": {},
    "hessianmkl": {},
    "skm": {},
    "l0_mkl": {"k": 2},
}


def exact_value(grams: np.ndarray, y: np.ndarray, C: float, solution: Solution) -> Fraction:
    """Return the value of the machine's problem at the returned weights and coefficients.

    The bias is the best of the one returned and all kinks of the loss.
    """
    exact = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])
    d, beta, kernels = exact(solution.kernel_weights), exact(solution.coefficients), exact(grams)
    f = list(np.tensordot(d, kernels, axes=1) @ beta / d.sum())
    labels = [int(label) for label in y]
    biases = [Fraction(float(solution.bias))]
    biases += [label - at for label, at in zip(labels, f, strict=True)]

    def loss(b: Fraction) -> Fraction:
        return sum(max(Fraction(0), 1 - one * (at + b)) for one, at in zip(labels, f, strict=True))

    norm = sum(b * at for b, at in zip(beta, f, strict=True))
    return norm / 2 + Fraction(C) * min(map(loss, biases))


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return kernels of integers, labels, C and a tolerance."""
    rng = np.random.default_rng(seed)
    n, n_kernels = int(rng.integers(3, 6)), int(rng.integers(1, 3))
    grams = []
    for _ in range(n_kernels):
        A = rng.integers(-4, 5, (n, int(rng.integers(1, 3))))
        grams.append((A @ A.T).astype(float) * float(rng.choice([1, 10, 100])))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.array(grams), y, float(10.0 ** rng.integers(2, 7)), float(10.0 ** -rng.integers(2, 9))


@pytest.mark.slow
@pytest.mark.parametrize("case", METHODS_AND_PARAMS)
def test_no_lower_bound_exceeds_an_exact_value(case):
    method, crossed = case.split("-")[0], []
    for seed in DRAWS:
        grams, y, C, tol = drawn(seed)
        params = {"C": C, "tol": tol, "time_limit": 1.0, **METHODS_AND_PARAMS[case]}
        solution = plain_bank.solve(method, grams, y, **params)
        if Fraction(solution.dual_objective) > exact_value(grams, y, C, solution):
            crossed.append(seed)
    assert crossed == []


N, TOL = 120, 1e-3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
FEATURES = [[0, 1], [2], [0, 1, 2, 3], [3]]
GRAMS = np.array([rbf_kernel(X[:, own], gamma=g) for own in FEATURES for g in (0.1, 0.5, 2.0)])
GROWN = GRAMS + 0.02 * np.array([rbf_kernel(X, gamma=0.1 * (m + 1)) for m in range(len(GRAMS))])


CASES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "level": ("level", {"C": 3.0}),
    "silp": ("silp", {"C": 3.0}),
    "silp-plain": ("silp", {"C": 3.0, "acceleration": "none"}),
    "simplemkl": ("simplemkl", {"C": 3.0}),
    "simplemkl-plain": ("simplemkl", {"C": 3.0, "curvature": False}),
    "hessianmkl": ("hessianmkl", {"C": 3.0}),
    "spicymkl-logistic": ("spicymkl", {"C": 1.0, "loss": "logistic"}),
    "spicymkl-hinge": ("spicymkl", {"C": 1.0, "loss": "hinge"}),
    "spicymkl-plain": ("spicymkl", {"C": 1.0, "loss": "logistic", "acceleration": "none"}),
    "elastmkl": ("elastmkl", {"C": 1.0, "loss": "squared"}),
    "primalmkl": ("primalmkl", {"C": 1 / 0.3}),
    "primalmkl-ball": ("primalmkl", {"C": 1 / 0.3, "norm": 1.5}),
}


SMOOTHED_ANEW = ("spicymkl-hinge",)  # its corners, from the start: that takes most of its steps
every_case = pytest.mark.parametrize("case", CASES)


def work(solution: Solution) -> int:
    """Return machines and Newton steps of a solution."""
    counters = solution.counters
    return counters.svm_solves + counters.newton_steps


@cache
def solution_on(case: str, grown: bool) -> Solution:
    """Return the solution with the kernels as they are, or as they have grown, from no start."""
    name, params = CASES[case]
    grams, method = GROWN if grown else GRAMS, METHODS[name]
    return plain_bank.run(
        method.solve(Problem(Y, len(grams)), method.params(tol=TOL, **params)), grams
    )


def renewed(case: str) -> tuple[Any, Solution]:
    """Return the renewed state of a solution, and the solution with grown kernels from there."""
    name, params = CASES[case]
    method, problem = METHODS[name], Problem(Y, len(GROWN))
    assert method.renewal is not None
    state = plain_bank.run(
        method.renewal.renewed(problem, solution_on(case, grown=False).state), GROWN
    )
    steps = method.solve(replace(problem, start=state), method.params(tol=TOL, **params))
    return state, plain_bank.run(steps, GROWN)


@pytest.mark.slow
@every_case
def test_a_renewed_solution_takes_less_work_to_the_same_certificate(case):
    _, found = renewed(case)
    anew = solution_on(case, grown=True)
    assert found.converged
    assert found.gap <= TOL
    assert found.dual_objective <= anew.objective * (1 + 1e-9)
    assert anew.dual_objective <= found.objective * (1 + 1e-9)
    assert work(found) < work(anew) or case in SMOOTHED_ANEW


def test_bounds_of_primalmkl_are_those_of_the_new_kernels():
    params = {"C": 1 / 0.3, "tol": TOL}
    method = METHODS["primalmkl"]
    many, grown = (np.concatenate([own] * 4) for own in (GRAMS, GROWN))  # for a working set
    problem = Problem(Y, len(many))
    state = plain_bank.run(method.solve(problem, method.params(**params)), many).state
    found = plain_bank.run(method.renewal.renewed(problem, state), grown)
    centre = state.candidates.centre
    norms = np.sqrt(np.einsum("i,mij,j->m", centre, grown, centre))
    assert_allclose(found.candidates.bounds, norms, rtol=1e-9)
    assert (found.candidates.bounds > state.candidates.bounds).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", quick(["elastmkl", "silp", "simplemkl", "hessianmkl", "primalmkl"])
)
def test_rounds_on_factors_go_on_from_the_last_solution(case, monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 20)
    name, params = CASES[case]

    def rounds_of(method: Method) -> tuple[list[int], Solution]:
        rounds = []

        def solve(problem, settings):
            solution = yield from method.solve(problem, settings)
            rounds.append(work(solution))
            return solution

        kernels, problem = begin_factors(ArraySource(GRAMS), FactorLimits()), Problem(Y, len(GRAMS))
        settings = method.params(tol=TOL, **params)
        own = replace(method, solve=solve)
        return rounds, solve_on_factors(kernels, own, problem, settings).solution

    method = METHODS[name]
    (warm, found), (cold, anew) = rounds_of(method), rounds_of(replace(method, renewal=None))
    assert warm[0] == cold[0]
    assert len(warm) > 1
    assert sum(warm[1:]) < sum(cold[1:])
    assert max(found.exact_gap, anew.exact_gap) <= TOL
    assert found.exact_dual_objective <= anew.objective
    assert anew.exact_dual_objective <= found.objective


@pytest.mark.parametrize("acceleration", ["working-set", "none"])
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_on_the_same_kernels_it_is_the_bound_of_the_run(seed, acceleration):
    grams, y, _ = instance(seed)
    params = METHODS["level"].params(C=1.0, tol=1e-6, acceleration=acceleration)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS["level"].solve(problem, params), grams)
    found = plain_bank.run(exact_bound(problem, params, solution), grams).value
    assert solution.objective * (1 - 2e-6) <= found <= solution.objective


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_on_larger_kernels_it_stays_below_their_optimum(seed):
    grams, y, rng = instance(seed)
    params = METHODS["level"].params(C=1.0, tol=1e-6)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS["level"].solve(problem, params), grams)
    larger = grams + rng.uniform(0, 0.5, (len(grams), 1, 1)) * np.eye(len(y))
    found = plain_bank.run(exact_bound(problem, params, solution), larger).value
    optimum = conic_optimum(larger, y, 1.0)
    assert 0.0 < found <= optimum * (1 + 1e-6)


def test_what_stops_before_a_dual_point_gives_a_bound_is_bounded_by_zero():
    rng = np.random.default_rng(0)
    halves = rng.normal(size=(60, 20, 3))  # more kernels than the working set begins with
    grams, y = halves @ halves.transpose(0, 2, 1), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    params = METHODS["simplemkl"].params(C=1e4, max_iter=1)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS["simplemkl"].solve(problem, params), grams)
    assert solution.dual_objective == 0.0
    found, point = plain_bank.run(exact_bound(problem, params, solution), grams)
    assert found == 0.0
    assert point.tolist() == [0.0] * 20


CHOOSE_FIRST = ("best_single", "svm")  # a kernel, by cross-validation: on factors perhaps another
WEIGH_FIRST = ("align", "alignf", "easymkl")  # and on factors perhaps otherwise
EVERY = [case for case in all_cases() if METHODS[case.method].exact_bound is not None]
CASES_ON_FACTORS = [case for case in EVERY if case.method not in CHOOSE_FIRST + WEIGH_FIRST]


# The papers' plain algorithms may take minutes to a gap of TOL, or stall before it.
FAST = [case for case in CASES_ON_FACTORS if not case.label.startswith("printed")]
SIMPLEX = ("level", "silp", "simplemkl", "hessianmkl", "group_mkl")
TOL_ON_FACTORS = 1e-5
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


def problem_of(case: Case, grams: np.ndarray, y: np.ndarray) -> Problem:
    """Return the problem of a case, with the groups that it takes."""
    groups = None if case.groups is None else case.groups(len(grams))
    return plain_bank.problem(grams, y, groups=groups)


def certified(method: Method, factors: FactorBank, problem: Problem, grams, **params) -> Certified:
    settings = method.params(**params)
    job = Job(method.name, BankView.whole(factors), problem, method.solve(problem, settings))
    solution = solve_alone(factors, job)
    assert method.exact_bound is not None
    bound = method.exact_bound(problem, settings, solution)
    return Certified(solution, plain_bank.run(bound, grams).value)


def solve(
    case: Case, make, rank: int, tol: float = TOL_ON_FACTORS
) -> tuple[Certified, FactorBank, float]:
    """Return the solution of a case on factors, these, and the optimum with the kernels."""
    point = next(point for point in usual_points(case) if point.name == make.__name__)
    grams = point.instance.grams
    problem, factors = problem_of(case, grams, point.y), factors_on(make, rank)
    found = certified(METHODS[case.method], factors, problem, grams, tol=tol, **point.params)
    return found, factors, optimum(case, point)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "make"),
    [(case, instances.balanced) for case in FAST]
    + [(case, make) for case in FAST if not later(case) for make in instances.INSTANCES[1:]],
    ids=lambda it: getattr(it, "__name__", str(it)),
)
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
    case = next(case for case in CASES_ON_FACTORS if str(case) == name)
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
    problem = problem_of(case, grams, point.y)
    full = FactorCache(factors.n_bytes)  # without room for copies, of which sums round otherwise
    factors = FactorBank([full.put(one) for one in factors.factors], cache=full)
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
@pytest.mark.parametrize("case", [c for c in CASES_ON_FACTORS if not later(c)], ids=str)
def test_the_solution_is_the_plain_one_on_the_products_of_the_factors(case):
    found, factors, _ = solve(case, instances.balanced, rank=9)
    grams, labelled = products_of(factors), case.labels(instances.balanced())
    method, params = METHODS[case.method], case.params(instances.balanced())
    problem = problem_of(case, grams, labelled)
    plain = plain_bank.run(
        method.solve(problem, method.params(tol=TOL_ON_FACTORS, **params)), grams
    )
    assert found.solution.objective == pytest.approx(plain.objective, rel=TOL_ON_FACTORS)
    assert found.solution.dual_objective <= plain.objective + 1e-9 * abs(plain.objective)
    on_products = replace(instances.balanced(), grams=grams)
    value = case.value(on_products, labelled, params, found.solution)
    assert found.solution.objective == pytest.approx(value, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in FAST if not later(case)], ids=str)
def test_factors_of_full_rank_close_the_exact_gap(case):
    found, _, _ = solve(case, instances.more_kernels_than_points, rank=40)
    assert found.exact_gap <= 2 * TOL_ON_FACTORS


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in FAST if not later(case)], ids=str)
def test_extremes_and_smallest_inputs_leave_the_bounds_true(case):
    for point in [*extreme_points(case), *smallest_points(case)]:
        grams, expected = point.instance.grams, optimum(case, point)
        problem = problem_of(case, grams, point.y)
        method, factors = METHODS[case.method], factors_of(grams, rank=15)
        found = certified(method, factors, problem, grams, tol=1e-3, **point.params)
        slack = case.extreme_accuracy * max(abs(expected), 1e-9)
        assert np.isfinite([found.solution.objective, found.lower]).all()
        assert found.lower <= expected + slack
        assert found.solution.objective >= expected - slack


@pytest.mark.parametrize("case", [case for case in EVERY if not later(case)], ids=str)
def test_no_sum_of_kernels_is_multiplied_out(case):
    method, point = METHODS[case.method], next(usual_points(case))
    grams = point.instance.grams
    problem = problem_of(case, grams, point.y)
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
        found = certified(
            method, factors_of(grams, rank), problem, grams, tol=TOL_ON_FACTORS, **params
        )
        kernel = int(found.solution.extra["chosen_kernel"])
        C = found.solution.extra.get("chosen_C", 2.0)
        assert_true(found, conic_optimum(grams[[kernel]], y, C))
    plain = plain_bank.run(
        method.solve(problem, method.params(tol=TOL_ON_FACTORS, **params)), grams
    )
    assert found.solution.extra == plain.extra
    assert found.exact_gap <= 2 * TOL_ON_FACTORS


@pytest.mark.parametrize("name", ["align", "alignf"])
@pytest.mark.parametrize("seed", [3, 6])
def test_aligned_weights_are_those_of_the_factors_and_their_machine_is_certified(name, seed):
    grams, y, _ = instance(seed)
    problem, method = Problem(y, len(grams)), METHODS[name]
    for rank in (2, len(y)):
        factors = factors_of(grams, rank)
        found = certified(method, factors, problem, grams, C=2.0, tol=TOL_ON_FACTORS)
        d = found.solution.kernel_weights
        plain = method.solve(problem, method.params(C=2.0, tol=TOL_ON_FACTORS))
        expected = plain_bank.run(plain, products_of(factors))
        both = [np.tensordot(w, products_of(factors), 1) for w in (d, expected.kernel_weights)]
        np.testing.assert_allclose(*both, atol=1e-6)  # duplicates share a weight in any way
        alignment = expected.extra["alignment"]
        assert found.solution.extra["alignment"] == pytest.approx(alignment, rel=1e-6, abs=1e-9)
        assert_true(found, conic_optimum(np.tensordot(d, grams, 1)[None], y, 2.0))
    assert found.exact_gap <= 2 * TOL_ON_FACTORS


@pytest.mark.parametrize("lam", [0.5, 0.01, 1.0])
@pytest.mark.parametrize("rank", [3, 12, 40])
def test_easymkl_on_factors_is_bounded_from_below_by_these_and_by_its_kernels_from_above(lam, rank):
    instance = instances.balanced()
    grams, y, factors = instance.grams, instance.y, factors_on(instances.balanced, rank)
    method = METHODS["easymkl"]
    settings, problem = method.params(lam=lam, tol=TOL_ON_FACTORS), plain_bank.problem(grams, y)
    job = Job("", BankView.whole(factors), problem, method.solve(problem, settings))
    solution = solve_alone(factors, job)
    plain = plain_bank.run(method.solve(problem, settings), products_of(factors))
    np.testing.assert_allclose(solution.kernel_weights, plain.kernel_weights, atol=1e-6)
    assert solution.objective == pytest.approx(plain.objective, rel=1e-5)
    assert solution.gap <= TOL_ON_FACTORS
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
@pytest.mark.parametrize("first", [2000, 2025])
def test_the_exact_gap_is_never_below_the_true_one(first):
    compared = 0
    for seed in range(first, first + 25):
        with suppress(cp.SolverError):  # the conic solver misses its own tolerance on a few
            random_instance(seed, SIMPLEX)
            compared += 1
    assert compared >= 22


@pytest.mark.parametrize("normalisation", ["trace", "variance"])
def test_one_sum_of_kernels_is_that_of_the_kernels_and_not_of_factors(normalisation):
    rng = np.random.default_rng(2)
    x, new = rng.normal(size=(120, 3)), rng.normal(size=(7, 3))
    y = np.where(x[:, 0] + 0.5 * rng.normal(size=120) > 0, 1.0, -1.0)
    kernels = [{"function": "gaussian", "widths": [0.1, 1.0, 5.0], "features": "each"}]
    values, bounds = [], []
    for backend in ("memory", "factors"):
        bank = mkldist.KernelBank(x, kernels, normalisation=normalisation, backend=backend)
        solution = mkldist.solve("uniform", bank, y, C=10.0, tol=1e-9)
        values.append(solution.decision_function(bank.on(new)))
        bounds.append([solution.objective, solution.dual_objective, solution.exact_gap])
        assert solution.counters.passes == solution.counters.combines == 1
    np.testing.assert_allclose(values[1], values[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-8, atol=1e-8)
    assert bounds[1][2] <= 1e-9
