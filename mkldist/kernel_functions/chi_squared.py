"""Chi-squared kernel of histograms: ``exp(-Σ_j (x_j - z_j)² / (x_j + z_j) / s)``.

Zhang, Marszalek, Lazebnik and Schmid, Local Features and Kernels for Classification of Texture and
Object Categories, 2007.  A feature that is 0 in both points counts 0.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import Base, accumulate
from mkldist.kernel_functions.definition import WIDTH, KernelFunction, Takes
from mkldist.kernel_functions.exponential import exponential
from mkldist.kernel_functions.tile import Tile


def _distances(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write ``sum_j (x_j - z_j)² / (x_j + z_j)`` of every pair to `out`."""
    total = np.empty(out.shape)

    def write(x: Floats, z: Floats, term: Floats) -> None:
        np.add(x, z, out=total)
        np.subtract(x, z, out=term)
        np.square(term, out=term)
        np.divide(term, total, out=term, where=total > 0.0)

    accumulate(left, right, out, write)


DISTANCE = Base("sum_j (x_j-z_j)^2 / (x_j+z_j)", _distances, is_distance=True)


def values(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write ``exp(-sum_j (x_j - z_j)² / (x_j + z_j) / width)`` to `out`."""
    np.multiply(tile.base(DISTANCE), -1.0 / width, out=out)
    exponential(out)


FUNCTION = KernelFunction(
    "chi-squared",
    code=6,
    formula="exp(-sum_j (x_j-z_j)^2 / (x_j+z_j) / s)",
    values=values,
    parameters=(WIDTH,),
    base=DISTANCE,
    takes=Takes.NON_NEGATIVE,
    note="For histograms and counts.",
)
