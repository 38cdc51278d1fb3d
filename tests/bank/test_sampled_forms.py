"""Estimates of what factors lack, against the kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.factored_kernels import GROUPS, FactorLimits, begin_factors, sampled_forms
from mkldist.bank.sources import ArraySource

POINTS = np.random.default_rng(0).normal(size=(400, 3))
GRAMS = np.array([rbf_kernel(POINTS, gamma=gamma) for gamma in (0.05, 5.0, 50.0)])
KERNELS = replace(
    begin_factors(ArraySource(GRAMS), FactorLimits(rank=20, tolerance=0.0), threads=2),
    scale=np.array([1.0, 2.0, 0.5]),
)
VECTORS = np.random.default_rng(1).normal(size=(400, 2))
VECTORS[::3] = 0.0
EVERY = np.arange(3)


def test_estimates_lie_around_what_is_lacking():
    exact = KERNELS.lacking(EVERY, VECTORS)
    draws = [sampled_forms(KERNELS, EVERY, VECTORS, 60, seed) for seed in range(40)]
    # of kernels that lack much: the estimate of a small semi-definite rest is cut off at zero
    means = np.array([one.lacking for one in draws])[:, 1:]
    errors = np.array([one.errors for one in draws])[:, 1:]
    deviations = (means - exact[1:]) / errors
    assert np.abs(deviations.mean(axis=0)).max() < 0.5
    assert 0.8 < deviations.std() < 1.6
    of_mean = means.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(means.mean(axis=0) - exact[1:]) < 4.0 * of_mean).all()


def test_no_point_is_drawn_for_vectors_of_zeros():
    found = sampled_forms(KERNELS, EVERY[:2], np.zeros((400, 2)), 10, 0)
    assert found.lacking.shape == found.errors.shape == (2, 2)
    assert not found.lacking.any()


def test_values_are_those_between_the_points_of_a_group():
    before = KERNELS.counter.bytes_computed
    sampled_forms(KERNELS, EVERY[1:], VECTORS, 64, 0)
    values = (KERNELS.counter.bytes_computed - before) / (8 * 2 * GROUPS)
    assert 50 * 51 / 2 <= values <= 64 * 66  # some of the 64 are drawn twice


def test_what_kernels_lack_on_the_diagonal_is_no_estimate():
    """A sample sees the diagonal of a narrow kernel only where it draws a point twice."""
    apart = begin_factors(ArraySource(np.eye(400)[None]), FactorLimits(rank=20, tolerance=0.0))
    found = sampled_forms(apart, EVERY[:1], VECTORS, 5, 0)
    np.testing.assert_allclose(found.lacking, apart.lacking(EVERY[:1], VECTORS), rtol=1e-12)
    assert not found.errors.any()
