"""Bases: numbers that depend on a pair of points, from which kernel functions follow.

A bank evaluates a base once per feature subset, and applies kernel functions with each parameter
to it.  The base of points `left` (r, s) and `right` (c, s) is a float64 array (r, c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.sparse_points import (
    is_sparse,
    sparse_products,
    sparse_squared_distances,
)

DIRECT_FEATURES = 4  # up to this number, squared differences are summed feature by feature
Term = Callable[[Floats, Floats, Floats], object]


@dataclass(frozen=True)
class Base:
    """A number that depends on a pair of points.

    Parameters
    ----------
    formula : str
        The number in a line of plain letters.
    compute : callable
        ``compute(left, right, parameter, out)`` writes it for every pair to `out`.
    is_distance : bool
        True if it is 0 for equal points.
    norm : float
        1 or 2 if it follows from this norm of the difference of two points, infinity if from
        differences of single features, else 0.  Widths are then in units of the features.
    """

    formula: str
    compute: Callable[[Floats, Floats, float, Floats], None]
    is_distance: bool = False
    norm: float = 0


def inner_products(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write ``x'z`` of every pair to `out`."""
    if is_sparse(left):
        sparse_products(left, right, out)
        return
    np.matmul(left, right.T, out=out)


def squared_distances(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write ``|x - z|²`` of every pair to `out`.

    For few features, the sum runs over squared differences, which is exact to rounding and zero
    for equal points.  For many, ``|x|² + |z|² - 2 x'z`` needs one matrix product.  This difference
    loses digits if points lie far from the origin, so the mean of the points `right` is subtracted
    from both sides first.
    """
    if is_sparse(left):
        sparse_squared_distances(left, right, out)
        return
    if left.shape[1] <= DIRECT_FEATURES:
        accumulate(left, right, out, _squared_difference)
        return
    centre = right.mean(axis=0) if len(right) else np.zeros(right.shape[1])
    left, right = left - centre, right - centre
    np.matmul(left, right.T, out=out)
    out *= -2.0
    out += np.einsum("rs,rs->r", left, left)[:, None]
    out += np.einsum("cs,cs->c", right, right)
    np.maximum(out, 0.0, out=out)


def city_block_distances(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write ``|x - z|₁`` of every pair to `out`."""
    accumulate(left, right, out, _absolute_difference)


def sums_of_minima(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write ``sum_j min(x_j, z_j)`` of every pair to `out`."""
    accumulate(left, right, out, lambda x, z, term: np.minimum(x, z, out=term))


def accumulate(left: Floats, right: Floats, out: Floats, write: Term) -> None:
    """Write the sum over features of a function of both values to `out`.

    Parameters
    ----------
    left, right : (r, s) and (c, s) float64
        Points.
    out : (r, c) float64
        Array to write to.  One more of this shape is needed for the time of the call.
    write : callable
        ``write(x, z, term)`` writes the function of one feature's values, x (r, 1) and z (c,), to
        `term` (r, c).
    """
    write(left[:, None, 0], right[:, 0], out)
    term = np.empty(out.shape) if left.shape[1] > 1 else out
    for s in range(1, left.shape[1]):
        write(left[:, None, s], right[:, s], term)
        out += term


def _squared_difference(x: Floats, z: Floats, term: Floats) -> None:
    np.subtract(x, z, out=term)
    np.square(term, out=term)


def _absolute_difference(x: Floats, z: Floats, term: Floats) -> None:
    np.subtract(x, z, out=term)
    np.absolute(term, out=term)


INNER_PRODUCT = Base("x'z", inner_products)
SQUARED_DISTANCE = Base("|x-z|^2", squared_distances, is_distance=True, norm=2)
CITY_BLOCK = Base("|x-z|_1", city_block_distances, is_distance=True, norm=1)
MINIMA = Base("sum_j min(x_j, z_j)", sums_of_minima)
