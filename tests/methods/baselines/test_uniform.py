"""Uniform weights against scikit-learn's machine on the mean kernel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from mkldist.methods.uniform import METHOD
from mkldist.solvers.base import Solution
from tests.methods import instances, plain_bank


def solve(grams: np.ndarray, y: np.ndarray, **params) -> Solution:
    steps = METHOD.solve(plain_bank.problem(grams, y), METHOD.params(**params))
    return plain_bank.run(steps, grams)


def test_uniform_is_the_machine_on_the_mean_kernel():
    instance = instances.more_kernels_than_points()
    K = instance.grams.mean(axis=0)
    solution = solve(instance.grams, instance.y, C=20.0, tol=1e-9)
    reference = SVC(C=20.0, kernel="precomputed", tol=1e-8).fit(K, instance.y)
    np.testing.assert_allclose(
        solution.decision_function(instance.grams), reference.decision_function(K), atol=1e-4
    )
    assert (solution.kernel_weights == 1 / len(instance.grams)).all()


def test_classes_share_the_mean_kernel_and_their_values_add_up():
    instance = instances.balanced()
    other = np.where(np.arange(len(instance.y)) % 3 == 0, 1.0, -1.0)
    labels = (np.column_stack([instance.y, other]), instance.y, other)
    together, *alone = (solve(instance.grams, y, C=5.0, tol=1e-9) for y in labels)
    assert together.objective == pytest.approx(sum(one.objective for one in alone), rel=1e-8)
    decision = together.decision_function(instance.grams)
    for c, one in enumerate(alone):
        np.testing.assert_allclose(decision[:, c], one.decision_function(instance.grams), atol=1e-4)
