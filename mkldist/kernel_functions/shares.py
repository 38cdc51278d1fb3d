"""Share of two points in common: their intersection over their union."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats


def share_in_common(
    common: Floats, rows: Floats, columns: Floats, out: Floats, *, symmetric: bool
) -> None:
    """Write ``common / (rows + columns - common)`` to `out`; 1 for two points of nothing.

    Parameters
    ----------
    common : (r, c) float64
        What two points have in common.
    rows, columns : (r,) and (c,) float64
        What each point has.
    out : (r, c) float64
        The shares.
    symmetric : bool
        True if rows and columns are the same points, whose share with themselves is 1.
    """
    np.add.outer(rows, columns, out=out)
    out -= common
    np.divide(common, out, out=out, where=out > 0.0)
    np.copyto(out, 1.0, where=(rows == 0.0)[:, None] & (columns == 0.0))
    if symmetric:
        np.fill_diagonal(out, 1.0)
