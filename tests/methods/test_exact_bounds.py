"""Bounds with the kernels themselves, and states on kernels that have grown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank import factored_kernels
from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.sources import ArraySource
from mkldist.methods.cut_bundle import exact_bound
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.on_factors import solve_on_factors
from tests.methods import plain_bank
from tests.methods.test_random_instances import conic_optimum, instance
from tests.variants import quick

DRAWS = 132  # earlier versions failed at 18, 43, 46, 68, 70, 116 and 129, among others


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
    method, crossed = METHODS[case.split("-")[0]], []
    for seed in range(DRAWS):
        grams, y, C, tol = drawn(seed)
        params = method.params(C=C, tol=tol, time_limit=1.0, **METHODS_AND_PARAMS[case])
        solution = plain_bank.run(method.solve(plain_bank.problem(grams, y), params), grams)
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
