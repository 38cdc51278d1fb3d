"""A bank of all kernel functions, and the values of its kernels by scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

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
