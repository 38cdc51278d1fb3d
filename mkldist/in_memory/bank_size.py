"""Size of a bank before it is made, and the backend that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from mkldist.errors import DataError
from mkldist.gram.layout import TileLayout
from mkldist.machine_memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory

Backend = Literal["memory", "mmap", "stream", "recompute"]


@dataclass(frozen=True)
class BankSize:
    """Size of a bank before it is made.

    Parameters
    ----------
    n_kernels, n_points : int
        Numbers of kernels and of points.
    dtype : dtype
        float32 or float64.
    """

    n_kernels: int
    n_points: int
    dtype: np.dtype[np.floating]

    @property
    def n_bytes(self) -> int:
        """Bytes of all stored entries."""
        layout = TileLayout.for_points(self.n_points)
        return self.n_kernels * layout.n_entries * self.dtype.itemsize

    @property
    def fits(self) -> bool:
        """True if half of this machine's memory holds the bank."""
        return self.n_bytes <= SHARE_OF_MEMORY * physical_memory()

    def require_fit(self, hint: str) -> None:
        """Raise DataError unless the bank fits in memory; `hint` names the remedy."""
        if not self.fits:
            limit = SHARE_OF_MEMORY * physical_memory()
            raise DataError(
                "backend",
                f"'memory' for {self.n_kernels} kernels on {self.n_points} points, which take "
                f"{self.n_bytes / GIB:.1f} GiB as {self.dtype.name}",
                at_most_half(limit),
                hint,
            )


def backend_for(asked: str, size: BankSize, otherwise: Backend) -> Backend:
    """Return the backend that was asked for; for ``"auto"`` memory if the bank fits.

    Parameters
    ----------
    asked : str
        A backend or ``"auto"``.
    size : BankSize
        Size of the bank.
    otherwise : Backend
        Backend of a bank that does not fit, which the message about it also names.

    Raises
    ------
    mkldist.errors.DataError
        For ``"memory"`` if the bank does not fit there.
    """
    if asked == "auto":
        return "memory" if size.fits else otherwise
    if asked == "memory":
        size.require_fit(f"Choose backend='{otherwise}'")
    return cast(Backend, asked)
