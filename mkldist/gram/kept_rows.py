"""Single kernels kept for the next time, because solvers come back to their active kernels."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floating, Ints
from mkldist.gram.bank import Rows

Fetch = Callable[[list[int], list[Floating]], None]

FIRST_LINES = 32
PATIENCE = 2  # of the longest wait for a turn, after which a set of rows is not expected back
GROWTH = 1.25  # room taken and not used is taken from others


@dataclass
class _Holding:
    """What a set of rows takes, its last turn, and the turns from the one before to that."""

    n_bytes: int
    used: int
    period: int = 0


class MemoryBudget:
    """Memory that several sets of rows share: who needs more takes it from others.

    Sets of rows are used in turn, round after round.  Where they do not all fit, to drop the one
    that was used longest ago would be to drop the one that comes next, and in the end all of them
    in every round.  So the latest goes, unless one has not come back when it used to.

    Parameters
    ----------
    n_bytes : int
        For all of them together.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._holders: dict[KeptRows, _Holding] = {}
        self._turn = 0
        self._user: KeptRows | None = None

    def hold(self, holder: KeptRows, n_bytes: int) -> None:
        """Let a holder, whose turn it is, have so many bytes, and the others what remains."""
        if holder is not self._user:
            self._turn, self._user = self._turn + 1, holder
        holding = self._holders.setdefault(holder, _Holding(n_bytes, self._turn))
        if holding.used < self._turn:
            holding.used, holding.period = self._turn, self._turn - holding.used
        holding.n_bytes = n_bytes
        while len(self._holders) > 1 and self._n_held > self.n_bytes:
            self._least_needed().clear()

    def leave(self, holder: KeptRows) -> None:
        """Take a holder's memory back."""
        self._holders.pop(holder, None)

    @property
    def _n_held(self) -> int:
        return sum(holding.n_bytes for holding in self._holders.values())

    def _least_needed(self) -> KeptRows:
        """Return who will be needed last, it seems, of those whose turn it is not."""
        longest = max(holding.period for holding in self._holders.values()) or math.inf
        others = [holder for holder in self._holders if holder is not self._user]
        others.sort(key=lambda holder: self._holders[holder].used)
        absence = self._turn - self._holders[others[0]].used
        return others[0] if absence > PATIENCE * longest else others[-1]


class KeptRows:
    """The kernels asked for last, whole.

    Parameters
    ----------
    n_entries : int
        Entries E of a kernel.
    dtype : dtype-like
        Of the entries.
    budget : MemoryBudget
        Where they are kept; one kernel is, whatever its size.
    most : int, optional
        How many are kept at most.
    """

    def __init__(
        self, n_entries: int, dtype: npt.DTypeLike, budget: MemoryBudget, most: int | None = None
    ) -> None:
        self._row_bytes = n_entries * np.dtype(dtype).itemsize
        fit = budget.n_bytes // self._row_bytes
        self.capacity = max(1, fit if most is None else min(fit, most))
        self._budget = budget
        self._values = np.empty((0, n_entries), dtype)
        self._lines: OrderedDict[int, int] = OrderedDict()

    def rows(self, kernels: Ints, fetch: Fetch) -> Iterator[Rows]:
        """Yield kernels, as many at a time as can be kept.

        Parameters
        ----------
        kernels : (s,) intp
            Their indices, in any order.
        fetch : callable
            Given the indices of kernels that are not kept, ascending, and an empty row for each,
            fill the rows.
        """
        for start in range(0, len(kernels), self.capacity):
            positions = np.arange(start, min(start + self.capacity, len(kernels)))
            wanted = kernels[positions].tolist()
            self._take(wanted, fetch)
            lines = np.array([self._lines[kernel] for kernel in wanted], dtype=np.intp)
            yield Rows(positions, lines, self._values)

    def clear(self) -> None:
        """Give the memory back."""
        self._lines.clear()
        self._values = self._values[:0].copy()
        self._budget.leave(self)

    def _take(self, wanted: list[int], fetch: Fetch) -> None:
        """Make sure that kernels are kept, which are no more than can be."""
        for kernel in wanted:
            if kernel in self._lines:
                self._lines.move_to_end(kernel)
        missing = sorted(set(wanted) - self._lines.keys())
        self._grow(len(self._lines) + len(missing))
        if not missing:
            return
        while len(self._lines) + len(missing) > len(self._values):
            self._lines.popitem(last=False)
        free = sorted(set(range(len(self._values))) - set(self._lines.values()))[: len(missing)]
        fetch(missing, [self._values[line] for line in free])
        self._lines.update(zip(missing, free, strict=True))

    def _grow(self, n_lines: int) -> None:
        """Have room for so many kernels, or for as many as may be kept."""
        size = len(self._values)
        if n_lines > size:
            size = min(self.capacity, max(int(GROWTH * size), FIRST_LINES, n_lines))
        self._budget.hold(self, size * self._row_bytes)
        if size > len(self._values):
            values = np.empty((size, self._values.shape[1]), self._values.dtype)
            values[: len(self._values)] = self._values
            self._values = values
