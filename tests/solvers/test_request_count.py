"""Passes and combined matrices mean the same for every method and in every drive."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.bank import MemoryBank
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii
from mkldist.bank.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem
from mkldist.solvers.lockstep import Job, RequestCount, drive
from tests.methods import instances, plain_bank
from tests.methods.manifolds import manifold

M, V = 4, np.ones(3)
DENSE, SPARSE = np.full(M, 0.25), np.array([0.5, 0.0, 0.0, 0.5])


@pytest.mark.parametrize(
    ("requests", "passes", "combines"),
    [
        ([], 0, 0),
        ([Quadratic(V)], 1, 0),
        ([Inner(np.ones((1, 3, 3)))], 1, 0),
        ([Radii()], 1, 0),
        ([Diagonal(np.ones((3, 1)))], 0, 0),
        ([Combine(DENSE)], 1, 1),
        ([Combine(SPARSE)], 0, 1),
        ([Combine(np.array([SPARSE, 1.0 - SPARSE]))], 1, 2),
        ([Combine(DENSE, np.arange(M))], 1, 1),
        ([Combine(SPARSE, np.arange(M))], 0, 1),
        ([Matvec(np.arange(M), V)], 1, 0),
        ([Matvec(np.array([0, 1]), V)] * 5, 0, 0),
        ([Matvec(np.array([0, 1]), V), Matvec(np.array([3, 2]), V)], 1, 0),
        ([Combine(np.eye(2), np.array([0, 1])), Combine(np.eye(2), np.array([2, 3]))], 1, 4),
        # A whole pass ends what was begun by parts.
        ([Quadratic(V, np.arange(3)), Quadratic(V), Quadratic(V, np.array([3]))], 1, 0),
    ],
)
def test_a_pass_ends_once_every_kernel_has_been_read_since_the_last(requests, passes, combines):
    count = RequestCount(M)
    for request in requests:
        count.count(request)
    assert (count.passes, count.combines) == (passes, combines)


MEAN_KERNEL = ("uniform", "lsvm", "lapsvm", "rls", "laprls")


def test_methods_on_the_mean_kernel_count_the_same_pass():
    shape = manifold("moons")
    for name in MEAN_KERNEL:
        laplacian = shape.laplacian if METHODS[name].needs_laplacian else None
        y = np.where(shape.y == 0, 1.0, shape.y) if name == "uniform" else shape.y
        problem = plain_bank.problem(shape.grams, y, laplacian)
        steps = METHODS[name].solve(problem, METHODS[name].params())
        counters = plain_bank.run(steps, shape.grams).counters
        assert (counters.passes, counters.combines) == (1, 1), name


def test_the_driver_counts_what_the_requests_say_beside_other_jobs_too():
    instance = instances.balanced()
    bank = MemoryBank.from_grams(instance.grams)
    view = make_views(bank, [None], ())[0]
    names = ("simplemkl", "rmkl", "easymkl", "best_single", "alignf", "majority")
    jobs, expected, found = [], {}, {}
    for name in names:
        method = METHODS[name]
        params = method.params(tol=1e-3)
        alone = method.solve(plain_bank.problem(instance.grams, instance.y), params)
        expected[name] = plain_bank.run(alone, instance.grams).counters
        problem = Problem(instance.y, bank.n_kernels)
        jobs.append(Job(name, view, problem, method.solve(problem, params)))
    drive(bank, jobs, lambda key, outcome, times: found.update({key: outcome.counters}))
    for name in names:
        assert found[name].passes == expected[name].passes
        assert found[name].combines == expected[name].combines
    assert (found["easymkl"].passes, found["easymkl"].combines) == (3, 2)
    assert (found["majority"].passes, found["majority"].combines) == (0, 0)
