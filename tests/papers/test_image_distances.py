"""Distances of images against their definitions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage
from scipy.optimize import Bounds, minimize
from scipy.spatial.distance import cdist

from mkldist.planning.resolved import resolve
from mkldist.spec.model import SweepSpec
from sweeps.papers.image_distances import (
    AFFINE,
    BLOCK,
    CANDIDATES,
    DEFORMATIONS,
    IDENTITY,
    REACH,
    SMOOTHING,
    SPRING,
    affine_distances,
    candidates,
    main,
    tangent_bases,
    tangent_vectors,
    two_sided_distances,
)

SIDE = 16
PLACE = np.arange(SIDE) - (SIDE - 1) / 2


def picture(u: np.ndarray, v: np.ndarray, which: int, smoothing: float) -> np.ndarray:
    """Three Gaussian bumps at real coordinates, convolved with a Gaussian; `which` draws them."""
    rng = np.random.default_rng(which)
    value = np.full(np.broadcast(u, v).shape, -1.0)
    variance = 1.8**2 + smoothing**2
    for cu, cv in rng.uniform(-3.5, 3.5, (3, 2)):
        bump = np.exp(-((u - cu) ** 2 + (v - cv) ** 2) / (2 * variance))
        value += 1.5 * 1.8**2 / variance * bump
    return value


def deformed(
    which: int, matrix: np.ndarray, shift: Sequence[float] = (0, 0), smoothing: float = 0.0
) -> np.ndarray:
    """Return the picture at coordinates that went through an affine map, as a row of pixels."""
    v, u = np.meshgrid(PLACE, PLACE, indexing="ij")
    mapped = np.tensordot(matrix, np.stack([u, v]), 1) + np.reshape(shift, (2, 1, 1))
    return picture(mapped[0], mapped[1], which, smoothing).ravel()


def plain(which: int) -> np.ndarray:
    return deformed(which, np.eye(2))


def random_images(n: int, seed: int = 0, side: int = 6) -> np.ndarray:
    smooth = np.random.default_rng(seed).normal(size=(n, side, side))
    return ndimage.gaussian_filter(smooth, (0, 1, 1)).reshape(n, -1)


def rotation(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s], [-s, c]])


MOVES = pytest.mark.parametrize(
    "moved",
    [
        lambda w: deformed(w, np.eye(2), (1.0, 0.0)),
        lambda w: deformed(w, np.eye(2), (0.5, -0.7)),
        lambda w: deformed(w, rotation(0.15)),
        lambda w: deformed(w, 1.1 * np.eye(2)),
        lambda w: deformed(w, np.diag([1.1, 1 / 1.1])),
        lambda w: deformed(w, np.array([[1.0, 0.15], [0.0, 1.0]])),
    ],
    ids=["shifted", "shifted askew", "rotated", "scaled", "stretched", "sheared"],
)

GENERATORS: dict[str, np.ndarray] = {
    "scale": np.eye(2),
    "rotation": np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "stretch": np.diag([1.0, -1.0]),
    "shear": np.array([[0.0, 1.0], [1.0, 0.0]]),
}


@pytest.mark.parametrize("name", AFFINE)
@pytest.mark.parametrize("which", [1, 2])
def test_tangents_are_derivatives_of_deformed_smoothed_images(name, which):
    step = 1e-4
    shifts = {"shift-u": [1.0, 0.0], "shift-v": [0.0, 1.0]}
    matrix, shift = GENERATORS.get(name, np.zeros((2, 2))), np.array(shifts.get(name, [0.0, 0.0]))
    ahead, behind = (
        deformed(which, np.eye(2) + h * matrix, h * shift, SMOOTHING) for h in (step, -step)
    )
    derivative = ((ahead - behind) / (2 * step)).reshape(SIDE, SIDE)[3:-3, 3:-3]
    tangent = tangent_vectors(plain(which)[None], [name]).reshape(SIDE, SIDE)[3:-3, 3:-3]
    assert_allclose(tangent, derivative, atol=0.03 * np.abs(derivative).max())


def test_blank_images_and_single_pixels_have_no_tangents():
    for grey in (3.0, 0.1, -1e-20, 1e20):
        assert_array_equal(tangent_bases(np.full((2, 25), grey)), 0.0)
    assert_array_equal(two_sided_distances(np.array([[1.0], [3.0]])), [[0.0, 2.0], [2.0, 0.0]])
    x = np.vstack([np.full((2, 25), 3.0), random_images(1, side=5)])
    found = two_sided_distances(x)
    assert np.isfinite(found).all()
    assert found[0, 1] == 0.0


@pytest.mark.parametrize(("spring", "side"), [(SPRING, 6), (0.1, 2), (10.0, 6)])
@pytest.mark.parametrize("deformations", [DEFORMATIONS, AFFINE], ids=["all", "affine"])
def test_two_sided_is_the_distance_between_the_planes(deformations, spring, side):
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


def test_order_of_distances():
    """More deformations only shorten distances, from the Euclidean ones on."""
    x = random_images(BLOCK + 40, 5)
    euclidean, two = cdist(x, x), two_sided_distances(x)
    assert (two <= euclidean + 1e-12).all()
    assert (two <= two_sided_distances(x, AFFINE) + 1e-12).all()
    assert_array_equal(two, two.T)
    assert_array_equal(np.diag(two), 0.0)
    assert (two[~np.eye(len(x), dtype=bool)] > 0).all()


@pytest.mark.parametrize("which", [1, 2, 3])
@MOVES
def test_moved_images_are_near(which, moved):
    x = np.stack([plain(which), moved(which), plain(which + 10)])
    euclidean = cdist(x, x)
    for deformations in (DEFORMATIONS, AFFINE):
        tangent = two_sided_distances(x, deformations)
        assert tangent[0, 1] < 0.3 * euclidean[0, 1]
        assert tangent[0, 1] < tangent[0, 2]
    affine = affine_distances(x)
    assert affine[0, 1] < 0.3 * euclidean[0, 1]
    assert affine[0, 1] < 0.5 * affine[0, 2]


def transformed(image: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Transform an image by scipy's own interpolation."""
    side = len(image)
    rotation = np.array([[np.cos(p[4]), -np.sin(p[4])], [np.sin(p[4]), np.cos(p[4])]])
    matrix = rotation @ np.array([[p[2], p[5]], [0.0, p[3]]])
    v, u = np.meshgrid(*2 * [np.arange(side) - (side - 1) / 2], indexing="ij")
    moved = np.tensordot(matrix, np.stack([u, v]), 1) + np.reshape(p[:2], (2, 1, 1))
    at = np.clip(moved[::-1] + (side - 1) / 2, 0, side - 1)
    return ndimage.map_coordinates(image, at, order=3, mode="mirror")


@pytest.mark.slow
def test_the_minimum_is_not_far_from_what_an_optimiser_finds():
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


def test_bounds_hold():
    """A shift by two pixels is undone, one by four is not."""
    x = np.stack([deformed(1, np.eye(2), (shift, 0.0)) for shift in (0.0, 2.0, 4.0)])
    affine, euclidean = affine_distances(x), cdist(x, x)
    assert affine[0, 1] < 0.15 * euclidean[0, 1]
    assert affine[0, 2] > 0.2 * euclidean[0, 2]


def test_symmetric_zero_for_equals_and_at_most_euclidean():
    x = random_images(25, 1)
    x[7] = x[3]
    affine, euclidean = affine_distances(x), cdist(x, x)
    assert_array_equal(affine, affine.T)
    assert_array_equal(np.diag(affine), 0.0)
    assert affine[3, 7] == 0.0
    assert (affine <= euclidean).all()
    assert (affine < 0.95 * euclidean).sum() > 300
    assert np.isfinite(affine).all()


def test_pairs_that_are_not_wanted_keep_their_euclidean_distance():
    x = random_images(10, 4)
    pairs = np.random.default_rng(5).uniform(size=(10, 10)) < 0.2
    found = affine_distances(x, pairs)
    wanted = pairs | pairs.T
    assert_array_equal(found[wanted], affine_distances(x)[wanted])
    assert_allclose(found[~wanted], cdist(x, x)[~wanted])


@pytest.mark.parametrize("side", [1, 2])
def test_tiny_and_blank_images(side):
    x = np.vstack([random_images(4, 6, side), np.full((1, side**2), 2.0)])
    affine = affine_distances(x)
    assert np.isfinite(affine).all()
    assert (affine <= cdist(x, x)).all()


def test_candidates_are_the_nearest_and_all_of_few():
    x = random_images(CANDIDATES + 20, 3)
    pairs, tangent = candidates(x), two_sided_distances(x, AFFINE)
    assert pairs is not None
    assert (pairs.sum(axis=1) == CANDIDATES + 1).all()
    farthest = np.where(pairs, tangent, 0.0).max(axis=1)
    assert (farthest <= np.where(pairs, np.inf, tangent).min(axis=1)).all()
    assert candidates(x[:CANDIDATES]) is None


@pytest.mark.parametrize("distance", ["tangent", "affine"])
def test_the_script_takes_the_images_that_a_sweep_draws(distance, tmp_path):
    images = random_images(30, 4, 5)
    table = pd.DataFrame(images, columns=[f"f{j}" for j in range(25)])
    table.assign(label=np.arange(30) % 3 + 1).to_csv(tmp_path / "images.csv", index=False)
    output = str(tmp_path / "d.npy")
    words = ["--classes", "1", "3", "--per-class", "4"]
    main([str(tmp_path / "images.csv"), distance, "-o", output, *words])
    entry = {"name": "a", "file": "images.csv", "classes": ["1", "3"], "per_class": 4}
    spec = SweepSpec.model_validate(
        {
            "name": "s",
            "datasets": [{**entry, "graph": {"distances": "d.npy", "neighbours": 2}}],
            "splits": {"kind": "semi-supervised", "labelled_per_class": 2},
            "banks": [{"family": "default"}],
            "methods": [{"name": "lapsvm"}],
        }
    )
    [(taken, _)] = resolve(spec, [], tmp_path).datasets.values()
    np.savez(tmp_path / "images.npz", x=taken.x)
    expected = np.load(output)
    assert_array_equal(taken.distances["d.npy"], expected)
    main([str(tmp_path / "images.npz"), distance, "-o", output])
    assert_allclose(np.load(output), expected, atol=1e-7)


def test_the_script_refuses_what_is_no_image(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 5)))
    for name in ("x.npz", "none.npz"):
        with pytest.raises(SystemExit) as caught:
            main([str(tmp_path / name), "affine", "-o", str(tmp_path / "d.npy")])
        assert caught.value.code == 2
