"""`linear` `polynomial` `intersection` `jaccard` `tanimoto` and their `shares`; `categorical`."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import jaccard_score
from sklearn.metrics.pairwise import polynomial_kernel

from mkldist.kernel_functions import (
    categorical,
    intersection,
    jaccard,
    linear,
    polynomial,
    tanimoto,
)
from tests.kernel_functions.points import values

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(8, 4)), RNG.normal(size=(5, 4))
COUNTS, OTHERS = RNG.integers(0, 5, (8, 4)).astype(float), RNG.integers(0, 5, (5, 4)).astype(float)
SETS, MORE = (COUNTS > 2).astype(float), (OTHERS > 2).astype(float)


def by_pair(of_pair, left, right) -> np.ndarray:
    return np.array([[of_pair(x, z) for z in right] for x in left])


def test_products():
    np.testing.assert_allclose(values(linear.FUNCTION, X, Z), X @ Z.T, rtol=1e-12)
    found = values(polynomial.FUNCTION, X, Z, 3.0, 0.5)
    expected = polynomial_kernel(X, Z, degree=3, gamma=1.0, coef0=0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_intersection():
    expected = by_pair(lambda x, z: np.minimum(x, z).sum(), COUNTS, OTHERS)
    np.testing.assert_array_equal(values(intersection.FUNCTION, COUNTS, OTHERS), expected)


def test_jaccard_of_sets_is_that_of_scikit_learn():
    expected = by_pair(lambda x, z: jaccard_score(x, z, zero_division=1.0), SETS, MORE)
    np.testing.assert_allclose(values(jaccard.FUNCTION, SETS, MORE), expected, rtol=1e-14)
    np.testing.assert_allclose(values(tanimoto.FUNCTION, SETS, MORE), expected, rtol=1e-14)


def test_jaccard_of_counts():
    expected = by_pair(lambda x, z: np.minimum(x, z).sum() / np.maximum(x, z).sum(), COUNTS, OTHERS)
    np.testing.assert_allclose(values(jaccard.FUNCTION, COUNTS, OTHERS), expected, rtol=1e-14)


def test_tanimoto_of_vectors():
    expected = by_pair(lambda x, z: x @ z / (x @ x + z @ z - x @ z), X, Z)
    np.testing.assert_allclose(values(tanimoto.FUNCTION, X, Z), expected, rtol=1e-12)


def test_two_empty_sets_are_equal_and_one_is_unlike_others():
    some = np.array([[0.0, 0.0], [1.0, 0.0]])
    for function in (jaccard.FUNCTION, tanimoto.FUNCTION):
        np.testing.assert_array_equal(values(function, some, some), np.eye(2))


def test_categories_are_equal_in_every_feature():
    expected = by_pair(lambda x, z: float((x == z).all()), COUNTS[:, :2], OTHERS[:, :2])
    assert 0.0 < expected.mean() < 1.0
    found = values(categorical.FUNCTION, COUNTS[:, :2], OTHERS[:, :2])
    np.testing.assert_array_equal(found, expected)


def test_the_coding_of_categories_makes_no_difference():
    codes = RNG.integers(0, 3, 20)
    indicators = np.eye(3)[codes]
    scaled = (indicators - indicators.mean(axis=0)) / indicators.std(axis=0)
    by_number = values(categorical.FUNCTION, codes[:, None].astype(float), codes[:, None])
    for coded in (indicators, scaled):
        np.testing.assert_array_equal(values(categorical.FUNCTION, coded, coded), by_number)
