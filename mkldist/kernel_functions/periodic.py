"""Periodic kernel: ``exp(-2 Σ_j sin²(π (x_j - z_j) / p) / s²)``.

On one feature it is scikit-learn's ``ExpSineSquared``: MacKay, Introduction to Gaussian Processes,
1998, equation 47.  On several it is the product over features, which is positive definite; the
function of the Euclidean distance is not.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import Base, accumulate
from mkldist.kernel_functions.definition import WIDTH, KernelFunction, Parameter
from mkldist.kernel_functions.exponential import exponential
from mkldist.kernel_functions.tile import Tile

PERIOD = Parameter("period", "Periods p, in units of the features.", "positive", example="1")


def _squared_sines(left: Floats, right: Floats, period: float, out: Floats) -> None:
    """Write ``sum_j sin²(π (x_j - z_j) / period)`` of every pair to `out`."""

    def write(x: Floats, z: Floats, term: Floats) -> None:
        np.subtract(x, z, out=term)
        term *= np.pi / period
        np.sin(term, out=term)
        np.square(term, out=term)

    accumulate(left, right, out, write)


SQUARED_SINES = Base("sum_j sin^2(pi (x_j-z_j) / p)", _squared_sines, is_distance=True)


def values(tile: Tile, width: float, period: float, out: Floats) -> None:
    """Write ``exp(-2 sum_j sin²(π (x_j - z_j) / period) / width²)`` to `out`."""
    np.multiply(tile.base(SQUARED_SINES, period), -2.0 / width**2, out=out)
    exponential(out)


FUNCTION = KernelFunction(
    "periodic",
    code=5,
    formula="exp(-2 sum_j sin^2(pi (x_j-z_j) / p) / s^2)",
    values=values,
    parameters=(WIDTH, PERIOD),
    base=SQUARED_SINES,
    note="Scaling of the features scales the period: it counts in their units as kernels see them.",
)
