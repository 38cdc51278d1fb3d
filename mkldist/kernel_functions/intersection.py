"""Histogram intersection: ``Σ_j min(x_j, z_j)``.

Barla, Odone and Verri, Histogram Intersection Kernel for Image Classification, 2003.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import MINIMA
from mkldist.kernel_functions.definition import KernelFunction, Takes
from mkldist.kernel_functions.tile import Tile


def values(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``sum_j min(x_j, z_j)`` to `out`."""
    np.copyto(out, tile.base(MINIMA))


def diagonal(points: Floats, first: float, second: float) -> Floats:
    """Return ``sum_j x_j``, (n,)."""
    return np.asarray(points.sum(axis=1))


FUNCTION = KernelFunction(
    "intersection",
    code=7,
    formula="sum_j min(x_j, z_j)",
    values=values,
    base=MINIMA,
    diagonal=diagonal,
    takes=Takes.NON_NEGATIVE,
    note="For histograms and counts.",
)
