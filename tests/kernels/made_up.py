"""Devices of the tests, and lists of kernels made up for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import ndimage
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from mkldist.core.devices import Device, device_named
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

DEVICES = ("array_api_strict", "torch:cpu", "cuda")
"""Devices to test: those without an accelerator, and the accelerator of a machine that has one."""


def device_there(name: str) -> Device:
    """Return a device; skip the test where its library is not installed or it is not there."""
    library = pytest.importorskip("torch" if name == "cuda" else name.partition(":")[0])
    if name == "cuda" and not library.cuda.is_available():
        pytest.skip("this machine has no accelerator of CUDA")
    return device_named(name, "device")


def kernels_of(n_features: int) -> KernelList:
    """Return kernels of all functions that devices compute, on all features and on the first."""
    functions = ("gaussian", "laplacian-rbf", "polynomial", "linear")
    codes = [FUNCTIONS[name].code for name in functions]
    return KernelList(
        function=np.array(codes + codes),
        parameter=np.array([4.0, 9.0, 3.0, 1.0, 0.7, 2.0, 2.0, 1.0]),
        offset=np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.5, 0.0]),
        subset=np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        subset_indptr=np.array([0, n_features, n_features + 1]),
        subset_indices=np.array([*range(n_features), 0]),
    )


NAMES = ("gaussian", "polynomial", "linear", "laplacian-rbf")
CODES = {name: FUNCTIONS[name].code for name in NAMES}


def gaussians(widths: Sequence[float], subsets: Sequence[Sequence[int]]) -> KernelList:
    """Return Gaussians of each width on each subset of features."""
    return listed(["gaussian"] * len(widths), subsets, widths)


def listed(
    functions: Sequence[str], subsets: Sequence[Sequence[int]], parameters: Sequence[float]
) -> KernelList:
    """Return every function with its parameter on every subset of features."""
    n = len(subsets)
    codes = [CODES[name] for name in functions]
    return KernelList(
        function=np.tile(codes, n),
        parameter=np.tile(np.array(parameters, dtype=float), n),
        offset=np.tile([1.0 * (name == "polynomial") for name in functions], n),
        subset=np.repeat(np.arange(n), len(functions)),
        subset_indptr=np.cumsum([0, *map(len, subsets)]),
        subset_indices=np.concatenate(subsets),
    )


SPEC = BankSpec(
    kernels=[
        {"function": "gaussian", "widths": [0.3, 2.0], "features": ["all", "each"]},
        {"function": "polynomial", "degrees": [1, 2, 5], "offset": 0.7, "features": ["all"]},
        {"function": "linear", "features": ["all", "each", {"count": 3}]},
        {"function": "laplacian-rbf", "widths": [0.5, 4.0], "features": ["all", "each"]},
    ]
)


def bank(d: int = 7) -> KernelList:
    """Return kernels of all functions on d features."""
    return kernel_list(SPEC, d, [f"f{j}" for j in range(d)], {}, 0)


def by_scikit_learn(
    kernels: KernelList, m: int, rows: np.ndarray, cols: np.ndarray, *, cosine: bool = False
) -> np.ndarray:
    """Return the values of one kernel, (r, c)."""
    if cosine:
        lengths = [np.sqrt(np.diag(by_scikit_learn(kernels, m, p, p))) for p in (rows, cols)]
        return by_scikit_learn(kernels, m, rows, cols) / np.outer(*lengths)
    name, p = kernels.function_of(m).label, float(kernels.parameter[m])
    x, z = (points[:, kernels.features_of(m)] for points in (rows, cols))
    if name == "gaussian":
        return rbf_kernel(x, z, gamma=0.5 / p**2)
    if name == "laplacian-rbf":
        return laplacian_kernel(x, z, gamma=1 / p)
    if name == "linear":
        return x @ z.T
    return polynomial_kernel(x, z, degree=p, gamma=1.0, coef0=float(kernels.offset[m]))


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
