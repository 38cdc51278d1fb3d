"""Bounds and cuts of methods around a machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from mkldist.core.counters import Counters
from mkldist.methods.cut_bundle import exact_bound
from mkldist.methods.machine_bounds import MachineCuts, WeightedMachine, WrapperBounds
from mkldist.methods.registry import METHODS
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import DualBound, StopReason
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution
from tests.methods import plain_bank
from tests.methods.test_random_instances import conic_optimum, instance


def machine(bias: float) -> SvmSolution:
    return SvmSolution(np.ones(2), np.array([1.0, -1.0]), bias, 3.0, 1.0, 0, 0)


def bounds(counters: Counters) -> WrapperBounds:
    return WrapperBounds(Problem(np.array([1.0, -1.0]), 4), SolverParams(trace=True), counters)


def test_the_solution_is_the_iteration_of_the_least_objective():
    counters = Counters()
    kept = bounds(counters)
    for i, (objective, lower) in enumerate([(3.0, 0.5), (2.0, 0.25), (2.5, 1.5), (2.0, 1.0)]):
        kept.update(np.eye(4)[i], machine(float(i)), objective, lower)
    solution = kept.solution(StopReason.STALLED, state="a state")
    assert solution.kernel_weights.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert solution.bias == 1.0
    assert (solution.objective, solution.dual_objective) == (2.0, 1.5)
    assert kept.width == 0.5
    assert kept.gap == solution.gap == pytest.approx(0.25)
    assert (solution.stop_reason, solution.state) == (StopReason.STALLED, "a state")
    assert solution.counters.outer_iterations == counters.outer_iterations == 4
    assert solution.trace["objective"].tolist() == [3.0, 2.0, 2.0, 2.0]
    assert solution.trace["dual_objective"].tolist() == [0.5, 0.5, 1.5, 1.5]
    assert solution.trace["iterate_objective"].tolist() == [3.0, 2.0, 2.5, 2.0]
    assert solution.trace["iterate_gap"] == pytest.approx([2.5 / 3, 0.875, 0.4, 0.5])


def test_a_bound_by_cuts_is_no_bound_of_the_point_itself():
    kept = bounds(Counters())
    kept.update(np.ones(4), machine(0.0), 4.0, 1.0, DualBound(3.0, np.zeros(2)))
    assert (kept.gap, relative_gap(*kept.own)) == (0.25, 0.75)
    assert kept.solution(StopReason.STALLED).dual_variables.tolist() == [0.0, 0.0]


def test_updates_are_idle_that_improve_neither_bound():
    kept, idle = bounds(Counters()), []
    for objective, lower in [(3.0, 1.0), (3.0, 1.0), (4.0, 0.0), (3.0, 1.5), (2.5, 0.0)]:
        kept.update(np.ones(4), machine(0.0), objective, lower)
        idle.append(kept.idle)
    assert idle == [0, 1, 2, 0, 0]


def test_each_bound_is_improved_by_itself():
    kept = bounds(Counters())
    assert kept.improve_lower(-1.0, np.zeros(2))
    assert not kept.improve_lower(-1.0, np.ones(2))
    assert kept.dual_point.tolist() == [0.0, 0.0]
    assert kept.improve_upper(WeightedMachine(np.ones(4), machine(0.0)), 2.0)
    assert not kept.improve_upper(WeightedMachine(np.zeros(4), machine(1.0)), 2.0)
    assert kept.best.weights.tolist() == [1.0] * 4
    assert kept.width == 3.0


def machine_machine_cuts(alpha: np.ndarray) -> SvmSolution:
    return SvmSolution(alpha, alpha, 0.0, np.inf, -np.inf, 0, 0)


def test_the_bound_is_the_minimum_of_the_cuts_and_its_points_alone_give_it():
    rng = np.random.default_rng(0)
    alphas, q = list(rng.uniform(size=(7, 5))), rng.uniform(1, 5, size=(7, 4))
    cuts = MachineCuts(4)
    for alpha, forms in zip(alphas, q, strict=True):
        found = cuts.add(machine_machine_cuts(alpha), forms)

    def minimum(chosen: list[int]) -> float:
        rows = np.array([alphas[j].sum() - 0.5 * q[j] for j in chosen])
        A = np.column_stack([rows, -np.ones(len(rows))])
        simplex, free = np.append(np.ones(4), 0.0)[None], [(0, None)] * 4 + [(None, None)]
        c = np.append(np.zeros(4), 1.0)
        return linprog(c, A, np.zeros(len(rows)), simplex, [1.0], bounds=free).fun

    binding = [j for j, alpha in enumerate(alphas) if any(p.alpha is alpha for p in found.points)]
    assert found.value == pytest.approx(minimum(list(range(7))), rel=1e-9)
    assert found.value == pytest.approx(minimum(binding), rel=1e-9)
    assert [point.height for point in found.points] == [alphas[j].sum() for j in binding]


def test_the_mixture_alone_gives_the_bound_and_wider_cuts_are_those_of_all_kernels():
    rng = np.random.default_rng(1)
    halves = rng.normal(size=(6, 5, 5))
    grams = halves @ halves.transpose(0, 2, 1)
    alphas = rng.uniform(size=(4, 5))
    q = np.einsum("ji,mik,jk->jm", alphas, grams, alphas)
    some, every = MachineCuts(4), MachineCuts(6)
    for alpha, forms in zip(alphas, q, strict=True):
        found = some.add(machine_machine_cuts(alpha), forms[:4])
        every.add(machine_machine_cuts(alpha), forms)
    mixed = found.mixture
    of_mixture = np.einsum("i,mij,j->m", mixed.alpha, grams[:4], mixed.alpha)
    assert mixed.height == pytest.approx(mixed.alpha.sum())
    assert mixed.height - 0.5 * of_mixture.max() >= found.value - 1e-9
    some.widen(q[:, 4:])
    np.testing.assert_allclose(some.planes.payoff, every.planes.payoff)
    assert some.planes.minimum().bound == pytest.approx(every.planes.minimum().bound, rel=1e-9)


@pytest.mark.parametrize("acceleration", ["working-set", "none"])
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_on_the_same_kernels_it_is_the_bound_of_the_run(seed, acceleration):
    grams, y, _ = instance(seed)
    params = METHODS["level"].params(C=1.0, tol=1e-6, acceleration=acceleration)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS["level"].solve(problem, params), grams)
    found = plain_bank.run(exact_bound(problem, params, solution), grams).value
    assert solution.objective * (1 - 2e-6) <= found <= solution.objective


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
