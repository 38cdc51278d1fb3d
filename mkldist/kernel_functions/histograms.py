"""Kernel functions of histograms, counts, sets, fingerprints and categories.

Chi-squared: Zhang, Marszalek, Lazebnik and Schmid, Local Features and Kernels for Classification of
Texture and Object Categories, 2007.  A feature that is 0 in both points counts 0.

Intersection: Barla, Odone and Verri, Histogram Intersection Kernel for Image Classification, 2003.

Jaccard: for features 0 and 1 it is the share of common elements in the union of two sets.  For
counts it is the MinMax kernel of Ralaivola, Swamidass, Saigo and Baldi, Graph Kernels for Chemical
Informatics, 2005.

Tanimoto: for features 0 and 1 it equals the Jaccard kernel.  It is positive semi-definite for all
real vectors: Tripp, Bacallado, Singh and Hernández-Lobato, Tanimoto Random Features for Scalable
Molecular Machine Learning, 2023.

Two empty sets, and two points of zeros, are equal: Jaccard and Tanimoto kernels are 1 there.

Categorical (Dirac): 1 for points that are equal in every feature of the subset, else 0.  Categories
may be coded as one number or as an indicator for each: equality is that of all columns, and no
scaling changes it.  The sum of the kernels of single columns counts those in which points agree.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import (
    INNER_PRODUCT,
    MINIMA,
    Base,
    Tile,
    accumulate,
    exponential,
)
from mkldist.kernel_functions.definition import WIDTH, KernelFunction, Takes


def _chi_squared_distances(left: Floats, right: Floats, parameter: float, out: Floats) -> None:
    """Write ``sum_j (x_j - z_j)² / (x_j + z_j)`` of every pair to `out`."""
    total = np.empty(out.shape)

    def write(x: Floats, z: Floats, term: Floats) -> None:
        np.add(x, z, out=total)
        np.subtract(x, z, out=term)
        np.square(term, out=term)
        np.divide(term, total, out=term, where=total > 0.0)

    accumulate(left, right, out, write)


CHI_SQUARED_DISTANCE = Base(
    "sum_j (x_j-z_j)^2 / (x_j+z_j)", _chi_squared_distances, is_distance=True
)


def _chi_squared(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write ``exp(-sum_j (x_j - z_j)² / (x_j + z_j) / width)`` to `out`."""
    np.multiply(tile.base(CHI_SQUARED_DISTANCE), -1.0 / width, out=out)
    exponential(out)


CHI_SQUARED = KernelFunction(
    "chi-squared",
    code=6,
    formula="exp(-sum_j (x_j-z_j)^2 / (x_j+z_j) / s)",
    values=_chi_squared,
    parameters=(WIDTH,),
    base=CHI_SQUARED_DISTANCE,
    takes=Takes.NON_NEGATIVE,
    note="For histograms and counts.",
)


def _intersection(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``sum_j min(x_j, z_j)`` to `out`."""
    np.copyto(out, tile.base(MINIMA))


def _intersection_diagonal(points: Floats, first: float, second: float) -> Floats:
    """Return ``sum_j x_j``, (n,)."""
    return np.asarray(points.sum(axis=1))


INTERSECTION = KernelFunction(
    "intersection",
    code=7,
    formula="sum_j min(x_j, z_j)",
    values=_intersection,
    base=MINIMA,
    diagonal=_intersection_diagonal,
    takes=Takes.NON_NEGATIVE,
    note="For histograms and counts.",
)


def _share_in_common(
    common: Floats, rows: Floats, columns: Floats, out: Floats, *, symmetric: bool
) -> None:
    """Write ``common / (rows + columns - common)`` to `out` (r, c); 1 for two points of nothing.

    `common` (r, c) is what two points have in common, `rows` and `columns` what each has.  Where
    they are the same points, `symmetric`, the share of each with itself is 1.
    """
    np.add.outer(rows, columns, out=out)
    out -= common
    np.divide(common, out, out=out, where=out > 0.0)
    np.copyto(out, 1.0, where=(rows == 0.0)[:, None] & (columns == 0.0))
    if symmetric:
        np.fill_diagonal(out, 1.0)


def _jaccard(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``sum_j min(x_j, z_j) / sum_j max(x_j, z_j)`` to `out`."""
    rows, columns = tile.left.sum(axis=1), tile.right.sum(axis=1)
    _share_in_common(tile.base(MINIMA), rows, columns, out, symmetric=tile.symmetric)


JACCARD = KernelFunction(
    "jaccard",
    code=8,
    formula="sum_j min(x_j, z_j) / sum_j max(x_j, z_j)",
    values=_jaccard,
    base=MINIMA,
    takes=Takes.NON_NEGATIVE,
    note="For sets, as features 0 and 1, and for counts; 1 for two points of zeros.",
)


def _tanimoto(tile: Tile, first: float, second: float, out: Floats) -> None:
    """Write ``x'z / (|x|² + |z|² - x'z)`` to `out`."""
    rows, columns = (np.einsum("ns,ns->n", points, points) for points in (tile.left, tile.right))
    _share_in_common(tile.base(INNER_PRODUCT), rows, columns, out, symmetric=tile.symmetric)


TANIMOTO = KernelFunction(
    "tanimoto",
    code=9,
    formula="x'z / (|x|^2 + |z|^2 - x'z)",
    values=_tanimoto,
    base=INNER_PRODUCT,
    note="For fingerprints of molecules and other vectors; 1 for two points of zeros.",
)


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
