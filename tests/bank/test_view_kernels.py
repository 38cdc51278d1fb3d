"""Copies of single kernels on the points of a view."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.bank import MemoryBank, MemoryBudget, TileLayout
from mkldist.bank.requests import Combine, Matvec
from mkldist.bank.view import make_views
from tests.bank.bank_suite import answers, random_grams

N_KERNELS, N_POINTS = 20, 22


@pytest.fixture
def bank() -> MemoryBank:
    return MemoryBank.from_grams(random_grams(N_KERNELS, N_POINTS))


def test_kernels_of_a_view_are_read_from_the_bank_once(bank: MemoryBank) -> None:
    index = np.arange(3, 14)
    [view] = make_views(bank, [index], ("centre",), MemoryBudget(2**20))
    few = Combine(np.isin(np.arange(N_KERNELS), [2, 5, 6]).astype(float))
    row_bytes = bank.n_bytes // N_KERNELS
    answers(view, [few])
    assert (bank.counter.bytes_read, bank.counter.passes) == (3 * row_bytes, 0)
    answers(view, [few, Matvec(np.array([6, 2]), np.ones(len(index)))])
    assert bank.counter.bytes_read == 3 * row_bytes
    answers(view, [Matvec(np.array([6, 7]), np.ones(len(index)))])
    assert bank.counter.bytes_read == 4 * row_bytes


def test_views_share_the_memory_and_the_one_used_longest_ago_is_evicted(bank: MemoryBank) -> None:
    indices = [np.arange(11), np.arange(11, 22)]
    own = TileLayout.for_points(11).n_entries * 8
    views = make_views(
        bank, indices, (), MemoryBudget(40 * own)
    )  # one reserves memory for 32 at first
    row_bytes = bank.n_bytes // N_KERNELS
    asked = Matvec(np.array([1, 4]), np.ones(11))
    read = []
    for view in (views[0], views[0], views[1], views[1], views[0]):
        before = bank.counter.bytes_read
        answers(view, [asked])
        read.append((bank.counter.bytes_read - before) // row_bytes)
    assert read == [2, 0, 2, 0, 2]
