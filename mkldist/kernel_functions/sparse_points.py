"""Bases of points in compressed sparse rows, without a dense copy of the points.

Squared distances are ``|x|² + |z|² - 2 x'z``.  Points are not centred before, as dense ones are:
that would fill them.  Points far from the origin compared with their distances lose digits.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from mkldist.core.arrays import Floats


def is_sparse(points: Any) -> TypeGuard[Any]:
    """Return True for points in compressed sparse rows; does not import SciPy for others.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> is_sparse(csr_array(np.eye(2))), is_sparse(np.eye(2))
    (True, False)
    """
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
