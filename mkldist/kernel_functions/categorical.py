"""Categorical kernel (Dirac): 1 for points that are equal in every feature of the subset, else 0.

Categories may be coded as one number or as an indicator for each: equality is that of all columns,
and no scaling changes it.  A kernel for each of several categorical columns is
``features = "each"``, or a list of the columns' names; the sum of these kernels counts the columns
in which two points agree.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import Base, Tile, accumulate
from mkldist.kernel_functions.definition import KernelFunction


def _mismatches(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write the number of features in which the points of every pair differ to `out`."""
    accumulate(left, right, out, lambda x, z, term: np.not_equal(x, z, out=term))


MISMATCHES = Base("number of j with x_j != z_j", _mismatches, is_distance=True)


def _categorical(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write 1 for equal points and 0 for others to `out`."""
    np.equal(tile.base(MISMATCHES), 0.0, out=out)


CATEGORICAL = KernelFunction(
    "categorical",
    code=10,
    formula="1 if x = z in every feature of the subset, else 0",
    values=_categorical,
    base=MISMATCHES,
    note='For coded categories; features = "each" compares one column at a time.',
)
