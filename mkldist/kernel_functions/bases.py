"""Bases: numbers that depend on a pair of points, from which kernel functions follow.

A bank evaluates a base once per feature subset, and applies kernel functions with each parameter
to it.  The base of points `left` (r, s) and `right` (c, s) is a float64 array (r, c).  A
:class:`Tile` holds the points of a tile of kernel values, and the bases computed so far.

Points may be in compressed sparse rows, of which no dense copy is made.  Their squared distances
are ``|x|² + |z|² - 2 x'z``.  Points are not centred before, as dense ones are: that would fill
them.  Points far from the origin compared with their distances lose digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from mkldist.core.arrays import Floats

DIRECT_FEATURES = 4  # up to this number, squared differences are summed feature by feature
Term = Callable[[Floats, Floats, Floats], object]


@dataclass(frozen=True)
class Base:
    """A number that depends on a pair of points."""

    formula: str  # the number in a line of plain letters
    compute: Callable[[Floats, Floats, float, Floats], None]
    """``compute(left, right, parameter, out)`` writes it for every pair to `out`."""
    is_distance: bool = False  # True if it is 0 for equal points
    norm: float = 0
    """1 or 2 if it follows from this norm of the difference of two points, infinity if from
    differences of single features, else 0.  Widths are then in units of the features."""


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
    """Write the sum over features of a function of both values of points to `out` (r, c).

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


def is_sparse(points: Any) -> TypeGuard[Any]:
    """Return True for points in compressed sparse rows; does not import SciPy for others."""
    return not isinstance(points, np.ndarray) and hasattr(points, "indptr")


def sparse_products(left: Any, right: Any, out: Floats) -> None:
    """Write ``x'z`` of every pair of sparse points, (r, s) and (c, s), to `out`."""
    (left @ right.T).toarray(out=out)


def sparse_squared_distances(left: Any, right: Any, out: Floats) -> None:
    """Write ``|x - z|²`` of every pair of sparse points to `out`."""
    sparse_products(left, right, out)
    out *= -2.0
    out += squared_lengths(left)[:, None]
    out += squared_lengths(right)
    np.maximum(out, 0.0, out=out)


def squared_lengths(points: Any) -> Floats:
    """Return ``|x|²`` of points (r, s), sparse or not."""
    if not is_sparse(points):
        return np.asarray(np.einsum("rs,rs->r", points, points))
    return np.asarray(points.multiply(points).sum(axis=1), dtype=np.float64).ravel()


@dataclass(eq=False)
class Tile:
    """Points of the rows and columns of kernel values (r, c), restricted to a feature subset."""

    shape: tuple[int, int]  # numbers r and c of points
    symmetric: bool = False
    """True if both sides are the same points: bases are then exactly symmetric, and distances
    exactly 0 on the diagonal."""
    left: Any = field(init=False)  # points (r, s), or a sequence of other objects such as texts
    right: Any = field(init=False)
    _known: dict[Base, float] = field(default_factory=dict)
    _buffers: dict[Base, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, left: Any, right: Any, *, symmetric: bool = False) -> Tile:
        """Return a tile of some points."""
        tile = cls((len(left), len(right)), symmetric)
        tile.enter(left, right)
        return tile

    def enter(self, left: Any, right: Any) -> None:
        """Take other points in the same numbers, and forget the bases."""
        self.left, self.right = left, right
        self._known.clear()

    def base(self, base: Base, parameter: float = 0.0) -> Floats:
        """Return a base of all pairs, (r, c), not to be written to; the first call computes it.

        Of one base with several parameters, the array of the last is kept.
        """
        if base not in self._buffers:
            self._buffers[base] = np.empty(self.shape)
        out = self._buffers[base]
        if self._known.get(base) != parameter:
            self._compute(base, parameter, out)
            self._known[base] = parameter
        return out

    def _compute(self, base: Base, parameter: float, out: Floats) -> None:
        base.compute(self.left, self.right, parameter, out)
        if self.symmetric:
            mirror(out)
            if base.is_distance:
                np.fill_diagonal(out, 0.0)


def mirror(square: Floats) -> None:
    """Copy the upper triangle of a square matrix to the lower, in place."""
    upper = np.triu(square, 1)
    np.copyto(square, upper.T, where=np.tri(len(square), k=-1, dtype=bool))


def inverse_lengths(diagonals: Floats) -> Floats:
    """Return ``1 / sqrt(k(x, x))``, or 0 where rounding or x make ``k(x, x)`` not positive.

    Cosines divide by these lengths of points in the feature space of a kernel.
    """
    lengths = np.sqrt(np.maximum(diagonals, 0.0))
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)


VANISHES_AT = -80.0
"""Argument up to which the exponential, less than 2e-35, counts as zero.

A kernel of distances is 1 on the diagonal, beside which 1e-35 is lost in rounding.  Far smaller
values are dear: 1e-40 in float32, and products of 1e-300 with anything small, are subnormal
numbers, with which processors take up to a hundred times as long.  One narrow kernel then costs as
much as thirty others.
"""


def exponential(arguments: Floats) -> None:
    """Turn non-positive arguments into their exponentials, in place; zero up to `VANISHES_AT`."""
    vanishing = arguments <= VANISHES_AT
    np.exp(arguments, out=arguments)
    arguments[vanishing] = 0.0
