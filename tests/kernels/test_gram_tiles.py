"""Kernels on tiles of their Gram matrices, against scikit-learn kernel by kernel."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.gram.layout import TileLayout
from mkldist.kernels.gram_tiles import WIDE, evaluate_diagonals, evaluate_gram_tiles
from tests.kernels.test_evaluate import bank, by_scikit_learn


def expected(kernels, points, cosine):
    grams = np.array([by_scikit_learn(kernels, m, points, points) for m in range(len(kernels))])
    if cosine:
        lengths = np.sqrt(np.einsum("mii->mi", grams))
        grams /= lengths[:, :, None] * lengths[:, None]
    return grams


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("n_features", [7, WIDE + 1])
@pytest.mark.parametrize(("n_points", "tile"), [(1, 1), (13, 4), (12, 6)])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
def test_tiles_and_diagonals_are_those_of_the_matrices(
    n_points, tile, n_features, cosine, dtype, rtol
):
    points = np.random.default_rng(n_points).normal(size=(n_points, n_features))
    kernels, layout = bank(n_features), TileLayout(n_points, tile)
    columns = np.ascontiguousarray(points.T)
    rows, cols = layout.coordinates
    tiles = np.full((len(kernels), layout.n_tiles, tile, tile), np.nan, dtype=dtype)
    evaluate_gram_tiles(kernels, columns, rows, cols, tiles, cosine=cosine)
    grams = expected(kernels, points, cosine)
    packed = layout.pack(grams).reshape(tiles.shape)
    np.testing.assert_allclose(tiles, packed, rtol=rtol, atol=rtol)
    beyond = layout.pack(np.ones_like(grams)).reshape(tiles.shape) == 0.0
    assert (tiles[beyond] == 0.0).all()
    diagonals = evaluate_diagonals(kernels, columns, cosine=cosine)
    np.testing.assert_allclose(diagonals, np.einsum("mii->mi", grams), rtol=1e-10)


def test_some_tiles_are_computed_alone():
    points, kernels = np.random.default_rng(0).normal(size=(12, 7)), bank(7)
    tiles = np.empty((len(kernels), 2, 4, 4))
    rows, cols = np.array([1, 1]), np.array([1, 2])
    evaluate_gram_tiles(kernels, np.ascontiguousarray(points.T), rows, cols, tiles)
    grams = expected(kernels, points, cosine=False)
    np.testing.assert_allclose(tiles[:, 0], grams[:, 4:8, 4:8], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(tiles[:, 1], grams[:, 4:8, 8:], rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(tiles[:, 0], tiles[:, 0].swapaxes(1, 2))


def test_points_of_length_zero_have_cosine_zero():
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    kernels = bank(2)
    linear = [m for m in range(len(kernels)) if kernels.function_of(m).label == "linear"]
    chosen = kernels.select(linear[:1])  # on all features
    out = np.empty((1, 1, 2, 2))
    zero = np.array([0])
    evaluate_gram_tiles(chosen, np.ascontiguousarray(points.T), zero, zero, out, cosine=True)
    diagonals = evaluate_diagonals(chosen, np.ascontiguousarray(points.T), cosine=True)
    np.testing.assert_array_equal(out[0, 0], [[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(diagonals, [[0.0, 1.0]])
