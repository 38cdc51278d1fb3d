"""Values of many kernels at once, feature subset by feature subset, and checks of their points.

The bases of a subset (inner products, distances) are computed once.  Each kernel of the subset then
takes one or two passes over a base.

Points may lack features, which are NaN, or texts, which are empty.  A kernel is zero between any
point and a point that lacks one of its features.  With D the diagonal matrix of ones where a point
has all of them, the Gram matrix is ``D K D``, which is positive semi-definite if K is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats, Ints, may_overflow
from mkldist.core.wording import FROM_ZERO, RowLabels
from mkldist.errors import DataError, SpecError
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernel_functions.bases import Tile, inverse_lengths, is_sparse
from mkldist.kernel_functions.custom import CHECKED_POINTS, CUSTOM_CODE
from mkldist.kernel_functions.definition import Takes, kernel_words
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

MANY = 4096  # points whose features are copied at once


def evaluate(
    kernels: KernelList,
    rows: Floats,
    cols: Floats,
    *,
    cosine: bool = False,
    symmetric: bool = False,
    out: npt.NDArray[np.floating] | None = None,
) -> Floats:
    """Return ``k_m(x, z)`` for every kernel, row (r, d) and column (c, d), (M, r, c), or `out`.

    Points are float64 arrays, csr_array, or str objects.  A kernel is zero where a point lacks one
    of its features, which is then NaN, or one of its texts, which is then empty.  Only inner
    products and squared distances take sparse points.  With `cosine`, values are divided by
    ``sqrt(k(x, x) k(z, z))``; those of points with ``k(x, x) = 0`` become 0. With `symmetric`,
    implied by ``rows is cols``, the result is exactly symmetric, and exactly 1 on the diagonal of
    cosine kernels and of those with ``k(x, x) = 1``.
    """
    shape = rows.shape[0], cols.shape[0]
    result = np.empty((len(kernels), *shape)) if out is None else out
    symmetric = symmetric or rows is cols
    if gaps_of(rows) is None and gaps_of(cols) is None:
        _fill(kernels, rows, cols, result, cosine=cosine, symmetric=symmetric)
        return cast("Floats", result)
    filled = without_gaps(rows)
    others = filled if symmetric else without_gaps(cols)
    _fill(kernels, filled, others, result, cosine=cosine, symmetric=symmetric)
    zero_gaps(kernels, rows, cols, result)
    return cast("Floats", result)


def _fill(
    kernels: KernelList,
    rows: Floats,
    cols: Floats,
    result: npt.NDArray[np.floating],
    *,
    cosine: bool,
    symmetric: bool,
) -> None:
    """Write the values of every kernel on points without gaps to `result`."""
    shape = rows.shape[0], cols.shape[0]
    tile = Tile(shape, symmetric)
    scratch = None if result.dtype == np.float64 else np.empty(shape)
    with may_overflow():
        for run in kernels.runs():
            columns = kernels.features_of(run.start)
            tile.enter(_on_features(rows, columns), _on_features(cols, columns))
            for m in range(run.start, run.stop):
                target = cast("Floats", result[m]) if scratch is None else scratch
                _evaluate_kernel(kernels, m, tile, target, cosine=cosine)
                if scratch is not None:
                    result[m] = scratch


def _on_features(points: Any, columns: npt.NDArray[np.int32]) -> Any:
    """Return points restricted to some features, sparse if they are."""
    if not is_sparse(points):
        return np.ascontiguousarray(points[:, columns])
    return points if len(columns) == points.shape[1] else points[:, columns]


def diagonals(kernels: KernelList, points: Floats, *, cosine: bool = False) -> Floats:
    """Return ``k_m(x, x)`` of M kernels and n points, (M, n); of cosine kernels ones and zeros."""
    out = np.ones((len(kernels), len(points)))
    parts = [slice(start, start + MANY) for start in range(0, len(points), MANY)]
    for run in kernels.runs():
        functions = ((m, kernels.function_of(m).diagonal) for m in range(run.start, run.stop))
        of_run = [(m, diagonal) for m, diagonal in functions if diagonal is not None]
        for part in parts if of_run else ():
            seen = np.ascontiguousarray(points[part, kernels.features_of(run.start)])
            with may_overflow():
                for m, diagonal in of_run:
                    p, offset = float(kernels.parameter[m]), float(kernels.offset[m])
                    out[m, part] = diagonal(seen, p, offset)
    if cosine:
        out[...] = (out > 0.0) & (out < np.inf)
    return out


def _evaluate_kernel(kernels: KernelList, m: int, tile: Tile, out: Floats, *, cosine: bool) -> None:
    """Write one kernel's values, (r, c), to `out`."""
    function = kernels.function_of(m)
    if function.takes is Takes.NON_NEGATIVE:
        _check_not_negative(function.label, tile)
    first, second = float(kernels.parameter[m]), float(kernels.offset[m])
    function.values(tile, first, second, out)
    if cosine and function.diagonal is not None:
        squares = (function.diagonal(points, first, second) for points in (tile.left, tile.right))
        left, right = map(inverse_lengths, squares)
        # The product of both factors comes first: it is the same number for (x, z) and (z, x), so
        # that the result is exactly symmetric.
        out *= left[:, None] * right
        if tile.symmetric:
            np.fill_diagonal(out, np.where(left > 0, 1.0, 0.0))


def _check_not_negative(label: str, tile: Tile) -> None:
    """Raise DataError if a point of a tile has a negative value."""
    least = min((float(side.min()) for side in (tile.left, tile.right) if side.size), default=0.0)
    if least < 0.0:
        raise DataError(kernel_words(label), f"a feature of {least:g}", Takes.NON_NEGATIVE.value)


_RESTRICTED = [f.code for f in FUNCTIONS.values() if f.takes is Takes.NON_NEGATIVE]
UNSCALED = 'Leave the features as they are, scale = "none", or use another kernel function'


def check_points(
    kernels: KernelList,
    points: Floats,
    names: Sequence[str] | None,
    where: str,
    row_labels: RowLabels = FROM_ZERO,
) -> None:
    """Raise DataError for the first negative value where a kernel function takes none."""
    restricted = np.flatnonzero(np.isin(kernels.function, _RESTRICTED))
    if not len(restricted):
        return
    columns = np.unique(kernels.select(restricted).subset_indices)
    negative = points[:, columns] < 0.0
    if not negative.any():
        return
    row, place = np.argwhere(negative)[0].tolist()
    column = int(columns[place])
    seen_by = [m for m in restricted.tolist() if column in kernels.features_of(m)]
    function = kernels.function_of(seen_by[0])
    name = f"x{column}" if names is None else repr(names[column])
    found = f"{points[row, column]:g} in {row_labels.of(row)}, column {name}, "
    found += f"for {kernel_words(function.label)}"
    raise DataError(where, found, function.takes.value, UNSCALED)


def check_custom(kernels: KernelList, points: Floats) -> None:
    """Call every function of the user on a hundred points as kernels see them, in equal steps.

    So a GramError tells at once of a function that fails, or returns what is no kernel.
    """
    own = np.flatnonzero(kernels.function == CUSTOM_CODE)
    some = points[:: max(1, points.shape[0] // CHECKED_POINTS)][:CHECKED_POINTS]
    for m in own.tolist():
        evaluate(kernels.select([m]), some, some)


def check_scale(bank: BankSpec, kernels: KernelList, scale: str) -> None:
    """Raise SpecError if kernel functions of a bank take no scaled features.

    A `scale` of ``[preprocessing]`` makes some values negative unless it is ``"none"`` or
    ``"tfidf"``.
    """
    restricted = np.flatnonzero(np.isin(kernels.function, _RESTRICTED))
    if not len(restricted) or scale in ("none", "tfidf"):
        return
    label = kernels.function_of(int(restricted[0])).label
    found = f'{kernel_words(label)} of features that scale = "{scale}" makes negative'
    hint = 'Set scale = "none" under [preprocessing]'
    raise SpecError(f"banks.{bank.label}", found, "features of at least 0", hint)


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
        return (self.patterns @ weights)[self.of_kernel]


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
