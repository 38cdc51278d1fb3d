"""Upper tiles: every entry of a symmetric matrix has its place, and sums count it as often."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.bank.bank import TileLayout, default_tile

layouts = st.builds(TileLayout, st.integers(1, 25), st.integers(1, 12))


def symmetric(layout: TileLayout, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(layout.n_points, layout.n_points))
    return matrix + matrix.T


def test_entries_of_a_small_matrix_by_hand():
    layout = TileLayout(3, tile=2)
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert layout.pack(matrix).tolist() == [1, 2, 2, 4, 3, 0, 5, 0, 6, 0, 0, 0]
    assert [rows.tolist() for rows in layout.coordinates] == [[0, 0, 1], [0, 1, 1]]
    assert layout.tile_weights.tolist() == [1, 2, 1]
    assert layout.diagonal.tolist() == [0, 3, 8]
    assert (layout.side, layout.n_tiles, layout.tile_entries, layout.n_entries) == (2, 3, 4, 12)


@settings(deadline=None)
@given(layouts)
def test_matrices_come_back_and_their_parts_and_sums_are_those_of_numpy(layout):
    matrix = symmetric(layout)
    packed = layout.pack(matrix)
    assert packed.shape == (layout.n_entries,)
    np.testing.assert_array_equal(layout.unpack(packed), matrix)
    np.testing.assert_array_equal(packed[layout.diagonal], np.diag(matrix))
    weights = np.repeat(layout.tile_weights, layout.tile_entries)
    assert weights @ packed == pytest.approx(matrix.sum(), abs=1e-10)
    points = np.random.default_rng(1).permutation(layout.n_points)[: 1 + layout.n_points // 2]
    np.testing.assert_array_equal(layout.submatrix(packed, points), matrix[points[:, None], points])


def test_stacks_keep_their_shape_and_dtype():
    layout = TileLayout(5, tile=2)
    stack = np.array([[symmetric(layout, seed) for seed in (r, r + 9)] for r in range(3)])
    packed = layout.pack(stack.astype(np.float32))
    assert (packed.shape, packed.dtype) == ((3, 2, layout.n_entries), np.float32)
    np.testing.assert_array_equal(packed[2, 1], layout.pack(stack[2, 1].astype(np.float32)))


def test_a_matrix_is_written_where_the_caller_wants_it():
    layout = TileLayout(5, tile=2)
    out = np.full((5, 5), np.nan)
    assert layout.unpack(layout.pack(symmetric(layout)), out=out) is out
    np.testing.assert_array_equal(out, symmetric(layout))


@given(st.integers(1, 10**6))
def test_the_default_tile_keeps_about_half_of_a_large_matrix(n_points):
    layout = TileLayout.for_points(n_points)
    assert layout.tile == default_tile(n_points) <= 256
    if n_points >= 64:
        assert n_points**2 / 2 <= layout.n_entries <= 0.75 * n_points**2
