"""Additive kernel: the mean over features of Cauchy kernels, ``1 / (1 + (x_j - z_j)² / s²)``.

Its functions are sums of functions of one feature each: Duvenaud, Nickisch and Rasmussen, Additive
Gaussian Processes, 2011, of order 1.  A Cauchy kernel is positive definite, for its Fourier
transform is an exponential, and takes no exponential itself, of which there would be one a feature.
"""

from __future__ import annotations

import math

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled
from mkldist.kernel_functions.bases import Base
from mkldist.kernel_functions.definition import WIDTH, KernelFunction
from mkldist.kernel_functions.tile import Tile


def _cauchy_sums(left: Floats, right: Floats, width: float, out: Floats) -> None:
    """Write ``sum_j 1 / (1 + (x_j - z_j)² / width²)`` of every pair to `out`."""
    _add_features(left / width, np.ascontiguousarray(right.T) / width, out)


@compiled(fastmath={"contract"})
def _add_features(left: Floats, columns: Floats, out: Floats) -> None:
    """Write the sums at width 1 for points (r, s) and features (s, c).

    The loop is vectorised, for unlike ``/`` the division of numpy asks for no zeros.
    """
    for i in range(len(left)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for s in range(len(columns)):
            x, z = left[i, s], columns[s]
            for j in range(len(row)):
                row[j] = row[j] + np.divide(1.0, 1.0 + (x - z[j]) * (x - z[j]))


CAUCHY_SUMS = Base("sum_j 1 / (1 + (x_j-z_j)^2 / s^2)", _cauchy_sums, norm=math.inf)


def values(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write the mean over the features of ``1 / (1 + (x_j - z_j)² / width²)`` to `out`."""
    np.multiply(tile.base(CAUCHY_SUMS, width), 1.0 / tile.left.shape[1], out=out)


FUNCTION = KernelFunction(
    "additive",
    code=12,
    formula="mean_j 1 / (1 + (x_j-z_j)^2 / s^2)",
    values=values,
    parameters=(WIDTH,),
    base=CAUCHY_SUMS,
    note="For sums of functions of single features, in one kernel.",
)
