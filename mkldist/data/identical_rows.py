"""Rows of equal features: copies of training rows in a test part make its error too small."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Bools, Floats, Ints
from mkldist.counted import counted
from mkldist.data.row_blocks import row_blocks
from mkldist.data.texts import TextColumns
from mkldist.row_places import FROM_ZERO, RowPlaces

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def identical_lines(
    x: Floats,
    texts: TextColumns | None = None,
    groups: Ints | None = None,
    row_places: RowPlaces = FROM_ZERO,
) -> tuple[str, ...]:
    """Return a line about rows that are equal to another one, if there are any.

    It takes one pass over the features and a sort of n numbers.

    Parameters
    ----------
    x : (n, d) float64
        Features; missing values, as NaN, are equal.
    texts : TextColumns, optional
        Texts of the rows, which then must be equal too.
    groups : (n,) intp, optional
        Rows that stay in one part: equal rows of one group do no harm, and do not count.
    row_places : RowPlaces
        How a message names a row.

    Examples
    --------
    >>> identical_lines(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))[0][:51]
    '2 rows are equal to others in all features, such as'
    """
    if len(x) < 2 or not x.shape[1]:
        return ()
    keys = _keys(x)
    order = np.argsort(keys, kind="stable")
    near = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    first, second = order[near], order[near + 1]
    same = _equal(x, first, second)
    if texts is not None:
        same &= (texts.values[first] == texts.values[second]).all(axis=1)
    if groups is not None:
        same &= groups[first] != groups[second]
    if not same.any():
        return ()
    count = len(np.unique(np.concatenate([first[same], second[same]])))
    one, other = first[same][0], second[same][0]
    return (
        f"{counted(count, 'row')} are equal to others in all features, such as "
        f"{row_places.of(one)} and {row_places.of(other)}; a test point that equals a training "
        "point is no new one",
    )


def _keys(x: Floats) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a number for each row, (n,), that is the same for equal rows and hardly for others."""
    keys = np.empty(len(x), dtype=np.uint64)
    weights = np.random.default_rng(0).integers(0, 2**63, x.shape[1], dtype=np.uint64) * 2 + 1
    for rows in row_blocks(len(x), 2 * x.itemsize * x.shape[1]):
        bits = np.ascontiguousarray(x[rows] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        mixed = (bits ^ (bits >> np.uint64(32))) * MULTIPLIER
        keys[rows] = ((mixed ^ (mixed >> np.uint64(32))) * weights).sum(axis=1)
    return keys


def _equal(x: Floats, first: Ints, second: Ints) -> Bools:
    """Return which pairs of rows are equal, (p,)."""
    same = np.zeros(len(first), dtype=bool)
    for pairs in row_blocks(len(first), 2 * x.itemsize * x.shape[1]):
        a, b = x[first[pairs]], x[second[pairs]]
        same[pairs] = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return same
