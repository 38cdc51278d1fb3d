"""The cache of kernel rows against the rows themselves."""

from __future__ import annotations

import numpy as np

from mkldist.methods.smooth_dual.row_cache import RowCache
from tests.methods import plain_bank


def test_rows_used_longest_ago_make_room():
    cache = RowCache(n_kernels=2, n_points=10, budget_mib=1e-9)
    grams = np.random.default_rng(7).normal(size=(2, 10, 10))
    assert cache.capacity == 4
    first = cache.missing(np.array([1, 2, 3, 4]))
    request = cache.request(first)
    cache.store(first, plain_bank.reply(grams, request))
    assert cache.missing(np.array([1, 5])).tolist() == [5]
    cache.store(np.array([5]), plain_bank.reply(grams, cache.request(np.array([5]))))
    assert sorted(cache.points.tolist()) == [1, 3, 4, 5]
    assert 2 not in cache
    assert len(cache) == 4
    for point, slot in zip(cache.points, cache.slots, strict=True):
        np.testing.assert_array_equal(cache.rows[slot], grams[:, :, point])


def test_cache_never_asks_for_more_than_it_keeps():
    cache = RowCache(n_kernels=3, n_points=100, budget_mib=6 * 8 * 300 / 2**20)
    assert cache.capacity == 6
    assert cache.missing(np.arange(50)).tolist() == [0, 1, 2, 3, 4, 5]
    assert RowCache(n_kernels=3, n_points=5, budget_mib=100.0).capacity == 5
