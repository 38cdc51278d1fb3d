"""Lists of kernels made up for the tests of devices."""

from __future__ import annotations

import numpy as np

from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.kernel_list import KernelList

LIBRARIES = ("array_api_strict", "torch:cpu")
"""Devices without an accelerator; PyTorch only where it is installed."""


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
