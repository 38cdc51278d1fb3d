"""Small instances of every awkward shape."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, wraps

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel


@dataclass(frozen=True, eq=False)
class Instance:
    name: str
    grams: np.ndarray
    y: np.ndarray
    C: float


def made_once(make: Callable[[], Instance]) -> Callable[[], Instance]:
    """Let a function compute its instance once, and return a copy at every call."""
    made = cache(make)

    @wraps(make)
    def copied() -> Instance:
        return replace(made(), grams=made().grams.copy(), y=made().y.copy())

    return copied


def _labels(rng: np.random.Generator, n: int, positives: int) -> np.ndarray:
    y = -np.ones(n)
    y[rng.choice(n, positives, replace=False)] = 1.0
    return y


def _points(rng: np.random.Generator, y: np.ndarray, d: int) -> np.ndarray:
    x = rng.normal(size=(len(y), d))
    x[:, 0] += 0.8 * y
    x[:, d // 2] += 0.5 * y * np.abs(x[:, -1])
    return x


def _unit_trace(grams: list[np.ndarray]) -> np.ndarray:
    stack = np.array(grams)
    traces = np.trace(stack, axis1=1, axis2=2)
    return stack / np.where(traces > 0, traces, 1.0)[:, None, None]


def _gaussians(x: np.ndarray, widths: tuple[float, ...]) -> list[np.ndarray]:
    return [rbf_kernel(x, gamma=1 / (2 * s**2)) for s in widths]


def _each_feature(x: np.ndarray, widths: tuple[float, ...]) -> list[np.ndarray]:
    return [k for j in range(x.shape[1]) for k in _gaussians(x[:, [j]], widths)]


@made_once
def balanced() -> Instance:
    rng = np.random.default_rng(0)
    y = _labels(rng, 60, 30)
    x = _points(rng, y, 5)
    grams = _gaussians(x, (0.5, 1, 2, 4)) + [polynomial_kernel(x, degree=k) for k in (1, 2, 3)]
    return Instance("balanced", _unit_trace(grams), y, 100.0)


@made_once
def more_kernels_than_points() -> Instance:
    rng = np.random.default_rng(1)
    y = _labels(rng, 40, 18)
    x = _points(rng, y, 12)
    return Instance("M > n", _unit_trace(_each_feature(x, (0.25, 0.5, 1, 2, 4))), y, 50.0)


@made_once
def duplicated_kernels() -> Instance:
    rng = np.random.default_rng(2)
    y = _labels(rng, 50, 25)
    x = _points(rng, y, 4)
    grams = [*_gaussians(x, (0.5, 1, 2)), linear_kernel(x)]
    return Instance("duplicates", _unit_trace(grams + grams + grams[:2]), y, 30.0)


@made_once
def zero_kernel() -> Instance:
    rng = np.random.default_rng(3)
    y = _labels(rng, 45, 20)
    x = _points(rng, y, 3)
    grams = [np.zeros((45, 45)), *_gaussians(x, (0.3, 1, 3))]
    return Instance("zero kernel", _unit_trace(grams), y, 10.0)


@made_once
def ill_conditioned() -> Instance:
    rng = np.random.default_rng(4)
    y = _labels(rng, 70, 33)
    x = _points(rng, y, 6)
    grams = [linear_kernel(x[:, [j]]) for j in range(6)] + _gaussians(x, (20.0, 50.0))
    grams += [polynomial_kernel(x, degree=k) for k in (5, 6)]
    return Instance("ill-conditioned", _unit_trace(grams), y, 1000.0)


@made_once
def unbalanced() -> Instance:
    rng = np.random.default_rng(5)
    y = _labels(rng, 100, 9)
    x = _points(rng, y, 4)
    return Instance("unbalanced", _unit_trace(_each_feature(x, (0.5, 1, 2))), y, 20.0)


@made_once
def not_normalised() -> Instance:
    rng = np.random.default_rng(6)
    y = _labels(rng, 30, 15)
    x = _points(rng, y, 3)
    grams = [*_gaussians(x, (0.5, 2)), polynomial_kernel(x, degree=2), linear_kernel(x)]
    return Instance("not normalised", np.array(grams), y, 1.0)


INSTANCES: tuple[Callable[[], Instance], ...] = (
    balanced,
    more_kernels_than_points,
    duplicated_kernels,
    zero_kernel,
    ill_conditioned,
    unbalanced,
    not_normalised,
)


every_instance = pytest.mark.parametrize("make", INSTANCES, ids=lambda f: f.__name__)


def factors(grams: np.ndarray) -> list[np.ndarray]:
    roots = []
    for K in grams:
        values, vectors = np.linalg.eigh(K)
        keep = values > 1e-15 * max(values[-1], 1e-300)
        roots.append((vectors[:, keep] * np.sqrt(values[keep])).T)
    return roots


def solid_factors(grams: np.ndarray) -> list[np.ndarray]:
    """Return the factors that have rows; of kernels that are all zero, one row of zeros."""
    return [root for root in factors(grams) if len(root)] or [np.zeros((1, grams.shape[1]))]
