"""Jaccard kernel of sets and counts: ``Σ_j min(x_j, z_j) / Σ_j max(x_j, z_j)``.

For features 0 and 1 it is the share of common elements in the union of two sets.  For counts it is
the MinMax kernel of Ralaivola, Swamidass, Saigo and Baldi, Graph Kernels for Chemical Informatics,
2005.  Two empty sets are equal: the value is 1.
"""

from __future__ import annotations

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import MINIMA
from mkldist.kernel_functions.definition import KernelFunction, Takes
from mkldist.kernel_functions.shares import share_in_common
from mkldist.kernel_functions.tile import Tile


def values(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``sum_j min(x_j, z_j) / sum_j max(x_j, z_j)`` to `out`."""
    rows, columns = tile.left.sum(axis=1), tile.right.sum(axis=1)
    share_in_common(tile.base(MINIMA), rows, columns, out, symmetric=tile.symmetric)


FUNCTION = KernelFunction(
    "jaccard",
    code=8,
    formula="sum_j min(x_j, z_j) / sum_j max(x_j, z_j)",
    values=values,
    base=MINIMA,
    takes=Takes.NON_NEGATIVE,
    note="For sets, as features 0 and 1, and for counts; 1 for two points of zeros.",
)
