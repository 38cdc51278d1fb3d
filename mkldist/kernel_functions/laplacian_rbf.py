"""Laplacian radial basis function: ``exp(-|x - z|₁ / s)``."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import CITY_BLOCK
from mkldist.kernel_functions.definition import WIDTH, KernelFunction
from mkldist.kernel_functions.exponential import exponential
from mkldist.kernel_functions.tile import Tile


def values(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write ``exp(-|x - z|₁ / width)`` to `out`."""
    np.multiply(tile.base(CITY_BLOCK), -1.0 / width, out=out)
    exponential(out)


FUNCTION = KernelFunction(
    "laplacian-rbf",
    code=3,
    formula="exp(-|x-z|_1 / s)",
    values=values,
    parameters=(WIDTH,),
    base=CITY_BLOCK,
)
