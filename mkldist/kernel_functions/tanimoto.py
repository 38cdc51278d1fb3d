"""Tanimoto kernel: ``x'z / (|x|² + |z|² - x'z)``.

For features 0 and 1 it equals the Jaccard kernel.  It is positive semi-definite for all real
vectors: Tripp, Bacallado, Singh and Hernández-Lobato, Tanimoto Random Features for Scalable
Molecular Machine Learning, 2023.  For two points of zeros the value is 1.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import INNER_PRODUCT
from mkldist.kernel_functions.definition import KernelFunction
from mkldist.kernel_functions.shares import share_in_common
from mkldist.kernel_functions.tile import Tile


def values(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``x'z / (|x|² + |z|² - x'z)`` to `out`."""
    rows, columns = (np.einsum("ns,ns->n", points, points) for points in (tile.left, tile.right))
    share_in_common(tile.base(INNER_PRODUCT), rows, columns, out, symmetric=tile.symmetric)


FUNCTION = KernelFunction(
    "tanimoto",
    code=9,
    formula="x'z / (|x|^2 + |z|^2 - x'z)",
    values=values,
    base=INNER_PRODUCT,
    note="For fingerprints of molecules and other vectors; 1 for two points of zeros.",
)
