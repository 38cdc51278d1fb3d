"""Columns of a pass: their products with packed matrices are forms and Frobenius products."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.bank import TileLayout
from mkldist.bank.products import Columns, OuterProducts
from mkldist.bank.requests import Inner, Quadratic
from tests.bank.bank_suite import random_grams

N_POINTS = 11
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(N_POINTS, 7))
MATRICES = random_grams(2, N_POINTS, seed=5)


@pytest.mark.parametrize("tile", [1, 4, 11])
@pytest.mark.parametrize("tiles_at_once", [1, 2, 100])
def test_products_of_entries_and_columns_are_what_was_asked_for(tile, tiles_at_once):
    layout = TileLayout(N_POINTS, tile)
    requests = [Quadratic(VECTORS), Inner(MATRICES), Quadratic(VECTORS[:, 0])]
    columns = Columns(layout, requests)
    assert [(part.start, part.stop) for part in columns.slices] == [(0, 7), (7, 9), (9, 10)]
    assert columns.n_columns == 10
    grams = random_grams(3, N_POINTS)
    entries = layout.pack(grams)
    found = np.zeros((3, 10))
    step = tiles_at_once * layout.tile_entries
    for start in range(0, layout.n_entries, step):
        some = slice(start, min(start + step, layout.n_entries))
        part = columns.over(some)
        assert part.shape == (10, some.stop - some.start)
        assert_array_equal(OuterProducts(layout, VECTORS).over(some), part[:7])
        found += entries[:, some] @ part.T
    forms = np.einsum("ir,mij,jr->mr", VECTORS, grams, VECTORS)
    inner = np.einsum("mij,rij->mr", grams, MATRICES)
    assert_allclose(found, np.hstack([forms, inner, forms[:, :1]]), rtol=1e-11)
