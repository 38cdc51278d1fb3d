"""Single kernels: requests for their Gram matrices, a few at a time, and numbers of them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine
from mkldist.core.arrays import Floats, Ints
from mkldist.errors import SpecError
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


def gram_operators(kernels: Ints) -> Generator[Combine, Any, Floats | list[FactoredMatrix]]:
    """Ask for the Gram matrices of a few kernels, or for their operators where the bank has these.

    Parameters
    ----------
    kernels : (k,) intp
        Indices of the kernels.

    Returns
    -------
    (k, n, n) float64, or a list of k FactoredMatrix
    """
    matrices: Floats | list[FactoredMatrix] = yield Combine(
        np.eye(len(kernels)), kernels, thin=True
    )
    return matrices


def check_kernel_number(kernel: int, n_kernels: int) -> None:
    """Refuse the number of a kernel that is not there.

    Parameters
    ----------
    kernel : int
        The number, from 0, that the user chose.
    n_kernels : int
        Number M of kernels.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the numbers that there are.
    """
    if kernel >= n_kernels:
        raise SpecError(
            "kernel_number",
            f"{kernel}",
            f"a number from 0 to {n_kernels - 1}: there are {n_kernels}",
        )
