"""Packing of matrices that pass all checks as they are, several by one call of compiled code.

The checks of :mod:`mkldist.data.gram_checks` take a dozen calls of numpy for each matrix, and read
it as often.  Between the calls, threads that work side by side wait for the interpreter.  Here one
loop reads each entry once: it packs it, compares it with that across the diagonal, and copies it
for the factorisation that shows that the matrix is positive semi-definite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Bools, Floats, read_only
from mkldist.compiled import compiled
from mkldist.data.gram_checks import LARGEST
from mkldist.gram.layout import TileLayout
from mkldist.lapack import factorise

EPS = float(np.finfo(np.float64).eps)
AT_ONCE = 2**17  # entries of the matrices that are factorised while they are in the cache


def can_be_read(stack: npt.NDArray[Any], packed: npt.NDArray[Any]) -> bool:
    """Return True if the loop knows the type of a stack, and of the bank."""
    return stack.dtype == packed.dtype == np.float64 and stack.flags.c_contiguous


def pack_sound(
    stack: npt.NDArray[Any],
    layout: TileLayout,
    packed: Floats,
    *,
    symmetric: bool,
    factorised: bool,
) -> list[int]:
    """Pack matrices, and return the indices of those that do not pass.

    A matrix passes that is finite, and has no entry on its diagonal that is negative or too large.

    Parameters
    ----------
    stack : (k, n, n) float64
        The matrices, contiguous.
    layout : TileLayout
        Of n points.
    packed : (k, E) float64
        Overwritten by their kept entries.
    symmetric : bool
        True to require equality with the transpose, too.
    factorised : bool
        True to require a Cholesky factor of ``K + n u trace(K) I`` too, with u the machine epsilon.
    """
    n, edge = layout.n_points, layout.tile
    step = max(1, AT_ONCE // n**2)
    triangles = np.empty((step if factorised else 0, n, n))
    grams, others = read_only(np.asarray(stack)), []
    for start in range(0, len(grams), step):
        part = grams[start : start + step]
        passed = np.zeros(len(part), dtype=bool)
        _pack(part, layout.side, edge, packed[start : start + step], symmetric, triangles, passed)
        if factorised:
            pairs = zip(passed, triangles[: len(part)], strict=True)
            passed &= [bool(sound) and factorise(one) for sound, one in pairs]
        others += (start + np.flatnonzero(~passed)).tolist()
    return others


@compiled
def _pack(
    grams: Floats,
    side: int,
    edge: int,
    packed: Floats,
    symmetric: bool,
    triangles: Floats,
    passed: Bools,
) -> None:
    """Pack matrices, and write which pass; where triangles are wanted, copy each with its ridge."""
    for k in range(len(grams)):
        sound = _pack_tiles(grams[k], side, edge, packed[k], symmetric)
        passed[k] = sound and _is_usable(grams[k])
        if passed[k] and len(triangles):
            _copy_triangle(grams[k], triangles[k])


@compiled
def _pack_tiles(matrix: Floats, side: int, edge: int, packed: Floats, symmetric: bool) -> bool:
    """Pack a matrix by rows of its upper tiles; return True if it is finite, and symmetric.

    Where it must be symmetric, a row of tiles that is not ends the packing.
    """
    n, place, unequal = len(matrix), 0, 0
    above = below = 0.0
    for row in range(side):
        if symmetric and unequal > 0:
            return False
        for col in range(row, side):
            left, width = col * edge, min(edge, n - col * edge)
            height = min(edge, n - row * edge)
            for i in range(row * edge, row * edge + height):
                for j in range(width):
                    packed[place + j] = matrix[i, left + j]
                    above += matrix[i, left + j]
                    below += matrix[left + j, i]
                    unequal += matrix[i, left + j] != matrix[left + j, i]
                for j in range(width, edge):
                    packed[place + j] = 0.0
                place += edge
            for _ in range((edge - height) * edge):
                packed[place] = 0.0
                place += 1
    return np.isfinite(above + below) and not (symmetric and unequal > 0)


@compiled
def _is_usable(matrix: Floats) -> bool:
    """Return True if no entry of the diagonal is negative or too large."""
    most = least = 0.0
    for i in range(len(matrix)):
        most, least = max(most, matrix[i, i]), min(least, matrix[i, i])
    return most <= LARGEST and least >= 0.0


@compiled
def _copy_triangle(matrix: Floats, triangle: Floats) -> None:
    """Copy the upper triangle of a matrix, and add ``n u trace(K)`` to its diagonal."""
    n, trace = len(matrix), 0.0
    for i in range(n):
        trace += matrix[i, i]
        for j in range(i, n):
            triangle[i, j] = matrix[i, j]
    for i in range(n):
        triangle[i, i] += n * EPS * trace
