"""Devices of the tests, and lists of kernels made up for them."""

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from mkldist.core.devices import Device, device_named
from mkldist.kernel_functions import FUNCTIONS
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
