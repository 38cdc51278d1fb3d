"""Short lists of kernels for tests of what computes with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.kernel_list import KernelList

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
