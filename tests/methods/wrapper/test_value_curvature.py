"""First and second derivatives of the machine's value against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.weight_newton import hessian_root
from mkldist.solvers.svm import solve_svm
from tests.methods import instances
from tests.variants import quick

STEP = 1e-5


def machine(instance, d, C):
    K = np.einsum("m,mij->ij", d, instance.grams)
    return K, solve_svm(K, instance.y, C, tol=1e-13)


def quadratics(instance, svm):
    return np.einsum("i,mij,j->m", svm.signed, instance.grams, svm.signed)


@pytest.mark.parametrize("make", quick([instances.balanced, instances.unbalanced]))
@pytest.mark.parametrize("C", [5.0, 20.0, 1e6])
def test_derivatives_are_those_of_finite_differences(make, C):
    instance = make()
    M = len(instance.grams)
    d = np.random.default_rng(1).dirichlet(np.ones(M))
    K, svm = machine(instance, d, C)
    root = hessian_root(K, svm.alpha, C, instance.grams @ svm.signed)
    hessian, gradient = root.T @ root, -0.5 * quadratics(instance, svm)
    values, gradients = np.empty((M, 2)), np.empty((M, M, 2))
    for m in range(M):
        for side, sign in enumerate((1.0, -1.0)):
            moved = d.copy()
            moved[m] += sign * STEP * d[m]
            _, there = machine(instance, moved, C)
            values[m, side] = there.dual_objective
            gradients[m, :, side] = -0.5 * quadratics(instance, there)
    width = 2 * STEP * d
    numeric = (values[:, 0] - values[:, 1]) / width
    np.testing.assert_allclose(numeric, gradient, atol=1e-4 * np.abs(gradient).max())
    numeric = (gradients[..., 0] - gradients[..., 1]) / width[:, None]
    np.testing.assert_allclose(numeric, hessian, atol=1e-3 * np.abs(hessian).max())


def test_no_free_vector_means_no_curvature():
    instance = instances.balanced()
    alpha = np.full(60, 1e-6)
    root = hessian_root(instance.grams[0], alpha, 1e-6, instance.grams @ (alpha * instance.y))
    assert root.shape == (0, len(instance.grams))
