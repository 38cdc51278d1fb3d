"""Single kernels kept for the next time, because solvers come back to their active kernels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

import numpy as np

from mkldist.gram.bank import Ints, Values

Fetch = Callable[[list[int]], dict[int, Values]]


class KeptRows:
    """The kernels asked for last, whole.

    Parameters
    ----------
    capacity : int
        How many are kept; at least one.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = max(1, capacity)
        self._kept: OrderedDict[int, Values] = OrderedDict()

    def rows(self, kernels: Ints, fetch: Fetch) -> Values:
        """Return kernels, (s, E).

        Parameters
        ----------
        kernels : (s,) intp
            Their indices, in any order.
        fetch : callable
            Given the indices of kernels that are not kept, ascending, return their entries.
        """
        wanted = [int(kernel) for kernel in kernels]
        missing = sorted(set(wanted) - self._kept.keys())
        fresh = fetch(missing) if missing else {}
        values = np.stack([fresh[k] if k in fresh else self._kept[k] for k in wanted])
        self._keep(wanted, fresh)
        return values

    def clear(self) -> None:
        """Give their memory back."""
        self._kept.clear()

    def _keep(self, wanted: Iterable[int], fresh: dict[int, Values]) -> None:
        """Remember kernels, the latest longest."""
        self._kept.update(fresh)
        for kernel in wanted:
            self._kept.move_to_end(kernel)
        while len(self._kept) > self.capacity:
            self._kept.popitem(last=False)
