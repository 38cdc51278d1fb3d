"""Functions of distances, `gaussian` `laplacian_rbf` `matern` `periodic` and so on, by others.

The others are scikit-learn where it has the function, else its formula written out.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import kv
from sklearn.gaussian_process.kernels import ExpSineSquared, Matern
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel

from mkldist.kernel_functions import (
    additive,
    chi_squared,
    gaussian,
    laplacian_rbf,
    matern,
    periodic,
)
from tests.kernel_functions.points import values

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(8, 3)), RNG.normal(size=(5, 3))
Z[0] = X[0]


def test_gaussian_and_laplacian():
    found = values(gaussian.FUNCTION, X, Z, 0.7)
    np.testing.assert_allclose(found, rbf_kernel(X, Z, gamma=0.5 / 0.49), rtol=1e-12)
    found = values(laplacian_rbf.FUNCTION, X, Z, 0.7)
    np.testing.assert_allclose(found, laplacian_kernel(X, Z, gamma=1 / 0.7), rtol=1e-12)


def test_additive_is_the_mean_of_functions_of_single_features():
    squares = (X[:, None] - Z) ** 2
    found = values(additive.FUNCTION, X, Z, 0.7)
    np.testing.assert_allclose(found, (1.0 / (1.0 + squares / 0.49)).mean(axis=2), rtol=1e-13)
    far = values(additive.FUNCTION, X, Z + 1e300, 1e-3)
    np.testing.assert_array_equal(far, 0.0)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.3, 3.0, 7.2, 20.0])
def test_matern(nu):
    found = values(matern.FUNCTION, X, Z, 0.8, nu)
    assert found[0, 0] == 1.0  # of two equal points, where scikit-learn rounds or overflows
    np.testing.assert_allclose(found[1:], Matern(0.8, nu=nu)(X[1:], Z), rtol=1e-10)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_closed_forms_are_the_bessel_function(nu):
    distances = np.linspace(0.01, 30.0, 200)[:, None]
    t = math.sqrt(2 * nu) * distances / 1.3
    expected = 2 ** (1 - nu) / math.gamma(nu) * t**nu * kv(nu, t)
    found = values(matern.FUNCTION, distances, np.zeros((1, 1)), 1.3, nu)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.5, 2.5, 9.0, 20.0])
def test_matern_is_finite_from_no_distance_to_the_largest(nu):
    distances = np.array([[0.0], [1e-300], [1e-12], [1e-3], [1e3], [1e10]])
    found = values(matern.FUNCTION, distances, np.zeros((1, 1)), 1.0, nu)[:, 0]
    np.testing.assert_allclose(found[:2], 1.0, rtol=0, atol=1e-15)
    assert np.all(np.diff(found) <= 0)
    assert found[-1] == 0.0


def test_a_smooth_matern_is_almost_a_gaussian():
    smooth, gauss = values(matern.FUNCTION, X, Z, 1.0, 20.0), values(gaussian.FUNCTION, X, Z, 1.0)
    np.testing.assert_allclose(smooth, gauss, atol=0.02)


def test_periodic_on_one_feature_is_that_of_scikit_learn():
    found = values(periodic.FUNCTION, X[:, :1], Z[:, :1], 0.9, 1.7)
    expected = ExpSineSquared(length_scale=0.9, periodicity=1.7)(X[:, :1], Z[:, :1])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_periodic_on_several_features_is_the_product():
    found = values(periodic.FUNCTION, X, Z, 0.9, 1.7)
    factors = [values(periodic.FUNCTION, X[:, [j]], Z[:, [j]], 0.9, 1.7) for j in range(3)]
    np.testing.assert_allclose(found, np.prod(factors, axis=0), rtol=1e-12)
    shifted = values(periodic.FUNCTION, X + 1.7, Z, 0.9, 1.7)
    np.testing.assert_allclose(shifted, found, rtol=1e-10)


def test_chi_squared_takes_features_that_are_zero_in_both():
    x, z = np.abs(X), np.abs(Z)
    x[:, 1], z[:2, 1] = 0.0, 0.0
    found = values(chi_squared.FUNCTION, x, z, 2.5)
    np.testing.assert_allclose(found, chi2_kernel(x, z, gamma=1 / 2.5), rtol=1e-12)
