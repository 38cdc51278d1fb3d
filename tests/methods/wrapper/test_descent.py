"""The fast descent against the papers' plain algorithms, and ridges against kernels with them."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.machine_bounds import WrapperBounds
from mkldist.methods.reduced_gradient import descend
from mkldist.methods.registry import METHODS
from mkldist.methods.simplemkl import SimpleMKLParams
from mkldist.solvers.progress import StopReason
from mkldist.solvers.svm import InnerSvm
from tests.methods import instances, plain_bank
from tests.methods.wrapper.test_reduced_gradient import low_rank


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


def wide_bank(seed: int, n_kernels: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Gaussians of one feature each, of which few tell the classes apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, n_kernels))
    y = np.where(x[:, 0] + 0.7 * x[:, 1] + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)
    widths = rng.uniform(0.3, 3.0, size=(n_kernels, 1, 1))
    distances = (x[:, None] - x[None]).transpose(2, 0, 1) ** 2
    return np.exp(-distances / (2 * widths**2)) / len(y), y


@pytest.mark.parametrize("name", ["simplemkl", "rmkl"])
@pytest.mark.parametrize(("seed", "C"), [(0, 1.0), (1, 100.0), (2, 1e4)])
def test_the_working_set_leaves_the_optimum_where_it_is_in_fewer_passes(name, seed, C):
    (grams, y), method = wide_bank(seed), METHODS[name]

    def solved(acceleration):
        asked = []
        params = method.params(C=C, tol=1e-6, acceleration=acceleration)
        steps = method.solve(plain_bank.problem(grams, y), params)
        solution = plain_bank.run(steps, grams, lambda request, _: asked.append(request))
        return solution, sum(getattr(request, "kernels", None) is None for request in asked)

    (plain, of_all), (fast, fewer) = solved("none"), solved("working-set")
    assert plain.converged
    assert fast.converged
    lower = max(plain.dual_objective, fast.dual_objective)
    assert lower <= min(plain.objective, fast.objective) * (1 + 1e-12)
    assert of_all >= 2 * plain.counters.outer_iterations
    assert fewer < of_all / 4


def low_rank_bank(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Many kernels of few directions, on which the value has kinks."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(rng.integers(5, 20)) % 2, 1.0, -1.0)
    grams = np.array([low_rank(rng, y) for _ in range(rng.integers(45, 120))])
    grams = np.array([np.eye(len(y)) if (np.outer(y, y) == K).all() else K for K in grams])
    traces = np.trace(grams, axis1=1, axis2=2)
    scale = 10.0 ** rng.uniform(-1, 1, size=len(grams))
    return grams * (scale / np.where(traces > 0, traces, 1.0))[:, None, None], y


@pytest.mark.parametrize("seed", range(8))
def test_kinks_on_a_working_set_are_left_too(seed):
    grams, y = low_rank_bank(seed)
    found = {
        name: plain_bank.run(
            METHODS[name].solve(
                plain_bank.problem(grams, y), METHODS[name].params(C=30.0, tol=1e-4)
            ),
            grams,
        )
        for name in ("simplemkl", "silp")
    }
    assert found["simplemkl"].converged
    assert found["simplemkl"].objective == pytest.approx(found["silp"].objective, rel=2e-4)
    assert found["simplemkl"].dual_objective <= found["silp"].objective * (1 + 1e-9)


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
