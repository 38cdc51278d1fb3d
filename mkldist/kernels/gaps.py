"""Points that lack features, which are NaN, or texts, which are empty: kernels are zero there.

A kernel is zero between any point and a point that lacks one of its features.  With D the diagonal
matrix of ones where a point has all of them, the Gram matrix is ``D K D``, which is positive
semi-definite if K is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.kernel_functions.bases import is_sparse

if TYPE_CHECKING:
    from mkldist.kernels.kernel_list import KernelList

PRODUCT_ENTRIES = 2**22  # of subsets by points, counted at once


@dataclass(frozen=True, eq=False)
class Presence:
    """Which of n points have all features of which of M kernels."""

    patterns: Bools  # (P, n), distinct rows, True where a point has all features
    of_kernel: Ints  # (M,), the row of each kernel

    @classmethod
    def of(cls, kernels: KernelList, points: Floats) -> Presence | None:
        """Return the presence of points (n, d), NaN where they lack a feature; None if complete."""
        gaps = gaps_of(points)
        if gaps is None:
            return None
        by_subset = _complete(kernels, gaps)
        patterns, of_subset = np.unique(by_subset, axis=0, return_inverse=True)
        return cls(patterns, of_subset.reshape(-1)[kernels.subset])

    @classmethod
    def joined(cls, parts: list[tuple[Presence | None, int]], n_points: int) -> Presence | None:
        """Return the presence of several lists of kernels, one after the other; None if complete.

        `parts` are the presence and the number of kernels of each list.
        """
        if all(presence is None for presence, _ in parts):
            return None
        whole = np.ones((1, n_points), dtype=bool)
        patterns, of_kernel, first = [], [], 0
        for presence, count in parts:
            patterns.append(whole if presence is None else presence.patterns)
            own = np.zeros(count, dtype=np.intp) if presence is None else presence.of_kernel
            of_kernel.append(first + own)
            first += len(patterns[-1])
        return cls(np.concatenate(patterns), np.concatenate(of_kernel))

    def __getitem__(self, kernels: slice | Ints | int) -> Bools:
        """Return the rows of some kernels, (k, n), or the row of one, (n,)."""
        return np.asarray(self.patterns[self.of_kernel[kernels]])

    def at(self, points: Ints) -> Presence:
        """Return the presence of some of the points."""
        return Presence(self.patterns[:, points], self.of_kernel)

    def counts(self, weights: Floats) -> Floats:
        """Return the sum of the weights (n,) of the points that have each kernel, (M,)."""
        found: Floats = (self.patterns @ weights)[self.of_kernel]
        return found


def gaps_of(points: Floats) -> Bools | None:
    """Return where points (n, d) lack a feature or text; None if they lack none, as sparse ones.

    >>> gaps_of(np.array([[1.0, np.nan]]))
    array([[False,  True]])
    >>> gaps_of(np.array([["acg"], [""]], dtype=object)).tolist()
    [[False], [True]]
    >>> gaps_of(np.eye(2)) is None
    True
    """
    if is_sparse(points):
        return None
    if points.dtype == object:
        gaps = np.asarray(points == "", dtype=bool)
        return gaps if gaps.any() else None
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(points.sum()):
            return None
    gaps = np.isnan(points)
    return gaps if gaps.any() else None


def without_gaps(points: Floats) -> Floats:
    """Return points with 0 for features that they lack; complete points and texts as they are."""
    gaps = None if points.dtype == object else gaps_of(points)
    return points if gaps is None else np.where(gaps, 0.0, points)


def zero_gaps(
    kernels: KernelList, rows: Floats, cols: Floats, values: npt.NDArray[np.floating]
) -> None:
    """Set kernel values (M, r, c) of points that lack features, NaN there, to zero, in place."""
    of_rows = Presence.of(kernels, rows)
    of_cols = of_rows if rows is cols else Presence.of(kernels, cols)
    for m in range(len(kernels)):
        if of_rows is not None:
            values[m][~of_rows[m]] = 0.0
        if of_cols is not None:
            values[m][:, ~of_cols[m]] = 0.0


def _complete(kernels: KernelList, gaps: Bools) -> Bools:
    """Return which points lack no feature of each subset, (S, n)."""
    from scipy.sparse import csr_array

    n_subsets, n = len(kernels.subset_indptr) - 1, len(gaps)
    columns, of_column = np.unique(gaps.T, axis=0, return_inverse=True)  # few are distinct
    found = np.empty((n_subsets, n), dtype=bool)
    step = max(1, PRODUCT_ENTRIES // max(1, n))
    indptr = kernels.subset_indptr
    kinds = of_column.reshape(-1)[kernels.subset_indices]
    for start in range(0, n_subsets, step):
        stop = min(start + step, n_subsets)
        entries = slice(indptr[start], indptr[stop])
        ones = np.ones(indptr[stop] - indptr[start])
        counted = csr_array(
            (ones, kinds[entries], indptr[start : stop + 1] - indptr[start]),
            shape=(stop - start, len(columns)),
        )
        found[start:stop] = (counted @ columns.astype(np.float64)) == 0.0
    return found
