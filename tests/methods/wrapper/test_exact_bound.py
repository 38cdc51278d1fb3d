"""The lower bound that dual points give with other kernels than those they were found on."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.methods.wrapper.exact_bound import exact_bound
from tests.methods import plain_bank
from tests.methods.test_random_instances import conic_optimum, instance


@pytest.mark.parametrize("acceleration", ["working-set", "none"])
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_on_the_same_kernels_it_is_the_bound_of_the_run(seed, acceleration):
    grams, y, _ = instance(seed)
    params = METHODS["level"].params(C=1.0, tol=1e-6, acceleration=acceleration)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS["level"].solve(problem, params), grams)
    found = plain_bank.run(exact_bound(problem, params, solution), grams)
    assert solution.objective * (1 - 2e-6) <= found <= solution.objective


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_on_larger_kernels_it_stays_below_their_optimum(seed):
    grams, y, rng = instance(seed)
    params = METHODS["level"].params(C=1.0, tol=1e-6)
    problem = plain_bank.problem(grams, y)
    solution = plain_bank.run(METHODS["level"].solve(problem, params), grams)
    larger = grams + rng.uniform(0, 0.5, (len(grams), 1, 1)) * np.eye(len(y))
    found = plain_bank.run(exact_bound(problem, params, solution), larger)
    optimum = conic_optimum(larger, y, 1.0)
    assert 0.0 < found <= optimum * (1 + 1e-6)
