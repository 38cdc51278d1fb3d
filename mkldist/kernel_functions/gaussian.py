"""Gaussian kernel: ``exp(-|x - z|² / (2 s²))``."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import SQUARED_DISTANCE
from mkldist.kernel_functions.definition import WIDTH, KernelFunction
from mkldist.kernel_functions.exponential import exponential
from mkldist.kernel_functions.tile import Tile


def values(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write ``exp(-|x - z|² / (2 width²))`` to `out`."""
    np.multiply(tile.base(SQUARED_DISTANCE), -0.5 / width**2, out=out)
    exponential(out)


FUNCTION = KernelFunction(
    "gaussian",
    code=0,
    formula="exp(-|x-z|^2 / (2 s^2))",
    values=values,
    parameters=(WIDTH,),
    base=SQUARED_DISTANCE,
)
