"""Single kernels kept in memory, because solvers come back to their active kernels."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import Rows
from mkldist.core.arrays import Floating, Ints

Fetch = Callable[[list[int], list[Floating]], None]

FIRST_LINES = 32
PATIENCE = 2  # times the longest interval between two uses, after which no use is expected
GROWTH = 1.25  # small, because memory that one cache reserves is taken from others


@dataclass
class _Usage:
    """Memory of a cache, its last use, and the interval between its last two uses.

    Uses are numbered over all caches together; the interval is a difference of these numbers.
    """

    n_bytes: int
    last_use: int
    interval: int = 0


class MemoryBudget:
    """Memory that several caches of kernels share.

    A cache that grows takes memory from the others.  Solvers use the caches in rounds, one after
    the other.  If the caches do not all fit, evicting the least recently used one would evict the
    one that is used next, and in the end every cache once in a round.  Therefore the most recently
    used of the other caches is evicted, unless one has not been used for twice the longest
    interval: that one is evicted first, as its solver has probably ended.

    Parameters
    ----------
    n_bytes : int
        Bytes of all caches together.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._usages: dict[KeptRows, _Usage] = {}
        self._n_uses = 0
        self._latest: KeptRows | None = None

    def reserve(self, cache: KeptRows, n_bytes: int) -> None:
        """Reserve bytes for the cache that is used now, and evict others until all fit."""
        if cache is not self._latest:
            self._n_uses, self._latest = self._n_uses + 1, cache
        usage = self._usages.setdefault(cache, _Usage(n_bytes, self._n_uses))
        if usage.last_use < self._n_uses:
            usage.last_use, usage.interval = self._n_uses, self._n_uses - usage.last_use
        usage.n_bytes = n_bytes
        while len(self._usages) > 1 and self._n_reserved > self.n_bytes:
            self._least_needed().clear()

    def release(self, cache: KeptRows) -> None:
        """Take back the memory of a cache."""
        self._usages.pop(cache, None)

    @property
    def _n_reserved(self) -> int:
        return sum(usage.n_bytes for usage in self._usages.values())

    def _least_needed(self) -> KeptRows:
        """Return the cache, other than the one used now, whose next use seems farthest away."""
        longest = max(usage.interval for usage in self._usages.values()) or math.inf
        others = [cache for cache in self._usages if cache is not self._latest]
        others.sort(key=lambda cache: self._usages[cache].last_use)
        unused_for = self._n_uses - self._usages[others[0]].last_use
        return others[0] if unused_for > PATIENCE * longest else others[-1]


class KeptRows:
    """A cache of the kernels requested last, each with all of its entries.

    Parameters
    ----------
    n_entries : int
        Number E of entries of a kernel.
    dtype : dtype-like
        Type of the entries.
    budget : MemoryBudget
        Memory of the cache.  One kernel is kept even if it exceeds the budget.
    most : int, optional
        Largest number of kernels to keep.

    Attributes
    ----------
    capacity : int
        Number of kernels that fit.
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
        """Yield kernels, as many at a time as fit.

        Parameters
        ----------
        kernels : (s,) intp
            Indices of the kernels, in any order.
        fetch : callable
            Function that reads kernels.  It receives the ascending indices of the kernels that
            the cache lacks and an empty row for each, and fills the rows.
        """
        for start in range(0, len(kernels), self.capacity):
            positions = np.arange(start, min(start + self.capacity, len(kernels)))
            wanted = kernels[positions].tolist()
            self._take(wanted, fetch)
            lines = np.array([self._lines[kernel] for kernel in wanted], dtype=np.intp)
            yield Rows(positions, lines, self._values)

    def clear(self) -> None:
        """Drop all kernels and give their memory back."""
        self._lines.clear()
        self._values = self._values[:0].copy()
        self._budget.release(self)

    def _take(self, wanted: list[int], fetch: Fetch) -> None:
        """Put the given kernels, which must fit, into the cache."""
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
        """Reserve memory for so many kernels, or for as many as fit."""
        size = len(self._values)
        if n_lines > size:
            size = min(self.capacity, max(int(GROWTH * size), FIRST_LINES, n_lines))
        self._budget.reserve(self, size * self._row_bytes)
        if size > len(self._values):
            values = np.empty((size, self._values.shape[1]), self._values.dtype)
            values[: len(self._values)] = self._values
            self._values = values
