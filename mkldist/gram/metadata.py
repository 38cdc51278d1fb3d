"""The zarr version 3 documents that describe a bank in a Gram store.

A bank is a zarr group of two arrays, readable by any zarr library:

``gram``
    (M, T·b²) entries in the layout of :mod:`mkldist.gram.layout`, little-endian, each chunk
    followed by its crc32c.  They are not compressed: codecs save a sixth of a Gram matrix and cost
    most of the reading speed.
``complete``
    One uint8 per chunk of ``gram``: 1 once that chunk is durable.

Beside them, ``seconds`` holds the wall and the processor time that took each chunk to build,
followed by its crc32c.  Banks that were made before it was kept lack it, in part or as a whole.

The documents depend on the shape and the attributes of a bank alone, so two processes that create
the same bank write the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from mkldist.checked_json import json_value
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
from mkldist.gram.layout import LAYOUT_VERSION, TileLayout
from mkldist.identity import content_id

CHUNK_BYTES = 8 * 2**20
KERNELS_PER_CHUNK = 16
DTYPES = ("float32", "float64")

GRAM, COMPLETE = "gram/zarr.json", "complete/zarr.json"
SECONDS = "seconds/zarr.json"


@dataclass(frozen=True)
class BankShape:
    """Facts that determine the place of every entry of a bank."""

    n_kernels: int
    layout: TileLayout
    dtype: str

    @cached_property
    def chunk(self) -> tuple[int, int]:
        """Kernels and tiles of one chunk, of about 8 MiB.

        At least 16 kernels share a chunk if there are so many, because kernels are evaluated and
        combined side by side.  The number of tiles divides evenly, so only kernels need padding.
        """
        tile_bytes = self.layout.tile_entries * np.dtype(self.dtype).itemsize
        at_least = min(KERNELS_PER_CHUNK, max(self.n_kernels, 1))
        wanted = max(1, CHUNK_BYTES // (at_least * tile_bytes))
        n_tiles = self.layout.n_tiles
        tiles = max(t for t in range(1, min(wanted, n_tiles) + 1) if n_tiles % t == 0)
        most = max(at_least, CHUNK_BYTES // (tiles * tile_bytes))
        kernels = math.ceil(self.n_kernels / math.ceil(self.n_kernels / most))
        return kernels, tiles

    @property
    def grid(self) -> tuple[int, int]:
        """Number of chunks along the kernels and along the tiles."""
        kernels, tiles = self.chunk
        return math.ceil(self.n_kernels / kernels), self.layout.n_tiles // tiles


def documents(shape: BankShape, attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that describe a bank, in the order in which they must be written.

    The document of the group comes last: a store exists as soon as this document does.
    """
    group = {"attributes": {**attributes, "bank": _described(shape, attributes)}}
    arrays = _arrays(shape)
    return {
        GRAM: encoded(arrays[GRAM]),
        COMPLETE: encoded(arrays[COMPLETE]),
        GROUP: encoded(GROUP_DOCUMENT | group),
    }


def _arrays(shape: BankShape) -> dict[str, dict[str, Any]]:
    """Return the documents of the two arrays of a bank."""
    kernels, tiles = shape.chunk
    return {
        GRAM: array_document(
            shape=(shape.n_kernels, shape.layout.n_entries),
            dtype=shape.dtype,
            chunk=(kernels, tiles * shape.layout.tile_entries),
            fill_value=0.0,
            codecs=CHECKED_CODECS,
            dimension_names=["kernel", "entry"],
        ),
        COMPLETE: array_document(
            shape=shape.grid,
            dtype="uint8",
            chunk=(1, 1),
            fill_value=0,
            codecs=[{"name": "bytes"}],
            dimension_names=["kernel_block", "tile_block"],
        ),
    }


def seconds_document(shape: BankShape, *, checked: bool = True) -> bytes:
    """Return the file that describes the build times of a bank, without checksums if it is old."""
    return encoded(
        array_document(
            shape=(*shape.grid, 2),
            dtype="float64",
            chunk=(1, 1, 2),
            fill_value=0.0,
            codecs=CHECKED_CODECS if checked else CHECKED_CODECS[:1],
            dimension_names=["kernel_block", "tile_block", "clock"],
        )
    )


def parsed(where: str, content: Mapping[str, bytes | None]) -> tuple[BankShape, dict[str, Any]]:
    """Return the shape and the further attributes of a bank from its documents.

    Parameters
    ----------
    where : str
        Place of the store, for messages.
    content : mapping of str to bytes or None
        The three documents by name; None for a missing one.

    Raises
    ------
    DamagedDescriptionError
        If a document is missing or cut short, describes something else, fails its checksum, or
        contradicts another document.
    StoreError
        If the bank has another layout.
    """
    found = {name: decoded(where, name, content[name]) for name in content}
    attributes = found[GROUP].get("attributes")
    if not isinstance(attributes, dict) or not isinstance(attributes.get("bank"), dict):
        raise DamagedDescriptionError(
            f"{where}/{GROUP}",
            "a zarr group that describes no bank",
            "a bank of Gram matrices",
            remedy(where),
        )
    described = attributes.pop("bank")
    facts = {name: value for name, value in described.items() if name != "checksum"}
    if described.get("checksum") != content_id(facts=facts, attributes=attributes):
        raise DamagedDescriptionError(
            f"{where}/{GROUP}",
            "attributes that fail their checksum",
            "the attributes as they were written",
            remedy(where),
        )
    shape = _shape(f"{where}/{GROUP}", described)
    check_documents(where, found, _arrays(shape))
    return shape, attributes


def is_mostly(content: Mapping[str, bytes | None], shape: BankShape) -> bool:
    """Return True if two of three documents describe a bank of this shape, the other damaged.

    Parameters
    ----------
    content : mapping of str to bytes or None
        The documents by name; None for a missing one.
    shape : BankShape
        The shape.
    """
    wanted = documents(shape, {})
    agreeing = sum(content[name] == wanted[name] for name in (GRAM, COMPLETE))
    try:
        described = json_value(content[GROUP] or b"")["attributes"]["bank"]
        agreeing += _shape("", described) == shape
    except (ValueError, KeyError, TypeError, AttributeError, StoreError):
        pass
    return agreeing >= 2


def _described(shape: BankShape, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that the group states about a bank, with a checksum over all attributes.

    The checksum also finds a changed number of points that leaves the tiles, and with them the
    shapes of the arrays, as they are.
    """
    facts = {
        "layout_version": LAYOUT_VERSION,
        "n_kernels": shape.n_kernels,
        "n_points": shape.layout.n_points,
        "tile": shape.layout.tile,
        "dtype": shape.dtype,
    }
    return {**facts, "checksum": content_id(facts=facts, attributes=dict(attributes))}


def _shape(where: str, described: dict[str, Any]) -> BankShape:
    """Return the shape from the group's attributes."""
    version = described.get("layout_version")
    if version != LAYOUT_VERSION:
        raise StoreError(
            where,
            f"layout version {version!r}",
            f"{LAYOUT_VERSION}",
            "Use the mkldist that wrote it, or delete it",
        )
    numbers = {name: described.get(name) for name in ("n_kernels", "n_points", "tile")}
    for name, value in numbers.items():
        if type(value) is not int or value < 1:
            raise StoreError(where, f"{name} = {value!r}", "an integer of at least 1")
    dtype = described.get("dtype")
    if dtype not in DTYPES:
        raise StoreError(where, f"dtype = {dtype!r}", " or ".join(DTYPES))
    n_kernels, n_points, tile = cast("list[int]", list(numbers.values()))
    return BankShape(n_kernels, TileLayout(n_points, tile), dtype)
