"""Bases and `lengths` against brute force and exact arithmetic, and integer powers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.kernel_functions.bases import (
    DIRECT_FEATURES,
    city_block_distances,
    inner_products,
    squared_distances,
    sums_of_minima,
)
from mkldist.kernel_functions.lengths import inverse_lengths
from mkldist.kernel_functions.polynomial import integer_power


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
