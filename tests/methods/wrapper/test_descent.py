"""The fast descent against the papers' plain algorithms, and ridges against kernels with them."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.counters import Counters
from mkldist.machines.inner_svm import InnerSvm
from mkldist.methods.registry import METHODS
from mkldist.methods.wrapper.bounds import WrapperBounds
from mkldist.methods.wrapper.descent import descend
from mkldist.methods.wrapper.simplemkl import SimpleMKLParams
from mkldist.solvers.base import StopReason
from tests.methods import instances, plain_bank


@pytest.mark.parametrize("name", ["simplemkl", "rmkl"])
@pytest.mark.parametrize("make", instances.INSTANCES)
def test_the_fast_descent_and_the_papers_enclose_one_optimum(name, make):
    instance, method = make(), METHODS[name]
    plain, fast = (
        plain_bank.run(
            method.solve(
                plain_bank.problem(instance.grams, instance.y),
                method.params(C=instance.C, tol=0.01, curvature=curvature),
            ),
            instance.grams,
        )
        for curvature in (False, True)
    )
    assert plain.converged
    assert fast.converged
    lower = max(plain.dual_objective, fast.dual_objective)
    assert lower <= min(plain.objective, fast.objective) * (1 + 1e-12)


def descended(grams: np.ndarray, ridges: np.ndarray, y: np.ndarray) -> WrapperBounds:
    params, counters = SimpleMKLParams(C=30.0, tol=1e-6), Counters()
    problem = plain_bank.problem(grams, y)
    svm_at, bounds = InnerSvm(y, 30.0, 1e-6, counters), WrapperBounds(problem, params, counters)

    def machine(kernel):
        return svm_at(kernel.matrix + kernel.ridge * np.eye(len(y)))

    stop = plain_bank.run(descend(problem, params, machine, ridges, bounds), grams)
    assert stop is StopReason.CONVERGED
    return bounds


def test_ridges_are_parts_of_the_kernels():
    instance = instances.balanced()
    ridges = np.random.default_rng(0).uniform(0.0, 0.1, len(instance.grams))
    ridged = instance.grams + ridges[:, None, None] * np.eye(len(instance.y))
    apart = descended(instance.grams, ridges, instance.y)
    within = descended(ridged, np.zeros(len(ridges)), instance.y)
    assert apart.upper == pytest.approx(within.upper, rel=1e-6)
    assert max(apart.lower, within.lower) <= min(apart.upper, within.upper)
    assert apart.upper < descended(instance.grams, np.zeros(len(ridges)), instance.y).upper
