"""Compiled tiles of Gram matrices against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.kernel_functions.bases import VANISHES_AT
from mkldist.kernels.evaluate import diagonals, evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import WIDE, fill_tiles
from mkldist.spec.banks import BankSpec
from tests.kernels.by_scikit_learn import bank, by_scikit_learn


def tiles(
    kernels: KernelList, points: np.ndarray, edge: int, *, cosine: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return all tiles of the upper triangle, (M, t, b, b), and where they are, (t, 2)."""
    n_edges = -(-len(points) // edge)
    rows, cols = np.triu_indices(n_edges)
    out = np.full((len(kernels), len(rows), edge, edge), np.nan)
    columns = np.ascontiguousarray(points.T)
    fill_tiles(kernels, columns, rows, cols, out, cosine=cosine)
    return out, np.stack([rows, cols], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("d", [7, WIDE + 3])
def test_tiles_equal_scikit_learn_and_end_in_zeros(d: int, cosine: bool) -> None:
    points = 3 + np.random.default_rng(0).normal(size=(11, d)) / np.sqrt(d)
    kernels, edge = bank(d), 4
    found, places = tiles(kernels, points, edge, cosine=cosine)
    for m in range(len(kernels)):
        expected = np.zeros((12, 12))
        expected[:11, :11] = by_scikit_learn(kernels, m, points, points, cosine=cosine)
        for tile, (row, col) in zip(found[m], places, strict=True):
            part = expected[row * edge :, col * edge :][:edge, :edge]
            np.testing.assert_allclose(tile, part, rtol=1e-9, atol=1e-11)
            np.testing.assert_array_equal(tile[part == 0], 0.0)
            if row == col:
                np.testing.assert_array_equal(tile, tile.T)


@pytest.mark.slow
@pytest.mark.parametrize("d", [7, WIDE + 3])
def test_single_tiles_and_kernels_equal_scikit_learn(d: int) -> None:
    points, kernels = np.random.default_rng(2).normal(size=(11, d)) / np.sqrt(d), bank(d)
    columns, edge = np.ascontiguousarray(points.T), 4
    for m in range(len(kernels)):
        expected = np.zeros((12, 12))
        expected[:11, :11] = by_scikit_learn(kernels, m, points, points)
        for row, col in ((0, 0), (0, 2), (1, 2), (2, 2)):
            tile = np.full((1, 1, edge, edge), np.nan)
            places = np.array([row]), np.array([col])
            fill_tiles(kernels.select([m]), columns, *places, tile)
            part = expected[row * edge :, col * edge :][:edge, :edge]
            np.testing.assert_allclose(tile[0, 0], part, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_tiles_are_symmetric_where_their_row_begins_left_of_the_diagonal() -> None:
    points, edge = np.random.default_rng(3).normal(size=(11, WIDE + 3)) / 8, 4
    kernels, rows, cols = bank(WIDE + 3), np.array([2, 2, 2]), np.array([0, 1, 2])
    found = np.full((len(kernels), 3, edge, edge), np.nan)
    fill_tiles(kernels, np.ascontiguousarray(points.T), rows, cols, found)
    for m in range(len(kernels)):
        expected = by_scikit_learn(kernels, m, points[8:], points)
        whole = np.hstack(found[m])
        np.testing.assert_allclose(whole[:3, :11], expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(found[m, 2], found[m, 2].T)


@pytest.mark.slow
@pytest.mark.parametrize("d", [7, 2 * WIDE + 3])
@pytest.mark.parametrize("cosine", [False, True])
def test_diagonals_equal_scikit_learn(cosine: bool, d: int) -> None:
    points, kernels = np.random.default_rng(1).normal(size=(9, d)) / np.sqrt(d), bank(d)
    found = diagonals(kernels, points, cosine=cosine)
    for m in range(len(kernels)):
        expected = np.diag(by_scikit_learn(kernels, m, points, points, cosine=cosine))
        np.testing.assert_allclose(found[m], expected, rtol=1e-12)


def test_a_point_of_no_length_has_zero_cosines() -> None:
    kernels = kernel_list(BankSpec(kernels=[{"function": "linear"}]), 1, ["x"], {}, 0)
    points = np.array([[0.0], [2.0], [-3.0]])
    found, _ = tiles(kernels, points, 3, cosine=True)
    np.testing.assert_array_equal(found[0, 0], [[0, 0, 0], [0, 1, -1], [0, -1, 1]])
    np.testing.assert_array_equal(diagonals(kernels, points, cosine=True), [[0, 1, 1]])


def test_values_of_distances_that_overflow_do_not_vanish() -> None:
    """The BLAS takes infinity from infinity where many features overflow."""
    spec, d = BankSpec(kernels=[{"function": "gaussian", "widths": 1.0}]), WIDE + 6
    kernels = kernel_list(spec, d, [f"f{j}" for j in range(d)], {}, 0)
    points = np.full((4, d), 1e200) * np.array([[1.0], [-1.0], [0.5], [2.0]])
    with np.errstate(all="ignore"):  # of what it is compared with
        expected = evaluate(kernels, points, points)[0]
    found, _ = tiles(kernels, points, 4)
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found[0, 0], expected)


@pytest.mark.parametrize("function", ["gaussian", "laplacian-rbf"])
def test_exponentials_reach_from_one_to_where_they_vanish(function: str) -> None:
    kernels = kernel_list(
        BankSpec(kernels=[{"function": function, "widths": 1.0}]), 1, ["x"], {}, 0
    )
    points = np.linspace(0.0, 90.0, 300)[:, None]
    found, _ = tiles(kernels, points, 300)
    distances = np.abs(points - points.T)
    arguments = -0.5 * distances**2 if function == "gaussian" else -distances
    expected = np.where(arguments > VANISHES_AT, np.exp(arguments), 0.0)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-13)
    assert found[found > 0].min() < 1e-33
