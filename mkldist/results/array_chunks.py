"""Arrays in a tree of results, read from their chunks and written to them.

zarr takes longer to import than the commands that read states need for all of their answer, and a
millisecond for every array that it reads or writes.  Trees have dozens of small arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.checksums import CHECKSUM_BYTES, crc32c
from mkldist.durable import write_file
from mkldist.results.zarr_documents import (
    COMPRESSION_LEVEL,
    Document,
    array_document,
)


def read_array(folder: Path, document: Document) -> Array:
    """Return an array as zarr reads it; text as objects.

    Returns
    -------
    array
        Entries of chunks that were never written hold the fill value.

    Raises
    ------
    ValueError, RuntimeError, OSError
        If a chunk is damaged or cannot be read, or if the array is stored otherwise.
    """
    return read_part(folder, document, [slice(0, size) for size in document["shape"]])


def read_part(folder: Path, document: Document, part: Sequence[slice]) -> Array:
    """Return a part of an array, read from the chunks that it touches.

    Parameters
    ----------
    folder, document
        As for :func:`read_array`.
    part : sequence of slice
        Start and stop along every dim, within the shape; no steps.
    """
    dtype = _dtype(document)
    chunks = _chunk_shape(document)
    values = np.full([s.stop - s.start for s in part], fill_of(document), dtype=dtype)
    ranges = [
        range(s.start // chunk, math.ceil(s.stop / chunk) if s.stop > s.start else 0)
        for s, chunk in zip(part, chunks, strict=True)
    ]
    for numbers in np.ndindex(*(max(len(r), 0) for r in ranges)):
        index = [r[number] for r, number in zip(ranges, numbers, strict=True)]
        chunk_values = read_chunk(folder, document, index)
        if chunk_values is None:
            continue
        begins = [i * chunk for i, chunk in zip(index, chunks, strict=True)]
        there, here = [], []
        for s, begin, chunk in zip(part, begins, chunks, strict=True):
            low, high = max(s.start, begin), min(s.stop, begin + chunk)
            there.append(slice(low - begin, high - begin))
            here.append(slice(low - s.start, high - s.start))
        values[tuple(here)] = chunk_values[tuple(there)]
    return values


def read_chunk(folder: Path, document: Document, index: Sequence[int]) -> Array | None:
    """Return the entries of a chunk, also those beyond the array; None if it was never written.

    Parameters
    ----------
    folder, document
        As for :func:`read_array`.
    index : sequence of int
        Place of the chunk in the grid of chunks.
    """
    try:
        content = _chunk_path(folder, index).read_bytes()
    except FileNotFoundError:
        return None
    return _decoded(content, _dtype(document)).reshape(_chunk_shape(document))


def write_chunk(
    folder: Path, document: Document, index: Sequence[int], values: Array, through: Path
) -> None:
    """Write a chunk; a reader finds the old content or the whole new one.

    Parameters
    ----------
    folder, document, index
        As for :func:`read_chunk`.
    values : array
        Entries of the dtype of the array, of the shape of a chunk.
    through : Path
        Folder of the temporary file, on the same file system.
    """
    path = _chunk_path(folder, index)
    write_file(path, [_encoded(values)], through=through, durable=False)


def write_rows(
    folder: Path, document: Document, place: Sequence[int], values: Array, through: Path
) -> None:
    """Write all entries below a place of an array, in whole chunks.

    A reader finds the old content of a chunk or the whole new one.

    Parameters
    ----------
    folder, document
        As for :func:`read_array`.
    place : sequence of int
        Index along the first dims, whose chunks have length 1; none for the whole array.
    values : array
        Entries, of the shape of the other dims.
    through : Path
        Folder of temporary files, on the same file system.
    """
    shape, chunks = document["shape"][len(place) :], _chunk_shape(document)[len(place) :]
    values = np.asarray(values, dtype=_dtype(document)).reshape(shape)
    for index in np.ndindex(*(math.ceil(size / c) for size, c in zip(shape, chunks, strict=True))):
        begin = [i * chunk for i, chunk in zip(index, chunks, strict=True)]
        where: tuple[Any, ...] = tuple(slice(b, b + c) for b, c in zip(begin, chunks, strict=True))
        part = values[(..., *where)]
        if list(part.shape) != chunks:  # a chunk is stored whole, also beyond the array
            whole = np.full(chunks, fill_of(document), dtype=values.dtype)
            whole[tuple(map(slice, part.shape))] = part
            part = whole
        write_chunk(folder, document, (*place, *index), part, through)


def fill_of(document: Document) -> Any:
    """Return the value of entries that were never written."""
    fill = document["fill_value"]
    return float(fill) if document["data_type"] == "float64" else fill


def is_intact(content: bytes) -> bool:
    """Return True if the bytes of a chunk fit the checksum that they end with."""
    return content[-CHECKSUM_BYTES:] == crc32c([content[:-CHECKSUM_BYTES]])


def chunk_names(document: Document) -> tuple[str, ...]:
    """Return the names of the files of an array's chunks below its folder, written or not."""
    return _names_of_grid(tuple(document["shape"]), tuple(_chunk_shape(document)))


@lru_cache(maxsize=16)  # the arrays of a node have the same few grids
def _names_of_grid(shape: tuple[int, ...], chunk: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the chunks of an array of some shape."""
    grid = [range(math.ceil(size / part)) for size, part in zip(shape, chunk, strict=True)]
    return tuple("/".join(("c", *map(str, index))) for index in itertools.product(*grid))


def _dtype(document: Document) -> np.dtype[Any]:
    """Return the dtype of the entries of an array that is stored as documents here say."""
    kind = document["data_type"]
    if document["codecs"] != _codecs(kind):
        raise ValueError("an array in an unknown coding")
    return np.dtype(object if kind == "string" else kind).newbyteorder("<")


@cache
def _codecs(kind: str) -> list[Document]:
    """Return the codecs of arrays of some type."""
    codecs: list[Document] = array_document({}, kind, ())["codecs"]
    return codecs


def _chunk_shape(document: Document) -> list[int]:
    shape: list[int] = document["chunk_grid"]["configuration"]["chunk_shape"]
    return shape


def _chunk_path(folder: Path, index: Sequence[int]) -> Path:
    return folder.joinpath("c", *map(str, index))


def _decoded(content: bytes, dtype: np.dtype[Any]) -> Array:
    from numcodecs.vlen import VLenUTF8
    from numcodecs.zstd import Zstd

    if not is_intact(content):
        raise ValueError("a chunk that fails its checksum")
    raw = Zstd().decode(content[:-CHECKSUM_BYTES])
    decoded: Array = VLenUTF8().decode(raw) if dtype.hasobject else np.frombuffer(raw, dtype)
    return decoded


def _encoded(values: Array) -> bytes:
    from numcodecs.vlen import VLenUTF8
    from numcodecs.zstd import Zstd

    flat = np.ascontiguousarray(values).ravel()
    raw = VLenUTF8().encode(flat) if flat.dtype.hasobject else flat.view(np.uint8)
    content: bytes = Zstd(level=COMPRESSION_LEVEL, checksum=False).encode(raw)
    return content + crc32c([content])
