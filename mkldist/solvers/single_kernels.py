"""Requests for single Gram matrices, a few at a time, so that few are in memory at once."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.requests import Combine

AT_A_TIME = 4  # Gram matrices in one request


def gram_matrices(kernels: Ints) -> Generator[Combine, Floats, Floats]:
    """Ask for the Gram matrices of a few kernels.

    Parameters
    ----------
    kernels : (k,) intp
        Indices of the kernels.

    Returns
    -------
    (k, n, n) float64
    """
    return (yield Combine(np.eye(len(kernels)), kernels))
