"""Anderson's acceleration against the solution of a linear fixed-point equation."""

from __future__ import annotations

import numpy as np

from mkldist.solvers.log_weights import Anderson


def contraction(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(size, size))
    return 0.9 * A / np.linalg.norm(A, 2), rng.normal(size=size)


def test_a_linear_map_is_solved_in_as_many_steps_as_it_has_dimensions():
    A, b = contraction(0, 5)
    anderson, x = Anderson(), np.zeros(5)
    for _ in range(7):
        x = anderson.mix(x, A @ x + b, np.ones(5))
    np.testing.assert_allclose(x, np.linalg.solve(np.eye(5) - A, b), rtol=1e-7)


def test_the_residual_of_the_combination_is_smallest_in_the_scaled_norm():
    A, b = contraction(1, 6)
    rng = np.random.default_rng(2)
    points, scale = rng.normal(size=(3, 6)), rng.uniform(0.1, 2.0, 6)
    images = points @ A.T + b
    anderson = Anderson()
    for point, image in zip(points, images, strict=True):
        mixed = anderson.mix(point, image, scale)
    residuals = images - points
    # Shares s that sum to one and minimise ||scale * sum_j s_j r_j||, by their normal equations.
    gram = (residuals * scale) @ (residuals * scale).T
    shares = np.linalg.solve(gram, np.ones(3))
    np.testing.assert_allclose(mixed, shares / shares.sum() @ images, rtol=1e-8)


def test_only_the_last_points_are_remembered():
    A, b = contraction(3, 4)
    points = np.random.default_rng(4).normal(size=(5, 4))
    short, fresh = Anderson(size=1), Anderson()
    for point in points:
        last = short.mix(point, A @ point + b, np.ones(4))
    for point in points[-2:]:
        expected = fresh.mix(point, A @ point + b, np.ones(4))
    np.testing.assert_allclose(last, expected)
    short.forget()
    np.testing.assert_array_equal(short.mix(points[0], points[1], np.ones(4)), points[1])
