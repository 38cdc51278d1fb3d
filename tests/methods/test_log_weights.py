"""Accelerated fixed-point iterations of kernel weights."""

import numpy as np

from mkldist.methods.lp_mkl import Anderson, LogWeights


def update(weights: LogWeights, target: np.ndarray, A: np.ndarray) -> None:
    """Move by the linear map ``log -> target + A (log - target)``, slow where A is near 1."""
    weights.update(target + A @ (weights.log - target), np.ones(len(target)))


def test_mixing_finds_the_fixed_point_of_a_linear_map_in_as_many_steps_as_weights():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    A = Q @ np.diag([0.99, 0.9, 0.5, -0.3]) @ Q.T
    target = rng.normal(size=4)
    mixed, plain = (LogWeights(np.zeros(4), lambda mixed, plain: mixed) for _ in range(2))
    for _ in range(6):
        update(mixed, target, A)
        plain.replace(target + A @ (plain.log - target))
    np.testing.assert_allclose(mixed.d, np.exp(target), rtol=1e-6)
    assert not np.allclose(plain.d, np.exp(target), rtol=0.1)


def test_a_weight_that_becomes_zero_ends_the_mixing():
    weights = LogWeights(np.zeros(3), lambda mixed, plain: mixed)
    for _ in range(3):
        update(weights, np.array([1.0, 2.0, 3.0]), 0.5 * np.eye(3))
    assert weights.mixed
    gone = np.array([0.1, -np.inf, 0.3])
    weights.update(gone, np.ones(3))
    assert not weights.mixed
    np.testing.assert_array_equal(weights.log, gone)
    assert weights.d[1] == 0.0


def test_only_admissible_weights_are_taken():
    bounded = LogWeights(np.zeros(2), lambda mixed, plain: np.clip(mixed, -0.5, 0.5))
    for _ in range(4):
        update(bounded, np.array([3.0, -3.0]), 0.9 * np.eye(2))
        assert np.abs(bounded.log).max() <= 0.5


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
