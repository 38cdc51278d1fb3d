"""Kernel values by the array API standard, against those of plain numpy."""

import numpy as np
import pytest

from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.array_values import TAKEN, ArrayValues, powers, takes
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList
from tests.kernels.made_up import DEVICES, device_there, kernels_of

RNG = np.random.default_rng(0)


@pytest.fixture(params=DEVICES)
def device(request):
    return device_there(request.param)


@pytest.mark.parametrize("n_features", [1, 5, 70])
def test_values_are_those_of_the_formulas(device, n_features):
    points = RNG.normal(100.0, 3.0, (17, n_features))
    kernels = kernels_of(n_features)
    values = ArrayValues(device, points, kernels)
    rows, cols = slice(2, 9), np.array([16, 0, 3])
    chosen = np.array([3, 0, 1, 2, 7, 5])
    found = np.stack([device.host(one) for _, one in values.tile(chosen, rows, cols)])
    expected = evaluate(kernels.select(chosen), points[rows], points[cols])
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    [(_, own)] = values.tile(np.array([0]), rows, rows, diagonal=True)
    assert (np.diagonal(device.host(own)) == 1.0).all()


def test_narrow_kernels_lose_no_digits_far_from_the_origin(device):
    points = 1e6 + RNG.normal(size=(6, 5))
    kernels = kernels_of(5).select([0])
    kernels.parameter[:] = 0.5
    [(_, found)] = ArrayValues(device, points, kernels).tile(
        np.array([0]), slice(0, 6), slice(0, 6)
    )
    near = (points - 1e6).astype(np.longdouble)  # exact
    squares = ((near[:, None] - near) ** 2).sum(axis=2)
    np.testing.assert_allclose(device.host(found), np.exp(-2.0 * squares), rtol=1e-8)


def test_values_far_away_vanish_and_overflow_shows(device):
    points = np.array([[0.0], [30.0], [1e100]])
    kernels = kernels_of(1).select([0])
    kernels.parameter[:] = 1.0
    tile = ArrayValues(device, points, kernels).tile(np.array([0]), slice(0, 3), slice(0, 3))
    [(_, found)] = tile
    np.testing.assert_array_equal(device.host(found), np.eye(3))
    points[1:] = np.nan
    tile = ArrayValues(device, points, kernels).tile(np.array([0]), slice(0, 3), slice(0, 3))
    [(_, found)] = tile
    assert np.isnan(device.host(found)[0, 1:]).all()


def test_rows_and_columns_have_factors(device):
    points, kernels = RNG.normal(size=(5, 2)), kernels_of(2)
    factors = RNG.random((len(kernels), 5))
    [(place, found)] = ArrayValues(device, points, kernels, factors).tile(
        np.array([4]), slice(0, 5), slice(1, 4)
    )
    plain = evaluate(kernels.select([4]), points, points[1:4])[0]
    assert place == 0
    np.testing.assert_allclose(device.host(found), plain * np.outer(factors[4], factors[4, 1:4]))


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 13])
def test_powers(degree):
    assert powers(np.array([-1.5, 2.0]), degree) == pytest.approx([(-1.5) ** degree, 2.0**degree])


def test_only_some_functions_are_taken():
    kernels = kernels_of(3)
    assert takes(kernels)
    other = KernelList(
        function=[FUNCTIONS["matern"].code],
        parameter=[1.0],
        offset=[2.5],
        subset=[0],
        subset_indptr=[0, 1],
        subset_indices=[0],
    )
    assert not takes(other)
    assert TAKEN == ("gaussian", "polynomial", "linear", "laplacian-rbf")


def test_distances_that_overflow_are_not_zero(device):
    points = np.full((4, 70), 1e200) * np.array([[1.0], [-1.0], [0.5], [2.0]])
    values = ArrayValues(device, points, kernels_of(70))
    with np.errstate(all="ignore"):
        [(_, found)] = values.tile(np.array([0]), slice(0, 4), slice(0, 4))
        expected = evaluate(kernels_of(70).select([0]), points, points)[0]
    assert np.isnan(expected).any()
    assert not (device.host(found) == 1.0).any()
