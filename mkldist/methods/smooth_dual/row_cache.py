"""Rows of all kernels at a few points, kept within a memory budget.

Sequential minimal optimisation moves two dual variables at a time and needs the rows
``K_m[i, :]`` of all kernels at those two points only.  A bank answers for whole kernels.  So the
solver asks for rows in batches, as products with unit vectors, and keeps them; the rows used
longest ago make room for new ones.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.requests import Matvec

MIB = 2**20
BATCH = 32  # points whose rows one request fetches
SMALLEST = 4  # points whose rows are kept with any budget: two pairs


def capacity_within(
    n_kernels: int, n_points: int, budget_mib: float, spare_bytes: int | None = None
) -> int:
    """Return the number of points whose rows to keep, at least four if there are as many.

    Parameters
    ----------
    n_kernels, n_points : int
        Size M, n of the bank.
    budget_mib : float
        Memory for rows, in MiB.
    spare_bytes : int, optional
        Memory for rows, and for answers with rows, beyond those of four points.
    """
    per_point = 8 * n_kernels * n_points
    affordable = budget_mib * MIB / per_point
    if spare_bytes is not None:
        # A row more takes its place in the cache, and in answers up to their largest size.
        rows = spare_bytes / per_point
        affordable = min(affordable, SMALLEST + max(rows / 2, rows - (BATCH - SMALLEST)))
    return min(max(int(affordable), SMALLEST), n_points)


def rows_held(capacity: int) -> int:
    """Return the rows in a cache of some capacity and in an answer at once."""
    return capacity + min(BATCH, capacity)


class RowCache:
    """Least-recently-used cache of ``K_1[i, :], .., K_M[i, :]`` by point i.

    Parameters
    ----------
    n_kernels, n_points : int
        Size M, n of the bank; the rows of one point take 8 M n bytes.
    capacity : int
        Number of points whose rows are kept.
    """

    def __init__(self, n_kernels: int, n_points: int, capacity: int) -> None:
        self.capacity = capacity
        self.rows: Floats = np.empty((self.capacity, n_kernels, n_points))
        self._slot_of: dict[int, int] = {}  # oldest use first

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, point: int) -> bool:
        return point in self._slot_of

    @property
    def points(self) -> Ints:
        """Points whose rows are kept, in order of use."""
        return np.fromiter(self._slot_of, dtype=np.intp, count=len(self._slot_of))

    @property
    def slots(self) -> Ints:
        """Positions in `rows` of the rows of each of `points`."""
        return np.fromiter(self._slot_of.values(), dtype=np.intp, count=len(self._slot_of))

    def missing(self, points: Ints) -> Ints:
        """Return those of `points` that are not kept, in order, as many as fit.

        The others of `points` count as used now.
        """
        wanted: list[int] = points.tolist()
        for point in wanted[: self.capacity]:
            if point in self._slot_of:
                self._slot_of[point] = self._slot_of.pop(point)
        absent = [point for point in wanted[: self.capacity] if point not in self._slot_of]
        return np.array(absent, dtype=np.intp)

    def request(self, points: Ints) -> Matvec:
        """Return the request whose answer :meth:`store` takes."""
        n_kernels, n_points = self.rows.shape[1:]
        units = np.zeros((n_points, len(points)))
        units[points, np.arange(len(points))] = 1.0
        return Matvec(np.arange(n_kernels), units)

    def store(self, points: Ints, answer: Floats) -> None:
        """Keep the rows of R `points`, from the bank's `answer` (M, n, R)."""
        for column, point in enumerate(points.tolist()):
            if len(self._slot_of) < self.capacity:
                slot = len(self._slot_of)
            else:
                slot = self._slot_of.pop(next(iter(self._slot_of)))
            self.rows[slot] = answer[:, :, column]
            self._slot_of[point] = slot
