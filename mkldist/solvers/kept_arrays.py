"""Arrays that several solvers need and one makes, kept within a limit of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from mkldist.core.arrays import Floats


class KeptArrays:
    """Arrays by key, those used last; at most so many bytes.

    An array larger than that is made each time, and displaces no other.
    Two threads that need an array at the same time may both make it.

    Parameters
    ----------
    limit : int
        Bytes of all arrays together.

    Attributes
    ----------
    kernels_id : str
        Names the kernels of the solver that is given these arrays, for keys of what depends on
        one of them; empty where they have no name.
    """

    def __init__(self, limit: int) -> None:
        self.kernels_id = ""
        self._limit = limit
        self._kept: OrderedDict[Hashable, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[KeptArrays], tuple[int]]:
        """Pickle the limit: another process makes its own arrays."""
        return KeptArrays, (self._limit,)

    def on(self, kernels_id: str) -> KeptArrays:
        """Return these same arrays for a solver on the kernels of a name."""
        same = object.__new__(type(self))
        vars(same).update(vars(self))
        same.kernels_id = kernels_id
        return same

    def get(self, key: Hashable, make: Callable[[], Floats]) -> Floats:
        """Return the array of a key, which nobody may change, or else make and keep it.

        Parameters
        ----------
        key : hashable
            All that the array depends on.
        make : callable
            Makes the array.
        """
        known = self.known(key)
        return self.keep(key, make()) if known is None else known

    def known(self, key: Hashable) -> Floats | None:
        """Return the array of a key, which nobody may change, or None if none is kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def keep(self, key: Hashable, made: Floats) -> Floats:
        """Keep an array, which nobody may change from now on, and return it."""
        made.flags.writeable = False
        if made.nbytes > self._limit:
            return made
        with self._lock:
            self._kept.setdefault(key, made)
            held = sum(array.nbytes for array in self._kept.values())
            while held > self._limit:
                held -= self._kept.popitem(last=False)[1].nbytes
        return made
