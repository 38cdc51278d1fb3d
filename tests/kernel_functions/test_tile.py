"""Tiles: bases that are computed once, and exact symmetry."""

from __future__ import annotations

import numpy as np

from mkldist.kernel_functions.bases import Base
from mkldist.kernel_functions.tile import Tile, mirror


def counted(*, is_distance: bool) -> tuple[Base, list[float]]:
    """Return a base that is asymmetric, and the parameters of its computations."""
    calls: list[float] = []

    def compute(left, right, parameter, out):
        calls.append(parameter)
        out[...] = parameter + np.arange(out.size).reshape(out.shape)

    return Base("some", compute, is_distance=is_distance), calls


def test_a_base_is_computed_once_for_a_parameter_and_points():
    base, calls = counted(is_distance=False)
    tile = Tile.of(np.zeros((2, 1)), np.zeros((3, 1)))
    assert tile.base(base, 2.0) is tile.base(base, 2.0)
    assert tile.base(base, 5.0)[0, 0] == 5.0
    assert tile.base(base, 2.0)[0, 0] == 2.0
    tile.enter(np.ones((2, 1)), np.ones((3, 1)))
    tile.base(base, 2.0)
    assert calls == [2.0, 5.0, 2.0, 2.0]


def test_bases_of_equal_points_are_symmetric_and_distances_zero():
    points = np.zeros((3, 1))
    for is_distance, diagonal in ((False, [0, 4, 8]), (True, [0, 0, 0])):
        base, _ = counted(is_distance=is_distance)
        found = Tile.of(points, points, symmetric=True).base(base)
        np.testing.assert_array_equal(found, found.T)
        assert np.diag(found).tolist() == diagonal
        assert found[1, 0] == 1.0


def test_the_upper_triangle_is_mirrored():
    square = np.arange(9.0).reshape(3, 3)
    mirror(square)
    np.testing.assert_array_equal(square, [[0, 1, 2], [1, 4, 5], [2, 5, 8]])
