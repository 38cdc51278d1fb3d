"""The lower bound that dual points give with other kernels than those they were found on."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.cut_bundle import exact_bound
from mkldist.methods.registry import METHODS
from tests.methods import plain_bank
from tests.methods.test_random_instances import conic_optimum, instance


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
