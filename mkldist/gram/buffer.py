"""Memory into which one bank after another is loaded."""

from __future__ import annotations

import math

import numpy as np

from mkldist.arrays import Floating


class BankBuffer:
    """Memory for the entries of one bank, reused for the next bank.

    Pages that a process has not touched yet are slower to fill than kernels are to compute.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.uint8)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Floating:
        """Return an array with undefined content, which overwrites the array returned before.

        Parameters
        ----------
        shape : tuple of int
            Shape of the array.
        dtype : dtype
            Type of its entries.
        """
        n_bytes = math.prod(shape) * dtype.itemsize
        if not n_bytes <= self._memory.nbytes <= 2 * n_bytes:
            self.clear()
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        return self._memory[:n_bytes].view(dtype).reshape(shape)

    def clear(self) -> None:
        """Drop the memory, which is freed with the last array in it."""
        self._memory = np.empty(0, dtype=np.uint8)
