"""Sealed archives: arrays and a JSON header as bytes that carry a digest of themselves.

The bytes are an ``.npz`` archive.  Its zip comment is the BLAKE2b digest of every byte before it,
because any zip tool and :func:`numpy.load` can read an archive with a comment, but not one with a
footer.  The digest is checked before any content is interpreted, so that truncated or altered bytes
are never read, and nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

DIGEST_BYTES = 16
HEADER = "header"

Arrays = dict[str, npt.NDArray[Any]]


def sealed(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return a header and arrays as bytes, which :func:`unsealed` checks.

    Parameters
    ----------
    header : mapping
        JSON-serialisable.
    arrays : mapping of str to array
        Arrays of numbers or text, none of them called ``header``.
    """
    text = json.dumps(header).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, header=np.frombuffer(text, dtype=np.uint8), **arrays)
    # The length of the comment is the last field of a zip archive.
    body = buffer.getvalue()[:-2] + DIGEST_BYTES.to_bytes(2, "little")
    return body + _digest(body)


def is_whole(content: bytes) -> bool:
    """Return True if `content` equals the result of :func:`sealed` to the last bit."""
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    return len(digest) == DIGEST_BYTES and digest == _digest(body)


def unsealed(content: bytes) -> tuple[dict[str, Any], Arrays] | None:
    """Return the header and the arrays of sealed bytes, or None if they are damaged."""
    if not is_whole(content):
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header: dict[str, Any] = json.loads(arrays.pop(HEADER).tobytes())
    return header, arrays


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
