"""Thin factors of a bank, of which memory holds as many as it may; the others lie in a file.

Whoever asks for a factor in the file gets a copy of it, which goes when it is no longer used.  A
pass over all factors therefore takes the memory of those that stay and of the few at hand.

Which ones stay: a solver comes back to its active kernels at every step, and to all others once in
a pass.  Those that were preferred last stay, and a factor never takes the place of one that was
preferred as late.  A pass that comes round to factors of equal rank in this order reads those that
do not fit, and no more; dropping the least recently used ones would read all of them every time.

The file has no name, so that nothing is left of it when its process ends, however that may be.
Factors that are rounded to float32 take half of the file and of the memory.  A copy at hand is in
float64, so that products with it are; it goes as those from the file do.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floating, Floats, Ints
from mkldist.core.checksums import crc32c
from mkldist.core.durable import make_folder, output_error
from mkldist.optim.factored_matrix import RowsOf
from mkldist.optim.pivoted_cholesky import PivotedFactor, ThinFactor
from mkldist.optim.thin_factor import Thin


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


AT_HAND = 2  # copies beside the factors that stay: one in use while the next one is read
HALF_AT_HAND = 1  # of one in float32 that is read, beside its copies in float64


@dataclass(frozen=True, eq=False)
class ShelvedFactor:
    """A factor on a shelf, which forgets it when nobody has this any more.

    Parameters
    ----------
    pivots : (r,) intp
        The pivots in order.
    left : float
        Share of the trace that the factor lacks.
    diagonal : (n,) float64
        Diagonal of ``G G'``.
    shelf : FactorShelf
        Where the values are.
    number : int
        Their number there.
    """

    pivots: Ints
    left: float
    diagonal: Floats
    shelf: FactorShelf
    number: int

    @property
    def rank(self) -> int:
        """Number r of columns."""
        return len(self.pivots)

    @property
    def shape(self) -> tuple[int, int]:
        """Points and columns."""
        return len(self.diagonal), self.rank

    @property
    def values(self) -> Floats:
        """The factor G (n, r), C-contiguous, in memory as long as somebody has it."""
        return self.shelf.values(self.number)

    @property
    def thin(self) -> Thin:
        """The factor as a part of an operator, which asks for the values when it needs them."""
        return self

    def on(self, points: Ints) -> Thin:
        """Return the rows of some points, a copy where memory holds all factors."""
        return self.values[points] if self.shelf.holds_all else RowsOf(self, points)

    def in_memory(self) -> PivotedFactor:
        """Return the factor with its values."""
        return PivotedFactor(self.values, self.pivots, self.left)

    def on_pivots(self, coefficients: Floats) -> Floats:
        """See :meth:`mkldist.optim.pivoted_cholesky.PivotedFactor.on_pivots`."""
        return self.in_memory().on_pivots(coefficients)


@dataclass(eq=False)
class _Place:
    """Where the values of a factor are: in memory, at a place of the file, or both."""

    shape: tuple[int, int]
    n_bytes: int
    preferred: int = 0  # when it was, by counting
    kept: Floating | None = None
    offset: int | None = None
    checksum: bytes = b""  # of the values in the file


class FactorShelf:
    """Values of factors, in memory as far as it allows and else in a file.

    Parameters
    ----------
    n_bytes : int, optional
        Bytes of memory, those at hand included; None without a limit.  A single factor is at hand
        even if it exceeds them.
    folder : Path, optional
        Folder of the file, made when it is needed; by default that for temporary files.
    dtype : {"float64", "float32"}
        Type in which factors are kept, which must have their values.

    Attributes
    ----------
    n_read, n_written : int
        Factors that were read from the file, and written to it.
    """

    def __init__(
        self, n_bytes: int | None = None, folder: Path | None = None, dtype: str = "float64"
    ) -> None:
        self.n_bytes, self.dtype, self._folder = n_bytes, np.dtype(dtype), folder
        self.n_read = self.n_written = 0
        self._lock = threading.Lock()
        self._places: dict[int, _Place] = {}
        self._gone: deque[int] = deque()
        self._count = self._preferences = self._reserved = 0
        self._total = self._kept = self._largest = 0  # bytes
        self._file: IO[bytes] | None = None
        self._regions = FileRegions()

    @property
    def kept_bytes(self) -> int:
        """Bytes of the factors that stay in memory."""
        return self._kept

    @property
    def holds_all(self) -> bool:
        """True if memory holds all factors."""
        return self._capacity is None or self._total <= self._capacity

    def put(self, factor: PivotedFactor, *, preferred: bool = False) -> ShelvedFactor:
        """Take a factor.

        Parameters
        ----------
        factor : PivotedFactor
            The factor; its values must not change.
        preferred : bool
            True if it will be asked for sooner than those that are there.

        Raises
        ------
        mkldist.errors.OutputError
            If the file cannot be written.
        """
        with self._used():
            self._preferences += preferred
            values = factor.values.astype(self.dtype, copy=False)
            order = self._preferences if preferred else 0
            place = _Place(factor.values.shape, values.nbytes, order)
            self._total += place.n_bytes
            self._largest = max(self._largest, place.n_bytes)
            try:
                self._make_room(0)  # for what is at hand
                self._keep(place, values)
                if place.kept is None:
                    self._write(place, values)
            except BaseException:
                self._total -= place.n_bytes
                raise
            number, self._count = self._count, self._count + 1
            self._places[number] = place
        shelved = ShelvedFactor(factor.pivots, factor.left, factor.diagonal, self, number)
        weakref.finalize(shelved, self._forget, number).atexit = False
        return shelved

    def prefer(self, factors: Iterable[ThinFactor]) -> None:
        """Let factors of this shelf stay rather than others."""
        with self._used():
            self._preferences += 1
            for factor in factors:
                if isinstance(factor, ShelvedFactor) and factor.shelf is self:
                    self._places[factor.number].preferred = self._preferences

    def values(self, number: int) -> Floats:
        """Return the values of a factor, in float64.

        Raises
        ------
        mkldist.errors.OutputError
            If the file does not answer, or reads back damaged.
        """
        with self._used():
            place = self._places[number]
            values = place.kept
            if values is None:
                values = self._read(place)
                self._keep(place, values)
        return values.astype(np.float64, copy=False)

    @contextmanager
    def leaving(self, n_bytes: int) -> Iterator[None]:
        """Leave some of the memory to others while a context lasts."""
        with self._used():
            self._reserved += n_bytes
            self._make_room(0)
        try:
            yield
        finally:
            with self._used():
                self._reserved -= n_bytes

    @property
    def _capacity(self) -> int | None:
        """Bytes of factors that may stay: less what is at hand where not all of them do."""
        if self.n_bytes is None:
            return None
        capacity = max(self.n_bytes - self._reserved, 0)
        if self.dtype == np.float64:
            at_hand = AT_HAND * self._largest if self._total > capacity else 0
        else:
            at_hand = (2 * AT_HAND + HALF_AT_HAND) * self._largest
        return max(capacity - at_hand, 0)

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Hold the lock, and forget the factors that are gone."""
        with self._lock:
            self._sweep()
            yield

    def _sweep(self) -> None:
        while self._gone:
            place = self._places.pop(self._gone.popleft())
            self._total -= place.n_bytes
            self._kept -= place.n_bytes if place.kept is not None else 0
            if place.offset is not None:
                self._regions.free(place.offset, place.n_bytes)
                os.ftruncate(self._opened().fileno(), self._regions.end)

    def _forget(self, number: int) -> None:
        """Forget a factor, now or, as garbage may be collected at any time, with the next use."""
        self._gone.append(number)
        if self._lock.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._lock.release()

    def _keep(self, place: _Place, values: Floating) -> None:
        """Keep a factor in memory if those that stay leave room for it."""
        if self._make_room(place.n_bytes, place.preferred):
            place.kept, self._kept = values, self._kept + place.n_bytes

    def _make_room(self, n_bytes: int, preferred: int | None = None) -> bool:
        """Drop factors until some bytes fit; return False, and drop none, if they cannot.

        Factors that were preferred as late stay, unless None is given.
        """
        capacity = self._capacity
        excess = 0 if capacity is None else self._kept + n_bytes - capacity
        if excess <= 0 or preferred == 0:
            return excess <= 0
        stay = [one for one in self._places.values() if one.kept is not None]
        may_go = [one for one in stay if preferred is None or one.preferred < preferred]
        if excess > sum(one.n_bytes for one in may_go):
            return False
        for one in sorted(may_go, key=lambda one: one.preferred):
            if excess <= 0:
                break
            self._drop(one)
            excess -= one.n_bytes
        return True

    def _drop(self, place: _Place) -> None:
        """Drop a factor from memory, once the file has it."""
        if place.offset is None and place.kept is not None:
            self._write(place, place.kept)
        place.kept, self._kept = None, self._kept - place.n_bytes

    def _write(self, place: _Place, values: Floating) -> None:
        offset = self._regions.take(place.n_bytes)
        data = _as_bytes(values).data
        try:
            file, done = self._opened().fileno(), 0
            while done < place.n_bytes:
                done += os.pwrite(file, data[done:], offset + done)
        except OSError as error:
            self._regions.free(offset, place.n_bytes)
            raise output_error(str(self._folder or tempfile.gettempdir()), error) from error
        place.offset, place.checksum = offset, crc32c([_as_bytes(values)])
        self.n_written += 1

    def _read(self, place: _Place) -> Floating:
        values, done = np.empty(place.shape, self.dtype), 0
        data = _as_bytes(values).data
        try:
            while done < place.n_bytes and place.offset is not None:
                n = os.preadv(self._opened().fileno(), [data[done:]], place.offset + done)
                if not n:
                    raise OSError(0, "it is cut short")
                done += n
            if crc32c([_as_bytes(values)]) != place.checksum:
                raise OSError(0, "it reads back damaged")
        except OSError as error:
            raise output_error(str(self._folder or tempfile.gettempdir()), error) from error
        self.n_read += 1
        return values

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            if self._folder is not None:
                make_folder(self._folder, durable=False)
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        return self._file


def _as_bytes(values: Floating) -> npt.NDArray[np.uint8]:
    """Return the bytes of an array."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
