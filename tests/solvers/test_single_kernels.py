"""Requests for single Gram matrices."""

from __future__ import annotations

import numpy as np

from mkldist.solvers.queries import gram_matrices
from tests.methods import plain_bank


def test_the_matrices_come_in_the_order_asked_for():
    grams = np.random.default_rng(0).normal(size=(5, 3, 3))
    found = plain_bank.run(gram_matrices(np.array([3, 0, 4])), grams)
    np.testing.assert_array_equal(found, grams[[3, 0, 4]])
