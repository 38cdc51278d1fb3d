"""Independent centred alignment: its weights by the formula, its machine by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from mkldist.bank.requests import Combine
from mkldist.methods.alignment import ALIGN as METHOD
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank

every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def solve(grams: np.ndarray, y: np.ndarray, watch=None, **params) -> Solution:
    steps = METHOD.solve(plain_bank.problem(grams, y), METHOD.params(**params))
    return plain_bank.run(steps, grams, watch)


def alignment(K: np.ndarray, L: np.ndarray) -> float:
    H = np.eye(len(K)) - 1 / len(K)
    K, L = H @ K @ H, H @ L @ H
    return (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))


def combined(grams: np.ndarray, solution: Solution) -> np.ndarray:
    return np.einsum("m,mij->ij", solution.kernel_weights, grams)


@every_instance
def test_weights_are_proportional_to_the_alignments(make):
    instance = make()
    target = np.outer(instance.y, instance.y)
    rho = np.array([alignment(K, target) if K.any() else 0.0 for K in instance.grams])
    solution = solve(instance.grams, instance.y)
    np.testing.assert_allclose(solution.kernel_weights, rho / rho.sum(), rtol=1e-9)
    K = combined(instance.grams, solution)
    assert solution.extra["alignment"] == pytest.approx(alignment(K, target), rel=1e-9)


def test_the_machine_is_that_of_scikit_learn():
    instance = instances.balanced()
    solution = solve(instance.grams, instance.y, C=10.0, tol=1e-9)
    K = combined(instance.grams, solution)
    svc = SVC(C=10.0, kernel="precomputed", tol=1e-8).fit(K, instance.y)
    np.testing.assert_allclose(
        solution.decision_function(instance.grams), svc.decision_function(K), atol=1e-4
    )


def test_a_kernel_that_is_aligned_against_the_labels_gets_no_weight():
    instance = instances.balanced()
    against = -np.outer(instance.y, instance.y)[None]
    solution = solve(np.concatenate([against, instance.grams]), instance.y)
    alone = solve(instance.grams, instance.y)
    np.testing.assert_allclose(solution.kernel_weights, [0.0, *alone.kernel_weights], rtol=1e-9)


@pytest.mark.parametrize("entry", [0.0, 0.1, 1.0])
def test_kernels_that_are_constant_get_no_weight(entry):
    instance = instances.balanced()
    n = len(instance.y)
    constant = np.full((2, n, n), entry)
    solution = solve(np.concatenate([constant, instance.grams]), instance.y)
    assert not solution.kernel_weights[:2].any()
    assert solution.kernel_weights[2:].all()
    alone = solve(constant, instance.y)
    assert alone.kernel_weights.tolist() == [0.5, 0.5]
    assert alone.extra["alignment"] == 0.0


def test_classes_share_the_alignment_with_all_of_them():
    instance = instances.balanced()
    y = np.column_stack([instance.y, np.where(np.arange(len(instance.y)) % 3 == 0, 1.0, -1.0)])
    rho = np.array([alignment(K, y @ y.T) for K in instance.grams])
    solution = solve(instance.grams, y)
    np.testing.assert_allclose(solution.kernel_weights, rho / rho.sum(), rtol=1e-9)


def test_kernels_are_read_once_and_a_few_at_a_time():
    instance, asked = instances.balanced(), []
    solution = solve(instance.grams, instance.y, lambda request, _: asked.append(request))
    *singles, last = asked
    assert all(isinstance(request, Combine) for request in asked)
    assert [request.kernels.tolist() for request in singles] == [[0, 1, 2], [3, 4, 5], [6]]
    assert last.kernels is None
    assert solution.counters.passes == METHOD.typical_passes(len(instance.grams)) == 2


def test_without_time_the_kernels_that_were_read_are_weighted():
    instance = instances.balanced()
    solution = solve(instance.grams, instance.y, time_limit=1e-9)
    target = np.outer(instance.y, instance.y)
    rho = np.array([alignment(K, target) for K in instance.grams[:3]])
    assert solution.stop_reason is StopReason.TIME_LIMIT
    np.testing.assert_allclose(solution.kernel_weights[:3], rho / rho.sum(), rtol=1e-9)
    assert not solution.kernel_weights[3:].any()
