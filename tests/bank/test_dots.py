"""Products of entries and columns: those of numpy, the same bits whatever stands beside them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.products import COLUMNS, ENTRIES, FEW, add_dots, add_dots_of_one, flat

N_ENTRIES = (COLUMNS // FEW + 1) * ENTRIES + 77
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(9, N_ENTRIES))
RIGHT = RNG.normal(size=(2 * COLUMNS + 1, N_ENTRIES))


def dots(values, lines, columns):
    sums = np.zeros((len(lines), len(columns)))
    add_dots(values, np.asarray(lines), np.ascontiguousarray(columns), sums)
    return sums


def dots_of_one(values, lines, column, first=0):
    memory, step = flat(values)
    sums = np.zeros(len(lines))
    add_dots_of_one(memory, first, np.array(lines, dtype=np.intp) * step, column, sums)
    return sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 2, 3, FEW, FEW + 1, COLUMNS, 2 * COLUMNS + 1])
@pytest.mark.parametrize("lines", [[4], [8, 0, 3], list(range(9))])
def test_products_are_those_of_numpy(dtype, n_columns, lines):
    values, columns = VALUES.astype(dtype), RIGHT[:n_columns]
    expected = values[lines].astype(np.float64) @ columns.T
    assert_allclose(dots(values, lines, columns), expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lines", [[], [4], [8, 0, 3], [7, 2, 2], list(range(9))])
@pytest.mark.parametrize(("first", "size"), [(0, N_ENTRIES), (40, 3 * ENTRIES + 5), (40, 3)])
def test_products_with_one_column_are_those_of_numpy(dtype, lines, first, size):
    values, column = VALUES.astype(dtype), RIGHT[0, :size]
    expected = values[lines, first : first + size].astype(np.float64) @ column
    found = dots_of_one(values, lines, column, first)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    alone = [dots_of_one(values, [line], column, first)[0] for line in lines]
    assert_array_equal(found, alone)


def test_products_are_added():
    sums = np.ones((9, 2))
    add_dots(VALUES, np.arange(9), RIGHT[:2], sums)
    assert_allclose(sums, 1.0 + VALUES @ RIGHT[:2].T, rtol=1e-11)
    of_one = np.ones(9)
    add_dots_of_one(VALUES.reshape(-1), 0, np.arange(9) * N_ENTRIES, RIGHT[0], of_one)
    assert_allclose(of_one, sums[:, 0], rtol=1e-11)


def test_a_product_does_not_depend_on_the_lines_and_columns_beside_it():
    whole = dots(VALUES, range(9), RIGHT)
    for line in range(9):
        for column in range(len(RIGHT)):
            alone = dots(VALUES, [line], RIGHT[column : column + 1])
            assert alone[0, 0] == whole[line, column]
    assert_array_equal(dots(VALUES, [7, 2, 2], RIGHT[3:8]), whole[[7, 2, 2], 3:8])


@pytest.mark.parametrize("part", [np.s_[2:7, 5:50], np.s_[1:9, :], np.s_[:, ::2], np.s_[::-1, :]])
def test_parts_of_an_array_have_the_products_of_a_copy(part):
    some = VALUES[part]
    lines, columns = range(len(some)), RIGHT[:4, : some.shape[1]]
    assert_array_equal(dots(some, lines, columns), dots(some.copy(), lines, columns))
    of_one = dots_of_one(some, lines, columns[0, 3:], 3)
    assert_array_equal(of_one, dots_of_one(some.copy(), lines, columns[0, 3:], 3))


def test_entries_that_cannot_be_written_are_read():
    mapped = VALUES.copy()
    mapped.flags.writeable = False
    assert_array_equal(dots(mapped, range(9), RIGHT[:2]), dots(VALUES, range(9), RIGHT[:2]))
    of_one = dots_of_one(mapped, range(9), RIGHT[0])
    assert_array_equal(of_one, dots_of_one(VALUES, range(9), RIGHT[0]))
