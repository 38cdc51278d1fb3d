"""Squared radii that are known of a bank: in memory, and beside a bank that is stored.

Radii depend on the kernels and on a set of points and on nothing else, so those that were computed
once serve every value of C, every run of a batch, every process and every sweep that opens the
bank again.  Beside a stored bank they are zarr arrays ``radii/<id>``, one a set of points, whose
single chunk carries a checksum; what is missing or damaged is computed again.
"""

from __future__ import annotations

from contextlib import suppress

import google_crc32c
import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.errors import OutputError, StoreError
from mkldist.gram.blobs import Blobs
from mkldist.gram.metadata import radius_chunk, radius_documents
from mkldist.identity import array_id, content_id

CHECKSUM_BYTES = 4
STORED = np.dtype("<f8")


def points_id(index: Ints | None, n_points: int) -> str:
    """Return the name of a set of points, the same whatever their order.

    Examples
    --------
    >>> points_id(np.array([1, 0]), 2) == points_id(None, 2)
    True
    """
    points = np.arange(n_points) if index is None else np.sort(index)
    return array_id(points.astype("<i8"))


class KnownRadii:
    """Squared radii of one bank's kernels by the points that were looked at."""

    def __init__(self) -> None:
        self._vectors: dict[str, Floats] = {}
        self._blobs: Blobs | None = None
        self._n_kernels, self._bank = 0, ""

    def keep_in(self, blobs: Blobs, n_kernels: int, bank: str) -> None:
        """Read and write radii beside a stored bank from now on.

        Parameters
        ----------
        blobs : Blobs
            The bank's files.
        n_kernels : int
            Number M of kernels.
        bank : str
            What tells the bank from any other that may have had the same name.
        """
        self._blobs, self._n_kernels, self._bank = blobs, n_kernels, bank

    def __contains__(self, points: str) -> bool:
        """Return whether radii on these points are in memory."""
        return points in self._vectors

    def get(self, points: str) -> Floats | None:
        """Return the (M,) squared radii on the points of this id, None if nobody computed them."""
        if points not in self._vectors:
            stored = self._read(points)
            if stored is None:
                return None
            self._vectors[points] = stored
        return self._vectors[points]

    def put(self, points: str, squared_radii: Floats) -> None:
        """Remember radii; a medium that refuses them costs only their computation next time."""
        self._vectors[points] = squared_radii
        if self._blobs is None:
            return
        name = self._name(points)
        body = squared_radii.astype(STORED).tobytes()
        with suppress(OutputError):
            for document, content in radius_documents(name, len(squared_radii)).items():
                self._blobs.put(document, [content], durable=False)
            self._blobs.put(radius_chunk(name), [body, _checksum(body)], durable=False)

    def _read(self, points: str) -> Floats | None:
        """Return radii from beside the bank, None if they are missing, cut short or damaged."""
        if self._blobs is None:
            return None
        content = None
        with suppress(StoreError):
            content = self._blobs.get(radius_chunk(self._name(points)))
        if content is None or len(content) != STORED.itemsize * self._n_kernels + CHECKSUM_BYTES:
            return None
        body, checksum = content[:-CHECKSUM_BYTES], content[-CHECKSUM_BYTES:]
        if checksum != _checksum(body):
            return None
        return np.frombuffer(body, STORED).astype(np.float64)

    def _name(self, points: str) -> str:
        return content_id(bank=self._bank, points=points)


def _checksum(body: bytes) -> bytes:
    return int(google_crc32c.value(body)).to_bytes(CHECKSUM_BYTES, "little")
