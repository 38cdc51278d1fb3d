"""Content hashes: the names under which banks, runs and data sets are stored and found again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt


def content_id(**parts: Any) -> str:
    """Return a 20-character hex id of JSON-serialisable `parts`, independent of their order.

    Examples
    --------
    >>> content_id(a=1, b="x") == content_id(b="x", a=1)
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


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
