"""Banks of sparse points, against those of the same points made dense."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.bank import TileLayout
from mkldist.bank.sources import FEW_POINTS, FeatureSource, PlainSource, SelectedSource
from mkldist.kernels.families import kernel_list
from mkldist.spec.banks import BankSpec
from tests.kernel_functions.test_functions import sparse_kernels, sparse_points


@pytest.mark.slow
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


SPEC = BankSpec.model_validate(
    {"kernels": [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]}]}
)
POINTS = np.random.default_rng(0).normal(size=(70, 3))
POINTS[:4, 1] = np.nan
WHOLE = FeatureSource(POINTS, kernel_list(SPEC, 3, ["a", "b", "c"], {}, 0))


@pytest.mark.parametrize("index", [[3], [2, 3, 4], [7, 1, 2, 5, 0], [6, 6]])
def test_kernels_are_those_of_the_whole(index):
    part, layout = SelectedSource(WHOLE, np.array(index)), TileLayout.for_points(70)
    shape = (layout.n_tiles, layout.tile, layout.tile)
    tiles = slice(0, layout.n_tiles)
    every, found = np.empty((8, *shape)), np.empty((len(index), *shape))
    WHOLE.fill(slice(0, 8), tiles, layout, every)
    part.fill(slice(0, len(index)), tiles, layout, found)
    assert (part.n_kernels, part.n_points) == (len(index), 70)
    assert_array_equal(found, every[index])
    part.fill(slice(len(index) - 1, len(index)), tiles, layout, found[:1])
    assert_array_equal(found[0], every[index[-1]])
    kernels = slice(0, len(index))
    assert_array_equal(part.diagonals(kernels), WHOLE.diagonals(slice(0, 8))[index])
    assert_array_equal(part.presence[kernels], WHOLE.presence[np.array(index)])
    rows = np.array([5, 2])
    last = len(index) - 1
    assert_array_equal(
        part.between(last, rows, slice(0, 70)), WHOLE.between(index[-1], rows, slice(0, 70))
    )
    assert part.name(last) == WHOLE.name(index[-1])


def test_a_source_without_gaps_has_no_presence():
    whole = FeatureSource(np.nan_to_num(POINTS), WHOLE.kernels)
    assert SelectedSource(whole, np.array([1])).presence is None
