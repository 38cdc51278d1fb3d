"""Memory that one bank after another is loaded into."""

from __future__ import annotations

import math

import numpy as np

from mkldist.arrays import Floating


class BankBuffer:
    """Memory for the entries of one bank, kept for the next.

    Pages that a process has not touched yet are slower to fill than kernels are to compute.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.uint8)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Floating:
        """Return an array of any content, which takes the place of the one before.

        Parameters
        ----------
        shape : tuple of int
            Its shape.
        dtype : dtype
            Its dtype.
        """
        n_bytes = math.prod(shape) * dtype.itemsize
        if not n_bytes <= self._memory.nbytes <= 2 * n_bytes:
            self.clear()
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        return self._memory[:n_bytes].view(dtype).reshape(shape)

    def clear(self) -> None:
        """Give the memory back, once nobody has the last array any more."""
        self._memory = np.empty(0, dtype=np.uint8)
