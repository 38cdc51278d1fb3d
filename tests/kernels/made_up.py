"""Devices of the tests, and lists of kernels made up for them."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.devices import Device, device_named
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.kernel_list import KernelList

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
