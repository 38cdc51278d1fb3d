"""The kernel functions, each as a function of a base that kernels of all parameters share.

The *base* of a pair of points is their inner product, squared Euclidean distance or city-block
distance over a feature subset.  A bank evaluates a base once per feature subset, and applies the
kernel function with each parameter to it.

The base of points `left` (r, s) and `right` (c, s) is a float64 array (r, c).
"""

from __future__ import annotations

import enum

import numpy as np

from mkldist.arrays import Floats
from mkldist.kernels.sparse_points import is_sparse, sparse_products, sparse_squared_distances

DIRECT_FEATURES = 4  # up to this number, squared differences are summed feature by feature


class KernelFunction(enum.IntEnum):
    """Kernel functions of a bank, with their codes in lists of kernels."""

    GAUSSIAN = 0
    POLYNOMIAL = 1
    LINEAR = 2
    LAPLACIAN_RBF = 3

    @property
    def label(self) -> str:
        """The name in sweep files and results.

        Examples
        --------
        >>> KernelFunction.LAPLACIAN_RBF.label
        'laplacian-rbf'
        """
        return self.name.lower().replace("_", "-")

    @property
    def base(self) -> Base:
        """The base that the function is applied to."""
        return _BASES[self]


class Base(enum.Enum):
    """A number that depends on a pair of points, from which kernel functions follow."""

    INNER_PRODUCT = "x'z"
    SQUARED_DISTANCE = "|x - z|²"
    CITY_BLOCK = "|x - z|₁"


_BASES = {
    KernelFunction.GAUSSIAN: Base.SQUARED_DISTANCE,
    KernelFunction.POLYNOMIAL: Base.INNER_PRODUCT,
    KernelFunction.LINEAR: Base.INNER_PRODUCT,
    KernelFunction.LAPLACIAN_RBF: Base.CITY_BLOCK,
}


def inner_products(left: Floats, right: Floats, out: Floats) -> None:
    """Write ``x'z`` of every pair to `out`."""
    if is_sparse(left):
        sparse_products(left, right, out)
        return
    np.matmul(left, right.T, out=out)


def squared_distances(left: Floats, right: Floats, centre: Floats, out: Floats) -> None:
    """Write ``|x - z|²`` of every pair to `out`.

    For few features, the sum runs over squared differences, which is exact to rounding and zero
    for equal points.  For many, ``|x|² + |z|² - 2 x'z`` needs one matrix product.  This difference
    loses digits if points lie far from the origin, so a mean of the points, `centre` (s,), is
    subtracted from both sides first.
    """
    if is_sparse(left):
        sparse_squared_distances(left, right, out)
        return
    if left.shape[1] <= DIRECT_FEATURES:
        _accumulate(left, right, out, np.square)
        return
    left, right = left - centre, right - centre
    np.matmul(left, right.T, out=out)
    out *= -2.0
    out += np.einsum("rs,rs->r", left, left)[:, None]
    out += np.einsum("cs,cs->c", right, right)
    np.maximum(out, 0.0, out=out)


def city_block_distances(left: Floats, right: Floats, out: Floats) -> None:
    """Write ``|x - z|₁`` of every pair to `out`."""
    _accumulate(left, right, out, np.absolute)


def _accumulate(left: Floats, right: Floats, out: Floats, of_difference: np.ufunc) -> None:
    """Write the sum over features of a function of the difference to `out`."""
    np.subtract(left[:, None, 0], right[:, 0], out=out)
    of_difference(out, out=out)
    term = np.empty_like(out) if left.shape[1] > 1 else out
    for s in range(1, left.shape[1]):
        np.subtract(left[:, None, s], right[:, s], out=term)
        of_difference(term, out=term)
        out += term


def apply(
    function: KernelFunction, base: Floats, parameter: float, offset: float, out: Floats
) -> None:
    """Write the kernel values of a base to `out`, which must not be `base`.

    =============  ==================================
    gaussian       ``exp(-|x - z|² / (2 parameter²))``
    polynomial     ``(offset + x'z)^parameter``
    linear         ``x'z``
    laplacian-rbf  ``exp(-|x - z|₁ / parameter)``
    =============  ==================================
    """
    if function is KernelFunction.GAUSSIAN:
        np.multiply(base, -0.5 / parameter**2, out=out)
        np.exp(out, out=out)
    elif function is KernelFunction.LAPLACIAN_RBF:
        np.multiply(base, -1.0 / parameter, out=out)
        np.exp(out, out=out)
    elif function is KernelFunction.POLYNOMIAL:
        np.add(base, offset, out=out)
        integer_power(out, int(parameter))
    else:
        np.copyto(out, base)


def integer_power(values: Floats, exponent: int) -> None:
    """Raise `values` to an exponent of at least 1, in place.

    Square and multiply by the bits of the exponent, from the left.  ``numpy.power`` takes as long
    as about twenty multiplications.

    Examples
    --------
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


def inverse_lengths(diagonals: Floats) -> Floats:
    """Return ``1 / sqrt(k(x, x))``, or 0 where rounding or x make ``k(x, x)`` not positive.

    Parameters
    ----------
    diagonals : float64 array
        Values ``k(x, x)``, of any shape.
    """
    lengths = np.sqrt(np.maximum(diagonals, 0.0))
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)


def self_similarities(
    function: KernelFunction, squared_norms: Floats, parameter: float, offset: float
) -> Floats:
    """Return ``k(x, x)`` from ``|x|²``, in the shape of `squared_norms`."""
    if function is KernelFunction.POLYNOMIAL:
        values = squared_norms + offset
        integer_power(values, int(parameter))
        return values
    if function is KernelFunction.LINEAR:
        return squared_norms
    return np.ones_like(squared_norms)
