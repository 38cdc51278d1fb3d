"""Cuts of banks into shards, and the entries of a shard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mkldist.bank.bank import TileLayout, block_kernels
from mkldist.bank.sharded import block_bytes, cut, kernel_bytes, shard_entries
from mkldist.bank.sources import ArraySource
from mkldist.bank.store import BankShape
from mkldist.errors import GramError
from tests.bank.bank_suite import random_grams


@pytest.mark.slow
@given(
    n_kernels=st.integers(1, 20_000),
    n_points=st.integers(2, 20_000),
    most=st.integers(1, 2**34),
    at_least=st.integers(1, 40),
)
def test_shards_hold_every_kernel_once_in_whole_blocks_and_fit(n_kernels, n_points, most, at_least):
    shape = BankShape(n_kernels, TileLayout.for_points(n_points), "float64")
    shards = cut(shape, most, at_least)
    assert [shard.start for shard in shards] == [0, *(shard.stop for shard in shards[:-1])]
    assert shards[-1].stop == n_kernels
    assert all(shard.start % block_kernels(shape.layout) == 0 for shard in shards)
    largest = max(shard.stop - shard.start for shard in shards) * kernel_bytes(shape)
    assert largest <= max(most, block_bytes(shape))
    n_blocks = -(-n_kernels // block_kernels(shape.layout))
    assert len(shards) >= min(at_least, n_blocks)


def test_a_block_is_at_most_half_a_gibibyte_or_one_kernel():
    for n_points in (100, 1000, 5000, 30_000):
        shape = BankShape(10**6, TileLayout.for_points(n_points), "float64")
        assert block_bytes(shape) <= max(2**29, kernel_bytes(shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_entries_of_a_shard_are_those_of_the_bank(dtype, monkeypatch):
    monkeypatch.setattr("mkldist.bank.store.CHUNK_BYTES", 4_000)
    grams = random_grams(40, 21)
    shape = BankShape(40, TileLayout.for_points(21), dtype)
    found = shard_entries(ArraySource(grams), shape, slice(7, 33))
    assert found.dtype == dtype
    assert_array_equal(found, shape.layout.pack(grams[7:33]))


def test_a_kernel_that_is_not_finite_is_named():
    grams = random_grams(9, 12)
    grams[7, 3, 3] = np.inf
    shape = BankShape(9, TileLayout.for_points(12), "float64")
    with pytest.raises(GramError, match="kernel 7"):
        shard_entries(ArraySource(grams), shape, slice(5, 9))
