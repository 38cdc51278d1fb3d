"""SMO-MKL and SKM on the dual that they share: `smo_mkl`, `skm` and their `predictor`."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.requests import Combine, Diagonal, Matvec
from mkldist.methods.registry import METHODS
from tests.methods import instances, plain_bank


def solve(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
def test_a_small_cache_costs_passes_not_accuracy(name):
    instance = instances.more_kernels_than_points()
    settings = {"C": instance.C, "tol": 1e-7}
    roomy = solve(name, instance.grams, instance.y, **settings)
    tight = solve(name, instance.grams, instance.y, cache_mib=0.01, **settings)
    assert tight.converged
    assert tight.objective == pytest.approx(roomy.objective, rel=2e-7)
    assert tight.counters.passes > roomy.counters.passes


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_counters_count_the_requests(name, tol):
    instance = instances.balanced()
    seen = []
    solution = solve(
        name, instance.grams, instance.y, lambda r, _: seen.append(r), C=instance.C, tol=tol
    )
    assert isinstance(seen.pop(0), Diagonal)  # of the traces, which is no pass
    combines = [r for r in seen if isinstance(r, Combine)]
    dense = sum((r.weights > 0.0).all() for r in combines)
    assert solution.counters.combines == len(combines)
    assert solution.counters.passes == dense + len(seen) - len(combines)
    assert all(len(r.kernels) == len(instance.grams) for r in seen if isinstance(r, Matvec))


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
def test_loose_tolerances_need_pair_updates_only(name):
    instance = instances.duplicated_kernels()
    solution = solve(name, instance.grams, instance.y, C=instance.C, tol=0.05)
    assert solution.converged
    assert solution.counters.newton_steps == solution.counters.svm_solves == 0


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
@pytest.mark.parametrize("C", [1e4, 1e8])
def test_hard_margins_are_certified(name, C):
    for make in (instances.more_kernels_than_points, instances.not_normalised):
        instance = make()
        solution = solve(name, instance.grams, instance.y, C=C, tol=1e-6)
        assert solution.converged
        if name == "skm":
            reference = solve("level", instance.grams, instance.y, C=C, tol=1e-8)
            assert solution.objective == pytest.approx(reference.objective, rel=2e-6)


def test_smo_mkl_weights_are_those_that_q_implies():
    instance = instances.balanced()
    p, lam = 1.5, 0.7
    solution = solve("smo_mkl", instance.grams, instance.y, C=5.0, p=p, lam=lam, tol=1e-10)
    a = solution.coefficients
    q = np.einsum("i,mij,j->m", a, instance.grams, a)
    norm = np.linalg.norm(q, ord=p / (p - 1))
    weights = norm / (2 * lam) * (q / norm) ** (1 / (p - 1))
    np.testing.assert_allclose(solution.kernel_weights, weights, rtol=1e-6)
    assert solution.dual_objective == pytest.approx(
        solution.dual_variables.sum() - norm**2 / (8 * lam), rel=1e-9
    )


def test_smo_mkl_objective_scales_with_kernels_C_and_lam():
    instance = instances.balanced()
    plain = solve("smo_mkl", instance.grams, instance.y, C=10.0, lam=1.0, tol=1e-9)
    # ||f_m||^2 / d_m, C and lam all fall by s, and so does the objective at the same f and d.
    s = 50.0
    scaled = solve("smo_mkl", s * instance.grams, instance.y, C=10.0 / s, lam=1 / s, tol=1e-9)
    assert s * scaled.objective == pytest.approx(plain.objective, rel=1e-7)
