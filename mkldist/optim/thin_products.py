"""Products with thin factors, by numpy or on a device that keeps the factors.

They are written once, for libraries of the Python array API standard: numpy's arrays on the host by
default.  A device takes a factor when it is first multiplied, and keeps it as long as the host has
it.  Factors for which its memory has no room go through it in blocks of rows.  The processor as a
device multiplies the factors where they are.  All sums are float64.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.devices import Device
from mkldist.optim.thin_factor import Thin, values_of

SHARE = 0.5  # of a device's free memory, that factors may take; kernel values need some too
BLOCK_BYTES = 2**28  # of the rows of a factor for which there is no room


class ThinProducts:
    """Products with thin factors G (n, r).

    Parameters
    ----------
    device : Device, optional
        What multiplies; by default the processor, by numpy.
    room : int, optional
        Bytes of factors that the device may keep; by default half of those that it has free, or
        none if it is the processor.

    Attributes
    ----------
    taken : int
        Bytes of factors that the device took from the host.
    """

    def __init__(self, device: Device | None = None, room: int | None = None) -> None:
        self.device = device
        self.taken = 0
        self._room = room
        self._kept: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def projected(self, factor: Thin, vectors: Floats) -> Floats:
        """Return ``G'v`` for (n,) or (n, R) vectors."""
        return self._host(self._project(factor, self._there(vectors)))

    def spread(self, factor: Thin, coefficients: Floats) -> Floats:
        """Return ``G c`` for (r,) or (r, R) coefficients."""
        return self._host(self._spread(factor, self._there(coefficients)))

    def squares(self, factor: Thin, vectors: Floats) -> Floats:
        """Return ``||G'v||^2`` of (n,) or (n, R) vectors, () or (R,)."""
        projected = self._project(factor, self._there(vectors))
        return self._host(self._xp.sum(projected * projected, axis=0))

    def times(self, factors: Sequence[Thin], weights: Floats, vectors: Floats) -> Floats:
        """Return ``sum_s w_s G_s G_s'v`` for (n,) or (n, R) vectors."""
        own = self._there(vectors)
        total = self._xp.zeros_like(own)
        for weight, factor in zip(weights.tolist(), map(self._at_hand, factors), strict=True):
            total += self._spread(factor, weight * self._project(factor, own))
        return self._host(total)

    def block(self, factors: Sequence[Thin], roots: Floats, points: Ints) -> Floats:
        """Return rows and columns of ``sum_s (c_s G_s)(c_s G_s)'``, (q, q).

        The factors stand side by side: each product of its own would write all entries.

        Parameters
        ----------
        factors : sequence of (n, r_s) float64
            At least one.
        roots : (S,) float64
            The factors c.
        points : (q,) intp
            The rows.
        """
        rows = [self._rows(factor, points) for factor in factors]
        for part, root in zip(rows, roots.tolist(), strict=True):
            part *= root
        columns = self._joined(rows, axis=1)
        return self._host(self._xp.matmul(columns, columns.T))

    def _at_hand(self, factor: Thin) -> Thin:
        """Return a factor that several products read once: its values, unless a device has them."""
        kept = not self._in_place and self._whole(factor) is not None
        return factor if kept else values_of(factor)

    @property
    def _in_place(self) -> bool:
        """True if factors are multiplied where they are."""
        return self.device is None or (self._room is None and self.device.on_processor)

    def _project(self, factor: Thin, vectors: Any) -> Any:
        """Return ``G'v`` where the vectors are."""
        parts = (self._xp.matmul(part.T, vectors[rows, ...]) for rows, part in self._parts(factor))
        total = next(parts)
        for part in parts:
            total = total + part
        return total

    def _spread(self, factor: Thin, coefficients: Any) -> Any:
        """Return ``G c`` where the coefficients are."""
        parts = [self._xp.matmul(part, coefficients) for _, part in self._parts(factor)]
        return self._joined(parts, axis=0)

    def _parts(self, factor: Thin) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of a factor, all at once or in blocks, where they are multiplied."""
        n, columns = factor.shape
        if (whole := self._whole(factor)) is not None:
            yield slice(0, n), whole
            return
        values = values_of(factor)
        step = max(1, BLOCK_BYTES // (8 * max(columns, 1)))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            self.taken += values[rows].nbytes
            yield rows, self._there(values[rows])

    def _rows(self, factor: Thin, points: Ints) -> Any:
        """Return a copy of some rows of a factor, where they are multiplied."""
        whole = self._whole(factor)
        if self.device is None or whole is None:
            return self._there(values_of(factor)[points])
        places = self._xp.asarray(points, dtype=self._xp.int64, device=self.device.place)
        return self._xp.take(whole, places, axis=0)

    def _whole(self, factor: Thin) -> Any:
        """Return a factor where it is multiplied; None if there is no room for it."""
        if self.device is None:
            return values_of(factor)
        if self._in_place:
            return self.device.seen(values_of(factor))
        reference, own = self._kept.get(id(factor), (None, None))
        if reference is not None and reference() is factor:
            return own
        if self._room is None:
            free = self.device.free_bytes
            self._room = None if free is None else int(SHARE * free)
        used = sum(own.shape[0] * own.shape[1] for _, own in self._kept.values()) * 8
        if self._room is not None and used + 8 * factor.shape[0] * factor.shape[1] > self._room:
            return None
        place, kept, values = id(factor), self._kept, values_of(factor)
        own = self.device.array(values)
        kept[place] = weakref.ref(factor, lambda _: kept.pop(place, None)), own
        self.taken += values.nbytes
        return own

    @property
    def _xp(self) -> Any:
        return np if self.device is None else self.device.xp

    def _joined(self, parts: list[Any], axis: int) -> Any:
        if len(parts) == 1:
            return parts[0]
        return (np.concatenate if self.device is None else self._xp.concat)(parts, axis=axis)

    def _there(self, values: Floats) -> Any:
        return values if self.device is None else self.device.array(values)

    def _host(self, values: Any) -> Floats:
        found: Floats = values if self.device is None else self.device.host(values)
        return found


ON_HOST = ThinProducts()
"""Products by numpy on the processor."""
