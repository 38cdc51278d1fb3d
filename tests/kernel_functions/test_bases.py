"""Bases against brute force and exact arithmetic, tiles, and points that are sparse."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from mkldist.kernel_functions.bases import (
    DIRECT_FEATURES,
    Base,
    Tile,
    city_block_distances,
    inner_products,
    inverse_lengths,
    is_sparse,
    mirror,
    squared_distances,
    squared_lengths,
    sums_of_minima,
)
from mkldist.kernel_functions.products import integer_power
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec


@pytest.mark.parametrize("n_features", [1, 2, DIRECT_FEATURES, DIRECT_FEATURES + 1, 40])
def test_bases_equal_brute_force(n_features):
    rng = np.random.default_rng(n_features)
    left, right = rng.normal(size=(7, n_features)), rng.normal(size=(5, n_features))
    out = np.empty((7, 5))
    difference = left[:, None] - right[None]
    inner_products(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(left[:, None] * right[None], axis=2), atol=1e-12)
    squared_distances(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(difference**2, axis=2), rtol=1e-12)
    city_block_distances(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(np.abs(difference), axis=2), rtol=1e-12)
    sums_of_minima(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(np.minimum(left[:, None], right), axis=2), rtol=1e-12)


@pytest.mark.parametrize("n_features", [1, 30])
def test_squared_distances_survive_points_far_from_the_origin(n_features):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, n_features)) + 1e6
    out = np.empty((20, 20))
    squared_distances(points, points, 0.0, out)
    exact = np.array(
        [
            [float(sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, z, strict=True)))
             for z in points.tolist()]
            for x in points.tolist()
        ]
    )  # fmt: skip
    np.testing.assert_allclose(out, exact, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 40), st.floats(-3, 3))
def test_integer_power_equals_power(exponent, value):
    values = np.array([value])
    with np.errstate(under="ignore"):
        integer_power(values, exponent)
        expected = np.array([value]) ** exponent
    np.testing.assert_allclose(values, expected, rtol=1e-13, atol=1e-300)


def test_inverse_lengths_are_zero_where_a_point_has_no_length():
    found = inverse_lengths(np.array([[4.0, 0.0], [-1e-20, 0.25]]))
    np.testing.assert_array_equal(found, [[0.5, 0.0], [0.0, 2.0]])


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


D = 50


def sparse_kernels() -> KernelList:
    features: list[Any] = ["all", "f3", "some", {"count": 3}]
    entries = [
        {"function": "gaussian", "widths": [0.5, 2.0], "features": features},
        {"function": "polynomial", "degrees": [1, 3], "features": features},
        {"function": "linear", "features": features},
    ]
    names = tuple(f"f{j}" for j in range(D))
    spec = BankSpec.model_validate({"kernels": entries})
    return kernel_list(spec, D, names, {"some": tuple(range(0, D, 7))}, 0)


def sparse_points(n: int, seed: int) -> csr_array:
    return csr_array(random_array((n, D), density=0.1, rng=np.random.default_rng(seed)))


@pytest.mark.parametrize("cosine", [False, True])
def test_kernels_are_those_of_dense_points(cosine):
    kernels, points, others = sparse_kernels(), sparse_points(20, 0), sparse_points(9, 1)
    for left, right in ((points, points), (points, others)):
        expected = evaluate(
            kernels, left.toarray(), right.toarray(), cosine=cosine, symmetric=left is right
        )
        found = evaluate(kernels, left, right, cosine=cosine)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    square = evaluate(kernels, points, points, cosine=cosine)
    assert_array_equal(square, square.swapaxes(1, 2))


def test_points_are_never_made_dense(monkeypatch):
    points = sparse_points(20, 0)
    made: list[tuple[int, ...]] = []
    plain = csr_array.toarray

    def toarray(self: csr_array, *args: Any, **kwargs: Any) -> np.ndarray:
        made.append(self.shape)
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(csr_array, "toarray", toarray)
    evaluate(sparse_kernels(), points, points)
    assert set(made) == {(20, 20)}


def test_lengths_and_kinds():
    points = sparse_points(5, 2)
    assert_allclose(squared_lengths(points), (points.toarray() ** 2).sum(axis=1), rtol=1e-14)
    assert_allclose(squared_lengths(points.toarray()), squared_lengths(points), rtol=1e-14)
    assert is_sparse(points)
    assert not is_sparse(points.toarray())
