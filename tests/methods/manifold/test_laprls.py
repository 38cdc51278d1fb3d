"""LapRLS: its closed form and its least-squares fit; further tests stand in test_lapsvm."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods.manifolds import Manifold, manifold


def solve(shape: Manifold, **params) -> Solution:
    return mkldist.solve("laprls", shape.grams, shape.y, laplacian=shape.laplacian, **params)


def test_laprls_without_bias_is_the_closed_form_of_the_paper():
    shape = manifold("moons", n=60)
    K, L, n = shape.grams.mean(axis=0), shape.laplacian.toarray(), 60
    J = np.diag((shape.y != 0).astype(float))
    alpha = np.linalg.solve(J @ K + 0.1 * np.eye(n) + 0.02 * L @ K, shape.y)
    solution = solve(shape, gamma_a=0.1, gamma_i=0.02, bias=False)
    np.testing.assert_allclose(solution.decision_function(shape.grams), K @ alpha, atol=1e-9)


def test_laprls_without_a_graph_is_rls():
    shape = manifold("moons", per_class=4)
    plain = mkldist.solve("rls", shape.grams, shape.y, gamma_a=0.2)
    solution = solve(shape, gamma_a=0.2, gamma_i=0.0)
    assert solution.objective == pytest.approx(plain.objective, rel=1e-12)


@pytest.mark.parametrize("gammas", [(1e-8, 1e-2), (1e-6, 1.0), (1e-4, 100.0)])
@pytest.mark.parametrize("bias", [True, False])
def test_laprls_is_the_least_squares_fit_of_its_rows_where_labels_are_nearly_met(gammas, bias):
    shape = manifold("moons", n=60)
    gamma_a, gamma_i = gammas
    values, vectors = np.linalg.eigh(shape.grams.mean(axis=0))
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    edges = np.linalg.cholesky(shape.laplacian.toarray() + 1e-13 * np.eye(60)).T
    labelled = shape.y != 0
    rows = [np.sqrt(gamma_a) * np.eye(60), np.sqrt(gamma_i) * edges @ F, F[labelled]]
    ones = np.concatenate([np.zeros(120), np.ones(labelled.sum())])
    system = np.column_stack([np.vstack(rows), ones]) if bias else np.vstack(rows)
    right = np.concatenate([np.zeros(120), shape.y[labelled]])
    fit = np.linalg.lstsq(system, right, rcond=None)[0]
    expected = 0.5 * ((system @ fit - right) ** 2).sum()
    params = {"gamma_a": gamma_a, "gamma_i": gamma_i, "bias": bias, "tol": 1e-6}
    solution = solve(shape, **params)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.objective == pytest.approx(expected, rel=1e-5)
