"""Kernel functions as a user may write them."""

import threading
from typing import Any

import numpy as np

from mkldist.kernel_functions.bases import Tile
from mkldist.kernel_functions.definition import KernelFunction, Takes


def gauss(left: np.ndarray, right: np.ndarray, width: float = 1.0) -> np.ndarray:
    distances = ((left[:, None] - right) ** 2).sum(axis=-1)
    return np.exp(-0.5 * distances / width**2)


SIGMA = 1.0
LOCK = threading.Lock()


def rate() -> float:
    with LOCK:
        return SIGMA


def of_rate(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.exp(-rate() * ((left[:, None] - right) ** 2).sum(axis=-1))


class Scaled:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.scale * left @ right.T


SETTINGS = {
    "gaussian": [(0.7, 0.0)],
    "polynomial": [(3.0, 0.5)],
    "additive": [(0.7, 0.0)],
    "laplacian-rbf": [(1.5, 0.0)],
    "matern": [(0.8, 0.5), (0.8, 1.5), (0.8, 2.5), (0.8, 3.3)],
    "periodic": [(0.9, 1.7)],
    "chi-squared": [(2.0, 0.0)],
    "spectrum": [(2.0, 0.0)],
}


def settings_of(function: KernelFunction) -> list[tuple[float, float]]:
    """Return some pairs of parameters."""
    return SETTINGS.get(function.name, [(1.0, 0.0)])


def points_of(function: KernelFunction, n: int, seed: int = 0) -> Any:
    """Return points that a function takes, equal ones and one of zeros among them."""
    rng = np.random.default_rng(seed)
    if function.takes is Takes.TEXTS:
        return ["".join(rng.choice(list("ab"), size=rng.integers(0, 8))) for _ in range(n)]
    x = rng.normal(size=(n, 3))
    if function.takes is Takes.NON_NEGATIVE or function.name == "categorical":
        x = rng.integers(0, 3, size=(n, 3)).astype(float)
    x[0] = 0.0
    x[-1] = x[n // 2]
    return x


def values(
    function: KernelFunction,
    left: Any,
    right: Any,
    first: float = 1.0,
    second: float = 0.0,
    *,
    symmetric: bool = False,
) -> np.ndarray:
    """Return the values of a function between points, (r, c)."""
    out = np.full((len(left), len(right)), np.nan)
    function.values(Tile.of(left, right, symmetric=symmetric), first, second, out)
    return out
