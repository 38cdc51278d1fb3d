"""Caches of single kernels and the memory budget that they share."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from mkldist.bank.bank import MemoryBudget, RowCache


def test_caches_reserve_little_more_memory_than_they_need() -> None:
    budget, fetched = MemoryBudget(2 * 42 * 8), 0
    caches = [RowCache(1, np.float64, budget) for _ in range(2)]

    def fetch(kernels: list[int], rows: list[np.ndarray]) -> None:
        nonlocal fetched
        fetched += len(kernels)
        for kernel, row in zip(kernels, rows, strict=True):
            row[:] = kernel

    for asked in (np.arange(30), np.arange(33), np.arange(33)):
        for cache in caches:
            [found] = cache.rows(asked, fetch)
            assert_array_equal(found.values[found.lines, 0], asked)
    assert fetched == 2 * 33


def test_caches_that_do_not_all_fit_are_not_all_evicted_in_every_round() -> None:
    n_rows, fetched = 32, 0
    budget = MemoryBudget(4 * n_rows * 8)
    caches = [RowCache(1, np.float64, budget) for _ in range(6)]

    def fetch(kernels: list[int], rows: list[np.ndarray]) -> None:
        nonlocal fetched
        fetched += len(kernels)

    def rounds(caches: list[RowCache], n_rounds: int) -> float:
        before = fetched
        for _ in range(n_rounds):
            for cache in caches:
                list(cache.rows(np.arange(n_rows), fetch))
        return (fetched - before) / (n_rounds * n_rows)

    assert rounds(caches, 1) == 6
    assert rounds(caches, 10) <= 3  # two do not fit, and one more is evicted for them
    rounds(caches[2:], 4)  # the first two are not used again
    assert rounds(caches[2:], 5) == 0
