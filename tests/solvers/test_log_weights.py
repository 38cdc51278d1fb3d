"""Kernel weights by logarithms: known fixed points, weights of zero, admissible weights."""

from __future__ import annotations

import numpy as np

from mkldist.solvers.log_weights import LogWeights


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
