"""Expansions in kernels against products with whole matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank import factored_kernels as expansions
from mkldist.bank.bank import PassCounter
from mkldist.bank.factored_kernels import expansion
from mkldist.bank.sources import ArraySource, FeatureSource
from mkldist.errors import GramError
from tests.kernels.few_lists import gaussians

RNG = np.random.default_rng(0)
ROOTS = RNG.normal(size=(3, 40, 6))
GRAMS = ROOTS @ ROOTS.transpose(0, 2, 1)
WEIGHTS = np.array([0.5, 0.0, 2.0])


@pytest.mark.parametrize("values", [1, 100, 2**22])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_those_of_the_sum_and_only_what_counts_is_computed(values, threads, monkeypatch):
    monkeypatch.setattr(expansions, "VALUES", values)
    vectors = RNG.normal(size=(40, 2))
    vectors[::4] = 0.0
    rows = np.array([7, 3, 3, 39])
    full = np.tensordot(WEIGHTS, GRAMS, 1) @ vectors
    whole, some = PassCounter(), PassCounter()
    found = expansion(ArraySource(GRAMS), WEIGHTS, vectors, whole, threads)
    assert_allclose(found, full, atol=1e-12)
    assert whole.bytes_computed == 8 * 2 * 30 * 40
    part = expansion(ArraySource(GRAMS), WEIGHTS, vectors, some, threads, rows)
    assert_allclose(part, full[rows], atol=1e-12)
    assert some.bytes_computed == 8 * 2 * 30 * 4


@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_on_features_go_through_loops(threads):
    points = RNG.normal(size=(40, 2))
    source = FeatureSource(points, gaussians([0.5, 1.0, 2.0], [[0, 1]]))
    vectors, counter, rows = RNG.normal(size=(40, 2)), PassCounter(), np.array([7, 3, 3, 39])
    vectors[::4] = 0.0
    grams = [rbf_kernel(points, gamma=0.5 / width**2) for width in (0.5, 1.0, 2.0)]
    found = expansion(source, WEIGHTS, vectors, counter, threads, rows)
    assert_allclose(found, (np.tensordot(WEIGHTS, grams, 1) @ vectors)[rows], atol=1e-12)
    assert counter.bytes_computed == 8 * 2 * 30 * 4


def test_nothing_is_expanded_in_nothing():
    counter = PassCounter()
    found = expansion(ArraySource(GRAMS), WEIGHTS, np.zeros((40, 1)), counter, 1)
    assert_array_equal(found, np.zeros((40, 1)))
    assert counter.bytes_computed == 0


def test_values_that_are_not_finite_are_told():
    grams = GRAMS.copy()
    grams[2, 5, 5] = np.nan
    with pytest.raises(GramError):
        expansion(ArraySource(grams), WEIGHTS, np.ones((40, 1)), PassCounter(), 1)
