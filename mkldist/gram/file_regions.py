"""Regions of a file that are taken and given back."""

from __future__ import annotations

from bisect import bisect_left


class FileRegions:
    """Places of a file, each taken where it fits first.

    Attributes
    ----------
    end : int
        Bytes of the file.
    """

    def __init__(self) -> None:
        self.end = 0
        self._free: list[tuple[int, int]] = []  # offset and bytes, ascending, none touching another

    def take(self, n_bytes: int) -> int:
        """Return the offset of a region of some bytes."""
        for i, (offset, free) in enumerate(self._free):
            if free >= n_bytes:
                rest = [(offset + n_bytes, free - n_bytes)] if free > n_bytes else []
                self._free[i : i + 1] = rest
                return offset
        offset, self.end = self.end, self.end + n_bytes
        return offset

    def free(self, offset: int, n_bytes: int) -> None:
        """Give a region back."""
        i = bisect_left(self._free, (offset, 0))
        first, last = i, i
        stop = offset + n_bytes
        if i and sum(self._free[i - 1]) == offset:
            first, offset = i - 1, self._free[i - 1][0]
        if i < len(self._free) and self._free[i][0] == stop:
            last, stop = i + 1, sum(self._free[i])
        if stop == self.end:
            self.end, self._free[first:last] = offset, []
        elif stop > offset:
            self._free[first:last] = [(offset, stop - offset)]
