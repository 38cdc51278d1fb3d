"""MKL with at most k kernels: the supports that it finds, and what it claims of them."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.requests import Combine, Quadratic
from mkldist.core.counters import Counters
from mkldist.methods.l0_mkl import L0MklParams, solve_on
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import Clock, StopReason
from tests.methods import instances, plain_bank
from tests.methods.instances import Instance
from tests.methods.references.recorded import optimum_of
from tests.methods.references.simplex_svm import simplex_optimum
from tests.methods.test_shared_weights import shared_optimum, three_classes
from tests.variants import quick

LONG = (instances.more_kernels_than_points, instances.unbalanced)


SHORT = [make for make in instances.INSTANCES if make not in LONG]


every_instance = pytest.mark.parametrize(
    "make", quick([*SHORT, *LONG], len(SHORT)), ids=lambda f: f.__name__
)


def solve(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


def conic_optimum(instance: Instance, kernels: np.ndarray) -> float:
    part = Instance("part", instance.grams[kernels], instance.y, instance.C)
    return simplex_optimum(part, instance.y, {"C": instance.C})


@pytest.mark.slow
@every_instance
def test_two_kernels_are_the_best_of_all_pairs(make):
    instance = make()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=2, tol=1e-8)
    assert solution.objective == pytest.approx(optimum_of("l0_mkl-two", make), rel=1e-6)


@pytest.mark.slow
@every_instance
@pytest.mark.parametrize("k", quick([3, 1]))
def test_what_it_claims_of_its_support_is_true(make, k):
    instance = make()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k, tol=1e-7)
    kernels = np.flatnonzero(solution.kernel_weights)
    assert len(kernels) <= k
    assert solution.kernel_weights.sum() == pytest.approx(1.0)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.gap <= 1e-7 or solution.stationarity <= 1e-7
    assert solution.objective == pytest.approx(conic_optimum(instance, kernels), rel=1e-6)
    assert solution.dual_objective == pytest.approx(optimum_of("level", make), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("make", [instances.more_kernels_than_points, instances.ill_conditioned])
@pytest.mark.parametrize("k", [2, 4, 6])
def test_it_is_no_worse_than_the_largest_weights_of_the_relaxation(make, k):
    instance, tol = make(), 1e-6
    relaxed = solve("level", instance.grams, instance.y, C=instance.C, tol=tol)
    largest = np.argsort(-relaxed.kernel_weights)[:k]
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k, tol=tol)
    assert solution.objective <= conic_optimum(instance, largest) * (1 + tol)


@pytest.mark.parametrize("k", [1, 2])
def test_it_does_not_choose_a_kernel_twice_as_the_largest_weights_of_the_relaxation_do(k):
    instance = instances.duplicated_kernels()
    relaxed = solve("level", instance.grams, instance.y, C=instance.C, tol=1e-6)
    largest = np.argsort(-relaxed.kernel_weights)[:k]
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k)
    assert solution.objective < 0.9 * conic_optimum(instance, largest)


@pytest.mark.slow
def test_more_kernels_cost_less_until_the_limit_does_not_bind():
    make, tol = instances.more_kernels_than_points, 1e-6
    instance = make()
    one, two, four, eight, all_kernels = (
        solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k, tol=tol)
        for k in (1, 2, 4, 8, 60)
    )
    assert one.objective > two.objective > four.objective > eight.objective
    # Four kernels are worse than all: their bounds do not meet, and no gap is shown.
    assert four.objective - four.dual_objective > 0.01 * four.objective
    assert np.isnan(four.gap)
    assert four.stationarity <= tol
    assert eight.gap <= tol
    assert np.isnan(eight.stationarity)
    assert all_kernels.objective == pytest.approx(optimum_of("level", make), rel=tol)


@pytest.mark.slow
def test_each_move_takes_one_pass():
    instance, passes = instances.more_kernels_than_points(), []
    solution = solve(
        "l0_mkl",
        instance.grams,
        instance.y,
        lambda request, _: passes.append(
            isinstance(request, Quadratic) and request.kernels is None
        ),
        C=instance.C,
        k=4,
    )
    relaxed = solve("level", instance.grams, instance.y, C=instance.C)
    assert sum(passes) == solution.counters.passes
    assert solution.counters.passes == relaxed.counters.passes + solution.counters.outer_iterations


def test_a_limit_on_moves_returns_the_kernels_so_far():
    instance = instances.more_kernels_than_points()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=8, max_iter=3)
    assert solution.stop_reason is StopReason.MAX_ITER
    assert np.count_nonzero(solution.kernel_weights) <= 3


class StoppedClock(Clock):
    """A clock that stands still until it is told that time is up."""

    up = False

    @property
    def elapsed(self) -> float:
        return 2.0 if self.up else 0.0


def test_no_kernel_is_tried_once_time_is_up():
    make, method = instances.more_kernels_than_points, METHODS["l0_mkl"]
    instance, clock, after = make(), StoppedClock(), []

    def watch(request, _):
        of_a_trial = isinstance(request, Quadratic) and request.kernels is not None
        clock.up |= of_a_trial and len(request.kernels) == 2  # the first kernel and one more
        after.extend([request] if clock.up and isinstance(request, Combine) else [])

    params = method.params(C=instance.C, k=3, trials=3, tol=1e-9, time_limit=1.0)
    problem = Problem(instance.y, len(instance.grams), clock)
    solution = plain_bank.run(method.solve(problem, params), instance.grams, watch)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert len(after) <= 2
    assert solution.dual_objective <= optimum_of("level", make) * (1 + 1e-7)
    assert solution.objective >= optimum_of("level", make) * (1 - 1e-9)


@pytest.mark.slow
def test_a_near_support_saves_machines_and_leads_to_the_same_optimum():
    instance = instances.more_kernels_than_points()
    problem = plain_bank.problem(instance.grams, instance.y)
    params = L0MklParams(C=instance.C, tol=1e-6)
    kernels = np.array([2, 10, 20, 33, 45])

    def found(these, near=None):
        counters = Counters()
        steps = solve_on(these, problem, params, counters, near)
        return plain_bank.run(steps, instance.grams), counters.svm_solves

    fewer, _ = found(kernels[:-1])
    for these, near in ((kernels, fewer), (kernels[1:-1], fewer)):
        cold, cold_solves = found(these)
        warm, warm_solves = found(these, near)
        assert warm.value == pytest.approx(cold.value, rel=1e-6)
        assert warm.value == pytest.approx(conic_optimum(instance, these), rel=1e-6)
        assert warm_solves < cold_solves


@pytest.mark.slow
def test_several_classes_share_the_kernels():
    grams, y = three_classes()
    one = solve("l0_mkl", grams, y, C=20.0, k=1, tol=1e-6)
    assert np.count_nonzero(one.kernel_weights) == 1
    assert one.coefficients.shape == y.shape
    assert one.objective > shared_optimum() * 1.001
    assert one.dual_objective == pytest.approx(shared_optimum(), rel=1e-5)
    every = solve("l0_mkl", grams, y, C=20.0, k=len(grams), tol=1e-6)
    assert every.objective == pytest.approx(shared_optimum(), rel=1e-5)


def test_a_limit_on_time_leaves_true_bounds():
    make = instances.more_kernels_than_points
    instance = make()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=2, time_limit=1e-9)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.dual_objective <= optimum_of("level", make) * (1 + 1e-7)
    assert solution.objective >= optimum_of("l0_mkl-two", make) * (1 - 1e-6)
