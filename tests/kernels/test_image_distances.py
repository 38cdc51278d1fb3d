"""Distances of images against their definitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage
from scipy.optimize import Bounds, minimize
from scipy.spatial.distance import cdist

from mkldist.errors import DataError
from mkldist.kernels.graph import GraphSpec, adjacency
from mkldist.kernels.image_distances import (
    AFFINE,
    BLOCK,
    DEFORMATIONS,
    DERIVATIVES,
    IDENTITY,
    PADDING,
    REACH,
    RESIDUAL,
    SMOOTHING,
    SPRING,
    _linearise,
    affine_distances,
    image_side,
    tangent_bases,
    tangent_vectors,
    two_sided_distances,
)
from tests.data.mistakes import mistake
from tests.kernels.made_up import MOVES, PLACE, SIDE, deformed, plain, random_images

GENERATORS: dict[str, np.ndarray] = {
    "scale": np.eye(2),
    "rotation": np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "stretch": np.diag([1.0, -1.0]),
    "shear": np.array([[0.0, 1.0], [1.0, 0.0]]),
}


@pytest.mark.parametrize("name", AFFINE)
@pytest.mark.parametrize("which", [1, 2])
def test_tangents_are_derivatives_of_deformed_smoothed_images(name: str, which: int) -> None:
    step = 1e-4
    shifts = {"shift-u": [1.0, 0.0], "shift-v": [0.0, 1.0]}
    matrix, shift = GENERATORS.get(name, np.zeros((2, 2))), np.array(shifts.get(name, [0.0, 0.0]))
    ahead, behind = (
        deformed(which, np.eye(2) + h * matrix, h * shift, SMOOTHING) for h in (step, -step)
    )
    derivative = ((ahead - behind) / (2 * step)).reshape(SIDE, SIDE)[3:-3, 3:-3]
    tangent = tangent_vectors(plain(which)[None], [name]).reshape(SIDE, SIDE)[3:-3, 3:-3]
    assert_allclose(tangent, derivative, atol=0.03 * np.abs(derivative).max())


def test_thickness_grows_where_the_image_is_steep() -> None:
    u = np.clip(PLACE, -2, 2)
    image = np.tile(u, (SIDE, 1))
    tangent = tangent_vectors(image.reshape(1, -1), ["thickness"]).reshape(SIDE, SIDE)
    assert (tangent[:, 7:9] > 0.8).all()
    assert_allclose(tangent[:, [0, 1, -2, -1]], 0.0, atol=1e-6)


def test_bases_are_orthonormal_and_span_the_tangents() -> None:
    x = random_images(5)
    vectors, bases = tangent_vectors(x), tangent_bases(x)
    for image in range(5):
        assert_allclose(bases[image] @ bases[image].T, np.eye(7), atol=1e-12)
        inside = bases[image].T @ (bases[image] @ vectors[image].T)
        assert_allclose(inside, vectors[image].T, atol=1e-10)


def test_blank_images_and_single_pixels_have_no_tangents() -> None:
    for grey in (3.0, 0.1, -1e-20, 1e20):
        assert_array_equal(tangent_bases(np.full((2, 25), grey)), 0.0)
    assert_array_equal(two_sided_distances(np.array([[1.0], [3.0]])), [[0.0, 2.0], [2.0, 0.0]])
    x = np.vstack([np.full((2, 25), 3.0), random_images(1, side=5)])
    found = two_sided_distances(x)
    assert np.isfinite(found).all()
    assert found[0, 1] == 0.0


@pytest.mark.parametrize("spring", [SPRING, 0.1, 10.0])
@pytest.mark.parametrize("side", [2, 6])
@pytest.mark.parametrize("deformations", [DEFORMATIONS, AFFINE], ids=["all", "affine"])
def test_two_sided_is_the_distance_between_the_planes(
    deformations: tuple[str, ...], side: int, spring: float
) -> None:
    x = random_images(6, 3, side)
    vectors = tangent_vectors(x, deformations)
    expected = np.zeros((6, 6))
    for i in range(6):
        for j in range(6):
            joint = np.hstack([vectors[i].T, -vectors[j].T])
            springs = np.sqrt(spring) * np.hstack(
                [
                    np.vstack([vectors[i].T, np.zeros_like(vectors[i].T)]),
                    np.vstack([np.zeros_like(vectors[i].T), vectors[j].T]),
                ]
            )
            design = np.vstack([joint, springs])
            target = np.concatenate([x[j] - x[i], np.zeros(2 * x.shape[1])])
            a = np.linalg.lstsq(design, target, rcond=1e-12)[0]
            expected[i, j] = np.linalg.norm(design @ a - target)
    assert_allclose(two_sided_distances(x, deformations, spring), expected, atol=1e-7)


def test_order_of_distances() -> None:
    """More deformations only shorten distances, from the Euclidean ones on."""
    x = random_images(BLOCK + 40, 5)
    euclidean, two = cdist(x, x), two_sided_distances(x)
    assert (two <= euclidean + 1e-12).all()
    assert (two <= two_sided_distances(x, AFFINE) + 1e-12).all()
    assert_array_equal(two, two.T)
    assert_array_equal(np.diag(two), 0.0)
    assert (two[~np.eye(len(x), dtype=bool)] > 0).all()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_grey_levels_have_no_unit(scale: float) -> None:
    x = random_images(10, 8)
    for deformations in (AFFINE, DEFORMATIONS):
        expected = scale * two_sided_distances(x, deformations)
        assert_allclose(two_sided_distances(scale * x, deformations), expected, rtol=1e-6)


def test_blocks_do_not_show() -> None:
    x = random_images(2 * BLOCK + 3, 6, 4)
    few = [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, 2 * BLOCK + 2]
    assert_allclose(
        two_sided_distances(x)[np.ix_(few, few)], two_sided_distances(x[few]), atol=1e-7
    )


def test_equal_images_have_distance_zero() -> None:
    x = np.repeat(random_images(3, 7), 2, axis=0)
    assert_array_equal(two_sided_distances(x)[[0, 2, 4], [1, 3, 5]], 0.0)


@pytest.mark.parametrize("which", [1, 2, 3])
@MOVES
def test_moved_images_are_near(which: int, moved: Callable[[int], np.ndarray]) -> None:
    x = np.stack([plain(which), moved(which), plain(which + 10)])
    euclidean = cdist(x, x)
    for deformations in (DEFORMATIONS, AFFINE):
        tangent = two_sided_distances(x, deformations)
        assert tangent[0, 1] < 0.3 * euclidean[0, 1]
        assert tangent[0, 1] < tangent[0, 2]
    affine = affine_distances(x)
    assert affine[0, 1] < 0.3 * euclidean[0, 1]
    assert affine[0, 1] < 0.5 * affine[0, 2]


def test_images_are_square() -> None:
    assert [image_side(n) for n in (1, 4, 256)] == [1, 2, 16]
    for n_features in (0, 2, 255):
        with mistake(f"{n_features} features", "256 = 16²", error=DataError):
            image_side(n_features)


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("side", [3, 6, 16])
def test_transformed_images_are_those_of_scipy(seed: int, side: int) -> None:
    image, target = random_images(2, seed, side)
    p, scratch = parameters(seed), np.empty((7, side**2))
    total = _linearise(padded_spline(image.reshape(side, side)), target, p, scratch)
    expected = transformed(image.reshape(side, side), p).ravel() - target
    assert_allclose(scratch[RESIDUAL], expected, atol=1e-12)
    assert total == pytest.approx((expected**2).sum(), rel=1e-12)


@pytest.mark.slow
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


@pytest.mark.slow
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
def test_grey_levels_have_no_unit_of_affine_distance(scale: float) -> None:
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


def test_images_are_square_of_affine_distance() -> None:
    with mistake("5 features", "256 = 16²"):
        affine_distances(np.zeros((3, 5)))


@pytest.mark.slow
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
