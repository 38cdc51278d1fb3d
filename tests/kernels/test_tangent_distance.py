"""The tangent distance against least squares and against images that really are deformed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mkldist.errors import DataError
from mkldist.kernels.image_distances import (
    AFFINE,
    BLOCK,
    DEFORMATIONS,
    SMOOTHING,
    SPRING,
    image_side,
    tangent_bases,
    tangent_vectors,
    two_sided_distances,
)
from tests.data.mistakes import mistake
from tests.kernels.pictures import MOVES, PLACE, SIDE, deformed, plain, random_images

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


def test_two_sided_is_the_minimum_that_an_optimiser_finds() -> None:
    x = random_images(2, 4)
    of_x, of_z = tangent_vectors(x)

    def objective(p: np.ndarray) -> float:
        moved_x, moved_z = p[:7] @ of_x, p[7:] @ of_z
        gap = x[0] + moved_x - x[1] - moved_z
        return float(gap @ gap + 0.1 * (moved_x @ moved_x + moved_z @ moved_z))

    best = minimize(objective, np.zeros(14), method="BFGS", options={"gtol": 1e-9}).fun
    assert two_sided_distances(x, spring=0.1)[0, 1] ** 2 == pytest.approx(best, rel=1e-6)


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


def test_digits_are_told_apart_better(data_dir: Path | None) -> None:
    """Of the USPS test digits, fewer have their nearest neighbour in another class."""
    file = data_dir / "usps_test.csv.gz" if data_dir else None
    if file is None or not file.exists():
        pytest.skip("usps_test.csv.gz is not in --data-dir")
    table = np.loadtxt(file, delimiter=",", skiprows=1)[:1000]
    x, digit = table[:, :-1].copy(), table[:, -1]

    def errors(distances: np.ndarray) -> int:
        others = distances + np.diag(np.full(len(x), np.inf))
        return int((digit[others.argmin(axis=1)] != digit).sum())

    euclidean = errors(cdist(x, x))
    assert errors(two_sided_distances(x)) < 0.75 * euclidean
    assert errors(two_sided_distances(x, AFFINE)) < 0.85 * euclidean


def test_images_are_square() -> None:
    assert [image_side(n) for n in (1, 4, 256)] == [1, 2, 16]
    for n_features in (0, 2, 255):
        with mistake(f"{n_features} features", "256 = 16²", error=DataError):
            image_side(n_features)
