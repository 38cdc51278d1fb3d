"""Kernel functions of inner products: linear and polynomial."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import INNER_PRODUCT, Tile, squared_lengths
from mkldist.kernel_functions.definition import KernelFunction, Parameter


def _linear(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``x'z`` to `out`."""
    np.copyto(out, tile.base(INNER_PRODUCT))


def _linear_diagonal(points: Floats, first: float, second: float) -> Floats:
    """Return ``|x|²``, (n,)."""
    return squared_lengths(points)


LINEAR = KernelFunction(
    "linear", code=2, formula="x'z", values=_linear, base=INNER_PRODUCT, diagonal=_linear_diagonal
)


DEGREE = Parameter("degree", "Degrees.", "count", word="degrees", example="[1, 2, 3]")
OFFSET = Parameter("offset", "Constant term.", "not negative", default=1.0, example="1")


def _polynomial(tile: Tile, degree: float, offset: float, out: Floats) -> None:
    """Write ``(offset + x'z)^degree`` to `out`."""
    np.add(tile.base(INNER_PRODUCT), offset, out=out)
    integer_power(out, int(degree))


def _polynomial_diagonal(points: Floats, degree: float, offset: float) -> Floats:
    """Return ``(offset + |x|²)^degree``, (n,)."""
    found: Floats = squared_lengths(points) + offset
    integer_power(found, int(degree))
    return found


def integer_power(values: Floats, exponent: int) -> None:
    """Raise `values` to an exponent of at least 1, in place.

    Square and multiply by the bits of the exponent, from the left.  ``numpy.power`` takes as long
    as about twenty multiplications.

    >>> x = np.array([2.0, -3.0])
    >>> integer_power(x, 5)
    >>> x
    array([  32., -243.])
    """
    bits = bin(exponent)[3:]
    factor = values.copy() if "1" in bits else values
    for bit in bits:
        np.multiply(values, values, out=values)
        if bit == "1":
            values *= factor


POLYNOMIAL = KernelFunction(
    "polynomial",
    code=1,
    formula="(offset + x'z)^degree",
    values=_polynomial,
    parameters=(DEGREE, OFFSET),
    base=INNER_PRODUCT,
    diagonal=_polynomial_diagonal,
)
