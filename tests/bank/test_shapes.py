"""Blocks cut a bank without gap or overlap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.bank import store as bank_store
from mkldist.bank.bank import TileLayout
from mkldist.bank.store import GramStore

pytestmark = pytest.mark.usefixtures("small_blocks")


@settings(max_examples=300, deadline=None)
@given(
    n_kernels=st.integers(1, 5000),
    n_points=st.integers(1, 3000),
    tile=st.integers(1, 256),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_blocks_tile_the_bank_without_overlap(n_kernels, n_points, tile, dtype):
    bank_store.CHUNK_BYTES, bank_store.KERNELS_PER_CHUNK = 8 * 2**20, 16
    shape = bank_store.BankShape(n_kernels, TileLayout(n_points, tile), dtype)
    kernels, tiles = shape.chunk
    rows, columns = shape.grid
    assert (rows - 1) * kernels < n_kernels <= rows * kernels
    assert columns * tiles == shape.layout.n_tiles
    n_bytes = kernels * tiles * shape.layout.tile_entries * np.dtype(dtype).itemsize
    one_column = 16 * shape.layout.tile_entries * np.dtype(dtype).itemsize
    assert n_bytes <= max(bank_store.CHUNK_BYTES, one_column)
    assert rows == 1 or n_bytes >= bank_store.CHUNK_BYTES / 8


def test_blocks_cover_every_entry_once():
    store = GramStore.create("memory://cover", "b", 41, TileLayout(30, 4), "float64")
    seen = np.zeros((41, store.layout.n_entries), dtype=int)
    for block in store.blocks:
        seen[block.kernels, block.entries] += 1
        assert block.shape == seen[block.kernels, block.entries].shape
        assert block.entries.start == block.tiles.start * 16
    assert len(store.blocks) > 20
    np.testing.assert_array_equal(seen, 1)
    store.delete()
