"""The affine distance against scipy's splines and optimisers, and against images that moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage
from scipy.optimize import Bounds, minimize
from scipy.spatial.distance import cdist

from mkldist.kernels.graph import GraphSpec, adjacency
from mkldist.kernels.image_distances import (
    DERIVATIVES,
    IDENTITY,
    PADDING,
    REACH,
    RESIDUAL,
    _linearise,
    affine_distances,
)
from tests.data.mistakes import mistake
from tests.kernels.pictures import MOVES, deformed, plain, random_images


def transformed(image: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Transform an image by scipy's own interpolation."""
    side = len(image)
    rotation = np.array([[np.cos(p[4]), -np.sin(p[4])], [np.sin(p[4]), np.cos(p[4])]])
    matrix = rotation @ np.array([[p[2], p[5]], [0.0, p[3]]])
    v, u = np.meshgrid(*2 * [np.arange(side) - (side - 1) / 2], indexing="ij")
    moved = np.tensordot(matrix, np.stack([u, v]), 1) + np.reshape(p[:2], (2, 1, 1))
    at = np.clip(moved[::-1] + (side - 1) / 2, 0, side - 1)
    return ndimage.map_coordinates(image, at, order=3, mode="mirror")


def padded_spline(image: np.ndarray) -> np.ndarray:
    return np.pad(ndimage.spline_filter(image, 3, mode="mirror"), PADDING, mode="reflect")


def parameters(seed: int) -> np.ndarray:
    p = np.random.default_rng(seed).uniform(-1, 1, 6) * np.where(REACH > 0, REACH, 1.9)
    return IDENTITY + p


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("side", [3, 6, 16])
def test_transformed_images_are_those_of_scipy(seed: int, side: int) -> None:
    image, target = random_images(2, seed, side)
    p, scratch = parameters(seed), np.empty((7, side**2))
    total = _linearise(padded_spline(image.reshape(side, side)), target, p, scratch)
    expected = transformed(image.reshape(side, side), p).ravel() - target
    assert_allclose(scratch[RESIDUAL], expected, atol=1e-12)
    assert total == pytest.approx((expected**2).sum(), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_are_finite_differences(seed: int) -> None:
    image, target = random_images(2, seed, 8)
    spline, p = padded_spline(image.reshape(8, 8)), parameters(seed)
    here, ahead, behind = np.empty((3, 7, 64))
    _linearise(spline, target, p, here)
    for a in range(6):
        step = 1e-6 * np.eye(6)[a]
        _linearise(spline, target, p + step, ahead)
        _linearise(spline, target, p - step, behind)
        slopes = (ahead - behind)[RESIDUAL] / 2e-6
        assert_allclose(here[DERIVATIVES + a], slopes, atol=1e-6)


@pytest.mark.parametrize("which", [1, 2, 3])
@MOVES
def test_moved_images_are_near(which: int, moved: Callable[[int], np.ndarray]) -> None:
    x = np.stack([plain(which), moved(which), plain(which + 10)])
    euclidean, affine = cdist(x, x), affine_distances(x)
    assert affine[0, 1] < 0.3 * euclidean[0, 1]
    assert affine[0, 1] < 0.5 * affine[0, 2]


def test_the_minimum_is_not_far_from_what_an_optimiser_finds() -> None:
    x = np.stack([plain(1), deformed(2, np.eye(2), (0.3, 0.3)), plain(4)])
    low, high = IDENTITY - REACH, IDENTITY + REACH
    low[:2], high[:2] = -2.0, 2.0
    expected = np.full((3, 3), np.inf)
    for i in range(3):
        for j in range(3):

            def objective(p: np.ndarray, i: int = i, j: int = j) -> float:
                return float(((transformed(x[i].reshape(16, 16), p).ravel() - x[j]) ** 2).sum())

            found = minimize(objective, IDENTITY, method="L-BFGS-B", bounds=Bounds(low, high))
            expected[i, j] = np.sqrt(found.fun)
    expected = np.minimum(expected, expected.T)
    np.fill_diagonal(expected, 0.0)
    assert_allclose(affine_distances(x), expected, rtol=0.01)


def test_bounds_hold() -> None:
    """A shift by two pixels is undone, one by four is not."""
    x = np.stack([deformed(1, np.eye(2), (shift, 0.0)) for shift in (0.0, 2.0, 4.0)])
    affine, euclidean = affine_distances(x), cdist(x, x)
    assert affine[0, 1] < 0.15 * euclidean[0, 1]
    assert affine[0, 2] > 0.2 * euclidean[0, 2]


def test_symmetric_zero_for_equals_and_at_most_euclidean() -> None:
    x = random_images(25, 1)
    x[7] = x[3]
    affine, euclidean = affine_distances(x), cdist(x, x)
    assert_array_equal(affine, affine.T)
    assert_array_equal(np.diag(affine), 0.0)
    assert affine[3, 7] == 0.0
    assert (affine <= euclidean).all()
    assert (affine < 0.95 * euclidean).sum() > 300
    assert np.isfinite(affine).all()


def test_order_of_images_does_not_matter() -> None:
    x = random_images(12, 2)
    order = np.random.default_rng(3).permutation(12)
    assert_allclose(affine_distances(x[order]), affine_distances(x)[np.ix_(order, order)])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_grey_levels_have_no_unit(scale: float) -> None:
    x = random_images(10, 8)
    assert_allclose(affine_distances(scale * x), scale * affine_distances(x), rtol=1e-6)


def test_pairs_that_are_not_wanted_keep_their_euclidean_distance() -> None:
    x = random_images(10, 4)
    pairs = np.random.default_rng(5).uniform(size=(10, 10)) < 0.2
    found = affine_distances(x, pairs)
    wanted = pairs | pairs.T
    assert_array_equal(found[wanted], affine_distances(x)[wanted])
    assert_allclose(found[~wanted], cdist(x, x)[~wanted])


@pytest.mark.parametrize("side", [1, 2])
def test_tiny_and_blank_images(side: int) -> None:
    x = np.vstack([random_images(4, 6, side), np.full((1, side**2), 2.0)])
    affine = affine_distances(x)
    assert np.isfinite(affine).all()
    assert (affine <= cdist(x, x)).all()


def test_images_are_square() -> None:
    with mistake("5 features", "256 = 16²"):
        affine_distances(np.zeros((3, 5)))


def test_nearest_neighbours_are_those_among_all() -> None:
    """With the candidates that a graph takes, nearly all true neighbours are found."""
    moves = np.random.default_rng(7).normal(0, 0.8, (80, 2))
    x = np.stack([deformed(which % 4, np.eye(2), move) for which, move in enumerate(moves)])
    affine = affine_distances(x)
    np.fill_diagonal(affine, np.inf)
    edges = adjacency(x, GraphSpec(distance="affine", neighbours=2)).toarray()
    found = [edges[i, j] for i in range(80) for j in affine[i].argsort()[:2]]
    assert np.mean(found) > 0.95
    classes = np.arange(80) % 4
    assert edges[classes[:, None] != classes].sum() == 0


def test_digits_are_told_apart_better(data_dir: Path | None) -> None:
    """Of some USPS test digits, fewer have their nearest neighbour in another class."""
    file = data_dir / "usps_test.csv.gz" if data_dir else None
    if file is None or not file.exists():
        pytest.skip("usps_test.csv.gz is not in --data-dir")
    table = np.loadtxt(file, delimiter=",", skiprows=1)[:150]
    x, digit = table[:, :-1].copy(), table[:, -1]

    def errors(distances: np.ndarray) -> int:
        others = distances + np.diag(np.full(len(x), np.inf))
        return int((digit[others.argmin(axis=1)] != digit).sum())

    assert errors(affine_distances(x)) < 0.75 * errors(cdist(x, x))
