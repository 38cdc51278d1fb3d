"""Banks of sparse points, against those of the same points made dense."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.bank.bank import TileLayout
from mkldist.bank.sources import FEW_POINTS, FeatureSource, PlainSource
from tests.kernel_functions.test_sparse_points import sparse_kernels, sparse_points


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("n_points", [7, FEW_POINTS + 5])
def test_tiles_and_diagonals_are_those_of_dense_points(n_points, cosine):
    kernels, points = sparse_kernels(), sparse_points(n_points, 3)
    source = PlainSource(points, kernels, cosine)
    dense = FeatureSource(points.toarray(), kernels, cosine)
    layout = TileLayout.for_points(n_points)
    assert (source.n_kernels, source.n_points) == (len(kernels), n_points)
    for some in (slice(0, len(kernels)), slice(3, 8)):
        for tiles in (slice(0, layout.n_tiles), slice(4, 9)):
            count = tiles.stop - tiles.start
            shape = (some.stop - some.start, count, layout.tile, layout.tile)
            found, expected = np.full(shape, np.nan), np.full(shape, np.nan)
            source.fill(some, tiles, layout, found)
            dense.fill(some, tiles, layout, expected)
            assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        assert_allclose(source.diagonals(some), dense.diagonals(some), rtol=1e-9, atol=1e-12)
    assert source.presence is None
    assert source.name(0) == dense.name(0)
