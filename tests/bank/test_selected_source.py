"""Some kernels of a source against all of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank import TileLayout
from mkldist.bank.sources import FeatureSource, SelectedSource
from mkldist.kernels.families import kernel_list
from mkldist.spec.banks import BankSpec

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
