"""Values of many kernels at once, feature subset by feature subset, and checks of their points.

The bases of a subset (inner products, distances) are computed once.  Each kernel of the subset then
takes one or two passes over a base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, may_overflow
from mkldist.core.wording import FROM_ZERO, RowLabels
from mkldist.errors import DataError, SpecError
from mkldist.kernel_functions.bases import Tile, inverse_lengths, is_sparse
from mkldist.kernel_functions.custom import CHECKED_POINTS, CUSTOM_CODE
from mkldist.kernel_functions.definition import Takes, kernel_words
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.gaps import gaps_of, without_gaps, zero_gaps
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
