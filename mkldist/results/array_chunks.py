"""Arrays in a tree of results, read from their chunks.

The states of all runs tell whether a sweep has something left to do, and some numbers make the
table of its status.  They are read here, because zarr takes longer to import than these commands
need for all of their answer.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from mkldist.arrays import Array
from mkldist.results.zarr_documents import Document, array_document


def read_array(folder: Path, document: Document) -> Array:
    """Return an array as zarr reads it; text as objects.

    Parameters
    ----------
    folder : Path
        Folder of the array.
    document : dict
        Its metadata, as :func:`mkldist.results.zarr_documents.array_document` writes them.

    Returns
    -------
    array
        Entries of chunks that were never written hold the fill value.

    Raises
    ------
    ValueError, RuntimeError, OSError
        If a chunk is damaged or cannot be read, or if the array is stored otherwise.
    """
    from numcodecs.vlen import VLenUTF8
    from numcodecs.zstd import Zstd

    kind = document["data_type"]
    if document["codecs"] != array_document({}, kind, ())["codecs"]:
        raise ValueError("an array in an unknown coding")
    dtype = np.dtype(object if kind == "string" else kind).newbyteorder("<")
    shape: list[int] = document["shape"]
    chunks: list[int] = document["chunk_grid"]["configuration"]["chunk_shape"]
    fill = document["fill_value"]
    values = np.full(shape, float(fill) if kind == "float64" else fill, dtype=dtype)
    grid = (math.ceil(size / chunk) for size, chunk in zip(shape, chunks, strict=True))
    for index in np.ndindex(*grid):
        try:
            content = folder.joinpath("c", *map(str, index)).read_bytes()
        except FileNotFoundError:
            continue
        raw = Zstd().decode(content)
        flat = VLenUTF8().decode(raw) if kind == "string" else np.frombuffer(raw, dtype)
        begin = [i * chunk for i, chunk in zip(index, chunks, strict=True)]
        part = values[tuple(slice(b, b + c) for b, c in zip(begin, chunks, strict=True))]
        # A chunk is stored whole, also where it reaches beyond the array.
        part[...] = flat.reshape(chunks)[tuple(map(slice, part.shape))]
    return values
