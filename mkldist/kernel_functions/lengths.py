"""Lengths of points in the feature space of a kernel, by which cosines divide."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats


def inverse_lengths(diagonals: Floats) -> Floats:
    """Return ``1 / sqrt(k(x, x))``, or 0 where rounding or x make ``k(x, x)`` not positive.

    Parameters
    ----------
    diagonals : float64 array
        Values ``k(x, x)``, of any shape.
    """
    lengths = np.sqrt(np.maximum(diagonals, 0.0))
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
