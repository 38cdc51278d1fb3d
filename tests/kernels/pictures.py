"""Smooth pictures that are known at real coordinates, so that they can be deformed exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import ndimage

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
