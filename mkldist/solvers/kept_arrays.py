"""Arrays that several solvers need and one makes, kept within a limit of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from mkldist.arrays import Floats


class KeptArrays:
    """Arrays by key, those used last; at most so many bytes.

    An array larger than that is made each time, and displaces no other.
    Two threads that need an array at the same time may both make it.

    Parameters
    ----------
    limit : int
        Bytes of all arrays together.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes = limit, 0
        self._kept: OrderedDict[Hashable, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Floats]) -> Floats:
        """Return the array of a key, which nobody may change, or else make and keep it.

        Parameters
        ----------
        key : hashable
            All that the array depends on.
        make : callable
            Makes the array.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        made.flags.writeable = False
        if made.nbytes > self._limit:
            return made
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._bytes += made.nbytes
            while self._bytes > self._limit:
                _, forgotten = self._kept.popitem(last=False)
                self._bytes -= forgotten.nbytes
        return made
