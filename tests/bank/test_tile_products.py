"""Products and sums of packed matrices, against numpy on whole ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.bank import bank as layouts
from mkldist.bank import products as dots
from mkldist.bank import products as tile_products
from mkldist.bank.bank import TileLayout
from mkldist.bank.products import MANY, add_rows, multiply, quadratic_forms
from mkldist.core.compiled import CompiledFunction
from tests.bank.bank_suite import random_grams

LAYOUTS = [TileLayout(1, 1), TileLayout(13, 5), TileLayout(16, 4), TileLayout(7, 7)]
SLABS = TileLayout(190, 24)  # two slabs of entries
LINES = np.array([4, 0, 2, 4, 3])
SHAPES = [(), (1,), (3,), (4,), (5,), (9,), (MANY,), (MANY + 1,)]

every_case = pytest.mark.parametrize("shape", SHAPES, ids=str)
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def packed(layout: TileLayout, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return five matrices, whole and packed."""
    grams = random_grams(5, layout.n_points)
    return grams, layout.pack(grams.astype(dtype))


@pytest.mark.parametrize("layout", [*LAYOUTS, SLABS], ids=str)
@every_case
@every_dtype
def test_products_with_vectors(layout, shape, dtype):
    grams, values = packed(layout, dtype)
    vectors = np.random.default_rng(1).normal(size=(layout.n_points, *shape))
    found = multiply(layout, values, LINES, vectors)
    assert found.dtype == np.float64
    assert_allclose(found, grams[LINES] @ vectors, rtol=1e-12, atol=1e-12)
    forms = quadratic_forms(layout, values, LINES, vectors)
    expected = np.einsum("i...,sij,j...->s...", vectors, grams[LINES], vectors)
    assert_allclose(forms, expected, rtol=1e-12, atol=1e-12)


@every_layout
@every_dtype
@pytest.mark.parametrize("n_lines", [0, 1, 3, 4, 5])
def test_sums_are_added_to_what_is_there(layout, dtype, n_lines):
    grams, values = packed(layout, dtype)
    lines, weights = LINES[:n_lines], np.array([0.5, -1.0, 2.0, 0.25, 3.0])[:n_lines]
    total = layout.pack(np.eye(layout.n_points))
    add_rows(values, lines, weights, total)
    expected = np.eye(layout.n_points) + np.einsum("s,sij->ij", weights, grams[lines])
    assert_allclose(layout.unpack(total), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_products_of_a_matrix_do_not_depend_on_those_beside_it(shape):
    layout = LAYOUTS[1]
    _, values = packed(layout, np.float64)
    vectors = np.random.default_rng(1).normal(size=(layout.n_points, *shape))
    together = multiply(layout, values, LINES, vectors)
    forms = quadratic_forms(layout, values, LINES, vectors)
    for s, line in enumerate(LINES):
        alone = np.array([line])
        np.testing.assert_array_equal(multiply(layout, values, alone, vectors)[0], together[s])
        np.testing.assert_array_equal(quadratic_forms(layout, values, alone, vectors)[0], forms[s])


@pytest.mark.parametrize("part", [np.s_[::2, :], np.s_[:, :-9], np.s_[::-1, :]])
def test_rows_that_lie_apart_are_read_where_they_are(part):
    layout = TileLayout(12, 3)
    values = np.random.default_rng(0).normal(size=(6, layout.n_entries + 9))
    some = values[part][:, : layout.n_entries]
    lines, vector = np.arange(len(some))[::-1].copy(), np.ones(12)
    for function in (multiply, quadratic_forms):
        expected = function(layout, some.copy(), lines, vector)
        np.testing.assert_array_equal(function(layout, some, lines, vector), expected)


def test_one_function_reads_banks_in_memory_and_mapped_ones():
    layout = LAYOUTS[1]
    _, values = packed(layout, np.float64)
    vector = np.random.default_rng(1).normal(size=layout.n_points)
    total, weights = np.zeros(layout.n_entries), np.ones(len(LINES))
    found = []
    for writeable in (True, False):
        values.flags.writeable = writeable
        multiply(layout, values, LINES, vector)
        quadratic_forms(layout, values, LINES, vector)
        quadratic_forms(layout, values, LINES, np.stack([vector, vector], axis=1))
        add_rows(values, LINES, weights, total)
        layout.unpack(values[0])
        layout.submatrix(values[0], LINES)
        found.append(
            [
                len(function.signatures)
                for module in (dots, layouts, tile_products)
                for function in vars(module).values()
                if isinstance(function, CompiledFunction)
            ]
        )
    assert found[0] == found[1]
