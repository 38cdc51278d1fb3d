"""Arrays of text in a tree of results, read from their chunks.

The state of every run tells whether a sweep has something left to do.  Its arrays are read here,
because zarr takes longer to import than a finished sweep needs for all of its answer.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from mkldist.arrays import Array
from mkldist.results.zarr_documents import Document, array_document

_CODECS = array_document({}, "string", ())["codecs"]


def read_texts(folder: Path, document: Document) -> Array:
    """Return an array of text, as zarr reads it.

    Parameters
    ----------
    folder : Path
        Folder of the array.
    document : dict
        Its metadata, as :func:`mkldist.results.zarr_documents.array_document` writes them.

    Returns
    -------
    array of str objects
        Entries of chunks that were never written hold the fill value.

    Raises
    ------
    ValueError, RuntimeError, OSError
        If a chunk is damaged or cannot be read, or if the array is stored otherwise.
    """
    from numcodecs.vlen import VLenUTF8
    from numcodecs.zstd import Zstd

    if document["codecs"] != _CODECS:
        raise ValueError("an array of text in an unknown coding")
    shape: list[int] = document["shape"]
    chunks: list[int] = document["chunk_grid"]["configuration"]["chunk_shape"]
    values = np.full(shape, document["fill_value"], dtype=object)
    grid = (math.ceil(size / chunk) for size, chunk in zip(shape, chunks, strict=True))
    for index in np.ndindex(*grid):
        try:
            content = folder.joinpath("c", *map(str, index)).read_bytes()
        except FileNotFoundError:
            continue
        block = VLenUTF8().decode(Zstd().decode(content)).reshape(chunks)
        begin = [i * chunk for i, chunk in zip(index, chunks, strict=True)]
        part = values[tuple(slice(b, b + c) for b, c in zip(begin, chunks, strict=True))]
        # A chunk is stored whole, also where it reaches beyond the array.
        part[...] = block[tuple(map(slice, part.shape))]
    return values
