"""Blocks of rows of large arrays: what is computed of them takes little memory beside them."""

from __future__ import annotations

from collections.abc import Iterator

from mkldist.core.arrays import Floats, Ints

BLOCK_BYTES = 2**23


def rows_at_once(row_bytes: int) -> int:
    """Return the number of rows of so many bytes that make a block."""
    return max(1, BLOCK_BYTES // max(1, row_bytes))


def row_blocks(n_rows: int, row_bytes: int) -> Iterator[slice]:
    """Yield successive rows, as many at a time as make a block.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_bytes : int
        Bytes of each.

    Examples
    --------
    >>> list(row_blocks(3, 2**22))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    step = rows_at_once(row_bytes)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def moved_up(x: Floats, rows: Ints | None, columns: Ints | None) -> Floats:
    """Return some rows and columns of an array, in its own memory, which they overwrite.

    Parameters
    ----------
    x : (n, d) float64
        C-contiguous array of which nothing else makes use.
    rows, columns : (r,) and (c,) intp, or None
        Ascending rows and columns to keep; None for all.

    Returns
    -------
    (r, c) float64
        C-contiguous, at the beginning of the memory of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> moved_up(np.arange(12.0).reshape(4, 3), np.array([1, 3]), np.array([0, 2]))
    array([[ 3.,  5.],
           [ 9., 11.]])
    """
    n_rows = len(x) if rows is None else len(rows)
    n_columns = x.shape[1] if columns is None else len(columns)
    kept = x.reshape(-1)[: n_rows * n_columns].reshape(n_rows, n_columns)
    for block in row_blocks(n_rows, x.itemsize * x.shape[1]):
        # A block is taken as a whole before it is written where no later one is read.
        taken = x[block if rows is None else rows[block]]
        kept[block] = taken if columns is None else taken[:, columns]
    return kept
