"""Centred alignment: its maximum, by definition and by a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from mkldist.methods.alignment import nonnegative_quadratic
from mkldist.methods.registry import METHODS
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank

METHOD = METHODS["alignf"]
every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def solve(grams, y, watch=None, **params):
    steps = METHOD.solve(plain_bank.problem(grams, y), METHOD.params(**params))
    return plain_bank.run(steps, grams, watch)


def centred(grams):
    H = np.eye(grams.shape[-1]) - 1 / grams.shape[-1]
    return H @ grams @ H


def alignment(K, L):
    K, L = centred(K), centred(L)
    return (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))


def gram_of(instance):
    flat = centred(instance.grams).reshape(len(instance.grams), -1)
    return flat @ flat.T, flat @ centred(np.outer(instance.y, instance.y)).ravel()


@every_instance
def test_the_alignment_reported_is_that_of_the_combination(make):
    instance = make()
    solution = solve(instance.grams, instance.y)
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    target = np.outer(instance.y, instance.y)
    assert solution.extra["alignment"] == pytest.approx(alignment(K, target), rel=1e-7)
    assert solution.kernel_weights.sum() == pytest.approx(1.0)
    assert solution.kernel_weights.min() >= 0.0
    singles = [alignment(k, target) for k in instance.grams if k.any()]
    assert solution.extra["alignment"] >= max(singles) - 1e-9


@pytest.mark.parametrize("make", [instances.balanced, instances.not_normalised])
def test_no_other_combination_is_better_aligned(make):
    instance = make()
    target = np.outer(instance.y, instance.y)
    lengths = np.linalg.norm(centred(instance.grams), axis=(1, 2))
    units = instance.grams / lengths[:, None, None]
    rng = np.random.default_rng(0)
    best = solve(instance.grams, instance.y).extra["alignment"]
    found = [
        -scipy.optimize.minimize(
            lambda v: -alignment(np.einsum("m,mij->ij", v, units), target),
            rng.uniform(0.1, 1, len(units)),
            bounds=[(0, None)] * len(units),
            method="L-BFGS-B",
        ).fun
        for _ in range(3)
    ]
    assert max(found) <= best + 1e-9
    assert max(found) == pytest.approx(best, rel=1e-3)


@every_instance
@pytest.mark.parametrize("route", ["active set", "trust region"])
def test_weights_satisfy_the_first_order_conditions(make, route, monkeypatch):
    def cycle(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached.")

    if route == "trust region":
        monkeypatch.setattr(scipy.optimize, "nnls", cycle)
    M, a = gram_of(make())
    v = nonnegative_quadratic(M, a)
    lengths = np.sqrt(np.maximum(np.diagonal(M), 1e-300))
    slope = (M @ v - a) / lengths / np.sqrt(a @ a)
    accuracy = 1e-8 if route == "active set" else 1e-5
    assert v.min() >= 0.0
    assert slope.min() >= -accuracy * np.abs(a / lengths).max() / np.sqrt(a @ a)
    assert abs(v @ (M @ v - a)) <= accuracy * abs(v @ a)


def test_centring_the_kernels_before_changes_nothing():
    instance = instances.balanced()
    plain = solve(instance.grams, instance.y, C=10.0, tol=1e-9)
    moved = solve(centred(instance.grams), instance.y, C=10.0, tol=1e-9)
    np.testing.assert_allclose(moved.kernel_weights, plain.kernel_weights, atol=1e-9)
    assert moved.objective == pytest.approx(plain.objective, rel=1e-8)


def test_kernels_that_are_constant_get_no_weight():
    instance = instances.balanced()
    grams = np.concatenate([np.ones((1, 60, 60)), instance.grams])
    solution = solve(grams, instance.y)
    assert solution.kernel_weights[0] == 0.0
    only = solve(grams[:1], instance.y)
    assert only.kernel_weights.tolist() == [1.0]
    assert only.extra["alignment"] == 0.0


def test_columns_are_asked_for_a_few_at_a_time():
    instance, asked = instances.balanced(), []
    solution = solve(instance.grams, instance.y, lambda request, _: asked.append(request))
    chunks = [len(request.matrices) for request in asked if hasattr(request, "matrices")]
    assert chunks == [3, 3, 1]
    assert solution.counters.passes == 1 + len(chunks)
    assert solution.counters.combines == len(instance.grams) + 1
    assert len(asked) == 1 + 2 * len(chunks) + 1


def test_without_time_the_kernels_that_were_compared_are_weighted():
    instance = instances.balanced()
    solution = solve(instance.grams, instance.y, time_limit=1e-9)
    few = solve(instance.grams[:3], instance.y)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    np.testing.assert_allclose(solution.kernel_weights[:3], few.kernel_weights, atol=1e-12)
    assert not solution.kernel_weights[3:].any()
    assert solution.extra["alignment"] == pytest.approx(few.extra["alignment"])
