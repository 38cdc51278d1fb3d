"""Single Gram matrices, asked for a few at a time by solvers that have no room for all."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.requests import Combine

AT_A_TIME = 4  # Gram matrices asked for in one request


def fetched(kernels: Ints, n_kernels: int) -> Generator[Combine, Floats, Floats]:
    """Ask for the Gram matrices of a few of the bank's kernels, (k, n, n)."""
    rows = np.zeros((len(kernels), n_kernels))
    rows[np.arange(len(kernels)), kernels] = 1.0
    return (yield Combine(rows))
