"""Linear kernel: ``x'z``."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import INNER_PRODUCT
from mkldist.kernel_functions.definition import KernelFunction
from mkldist.kernel_functions.sparse_points import squared_lengths
from mkldist.kernel_functions.tile import Tile


def values(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``x'z`` to `out`."""
    np.copyto(out, tile.base(INNER_PRODUCT))


def diagonal(points: Floats, first: float, second: float) -> Floats:
    """Return ``|x|²``, (n,)."""
    return squared_lengths(points)


FUNCTION = KernelFunction(
    "linear", code=2, formula="x'z", values=values, base=INNER_PRODUCT, diagonal=diagonal
)
