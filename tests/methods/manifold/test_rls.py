"""Regularised least squares against scikit-learn, and its bias."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import mkldist
from tests.methods.manifolds import manifold


@pytest.mark.parametrize("gamma_a", [1e-3, 1.0, 50.0])
def test_rls_without_bias_is_kernel_ridge_regression(gamma_a):
    shape = manifold("circles", per_class=12)
    labelled = np.flatnonzero(shape.y)
    mean = shape.grams.mean(axis=0)
    ridge = KernelRidge(alpha=gamma_a, kernel="precomputed")
    ridge.fit(mean[np.ix_(labelled, labelled)], shape.y[labelled])
    solution = mkldist.solve("rls", shape.grams, shape.y, gamma_a=gamma_a, bias=False)
    assert solution.bias == 0.0
    expected = ridge.predict(mean[:, labelled])
    np.testing.assert_allclose(solution.decision_function(shape.grams), expected, atol=1e-7)


def test_rls_with_bias_makes_residuals_sum_to_zero():
    shape = manifold("moons", per_class=6)
    y = shape.y.copy()
    y[np.flatnonzero(y > 0)[:3]] = 0.0  # unbalanced
    solution = mkldist.solve("rls", shape.grams, y, gamma_a=0.1)
    residual = (y - solution.decision_function(shape.grams))[y != 0]
    assert residual.sum() == pytest.approx(0.0, abs=1e-10)
    assert (
        solution.objective < mkldist.solve("rls", shape.grams, y, gamma_a=0.1, bias=False).objective
    )
