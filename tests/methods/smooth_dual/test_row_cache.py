"""The cache of kernel rows against the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.smooth_dual import RowCache, capacity_within, rows_held
from tests.methods import plain_bank


def test_rows_used_longest_ago_make_room():
    cache = RowCache(n_kernels=2, n_points=10, capacity=4)
    grams = np.random.default_rng(7).normal(size=(2, 10, 10))
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
    cache = RowCache(n_kernels=3, n_points=100, capacity=6)
    assert cache.missing(np.arange(50)).tolist() == [0, 1, 2, 3, 4, 5]


def test_as_many_rows_are_kept_as_the_budget_holds_and_at_least_two_pairs():
    row = 8 * 300
    assert capacity_within(3, 100, 6 * row / 2**20) == 6
    assert capacity_within(3, 100, 1e-9) == 4
    assert capacity_within(3, 5, 100.0) == 5


@pytest.mark.parametrize("rows", [0, 10, 56, 80, 1000])
def test_spare_memory_holds_the_rows_and_an_answer(rows):
    row = 8 * 3 * 100
    kept = capacity_within(3, 100, 1.0, rows * row)
    assert rows_held(kept) <= rows_held(4) + rows
    assert kept == 100 or rows_held(kept + 1) > rows_held(4) + rows
