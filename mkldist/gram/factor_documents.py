"""The zarr version 3 documents that describe a bank of factors in a store.

A bank is a zarr group of two arrays, readable by any zarr library:

``factors``
    (M, n, n) columns of the factors G of all kernels, one column a row, little-endian.  A chunk is
    a piece of :mod:`mkldist.optim.pivoted_cholesky` of one kernel, followed by its crc32c.  Columns
    that are not made are zero.
``pivots``
    (M, n) int64, the pivot of each column, -1 where there is none.  The chunk of a piece is written
    once its columns are durable.

Beside them, ``seconds`` holds the wall and the processor time that took each piece to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.checksums import CHECKSUM_BYTES
from mkldist.errors import StoreError
from mkldist.gram.array_documents import (
    CHECKED_CODECS,
    GROUP,
    GROUP_DOCUMENT,
    DamagedDescriptionError,
    array_document,
    check_documents,
    decoded,
    encoded,
    remedy,
)
from mkldist.identity import content_id
from mkldist.optim.pivoted_cholesky import PIECE

VERSION = 2  # raised when the same kernels and seed would give other pieces
DTYPES = ("float32", "float64")
FACTORS, PIVOTS, SECONDS = "factors/zarr.json", "pivots/zarr.json", "seconds/zarr.json"
DESCRIBED, CHECKSUM = "factors", "checksum"


@dataclass(frozen=True)
class FactorShape:
    """Facts that determine the place of every column of a bank of factors."""

    n_kernels: int
    n_points: int
    dtype: str

    @property
    def n_pieces(self) -> int:
        """Most pieces of a factor."""
        return -(-self.n_points // PIECE)

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns of a piece, with the padding of one that is not full."""
        return PIECE * self.n_points * np.dtype(self.dtype).itemsize

    @property
    def piece_bytes(self) -> int:
        """Bytes of the chunk file of a piece."""
        return self.column_bytes + CHECKSUM_BYTES


def documents(shape: FactorShape, attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that describe a bank, that of the group last."""
    group = {"attributes": {**attributes, DESCRIBED: _described(shape, attributes)}}
    arrays = {name: encoded(document) for name, document in _arrays(shape).items()}
    return {**arrays, GROUP: encoded(GROUP_DOCUMENT | group)}


def describes_factors(content: bytes | None) -> bool:
    """Return True if the document of a group says that it has factors."""
    try:
        return DESCRIBED in decoded("", GROUP, content).get("attributes", {})
    except (DamagedDescriptionError, TypeError):
        return False


def parsed(where: str, content: Mapping[str, bytes | None]) -> tuple[FactorShape, dict[str, Any]]:
    """Return the shape and the further attributes of a bank from its documents.

    Parameters
    ----------
    where : str
        Place of the store, for messages.
    content : mapping of str to bytes or None
        The documents by name; None for a missing one.

    Raises
    ------
    DamagedDescriptionError
        If a document is missing or damaged, or contradicts another.
    mkldist.errors.StoreError
        If the bank has another layout.
    """
    found = {name: decoded(where, name, content[name]) for name in content}
    attributes = found[GROUP].get("attributes")
    described = attributes.pop(DESCRIBED, None) if isinstance(attributes, dict) else None
    if not isinstance(attributes, dict) or not isinstance(described, dict):
        raise DamagedDescriptionError(
            f"{where}/{GROUP}",
            "a zarr group that describes no factors",
            "a bank of factors",
            remedy(where),
        )
    facts = {name: value for name, value in described.items() if name != CHECKSUM}
    if described.get(CHECKSUM) != content_id(facts=facts, attributes=attributes):
        raise DamagedDescriptionError(
            f"{where}/{GROUP}",
            "attributes that fail their checksum",
            "the attributes as they were written",
            remedy(where),
        )
    shape = _shape(f"{where}/{GROUP}", described)
    check_documents(where, found, _arrays(shape))
    return shape, attributes


def _shape(where: str, described: Mapping[str, Any]) -> FactorShape:
    """Return the shape from the group's attributes."""
    if described.get("version") != VERSION or described.get("piece") != PIECE:
        raise StoreError(
            where,
            f"version {described.get('version')!r} of factors",
            f"{VERSION}, of {PIECE} columns a piece",
            "Use the mkldist that wrote it, or delete it",
        )
    n_kernels, n_points = described.get("n_kernels"), described.get("n_points")
    dtype = described.get("dtype")
    if not (type(n_kernels) is int and type(n_points) is int and dtype in DTYPES):
        raise DamagedDescriptionError(
            where, f"{n_kernels!r} kernels on {n_points!r} points", "numbers", remedy(where)
        )
    return FactorShape(n_kernels, n_points, str(dtype))


def _described(shape: FactorShape, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that the group states, with a checksum over all attributes."""
    facts = {
        "version": VERSION,
        "piece": PIECE,
        "n_kernels": shape.n_kernels,
        "n_points": shape.n_points,
        "dtype": shape.dtype,
    }
    return {**facts, CHECKSUM: content_id(facts=facts, attributes=dict(attributes))}


def _arrays(shape: FactorShape) -> dict[str, dict[str, Any]]:
    """Return the documents of the arrays of a bank."""
    M, n = shape.n_kernels, shape.n_points
    return {
        FACTORS: array_document(
            shape=(M, n, n),
            dtype=shape.dtype,
            chunk=(1, PIECE, n),
            fill_value=0.0,
            codecs=CHECKED_CODECS,
            dimension_names=["kernel", "column", "point"],
        ),
        PIVOTS: array_document(
            shape=(M, n),
            dtype="int64",
            chunk=(1, PIECE),
            fill_value=-1,
            codecs=CHECKED_CODECS,
            dimension_names=["kernel", "column"],
        ),
        SECONDS: array_document(
            shape=(M, shape.n_pieces, 2),
            dtype="float64",
            chunk=(1, 1, 2),
            fill_value=0.0,
            codecs=CHECKED_CODECS,
            dimension_names=["kernel", "piece", "clock"],
        ),
    }
