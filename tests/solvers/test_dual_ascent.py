"""Ascents of a machine's dual, on a matrix and on an operator of the same entries."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.svm import ascent_on

G = np.random.default_rng(0).normal(size=(40, 6))
Y = np.where(G[:, 0] > 0.1, 1.0, -1.0)
BOUNDS = np.minimum(Y, 0.0), np.maximum(Y, 0.0)


@pytest.mark.parametrize("thin", [True, False])
def test_an_ascent_ends_where_no_pair_violates_optimality(thin):
    K = FactoredMatrix(np.ones(1), [G], (G**2).sum(axis=1)[None], 40) if thin else G @ G.T
    beta, slack = np.zeros(40), Y.copy()
    updates, _ = ascent_on(K, Y, *BOUNDS, lambda *_: False)(beta, slack, 1e-9)
    np.testing.assert_allclose(slack, Y - G @ (G.T @ beta), atol=1e-10)
    assert updates > 0
    assert slack[beta < BOUNDS[1]].max() - slack[beta > BOUNDS[0]].min() <= 1e-8


def test_an_ascent_ends_on_request():
    K = FactoredMatrix(np.ones(1), [G], (G**2).sum(axis=1)[None], 40)
    assert ascent_on(K, Y, *BOUNDS, lambda *_: True)(np.zeros(40), Y.copy(), 0.0) == (0, 0)
