"""Content hashes: the names under which banks, runs and data sets are stored and found again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_PIECE = 2**20


def content_id(**parts: Any) -> str:
    """Return a 20-character hex id of JSON-serialisable `parts`, independent of their order.

    Examples
    --------
    >>> content_id(a=1, b="x") == content_id(b="x", a=1)
    True
    """
    document = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(document.encode(), digest_size=10).hexdigest()


def array_id(*arrays: npt.NDArray[Any] | None) -> str:
    """Return a 20-character hex id of the shapes, dtypes and bytes of `arrays`."""
    digest = hashlib.blake2b(digest_size=10)
    for array in arrays:
        if array is None:
            digest.update(b"none;")
            continue
        contiguous = np.ascontiguousarray(array)
        digest.update(f"{contiguous.dtype.str}{contiguous.shape};".encode())
        digest.update(contiguous.tobytes() if contiguous.dtype.hasobject else contiguous.data)
    return digest.hexdigest()


def array_file_id(path: Path) -> str:
    """Return the :func:`array_id` of the array in a ``.npy`` file, without holding the array.

    The file is read piece by piece, not mapped, so that the memory of the process stays as it is.
    """
    with path.open("rb") as file:
        try:
            is_known = np.lib.format.read_magic(file) == (1, 0)
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # numpy evaluates headers, which fails in many ways
            raise ValueError("no file of an array") from error
        if not is_known or dtype.hasobject or dtype.names:
            raise ValueError("no file of an array of numbers or text")
        digest = hashlib.blake2b(f"{dtype.str}{shape or (1,)};".encode(), digest_size=10)
        if by_columns and len(shape) > 1:
            for part in np.load(path, mmap_mode="r", allow_pickle=False):
                digest.update(np.ascontiguousarray(part).data)
        else:
            while piece := file.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()
