"""Requests for single Gram matrices, a few at a time, so that few are in memory at once."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.requests import Combine
from mkldist.optim.factored_matrix import FactoredMatrix

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


def grams(kernels: Ints) -> Generator[Combine, Any, Floats | list[FactoredMatrix]]:
    """Ask for the Gram matrices of a few kernels, or for their operators where the bank has these.

    Parameters
    ----------
    kernels : (k,) intp
        Indices of the kernels.

    Returns
    -------
    (k, n, n) float64, or a list of k FactoredMatrix
    """
    found: Floats | list[FactoredMatrix] = yield Combine(np.eye(len(kernels)), kernels, thin=True)
    return found
