"""PrimalMKL on a working set: the optimum stays where it is, and passes are saved."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.methods.primalmkl import METHOD, PrimalMKLParams
from mkldist.solvers.base import Solution
from tests.benchmarks import problems
from tests.methods import instances, plain_bank
from tests.methods.primal_machines import every_loss, targets


def solve(grams: np.ndarray, y: np.ndarray, **params) -> Solution:
    steps = METHOD.solve(plain_bank.problem(grams, y), PrimalMKLParams(**params))
    return plain_bank.run(steps, grams)


@every_loss
@pytest.mark.parametrize(("coupled", "tol"), [(True, 1e-2), (True, 1e-7), (False, 1e-3)])
def test_the_working_set_leaves_the_optimum_where_it_is(name, coupled, tol):
    instance = instances.more_kernels_than_points()
    y = targets(name, instance)
    settings = {"C": 100.0, "loss": name, "max_iter": 5000}
    plain = solve(instance.grams, y, acceleration="none", tol=1e-9, **settings)
    found = solve(instance.grams, y, coupled=coupled, trace=True, tol=tol, **settings)
    assert plain.converged
    assert found.converged
    slack = 1e-8 * abs(plain.objective)
    assert plain.objective <= found.objective + slack
    assert found.gap <= tol
    assert (found.trace["dual_objective"] <= plain.objective + slack).all()
    assert (np.diff(found.trace["dual_objective"]) >= 0).all()


@pytest.mark.slow
def test_the_working_set_saves_passes():
    grams, y = problems.grams(None), problems.xu2008(None).y
    passes = {}
    for acceleration in ("none", "working-set"):
        solution = mkldist.solve("primalmkl", grams, y, C=1000.0, acceleration=acceleration)
        passes[acceleration] = solution.counters.passes
    assert passes["working-set"] <= 0.75 * passes["none"]
